"""Checks of all families of neighbours: settings and data that are left to scikit-learn."""

from typing import Any

import numpy as np
import scipy.sparse

from manyfit.folds import Unsupported

# Metrics that sparse rows of whole numbers and of floats have alike.
SPARSE_METRICS = ("euclidean", "l2", "cosine")


def require_metric(estimator: Any) -> None:
    """Refuse metrics that are no names, and those of which X is no matrix of complete rows."""
    metric = estimator.metric
    if not isinstance(metric, str):
        raise Unsupported("metric is a function or an object")
    if metric in ("precomputed", "nan_euclidean"):
        raise Unsupported(f"metric={metric!r} is not shared")


def require_weighting(weights: Any) -> None:
    """Refuse weights of a user's own function, which may do anything."""
    if weights is not None and not (isinstance(weights, str) and weights in ("uniform", "distance")):
        raise Unsupported("weights is a function")


def require_rows(X: Any, fitted: Any) -> None:
    """Refuse rows with NaN or infinity, where scikit-learn raises, and sparse ones with rare metrics."""
    if scipy.sparse.issparse(X):
        if fitted.effective_metric_ not in SPARSE_METRICS:
            raise Unsupported(f"metric={fitted.effective_metric_!r} of sparse rows is not shared")
    elif X.dtype.kind == "f" and not np.isfinite(X).all():
        raise Unsupported("X holds NaN or infinity")
