"""scikit-learn's checks of data on a device, in its own words, for which the host waits once at most.

The host knows shapes: scikit-learn checks an array of that shape which takes no memory. A check of values is
one bit on the device. All bits of a call reach the host together; if one is set, scikit-learn raises about an
example with the same fault.
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
from manyfit.metrics.kernels._kernel import is_floating

Array = Any
# Raises what scikit-learn raises about values that the host has not seen.
Raise = Callable[[], object]
# Whether to raise, a 0-d array of bool on the device of the data; and what raises.
DeferredCheck = tuple[Array, Raise]


def as_device_array(data: Any, like: Array) -> Array:
    """Data of any kind as an array on the device of another; scikit-learn's error for what is no number."""
    if issparse(data):
        raise Unsupported("sparse data")
    array = data if is_array(data) else np.asarray(data)
    if isinstance(array, np.ndarray) and array.dtype.kind not in "biufc":
        array = np.asarray(array, dtype=np.float64)
    return to_device_of(array, like)


def as_pair(
    X: Any, Y: Any, like: Array, *, paired: bool = False, precomputed: bool = False
) -> tuple[Array, Array, list[DeferredCheck]]:
    """X and Y as scikit-learn's functions of pairs compare them, and the checks that they are finite.

    Both are float32 if both were, else of the widest floating dtype. Y is X if it was, or was None.
    """
    same = Y is None or Y is X
    both = [as_device_array(X, like)] if same else [as_device_array(data, like) for data in (X, Y)]
    check_pair = partial(check_pairwise_arrays, precomputed=precomputed)
    check_shapes(
        check_paired_arrays if paired else check_pair,
        shape_stand_in(both[0]),
        None if same else shape_stand_in(both[1]),
    )
    floats = as_floats(*both)
    floating = [a for a, given in zip(floats, both, strict=True) if is_floating(given)]
    finite = partial(check_pairwise_arrays, Y=None)
    checks = [check for array in floating for check in finiteness_checks(array, finite)]
    return floats[0], floats[-1], checks


def as_floats(*arrays: Array) -> list[Array]:
    """Arrays in float32 if all are, else in the widest floating dtype of their device."""
    xp, dtype = array_namespace(*arrays), float_dtype(arrays[0])
    if all(array.dtype == xp.float32 for array in arrays):
        dtype = xp.float32
    return [xp.astype(array, dtype, copy=False) for array in arrays]


def shape_stand_in(array: Array) -> Any:
    """A host array of the same shape that takes no memory."""
    is_complex = array_namespace(array).isdtype(array.dtype, "complex floating")
    return np.broadcast_to(np.zeros((), dtype=np.complex128 if is_complex else np.float64), array.shape)


def check_shapes(check: Callable[..., Any], *stand_ins: Any, **options: Any) -> None:
    """Let scikit-learn check shapes and raise, without the values of the stand-ins in its text."""
    try:
        with sklearn.config_context(assume_finite=True, array_api_dispatch=False):
            check(*stand_ins, **options)
    except ValueError as error:
        text = re.sub(r"(?s):\narray=.*?\.\n(?=Reshape)|\n\[.*\]\n$", ". ", str(error))
        raise type(error)(text) from None


def finiteness_checks(
    array: Array, check: Callable[..., Any], *, allow_nan: bool = False
) -> list[DeferredCheck]:
    """The check that floats are finite; none if scikit-learn is configured to assume it.

    ``check`` is scikit-learn's, which raises for an array of shape (1, 1). With `allow_nan` only infinity
    fails.
    """
    if sklearn.get_config()["assume_finite"]:
        return []
    xp = array_namespace(array)
    known = xp.where(xp.isnan(array), xp.zeros_like(array), array) if allow_nan else array

    def look_closer() -> None:
        # A sum may overflow where no value is infinite.
        found = to_host(xp.stack([xp.any(xp.isnan(known)), xp.any(xp.isinf(known))]))
        dtype = str(array.dtype).rpartition(".")[2]
        for has, value in zip(found, (np.nan, np.inf), strict=True):
            if has:
                check(np.full((1, 1), value, dtype=dtype))

    # A sum needs no array of flags.
    with np.errstate(all="ignore"):
        return [(~xp.isfinite(xp.sum(known)), look_closer)]


def raise_if_any(checks: Sequence[DeferredCheck], counts: Array = None) -> Any:
    """Raise for the first check that fails; else the counts, (m,), on the host, which waits once at most."""
    flags = [flag for flag, _ in checks]
    on_host = counts is None or isinstance(counts, np.ndarray)
    if not flags:
        return counts if on_host else to_host(counts)
    xp = array_namespace(*flags)
    bits = xp.stack(flags)
    both = to_host(bits if on_host else xp.concat([xp.astype(bits, counts.dtype), counts]))
    for failed, (_, raise_error) in zip(both[: len(flags)], checks, strict=True):
        if failed:
            raise_error()
    return counts if on_host else both[len(flags) :]


def raise_data_not_finite(example: Array) -> None:
    """Raise scikit-learn's error for the X of a clustering that is not finite."""
    check_X_y(np.repeat(example, 2, axis=0), [0, 1])


def raise_labels_not_finite(example: Array) -> None:
    """Raise scikit-learn's error for the labels of a clustering that are not finite."""
    check_X_y(np.zeros((2, 1)), np.repeat(example[0], 2))
