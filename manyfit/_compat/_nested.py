"""Parts of scikit-learn's transformers by which one fit serves several numbers of columns."""

from typing import Any

import numpy as np
from sklearn.cluster._agglomerative import _hc_cut
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.utils._set_output import _wrap_data_with_container

__all__ = ["RFEPath", "SequentialPath", "cut_tree", "learned_attributes", "wrap_output"]


def cut_tree(n_clusters: int, children: Any, n_leaves: int) -> Any:
    """The labels of the leaves that ``AgglomerativeClustering`` cuts from a whole tree."""
    return _hc_cut(n_clusters, children, n_leaves)


def learned_attributes(fitted: Any) -> dict[str, Any]:
    """The attributes of a fitted transformer beside its parameters and its output container."""
    own = {*fitted.get_params(deep=False), "_sklearn_output_config"}
    return {name: value for name, value in vars(fitted).items() if name not in own}


def wrap_output(output: Any, X: Any, transformer: Any) -> Any:
    """The output of a transformer for `X` in the container that ``set_output`` names."""
    return _wrap_data_with_container("transform", output, X, transformer)


class RFEPath(RFE):  # type: ignore[misc]
    """RFE whose fit keeps what RFE for other numbers of features would find on the way.

    Its ``path_`` holds (features, fitted estimator) by the number of features, for those in `kept`.
    """

    def __init__(self, kept: frozenset[int], **params: Any) -> None:
        super().__init__(**params)
        self.kept = kept

    def fit(self, X: Any, y: Any) -> "RFEPath":
        """Fit down to the smallest number of features."""
        self._validate_params()
        self.path_: dict[int, tuple[Any, Any]] = {}
        self._fit(X, y, self._keep)
        for name in ("step_n_features_", "step_scores_", "step_support_", "step_ranking_"):
            delattr(self, name)
        return self

    def _keep(self, estimator: Any, features: Any) -> None:
        if len(features) in self.kept:
            self.path_[len(features)] = features, estimator

    def steps_after(self, n_features: int) -> int:
        """How many times features were eliminated after there were so many."""
        ranks, counts = np.unique(self.ranking_, return_counts=True)
        return int(ranks[np.cumsum(counts) == n_features][0]) - 1


class SequentialPath(SequentialFeatureSelector):  # type: ignore[misc]
    """SequentialFeatureSelector whose fit notes each feature that it chooses, and the score with it."""

    def _get_best_new_feature_score(self, *args: Any, **params: Any) -> Any:
        found = super()._get_best_new_feature_score(*args, **params)
        self.path_: list[Any] = [*getattr(self, "path_", []), found]
        return found
