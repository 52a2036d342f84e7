"""Copies of pandas frames whose columns lie together as in the original."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
from typing import Any

import numpy as np

from manyfit.arrays import copy_with_strides


def pandas_copy(frame: Any, memory: type[bytes] | type[bytearray]) -> Any:
    """A deep copy of a frame or series, in read-only memory if that is `bytes`.

    Arrays of the copy have the same layout, so that sums over them round alike. `DataFrame.copy` moves
    columns; pickling keeps them in their blocks, but closes gaps.
    """
    with_gaps = copy_with_gaps(frame, memory)
    if with_gaps is not None:
        return with_gaps
    kinds = [frame.dtype] if frame.ndim == 1 else list(frame.dtypes)
    if object not in kinds:  # Python objects are not copied
        buffers: list[pickle.PickleBuffer] = []
        with contextlib.suppress(Exception):  # a subclass or an extension type that cannot be pickled
            head = pickle.dumps(frame, protocol=5, buffer_callback=buffers.append)
            return pickle.loads(head, buffers=[memory(buffer.raw()) for buffer in buffers])
    return frame.copy()


def copy_with_gaps(frame: Any, memory: type[bytes] | type[bytearray]) -> Any:
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
