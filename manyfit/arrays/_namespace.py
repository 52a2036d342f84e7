"""The library and the device of an array.

The array API does not say whether an array lies in the host's memory. The name of its device does, so no
library needs a branch of its own: NumPy and torch say ``cpu``, array-api-strict ``CPU_DEVICE``, JAX
``cpu:0``; CuPy has CUDA devices only.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

# Array libraries share no base class, so neither name can say more to a type checker.
Array = Any
Namespace = Any
Device = Any

_NUMPY = compat.array_namespace(np.empty(0))
_ADVICE = "Pass an array of NumPy, CuPy, torch or another array API library, for instance numpy.asarray(...)."


def array_namespace(*arrays: Array) -> Namespace:
    """The array API namespace, from array-api-compat, that some arrays share; scalars and None are skipped.

    Raises TypeError if there is no array, another object, or arrays of several libraries. Reads types only.
    """
    if len(arrays) == 1 and type(arrays[0]) is np.ndarray:
        return _NUMPY  # a tenth of the time of looking
    found: dict[str, Namespace] = {}
    for array in arrays:
        if array is None or (isinstance(array, bool | int | float | complex) and not is_array(array)):
            continue
        require_array(array, "array_namespace")
        xp = compat.array_namespace(array)
        found[xp.__name__] = xp
    if not found:
        got = ", ".join(type(array).__name__ for array in arrays) or "no argument"
        raise TypeError(f"array_namespace needs at least one array, got {got}. {_ADVICE}")
    if len(found) > 1:
        names = " and ".join(sorted(library_name(xp) for xp in found.values()))
        raise TypeError(
            f"array_namespace needs arrays of one library, got {names}. "
            "Move them to one library first with manyfit.arrays.to_device(array, xp=...)."
        )
    return next(iter(found.values()))


def device(array: Array) -> Device:
    """The device of an array as its library names it, for ``device=`` of creation functions."""
    if type(array) is np.ndarray:
        return "cpu"
    require_array(array, "device")
    return compat.device(array)


def is_array(array: object) -> bool:
    """Whether a value is an array of NumPy, CuPy, torch or another array API library, lazy ones included.

    False for lists, Python scalars, data frames and sparse matrices.
    """
    # The classes themselves have the attributes that arrays are recognised by.
    return not isinstance(array, type) and bool(compat.is_array_api_obj(array))


def require_array(array: object, caller: str) -> None:
    """Raise TypeError, in the name of `caller`, unless the value is an array."""
    if not is_array(array):
        raise TypeError(f"{caller} needs an array, got {type(array).__name__}. {_ADVICE}")


def library_name(xp: Namespace) -> str:
    """The library's name as its users write it: ``numpy``, not ``array_api_compat.numpy``."""
    return str(xp.__name__).removeprefix("array_api_compat.")


def names_host(device: Device) -> bool:
    """Whether the name of a device means the host's memory."""
    return "cpu" in str(device).lower()


def is_on_device(value: object) -> bool:
    """Whether a value is an array outside the host's memory. No data are read."""
    # NumPy's arrays, by far the most common, skip the look-up.
    return not isinstance(value, np.ndarray) and is_array(value) and not names_host(compat.device(value))


def host_device(xp: Namespace) -> Device:
    """The host device of a namespace; ``"cpu"`` for CuPy, which array-api-compat takes to mean NumPy."""
    return next((d for d in xp.__array_namespace_info__().devices() if names_host(d)), "cpu")


def numpy_dtype(array: Array) -> np.dtype[Any]:
    """The NumPy dtype of the same kind and size; TypeError if there is none, as for bfloat16."""
    return _numpy(array.dtype)


def numpy_float_dtype(array: Array) -> np.dtype[Any]:
    """`float_dtype` as a NumPy dtype."""
    return _numpy(float_dtype(array))


def _numpy(dtype: Any) -> np.dtype[Any]:
    return dtype if isinstance(dtype, np.dtype) else np.dtype(str(dtype).rpartition(".")[2])


def float_dtype(array: Array) -> Any:
    """The widest floating dtype of the array's device: float64, or float32 if the device has no other."""
    info = array_namespace(array).__array_namespace_info__()
    dtypes = info.dtypes(device=device(array), kind="real floating")
    return dtypes.get("float64", dtypes["float32"])
