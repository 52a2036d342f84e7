"""Fits of ensembles that go on from those of an earlier round of a search, which had fewer members."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from manyfit._compat import bytes_of_boosting
from manyfit.introspection.structural_key import Unkeyable, structural_key

# The parameter that says how many members an ensemble has. Their ``warm_start`` draws the random numbers that
# a longer fit would have drawn, and adds the same numbers in the same order. Not GradientBoosting: its fits
# add products in NumPy, its predictions in compiled code, where a processor may round only once.
_SIZES: dict[type, str] = dict.fromkeys(
    (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor), "n_estimators"
) | dict.fromkeys((HistGradientBoostingClassifier, HistGradientBoostingRegressor), "max_iter")
# From so many rows on, ``early_stopping="auto"`` stops.
_MOST_WITHOUT_STOPPING = 10_000
# Bytes of a node of a tree, without its value.
_NODE = 64


class ContinuedFits:
    """The fitted ensembles of the last round of a search in this process, and of this one.

    `memory`: bytes that those of a round may take. Models are found by the content of their rows.
    """

    def __init__(self, memory: int) -> None:
        self.n_members_kept = 0  # members that fits did not make, since the round before had made them
        self._memory, self._bytes = memory, 0
        self._last: dict[Hashable, tuple[int, dict[str, Any]]] = {}
        self._now: dict[Hashable, tuple[int, dict[str, Any]]] = {}

    def next_round(self) -> None:
        """Forget the round before the last one."""
        self._last, self._now, self._bytes = self._now, {}, 0

    def fit(self, model: Any, X: Any, *y: Any, **params: Any) -> Any:
        """Fit a model, from that of the round before with the same parameters and rows, if there is one."""
        size = _SIZES.get(type(model))
        if size is None or not _is_repeatable(model, X):
            return model.fit(X, *y, **params)
        others = {name: value for name, value in model.get_params(deep=False).items() if name != size}
        try:
            key = type(model), structural_key(others), structural_key((X, *y, params), by_identity=False)
        except Unkeyable:
            return model.fit(X, *y, **params)
        n, fitted = self._last.pop(key, (0, {}))
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
        self._keep(
            key, getattr(model, size), {name: vars(model)[name] for name in vars(model).keys() - given}
        )
        return model

    def _keep(self, key: Hashable, n: int, fitted: dict[str, Any]) -> None:
        """Keep what a fit has found, for a model with more members."""
        self._bytes += _bytes_of(fitted)
        if self._bytes <= self._memory:
            # A list of members grows in place.
            copied = {name: list(one) if isinstance(one, list) else one for name, one in fitted.items()}
            self._now[key] = n, copied


def _is_repeatable(model: Any, X: Any) -> bool:
    """Whether a fit that goes on is the longer fit to the bit, with the same warnings."""
    if model.warm_start or model.verbose or not isinstance(model.random_state, numbers.Integral):
        return False
    if isinstance(model, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
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
