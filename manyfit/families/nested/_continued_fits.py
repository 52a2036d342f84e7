"""Fits of ensembles that go on from those of an earlier round of a search, which had fewer members."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from sklearn.pipeline import Pipeline

from manyfit._compat import bytes_of_boosting, num_samples
from manyfit._config import set_in_block
from manyfit.families.nested._continuable import size_of, why_anew
from manyfit.families.nested._ensemble_stores import LOST, Ensemble, EnsembleStore
from manyfit.introspection.stable_digest import digest_of_parts
from manyfit.introspection.structural_key import Unkeyable, structural_key

# Bytes of a node of a tree, without its value.
_NODE = 64
NOT_KEPT = (
    "the round before kept no model of this setting (memory_limit, a lost worker, or on a cluster a fit that "
    "it shared with others)"
)
NOT_ALONE = "the round before answered this setting by a fit that it shared with others, or by a checkpoint"


@dataclass
class Continued:
    """How many fits went on, with how many members in all; others of later rounds by why they did not."""

    fits: int = 0
    members: int = 0
    anew: Counter[str] = field(default_factory=Counter)

    def add(self, other: Continued) -> None:
        """Add the counts of other fits."""
        self.fits += other.fits
        self.members += other.members
        self.anew.update(other.anew)


class ContinuedFits:
    """Fits of a round of a search, which go on from the ensembles of the round before in a store.

    `round`: the number of the round, from 1 on; those of the first one have nothing to go on from.
    """

    def __init__(self, store: EnsembleStore, round: int = 0) -> None:
        self.store, self.round = store, round
        self.counts = Continued()

    def next_round(self) -> None:
        """Forget the round before the last one."""
        self.round += 1
        self.store.next_round()

    def part(self) -> ContinuedFits:
        """The same for the fits of a task, with counts of its own."""
        return ContinuedFits(self.store, self.round)

    def fit(self, model: Any, X: Any, *y: Any, **params: Any) -> Any:
        """Fit a model, from that of the round before with the same parameters and rows, if there is one.

        Of a pipeline the last step goes on, if its steps get no parameters of ``fit``.
        """
        why = why_anew(model, num_samples(X), params)
        if type(model) is Pipeline and len(model.steps) > 1 and not why:
            rows = model[:-1].fit_transform(X, *y)
            self.fit(model.steps[-1][1], rows, *y)
            return model
        name = "" if why else _name_of(model, (X, *y, params))
        if not name:
            self._count_anew(why or "rows or parameters that only their object tells apart")
            return model.fit(X, *y, **params)
        size = size_of(model)
        found = self.store.take(name)
        n, fitted = found or LOST
        given = {*vars(model)}
        if not 0 < n < getattr(model, size):
            self._count_anew(NOT_ALONE if found is None else NOT_KEPT)
            model.fit(X, *y, **params)
        else:
            vars(model).update(fitted)
            model.warm_start = True
            try:
                model.fit(X, *y, **params)
            finally:
                model.warm_start = False
            self.counts.add(Continued(1, n))
        fitted = {name: vars(model)[name] for name in vars(model).keys() - given}
        self.store.keep(name, Ensemble(getattr(model, size), fitted), _bytes_of(fitted))
        return model

    def _count_anew(self, why: str) -> None:
        if self.round > 1:
            self.counts.anew[why] += 1


def _name_of(model: Any, data: tuple[Any, ...]) -> str:
    """The name of a fit of any size: a digest of what decides it, which is the same in all processes.

    Empty if something is known by its identity only.
    """
    size = size_of(model)
    params = {name: value for name, value in model.get_params(deep=False).items() if name != size}
    try:
        digest, *identities = structural_key((type(model).__name__, params, data), by_identity=False)
        # Classes and functions, which pickle names by their modules.
        names = [pickle.dumps(one.thing) for one in identities]
    except Unkeyable:
        return ""
    except Exception:  # a function without a module
        return ""
    return digest_of_parts("fit", digest.encode(), *names).hex()


def _bytes_of(fitted: dict[str, Any]) -> int:
    if "estimators_" not in fitted:
        return bytes_of_boosting(fitted)
    trees = [tree.tree_ for tree in fitted["estimators_"]]
    return sum(tree.node_count * (_NODE + 8 * tree.n_outputs * tree.max_n_classes) for tree in trees)


_CURRENT: ContextVar[ContinuedFits | None] = ContextVar("continued_fits", default=None)


@contextmanager
def continuing(fits: ContinuedFits) -> Iterator[ContinuedFits]:
    """Let fits of this thread in the block go on from those of earlier rounds."""
    with set_in_block(_CURRENT, fits):
        yield fits


def continued_fits() -> ContinuedFits | None:
    """The fits of the search that runs in this thread, if they may go on."""
    return _CURRENT.get()


def fit_continued(model: Any, X: Any, *y: Any, **params: Any) -> Any:
    """Fit a model; it goes on from that of the round before where the search allows it."""
    fits = _CURRENT.get()
    return model.fit(X, *y, **params) if fits is None else fits.fit(model, X, *y, **params)
