"""Namespace and device of an array, and the only border between host and device."""

from manyfit.arrays._count import Transfers, transfers
from manyfit.arrays._cuda import cuda_place
from manyfit.arrays._digest import array_digest
from manyfit.arrays._namespace import (
    array_namespace,
    device,
    float_dtype,
    is_array,
    is_host,
    numpy_dtype,
    on_device,
)
from manyfit.arrays._sent import Beside, Brought
from manyfit.arrays._transfer import place_of, to_device, to_host, to_place

__all__ = [
    "Beside",
    "Brought",
    "Transfers",
    "array_digest",
    "array_namespace",
    "cuda_place",
    "device",
    "float_dtype",
    "is_array",
    "is_host",
    "numpy_dtype",
    "on_device",
    "place_of",
    "to_device",
    "to_host",
    "to_place",
    "transfers",
]
