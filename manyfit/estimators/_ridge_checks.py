"""Where Ridge on a device, which is by an SVD there, would answer otherwise than on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyfit._compat import check_parameters
from manyfit.arrays import array_namespace, numpy_dtype, to_host
from manyfit.folds import Unsupported


def check_ridge(estimator: Any, X: Any, weight: Any) -> None:
    """Look for what an SVD is silent about, or does not converge with, and the host's solver refuses.

    Parameters
    ----------
    estimator : estimator
        Ridge or RidgeClassifier.
    X : array of shape (n, p)
        Where it is to be fitted. Its largest and smallest value are read, one synchronisation.
    weight : array of shape (n,) or None
        With X; read likewise.

    Raises
    ------
    ValueError
        If a weight is negative.
    Unsupported
        If X is too large for ``solver="auto"``, which on the host squares it.
    """
    if check_parameters(estimator) is not None:
        return  # which scikit-learn says first
    low, high = (0.0, 1.0) if weight is None else _ends(weight)
    name = type(estimator).__name__
    if low < 0:
        raise ValueError(
            f"{name} takes the square roots of sample_weight, got negative ones down to {low:.3g}. Leave "
            "these rows out, or give them weight 0."
        )
    if estimator.solver != "auto" or numpy_dtype(X).kind != "f":
        return
    largest = max(map(abs, _ends(X))) * max(high, 1.0) ** 0.5
    worked_in = np.float32 if numpy_dtype(X) == np.float32 else np.float64  # of others, float16 too
    if np.sqrt(np.finfo(worked_in).max / max(X.shape[0], 1)) < largest < np.inf:
        raise Unsupported("X is too large to be squared")


def _ends(array: Any) -> tuple[float, float]:
    """The smallest and the largest value; (0, 0) where there are none, which scikit-learn refuses."""
    if numpy_dtype(array).kind not in "iuf" or 0 in array.shape:
        return 0.0, 0.0
    xp = array_namespace(array)
    low, high = to_host(xp.stack([xp.min(array), xp.max(array)]))
    return float(low), float(high)
