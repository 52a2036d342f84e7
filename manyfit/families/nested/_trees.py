"""Decision trees: one grown tree holds those with fewer leaves, and all prunings."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from manyfit._compat import prune_tree, tree_with_nodes
from manyfit.families.nested._prefix import (
    NestedFamily,
    fit_silently,
    stack_responses,
)
from manyfit.families.protocol import (
    Answers,
    Cost,
    Responses,
    Settings,
    Shape,
    lazy_responses,
    register_family,
    require_number,
)
from manyfit.folds import Fold, Unsupported

# The most leaves, and alpha.
Size = tuple[int | None, float]


class TreeFamily(NestedFamily):
    """Trees of all `max_leaf_nodes` and `ccp_alpha`.

    With `max_leaf_nodes`, the leaf that gains most is split next, whatever the limit is. So the first nodes
    of the largest tree are the smaller trees. Without a limit a tree grows in another order: it is a fit of
    its own. Growing does not read `ccp_alpha`, which prunes the tree at the end of a fit.

    Reference: sklearn.tree._tree.BestFirstTreeBuilder and sklearn.tree.DecisionTreeClassifier.fit (1.9).
    """

    serves = (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)
    free = frozenset({"ccp_alpha", "max_leaf_nodes"})

    def check(self, estimator: Any, settings: Settings) -> None:
        super().check(estimator, settings)
        require_sizes(settings)

    def cost(self, estimator: Any, settings: Settings, shape: Shape) -> Cost:
        columns = shape.n_features if shape.n_entries is None else shape.n_entries / shape.n_train
        one = shape.n_splits * shape.n_train * columns * np.log2(max(shape.n_train, 2))
        grown = len(largest(settings))
        return Cost(one * grown, one * len(settings), fits=shape.n_splits * grown)

    def fit_fold(self, estimator: Any, settings: Settings, fold: Fold) -> Answers:
        grown = {}
        for limited, most in largest(settings).items():
            tree = clone(estimator).set_params(max_leaf_nodes=most, ccp_alpha=0.0)
            grown[limited] = fit_silently(tree, fold, many_targets=True)
        sizes = [(setting["max_leaf_nodes"], setting["ccp_alpha"]) for setting in settings]
        return self.answers(grown, sizes, len(grown))

    def responses(self, model: Mapping[bool, Any], X: Any, values: Sequence[Size]) -> Responses:
        """See `NestedFamily`; `model` holds the trees that were grown with a limit and without."""

        def of_all(method: str) -> Any:
            trees = (pruned(first_leaves(model[most is not None], most), alpha) for most, alpha in values)
            return stack_responses([getattr(tree, method)(X) for tree in trees])

        return lazy_responses(next(iter(model.values())), of_all)


def require_sizes(settings: Settings) -> None:
    """Raise `Unsupported` if scikit-learn would refuse a size of a tree."""
    for setting in settings:
        most = setting["max_leaf_nodes"]
        require_number("ccp_alpha", setting["ccp_alpha"])
        if most is not None and not (isinstance(most, numbers.Integral) and int(most) >= 2):
            raise Unsupported(f"max_leaf_nodes={most!r} is not an integer from 2")


def largest(settings: Settings) -> dict[bool, int | None]:
    """The largest limit of the leaves, by whether there is one."""
    limits = [setting["max_leaf_nodes"] for setting in settings]
    given = [most for most in limits if most is not None]
    return ({True: max(given)} if given else {}) | ({False: None} if len(given) < len(limits) else {})


def first_leaves(grown: Any, most: int | None) -> Any:
    """The tree with at most `most` leaves, of one that was grown with a larger limit."""
    if most is None or grown.tree_.n_leaves <= most:
        return grown
    # Each split adds two nodes, and one leaf.
    first = copy.copy(grown)
    first.tree_ = tree_with_nodes(grown.tree_, 2 * int(most) - 1)
    return first


def pruned(grown: Any, alpha: float) -> Any:
    """A copy of a grown tree, pruned."""
    tree = copy.copy(grown)
    tree.ccp_alpha = alpha
    prune_tree(tree)
    return tree


register_family(TreeFamily())
