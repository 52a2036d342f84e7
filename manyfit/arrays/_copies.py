"""Deep copies whose arrays lie in memory as the originals do."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


def deep_copy(thing: T) -> T:
    """A deep copy that computes the same numbers, to the last bit.

    Parameters
    ----------
    thing : object
        Anything that `copy.deepcopy` takes: a fitted estimator, say.

    Returns
    -------
    object
        As `copy.deepcopy` gives it, but NumPy's arrays in it keep their strides. BLAS rounds otherwise where
        rows lie elsewhere, and NumPy's own copies of a part of an array close its gaps.

    Notes
    -----
    Two copies are made where an array in it has gaps or runs backwards, else one. The gaps of an array are
    allocated, too.
    """
    memo: dict[int, object] = {}
    copied = copy.deepcopy(thing, memo)
    # Under the memo's own identity it holds all originals.
    originals = memo.get(id(memo), ())
    moved = {
        id(one): copy_with_strides(one)
        for one in originals  # type: ignore[attr-defined]
        if type(one) is np.ndarray and not one.dtype.hasobject and one.strides != memo[id(one)].strides  # type: ignore[attr-defined]
    }
    return copy.deepcopy(thing, moved) if moved else copied


def copy_with_strides(
    X: NDArray[Any], memory: Callable[[memoryview], bytes | bytearray] = bytearray
) -> NDArray[Any]:
    """A copy of an array with the strides of the original.

    Parameters
    ----------
    X : numpy.ndarray
        Of any dtype that holds no objects.
    memory : callable, default=bytearray
        Makes the memory of the copy; with `bytes` nobody can change it.

    Returns
    -------
    numpy.ndarray
        Its memory is as long as that of `X` with all gaps, in which there are zeros.
    """
    low, high = np.lib.array_utils.byte_bounds(X)
    start = X.__array_interface__["data"][0] - low
    whole = bytearray(high - low)
    made: NDArray[Any] = np.ndarray(X.shape, X.dtype, whole, start, X.strides)
    made[...] = X
    return (
        made
        if memory is bytearray
        else np.ndarray(X.shape, X.dtype, memory(memoryview(whole)), start, X.strides)
    )
