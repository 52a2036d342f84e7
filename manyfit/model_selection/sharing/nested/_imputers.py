"""Imputation by neighbours: the distances of the rows are computed once for all numbers of neighbours."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.impute import KNNImputer

from manyfit._compat.nested import ImputerWithMemory, impute
from manyfit.model_selection.sharing.nested._rule import NestedRule, is_count, register_rule


class ImputedNeighbors(NestedRule):
    """KNNImputer: its fit reads neither parameter, and its transform needs the same distances for all values.

    Reference: sklearn.impute.KNNImputer.transform (1.7 to 1.9).
    """

    serves, params = (KNNImputer,), ("n_neighbors", "weights")

    def __init__(self) -> None:
        self._wide = weakref.WeakKeyDictionary[Any, Any]()

    def wide(self, step: Any, asked: Sequence[Any], X: Any) -> Any:
        served = {(one.n_neighbors, one.weights) for one in asked if self.holds(one, None, X)}
        if len(served) < 2 or not self.holds(step, None, X):
            return None
        return ImputerWithMemory(**step.get_params(deep=False))

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        named = isinstance(step.metric, str) and step.metric == "nan_euclidean" and step.copy is True
        weighted = step.weights is None or (
            isinstance(step.weights, str) and step.weights in ("uniform", "distance")
        )
        return named and weighted and is_count(step.n_neighbors, 1, np.iinfo(np.intp).max)

    def narrow(self, step: Any, wide: Any, X: Any) -> None:
        super().narrow(step, wide, X)
        del step.distances_
        self._wide[step] = weakref.ref(wide)

    def transform(self, step: Any) -> Callable[[Any], Any]:
        """See `NestedRule`; scikit-learn's own transform where the cache has dropped the distances."""
        wide = self._wide.get(step, lambda: None)()
        return step.transform if wide is None else partial(impute, step, wide.distances_)


register_rule(ImputedNeighbors())
