"""Frames and series of a device as arrays there, and the frames that arrays were made from."""

from __future__ import annotations

import weakref
from typing import Any

import array_api_compat as compat
import numpy as np

from manyfit.arrays._namespace import Array
from manyfit.arrays.transfer._containers import container_kind, container_to_host

# The frame of each array that was made of one, by identity; it is forgotten with the array.
_frames: dict[int, tuple[weakref.ref[Any], Any]] = {}


def is_device_frame(value: Any) -> bool:
    """Whether a value is a frame or series of a device, as cuDF's."""
    return container_kind(value) == "frame"


def holds_numbers(frame: Any) -> bool:
    """Whether all columns of a device frame or series hold numbers; no data are read."""
    numbers = list(map(_numpy_dtype, _dtypes(frame)))
    return bool(numbers) and all(isinstance(one, np.dtype) and one.kind in "biuf" for one in numbers)


def array_of_frame(value: Any) -> Any:
    """A device frame or series as an array where it lies, or as pandas holds it; other values as they are.

    An array holds numbers only; missing ones become NaN, as in pandas. `frame_of_array` has the frame.
    """
    if not is_device_frame(value):
        return value
    if not holds_numbers(value):
        return container_to_host(value)
    array = _as_array(value)
    key = id(array)
    _frames[key] = weakref.ref(array, lambda _: _frames.pop(key, None)), value
    return array


def frame_of_array(array: Array) -> Any:
    """The frame or series that `array_of_frame` made this very array of; any other array itself."""
    kept = _frames.get(id(array))
    return kept[1] if kept is not None and kept[0]() is array else array


def _dtypes(frame: Any) -> list[Any]:
    return list(frame.dtypes) if len(frame.shape) == 2 else [frame.dtype]


def _as_array(frame: Any) -> Array:
    dtypes = _dtypes(frame)
    numbers = list(map(_numpy_dtype, dtypes))
    dtype = np.result_type(*numbers)
    if numbers != dtypes:
        frame, dtype = frame.astype(np.float64), np.dtype(np.float64)
    elif dtype.kind != "f":
        missing = frame.isna().to_cupy()
        if bool(compat.array_namespace(missing).any(missing)):
            # Of bools, cuDF makes no floats in one step.
            frame, dtype = frame.astype(np.float64), np.dtype(np.float64)
    return frame.to_cupy(dtype=dtype)


def _numpy_dtype(dtype: Any) -> Any:
    """NumPy's dtype in place of one of pandas' that has missing numbers; any other dtype itself."""
    return getattr(dtype, "numpy_dtype", dtype)
