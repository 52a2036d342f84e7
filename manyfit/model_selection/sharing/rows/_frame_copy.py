"""Copies of pandas frames whose columns lie together as in the original."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from typing import Any

import numpy as np

from manyfit.arrays import copy_with_strides

Memory = type[bytes] | type[bytearray]


def copy_array(X: np.ndarray, memory: Memory = bytearray) -> np.ndarray:
    """A copy in the same memory layout, in read-only memory if that is `bytes` and X holds no objects."""
    if X.dtype.hasobject or (memory is bytearray and X.flags.forc):
        return np.array(X, order="K", copy=True)
    return copy_with_strides(X, memory)


class _Arrays(pickle.Pickler):
    """Pickles a frame without its arrays, which it collects in `found`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.found: list[np.ndarray] = []

    def persistent_id(self, thing: Any) -> int | None:
        if type(thing) is not np.ndarray:
            return None
        self.found.append(thing)
        return len(self.found) - 1


class _WithArrays(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arrays: list[np.ndarray]) -> None:
        super().__init__(file)
        self._arrays = arrays

    def persistent_load(self, key: Any) -> np.ndarray:
        return self._arrays[key]


def pandas_copy(frame: Any, memory: Memory) -> Any:
    """A deep copy of a frame or series, in read-only memory if that is `bytes`.

    Arrays of the copy have the same layout, so that sums over them round alike: `DataFrame.copy` moves
    columns. Python objects are not copied.
    """
    with_gaps = _copy_with_gaps(frame, memory)
    if with_gaps is not None:
        return with_gaps
    file = io.BytesIO()
    pickler = _Arrays(file)
    try:
        pickler.dump(frame)
        file.seek(0)
        return _WithArrays(file, [copy_array(array, memory) for array in pickler.found]).load()
    except Exception:  # a subclass or an extension type that cannot be pickled
        return frame.copy()


def _copy_with_gaps(frame: Any, memory: Memory) -> Any:
    """A copy of a frame that shows one array with gaps or backwards; None for any other frame."""
    pandas = sys.modules["pandas"]
    if type(frame) is not pandas.DataFrame or not frame.shape[1]:
        return None
    kind = frame.dtypes.iloc[0]
    if not isinstance(kind, np.dtype) or kind.hasobject or not (frame.dtypes == kind).all():
        return None
    whole = frame.to_numpy()
    if whole.flags.forc or not np.may_share_memory(whole, frame.iloc[:, 0].to_numpy()):
        return None
    made = copy_with_strides(whole, memory)
    copied = pandas.DataFrame(made, index=frame.index, columns=frame.columns, copy=False)
    copied.attrs = copy.deepcopy(frame.attrs)
    return copied.set_flags(allows_duplicate_labels=frame.flags.allows_duplicate_labels)
