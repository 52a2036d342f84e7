"""Deep copies whose arrays have the memory layout of the originals."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


def deep_copy(thing: T) -> T:
    """A deep copy, of a fitted estimator say, whose NumPy arrays keep their strides.

    BLAS rounds differently for another layout, and NumPy's own copies close the gaps of a part of an array.
    """
    memo: dict[int, object] = {}
    copied = copy.deepcopy(thing, memo)
    # deepcopy keeps all originals under the identity of the memo itself.
    originals = memo.get(id(memo), ())
    moved = {
        id(one): copy_with_strides(one)
        for one in originals  # type: ignore[attr-defined]
        if type(one) is np.ndarray and not one.dtype.hasobject and one.strides != memo[id(one)].strides  # type: ignore[attr-defined]
    }
    return copy.deepcopy(thing, moved) if moved else copied


def memory_owner(thing: Any) -> Any:
    """The array that owns the memory of a NumPy array; anything else, too, is its own."""
    while isinstance(thing, np.ndarray) and isinstance(thing.base, np.ndarray):
        thing = thing.base
    return thing


def copy_with_strides(
    X: NDArray[Any], memory: Callable[[memoryview], bytes | bytearray] = bytearray
) -> NDArray[Any]:
    """A copy of an array without objects that keeps its strides; gaps are allocated and hold zeros.

    ``memory`` makes the memory of the copy; `bytes` makes it immutable.
    """
    low, high = np.lib.array_utils.byte_bounds(X)
    start = X.__array_interface__["data"][0] - low
    whole = bytearray(high - low)
    copied: NDArray[Any] = np.ndarray(X.shape, X.dtype, whole, start, X.strides)
    copied[...] = X
    if memory is bytearray:
        return copied
    return np.ndarray(X.shape, X.dtype, memory(memoryview(whole)), start, X.strides)
