"""Namespace and device of an array, and the only border between host and device."""

from manyfit.arrays._clip import clip
from manyfit.arrays._copies import copy_with_strides, deep_copy, memory_owner
from manyfit.arrays._dask_inputs import compute_dask_inputs
from manyfit.arrays._default_gpu import default_gpu
from manyfit.arrays._device_frames import array_of_frame, frame_of_array, holds_numbers, is_device_frame
from manyfit.arrays._device_memory import block_size, is_out_of_memory, retry_in_smaller_blocks
from manyfit.arrays._digest import array_digest, describes_itself
from manyfit.arrays._host_fallback import collect_fallback_errors, warn_host_fallback
from manyfit.arrays._namespace import (
    array_namespace,
    device,
    float_dtype,
    is_array,
    is_on_device,
    numpy_dtype,
    numpy_float_dtype,
)
from manyfit.arrays._readable import as_readable, dtype_kind, refuse_complex
from manyfit.arrays.transfer._cache import (
    TransferCache,
    remember_host_copy,
    share_host_copies,
    to_device_of,
    to_host_once,
)
from manyfit.arrays.transfer._containers import (
    Place,
    container_kind,
    container_place,
    container_to_host,
    is_xp_array,
)
from manyfit.arrays.transfer._counts import Crossings, Transfers, label_transfers, transfers
from manyfit.arrays.transfer._host_device import place_of, to_device, to_host, to_host_together, to_place

__all__ = [
    "Crossings",
    "Place",
    "TransferCache",
    "Transfers",
    "array_digest",
    "array_namespace",
    "array_of_frame",
    "as_readable",
    "block_size",
    "clip",
    "collect_fallback_errors",
    "compute_dask_inputs",
    "container_kind",
    "container_place",
    "container_to_host",
    "copy_with_strides",
    "deep_copy",
    "default_gpu",
    "describes_itself",
    "device",
    "dtype_kind",
    "float_dtype",
    "frame_of_array",
    "holds_numbers",
    "is_array",
    "is_device_frame",
    "is_on_device",
    "is_out_of_memory",
    "is_xp_array",
    "label_transfers",
    "memory_owner",
    "numpy_dtype",
    "numpy_float_dtype",
    "place_of",
    "refuse_complex",
    "remember_host_copy",
    "retry_in_smaller_blocks",
    "share_host_copies",
    "to_device",
    "to_device_of",
    "to_host",
    "to_host_once",
    "to_host_together",
    "to_place",
    "transfers",
    "warn_host_fallback",
]
