"""A few rows on the host for which scikit-learn's checks say the same as for all rows on a device.

What kind of targets an array holds, and whether scikit-learn refuses it, follows from a few facts. They are
computed on the device and reach the host together; then rows are made with the same facts.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, float_dtype, to_host
from manyfit.folds import Unsupported

Array = Any

# Least value, greatest value, whether there are no others, and whether all are whole numbers.
N_FACTS = 4
# Most representative rows; a shorter array has as many as its length, so that errors name its shape.
MAX_ROWS = 1000


def value_facts(values: Array) -> Array:
    """The facts of an array of numbers, (N_FACTS,) and floating, on its device."""
    xp = array_namespace(values)
    if xp.isdtype(values.dtype, "bool"):
        values = xp.astype(values, xp.int8)
    low, high = xp.min(values), xp.max(values)
    whole = xp.ones_like(values, dtype=xp.bool)
    if xp.isdtype(values.dtype, "real floating"):
        whole = xp.isfinite(values) & (xp.trunc(values) == values)
    found = (low, high, xp.all((values == low) | (values == high)), xp.all(whole))
    return xp.stack([xp.astype(fact, float_dtype(values)) for fact in found])


def make_rows(facts: Any, like: Array, n_rows: int) -> np.ndarray:
    """Rows on the host, (n_rows, ...), with the `facts` of the array `like`, (n, ...)."""
    low, high, only_two, whole = facts
    values = [low, high]
    if not only_two:
        values.append(low + 1 if whole else low / 2 + high / 2 + 0.1)
    return np.resize(np.asarray(values).astype(host_dtype(like)), (n_rows, *like.shape[1:]))


def host_dtype(array: Array) -> Any:
    """NumPy's dtype for representative rows of an array; integers have 64 bits."""
    xp = array_namespace(array)
    if xp.isdtype(array.dtype, "bool"):
        return np.bool_
    if xp.isdtype(array.dtype, "integral"):
        return np.int64
    return np.float32 if array.dtype == xp.float32 else np.float64


def representative_rows(array: Any, n_rows: int) -> Any:
    """Rows on the host for an array on a device, for which the host waits once.

    None stays. For an array on the host they are its first rows, repeated if it has too few.
    """
    if array is None:
        return None
    if isinstance(array, np.ndarray):
        return np.resize(array, (n_rows, *array.shape[1:]))
    return make_rows(to_host(value_facts(array)).tolist(), array, n_rows)


def raise_sklearn_error(
    function: Callable[..., Any], arrays: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Raise scikit-learn's error for arrays that its `function` refuses, or Unsupported if it accepts them.

    `arrays` are its array arguments by name, on host or device; `options` are the others.
    """
    n_rows = min(MAX_ROWS, max(0 if array is None else array.shape[0] for array in arrays.values()))
    function(**{name: representative_rows(array, n_rows) for name, array in arrays.items()}, **options)
    raise Unsupported("values that are neither refused nor known")
