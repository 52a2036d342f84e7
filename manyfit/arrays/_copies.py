"""Deep copies whose arrays lie in memory as the originals do."""

import copy
from typing import TypeVar

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
    allocated, too, and never read.
    """
    memo: dict[int, object] = {}
    copied = copy.deepcopy(thing, memo)
    # Under the memo's own identity it holds all originals.
    originals = memo.get(id(memo), ())
    moved = {
        id(one): _with_strides(one)
        for one in originals  # type: ignore[attr-defined]
        if type(one) is np.ndarray and not one.dtype.hasobject and one.strides != memo[id(one)].strides  # type: ignore[attr-defined]
    }
    return copy.deepcopy(thing, moved) if moved else copied


def _with_strides(X: NDArray[np.generic]) -> NDArray[np.generic]:
    """A copy of an array with the strides of the original, in memory of its own."""
    low, high = np.lib.array_utils.byte_bounds(X)
    start = X.__array_interface__["data"][0] - low
    memory = np.empty(high - low, dtype=np.uint8)
    made: NDArray[np.generic] = np.ndarray(X.shape, X.dtype, memory.data, start, X.strides)
    made[...] = X
    return made
