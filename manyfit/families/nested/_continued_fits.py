"""Fits of ensembles that go on from those of an earlier round of a search, which had fewer members."""

from __future__ import annotations

import numbers
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sklearn.pipeline import Pipeline

from manyfit._compat import bytes_of_boosting, has_callbacks
from manyfit.families.nested._ensemble_stores import Ensemble, EnsembleStore
from manyfit.introspection.class_names import public_name
from manyfit.introspection.stable_digest import digest_of_parts
from manyfit.introspection.structural_key import Unkeyable, structural_key

# The parameter that says how many members an ensemble has. Their ``warm_start`` draws the random numbers that
# a longer fit would have drawn, and adds the same numbers in the same order. Not GradientBoosting: its fits
# add products in NumPy, its predictions in compiled code, where a processor may round only once.
_SIZES = {
    "sklearn.ensemble.ExtraTreesClassifier": "n_estimators",
    "sklearn.ensemble.ExtraTreesRegressor": "n_estimators",
    "sklearn.ensemble.HistGradientBoostingClassifier": "max_iter",
    "sklearn.ensemble.HistGradientBoostingRegressor": "max_iter",
    "sklearn.ensemble.RandomForestClassifier": "n_estimators",
    "sklearn.ensemble.RandomForestRegressor": "n_estimators",
}
# From so many rows on, ``early_stopping="auto"`` stops.
_MOST_WITHOUT_STOPPING = 10_000
# Bytes of a node of a tree, without its value.
_NODE = 64


def can_continue(estimator: Any, parameter: str) -> bool:
    """Whether a fit with a larger value of a parameter may go on from one with a smaller value."""
    step, _, name = parameter.rpartition("__")
    if type(estimator) is Pipeline and estimator.steps[-1][0] == step:
        estimator, step = estimator.steps[-1][1], ""
    return not step and _size_of(estimator) == name


def _size_of(estimator: Any) -> str | None:
    return _SIZES.get(public_name(type(estimator)))


class ContinuedFits:
    """Fits of a round of a search, which go on from the ensembles of the round before in a store."""

    def __init__(self, store: EnsembleStore) -> None:
        self._store = store
        self.n_members_kept = 0  # members that fits did not make, since the round before had made them

    def next_round(self) -> None:
        """Forget the round before the last one."""
        self._store.next_round()

    def part(self) -> ContinuedFits:
        """The same for the fits of a task, with a count of its own."""
        return ContinuedFits(self._store)

    def fit(self, model: Any, X: Any, *y: Any, **params: Any) -> Any:
        """Fit a model, from that of the round before with the same parameters and rows, if there is one.

        Of a pipeline the last step goes on, if its steps get no parameters of ``fit``.
        """
        if type(model) is Pipeline and len(model.steps) > 1 and not params and _is_plain(model):
            rows = model[:-1].fit_transform(X, *y)
            self.fit(model.steps[-1][1], rows, *y)
            return model
        size = _size_of(model)
        if size is None or not _is_repeatable(model, X):
            return model.fit(X, *y, **params)
        try:
            name = _name_of(model, size, (X, *y, params))
        except Unkeyable:
            return model.fit(X, *y, **params)
        n, fitted = self._store.take(name) or (0, {})
        given = {*vars(model)}
        if not 0 < n < getattr(model, size):
            model.fit(X, *y, **params)
        else:
            vars(model).update(fitted)
            model.warm_start = True
            try:
                model.fit(X, *y, **params)
            finally:
                model.warm_start = False
            self.n_members_kept += n
        fitted = {name: vars(model)[name] for name in vars(model).keys() - given}
        self._store.keep(name, Ensemble(getattr(model, size), fitted), _bytes_of(fitted))
        return model


def _name_of(model: Any, size: str, data: tuple[Any, ...]) -> str:
    """The name of a fit of any size: a digest of what decides it, which is the same in all processes."""
    params = {name: value for name, value in model.get_params(deep=False).items() if name != size}
    digest, *identities = structural_key((type(model).__name__, params, data), by_identity=False)
    try:
        # Classes and functions, which pickle names by their modules.
        names = [pickle.dumps(one.thing) for one in identities]
    except Exception as error:
        raise Unkeyable("a function without a module") from error
    return digest_of_parts("fit", digest.encode(), *names).hex()


def _is_plain(pipeline: Pipeline) -> bool:
    """Whether ``fit`` of a pipeline fits its own steps one after the other, and does nothing else."""
    options = (pipeline.memory, pipeline.transform_input, pipeline.verbose or None)
    own = all(one is None for one in options) and not has_callbacks(pipeline)
    return own and _size_of(pipeline.steps[-1][1]) is not None


def _is_repeatable(model: Any, X: Any) -> bool:
    """Whether a fit that goes on is the longer fit to the bit, with the same warnings."""
    if model.warm_start or model.verbose or not isinstance(model.random_state, numbers.Integral):
        return False
    if _size_of(model) == "max_iter":
        stops = model.early_stopping
        return stops is False or (stops == "auto" and X.shape[0] <= _MOST_WITHOUT_STOPPING)
    return not model.oob_score and not isinstance(getattr(model, "class_weight", None), str)


def _bytes_of(fitted: dict[str, Any]) -> int:
    if "estimators_" not in fitted:
        return bytes_of_boosting(fitted)
    trees = [tree.tree_ for tree in fitted["estimators_"]]
    return sum(tree.node_count * (_NODE + 8 * tree.n_outputs * tree.max_n_classes) for tree in trees)


_CURRENT: ContextVar[ContinuedFits | None] = ContextVar("continued_fits", default=None)


@contextmanager
def continuing(fits: ContinuedFits) -> Iterator[ContinuedFits]:
    """Let fits of this thread in the block go on from those of earlier rounds."""
    token = _CURRENT.set(fits)
    try:
        yield fits
    finally:
        _CURRENT.reset(token)


def continued_fits() -> ContinuedFits | None:
    """The fits of the search that runs in this thread, if they may go on."""
    return _CURRENT.get()


def fit_continued(model: Any, X: Any, *y: Any, **params: Any) -> Any:
    """Fit a model; it goes on from that of the round before where the search allows it."""
    fits = _CURRENT.get()
    return model.fit(X, *y, **params) if fits is None else fits.fit(model, X, *y, **params)
