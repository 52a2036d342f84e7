"""A few rows on the host in place of all rows on a device: scikit-learn's own checks say the same of both.

What kind of targets an array holds, and whether scikit-learn refuses it, follows from a few facts. They are
computed where the array lies and come home together; rows are then made up that they are true of.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, float_dtype, to_host
from manyfit.folds import Unsupported

Array = Any

# Facts of an array, in this order: its least and its greatest value, whether it has no others, and whether
# all are whole numbers.
N_FACTS = 4
# Most rows of a sketch; where there are fewer, it has as many as the array, so that errors name the shape.
MAX_ROWS = 1000


def facts(values: Array) -> Array:
    """The facts of an array of numbers, of shape (N_FACTS,), floating, where the array lies."""
    xp = array_namespace(values)
    if xp.isdtype(values.dtype, "bool"):
        values = xp.astype(values, xp.int8)
    low, high = xp.min(values), xp.max(values)
    whole = xp.ones_like(values, dtype=xp.bool)
    if xp.isdtype(values.dtype, "real floating"):
        # Of infinity and NaN neither is whole.
        whole = xp.isfinite(values) & (xp.trunc(values) == values)
    found = (low, high, xp.all((values == low) | (values == high)), xp.all(whole))
    return xp.stack([xp.astype(fact, float_dtype(values)) for fact in found])


def drawn(known: Any, like: Array, n_rows: int) -> np.ndarray:
    """Rows on the host of which the same facts are true.

    Parameters
    ----------
    known : sequence of float
        What `facts` gave, on the host.
    like : array of shape (n, ...)
        What it was given.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of shape (n_rows, ...)
    """
    low, high, only_two, whole = known
    values = [low, high]
    if not only_two:
        values.append(low + 1 if whole else low / 2 + high / 2 + 0.1)
    return np.resize(np.asarray(values).astype(kind_at_home(like)), (n_rows, *like.shape[1:]))


def kind_at_home(array: Array) -> Any:
    """NumPy's dtype for a sketch of an array: integers are of 64 bits."""
    xp = array_namespace(array)
    if xp.isdtype(array.dtype, "bool"):
        return np.bool_
    if xp.isdtype(array.dtype, "integral"):
        return np.int64
    return np.float32 if array.dtype == xp.float32 else np.float64


def sketch(array: Any, n_rows: int) -> Any:
    """Rows on the host in place of an array on a device, for which the host waits once.

    None stays, and of what is on the host already these are its first rows, repeated if they are too few.
    """
    if array is None:
        return None
    if isinstance(array, np.ndarray):
        return np.resize(array, (n_rows, *array.shape[1:]))
    return drawn(to_host(facts(array)).tolist(), array, n_rows)


def refuse_as_scikit_learn(
    function: Callable[..., Any], arrays: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Raise what scikit-learn raises of arrays that it refuses.

    Parameters
    ----------
    function : callable
        scikit-learn's.
    arrays : dict of str to array
        Its arguments that are arrays, by name, host or device.
    options : dict
        Its other arguments.

    Raises
    ------
    Unsupported
        If scikit-learn takes them.
    """
    n_rows = min(MAX_ROWS, max(0 if array is None else array.shape[0] for array in arrays.values()))
    function(**{name: sketch(array, n_rows) for name, array in arrays.items()}, **options)
    raise Unsupported("values that are neither refused nor known")
