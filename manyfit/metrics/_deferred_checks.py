"""What scikit-learn refuses of data that lie on a device, in its own words, the host waiting at most once.

Shapes are known on the host: scikit-learn's own check sees an array of that shape which takes no memory.
Values are not: each *doubt* is one bit on the device, and all bits of a call come home together. Only where
one is set does the host look closer, and lets scikit-learn raise about an example that has the same fault.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.metrics.pairwise import check_paired_arrays, check_pairwise_arrays
from sklearn.utils import check_X_y

from manyfit.arrays import array_namespace, float_dtype, is_array, to_device_of, to_host
from manyfit.folds import Unsupported

Array = Any
# Raises, of values that the host has not seen, what scikit-learn raises of them.
Raise = Callable[[], object]
# Whether there is something to raise about, a 0-d array of bool where the data lie; and what raises it.
Doubt = tuple[Array, Raise]


def brought(data: Any, there: Array) -> Array:
    """Data of any kind as an array beside another one; what is no number raises scikit-learn's error."""
    if issparse(data):
        raise Unsupported("sparse data")
    array = data if is_array(data) else np.asarray(data)
    if isinstance(array, np.ndarray) and array.dtype.kind not in "biufc":
        array = np.asarray(array, dtype=np.float64)
    return to_device_of(array, there)


def pair_of(
    X: Any, Y: Any, there: Array, *, paired: bool = False, precomputed: bool = False
) -> tuple[Array, Array, list[Doubt]]:
    """X and Y as scikit-learn's functions of pairs compare them.

    Parameters
    ----------
    X, Y : array-like
        Data of shape (n_x, d) and (n_y, d); `Y` may be None or the same object as `X`.
    there : array
        Lies where they are brought.
    paired : bool
        Whether the rows of the two belong together.
    precomputed : bool
        Whether `X` holds distances, (n_x, n_y).

    Returns
    -------
    X, Y : arrays
        Of float32 if both were, else of the widest floating dtype there; `Y` is `X` if it was, or was None.
    doubts : list of Doubt
        Whether they have NaN or infinity.
    """
    same = Y is None or Y is X
    both = [brought(X, there)] if same else [brought(data, there) for data in (X, Y)]
    check = partial(check_pairwise_arrays, precomputed=precomputed)
    told(check_paired_arrays if paired else check, stand_in(both[0]), None if same else stand_in(both[1]))
    floats = as_floats(*both)
    of_floats = [a for a, given in zip(floats, both, strict=True) if is_floating(given)]
    doubts = [
        doubt for array in of_floats for doubt in not_finite(array, partial(check_pairwise_arrays, Y=None))
    ]
    return floats[0], floats[-1], doubts


def is_floating(array: Array) -> bool:
    """Whether an array may hold NaN at all."""
    return bool(array_namespace(array).isdtype(array.dtype, "real floating"))


def as_floats(*arrays: Array) -> list[Array]:
    """Arrays in float32 if all are, else in the widest floating dtype where they lie."""
    xp, dtype = array_namespace(*arrays), float_dtype(arrays[0])
    if all(array.dtype == xp.float32 for array in arrays):
        dtype = xp.float32
    return [xp.astype(array, dtype, copy=False) for array in arrays]


def stand_in(array: Array, fill: float = 0.0) -> Any:
    """An array of the same shape on the host, without memory of its own."""
    is_complex = array_namespace(array).isdtype(array.dtype, "complex floating")
    return np.broadcast_to(np.asarray(fill, dtype=np.complex128 if is_complex else np.float64), array.shape)


def told(check: Callable[..., Any], *stand_ins: Any, **options: Any) -> None:
    """Let scikit-learn look at shapes only, and raise, without the values that are not those of the data."""
    try:
        with sklearn.config_context(assume_finite=True, array_api_dispatch=False):
            check(*stand_ins, **options)
    except ValueError as error:
        text = re.sub(r"(?s):\narray=.*?\.\n(?=Reshape)|\n\[.*\]\n$", ". ", str(error))
        raise type(error)(text) from None


def not_finite(array: Array, check: Callable[..., Any], *, allow_nan: bool = False) -> list[Doubt]:
    """The doubt whether floats have NaN or infinity; none where scikit-learn is told to assume that not.

    Parameters
    ----------
    array : array
        The floats.
    check : callable
        scikit-learn's: raises of an array of shape (1, 1) that has them.
    allow_nan : bool
        Whether only infinity is refused.
    """
    if sklearn.get_config()["assume_finite"]:
        return []
    xp = array_namespace(array)
    known = xp.where(xp.isnan(array), xp.zeros_like(array), array) if allow_nan else array

    def closer() -> None:
        # A sum may overflow where no value is infinite.
        found = to_host(xp.stack([xp.any(xp.isnan(known)), xp.any(xp.isinf(known))]))
        dtype = str(array.dtype).rpartition(".")[2]
        for has, value in zip(found, (np.nan, np.inf), strict=True):
            if has:
                check(np.full((1, 1), value, dtype=dtype))

    # One number, and no array of flags.
    with np.errstate(all="ignore"):
        return [(~xp.isfinite(xp.sum(known)), closer)]


def settle(doubts: Sequence[Doubt], counts: Array = None) -> Any:
    """Raise for the first doubt that is founded; else the counts, on the host. It waits once, or not at all.

    Parameters
    ----------
    doubts : sequence of Doubt
        Of arrays of one device.
    counts : array of shape (m,) and an integer dtype, optional
        What else the host is to know, where the doubts are or on the host.

    Returns
    -------
    ndarray of shape (m,), or None
    """
    flags = [flag for flag, _ in doubts]
    home = counts is None or isinstance(counts, np.ndarray)
    if not flags:
        return counts if home else to_host(counts)
    xp = array_namespace(*flags)
    bits = xp.stack(flags)
    both = to_host(bits if home else xp.concat([xp.astype(bits, counts.dtype), counts]))
    for founded, (_, tell) in zip(both[: len(flags)], doubts, strict=True):
        if founded:
            tell()
    return counts if home else both[len(flags) :]


def refuse_nan_of_data(example: Array) -> None:
    """scikit-learn's refusal of X of a clustering that has NaN or infinity."""
    check_X_y(np.repeat(example, 2, axis=0), [0, 1])


def refuse_nan_of_labels(example: Array) -> None:
    """scikit-learn's refusal of labels that are."""
    check_X_y(np.zeros((2, 1)), np.repeat(example[0], 2))
