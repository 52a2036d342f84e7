"""Decision trees: one grown tree a fold, pruned for every `ccp_alpha`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from manyfit._compat import prune_tree
from manyfit.families.nested._prefix import NestedFamily, lazy_responses
from manyfit.families.protocol import Cost, Responses, Shape, register_family, require_number

Array = NDArray[Any]


class PruningFamily(NestedFamily):
    """Trees of all `ccp_alpha`: a tree is grown without it, and pruned to the end of the fit.

    References
    ----------
    sklearn.tree.DecisionTreeClassifier.fit (1.9): growing does not read `ccp_alpha`.
    """

    serves = (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)
    parameter = "ccp_alpha"

    def check(self, estimator: Any, settings: Sequence[Mapping[str, Any]]) -> None:
        super().check(estimator, settings)
        for setting in settings:
            require_number("ccp_alpha", setting["ccp_alpha"])

    def largest(self, values: Sequence[Any]) -> Any:
        """The grown tree."""
        return 0.0

    def cost(self, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape) -> Cost:
        columns = shape.n_features if shape.n_entries is None else shape.n_entries / shape.n_train
        one = shape.n_splits * shape.n_train * columns * np.log2(max(shape.n_train, 2))
        return Cost(one, one * len(settings), fits=shape.n_splits)

    def responses(self, model: Any, X: Any, values: Sequence[float]) -> Responses:
        """See `NestedFamily`."""

        def of_all(method: str) -> Array:
            return np.stack([getattr(pruned(model, alpha), method)(X) for alpha in values])

        return lazy_responses(model, of_all)


def pruned(grown: Any, alpha: float) -> Any:
    """A copy of a grown tree, pruned."""
    tree = copy.copy(grown)
    tree.ccp_alpha = alpha
    prune_tree(tree)
    return tree


register_family(PruningFamily())
