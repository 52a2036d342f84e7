"""Data for which Ridge's solver on a device, an SVD, and the host's solver give different answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyfit._compat import check_parameters
from manyfit.arrays import array_namespace, numpy_dtype, to_host
from manyfit.exceptions import Unsupported


def check_ridge(estimator: Any, X: Any, weight: Any) -> None:
    """Refuse data that the host's solver refuses, and on which an SVD is silent or does not converge.

    Reads the extremes of X and of the weights, one synchronisation each. Raises ValueError for a negative
    weight, and Unsupported if X is too large for ``solver="auto"``, which squares it on the host.
    """
    if check_parameters(estimator) is not None:
        return  # scikit-learn raises that first
    low, high = (0.0, 1.0) if weight is None else _extremes(weight)
    name = type(estimator).__name__
    if low < 0:
        raise ValueError(
            f"{name} takes the square roots of sample_weight, got negative ones down to {low:.3g}. Leave "
            "these rows out, or give them weight 0."
        )
    if estimator.solver != "auto" or numpy_dtype(X).kind != "f":
        return
    largest = max(map(abs, _extremes(X))) * max(high, 1.0) ** 0.5
    solver_dtype = np.float32 if numpy_dtype(X) == np.float32 else np.float64  # float64 for float16 too
    if np.sqrt(np.finfo(solver_dtype).max / max(X.shape[0], 1)) < largest < np.inf:
        raise Unsupported("X is too large to be squared")


def _extremes(array: Any) -> tuple[float, float]:
    """The smallest and the largest value; (0, 0) for an empty array, which scikit-learn refuses."""
    if numpy_dtype(array).kind not in "iuf" or 0 in array.shape:
        return 0.0, 0.0
    xp = array_namespace(array)
    low, high = to_host(xp.stack([xp.min(array), xp.max(array)]))
    return float(low), float(high)
