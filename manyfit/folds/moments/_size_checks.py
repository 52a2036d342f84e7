"""Refuses moments of columns that are too large or too small to be squared."""

from typing import Any

import numpy as np

from manyfit.exceptions import Unsupported
from manyfit.folds.moments._moments import Moments

# Columns of values, weights or targets beyond this, or under its inverse, are not squared: quotients and
# products of two of them, squared, would leave the range of float64 or lose digits at its lower end.
MAX_SIZE = 1e70


def require_squares(moments: Moments, i: int, role: str, dtype: np.dtype[Any]) -> Moments:
    """The moments of the rows of a role on split `i`, if they are finite and their columns can be squared."""
    if not np.isfinite(moments.scatter).all() or not moments.weight > 0:
        raise Unsupported(f"the {role} rows of split {i} have no finite moments (NaN, infinity or no weight)")
    sizes = np.maximum(np.sqrt(np.diagonal(moments.scatter) / moments.weight), np.abs(moments.mean))
    # scikit-learn squares and sums in the dtype of X.
    limit = min(MAX_SIZE, float(np.sqrt(1e-3 * np.finfo(dtype if dtype.kind == "f" else np.float64).max)))
    low, high = 1.0 / limit, limit / np.sqrt(moments.rows)
    if ((sizes > high) | ((sizes < low) & (sizes > 0.0))).any() or not low <= moments.weight <= limit:
        raise Unsupported(f"the {role} rows of split {i} are too large or too small to be squared")
    return moments
