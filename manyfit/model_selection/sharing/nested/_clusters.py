"""Clusters of columns: one tree, cut where a setting says."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.cluster import FeatureAgglomeration

from manyfit._compat.nested import cut_tree
from manyfit.model_selection.sharing.nested._rule import NestedRule, is_count, is_number, register_rule


class Agglomeration(NestedRule):
    """FeatureAgglomeration, where it builds the whole tree: a part of it has other labels.

    Reference: sklearn.cluster.AgglomerativeClustering._fit (1.7 to 1.9).
    """

    serves, params = (FeatureAgglomeration,), ("n_clusters", "distance_threshold")

    def kind(self, step: Any) -> Hashable:
        """Whether distances cut the tree: only then, the fit keeps them."""
        return step.distance_threshold is not None

    def holds(self, step: Any, wide: Any, X: Any) -> bool:
        p, number = X.shape[1], step.n_clusters
        if self.kind(step):
            return number is None and is_number(step.distance_threshold, Real)
        if not is_count(number, 1, p):
            return False
        if step.connectivity is None or step.compute_full_tree is True:
            return True
        by_number = isinstance(step.compute_full_tree, str) and step.compute_full_tree == "auto"
        return by_number and bool(number < max(100, 0.02 * p))

    def narrow(self, step: Any, wide: Any, X: Any) -> None:
        super().narrow(step, wide, X)
        n_clusters = step.n_clusters
        if self.kind(step):
            n_clusters = np.count_nonzero(wide.distances_ >= step.distance_threshold) + 1
        step.n_clusters_ = step._n_features_out = n_clusters
        step.labels_ = cut_tree(n_clusters, wide.children_, wide.n_leaves_)


register_rule(Agglomeration())
