"""scikit-learn's nearest neighbours: which code finds them, and on how many threads."""

from typing import Any

import sklearn
from sklearn.metrics._pairwise_distances_reduction import ArgKmin
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

__all__ = ["algorithm_of", "neighbors_query", "openmp_threads", "votes_need_plain_labels"]


def algorithm_of(fitted: Any) -> str:
    """The algorithm that a fit has chosen."""
    return str(fitted._fit_method)


def neighbors_query(fitted: Any, X: Any) -> str:
    """How ``kneighbors`` of a fitted estimator finds the neighbours of rows X, C-ordered or CSR.

    "tree": row by row; "products": by matrix products of chunks of rows; "pairs": a distance at a time, in
    chunks; "matrix": from a matrix of distances.
    """
    metric = fitted.effective_metric_
    if fitted._fit_method in ("kd_tree", "ball_tree"):
        return "tree"
    if fitted._fit_method != "brute" or not ArgKmin.is_usable_for(X, fitted._fit_X, metric):
        return "matrix"
    return "products" if metric in ("euclidean", "sqeuclidean") else "pairs"


def openmp_threads() -> int:
    """Threads on which scikit-learn's compiled code runs now."""
    return int(_openmp_effective_n_threads())


def votes_need_plain_labels() -> bool:
    """Whether uniform votes over "pairs" are only counted for labels 0, 1, ... (a defect before 1.9)."""
    return tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)
