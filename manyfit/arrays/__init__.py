"""Namespace and device of an array, and the only border between host and device."""

from manyfit.arrays._clip import clip
from manyfit.arrays._copies import copy_with_strides, deep_copy
from manyfit.arrays._dask_inputs import loaded
from manyfit.arrays._default_gpu import cuda_place
from manyfit.arrays._device_memory import block_size, free_device_memory, is_out_of_memory, smaller_blocks
from manyfit.arrays._digest import array_digest, describes_itself
from manyfit.arrays._host_fallback import refusals_heard, tell_fallback
from manyfit.arrays._namespace import (
    array_namespace,
    device,
    float_dtype,
    is_array,
    is_host,
    numpy_dtype,
    numpy_float_dtype,
    on_device,
)
from manyfit.arrays._oom_retry import in_less_memory
from manyfit.arrays._readable import kind_of, readable, refuse_complex
from manyfit.arrays.transfer._cache import (
    Beside,
    Brought,
    HomeCopies,
    beside,
    home_copies,
    note_at_home,
    once_at_home,
)
from manyfit.arrays.transfer._containers import Place, container_place, form_of, from_device
from manyfit.arrays.transfer._counts import Crossings, Transfers, label_transfers, transfers
from manyfit.arrays.transfer._host_device import place_of, to_device, to_host, to_place

__all__ = [
    "Beside",
    "Brought",
    "Crossings",
    "HomeCopies",
    "Place",
    "Transfers",
    "array_digest",
    "array_namespace",
    "beside",
    "block_size",
    "clip",
    "container_place",
    "copy_with_strides",
    "cuda_place",
    "deep_copy",
    "describes_itself",
    "device",
    "float_dtype",
    "form_of",
    "free_device_memory",
    "from_device",
    "home_copies",
    "in_less_memory",
    "is_array",
    "is_host",
    "is_out_of_memory",
    "kind_of",
    "label_transfers",
    "loaded",
    "note_at_home",
    "numpy_dtype",
    "numpy_float_dtype",
    "on_device",
    "once_at_home",
    "place_of",
    "readable",
    "refusals_heard",
    "refuse_complex",
    "smaller_blocks",
    "tell_fallback",
    "to_device",
    "to_host",
    "to_place",
    "transfers",
]
