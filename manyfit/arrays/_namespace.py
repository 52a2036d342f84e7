"""Which library an array belongs to, and where it lies.

The one question that the array API leaves open, whether an array lies in the host's memory, is answered here
by the name of its device, so that no library needs a branch of its own: NumPy and torch say ``cpu``,
array-api-strict says ``CPU_DEVICE``, JAX ``cpu:0``; CuPy knows CUDA devices only.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

# Array libraries share no base class, so neither name can say more to a type checker.
Array = Any
Namespace = Any
Device = Any

_ADVICE = "Pass an array of NumPy, CuPy, torch or another array API library, for instance numpy.asarray(...)."


def array_namespace(*arrays: Array) -> Namespace:
    """Find the array API namespace that some arrays share.

    Parameters
    ----------
    *arrays : array, Python scalar or None
        At least one array, of any shape and dtype, on host or device; scalars and None are passed over.

    Returns
    -------
    module
        Namespace with the functions of the array API, wrapped by array-api-compat where the library's own
        falls short of the standard.

    Raises
    ------
    TypeError
        If there is no array among the arguments, if one of them is neither an array nor a scalar, or if they
        belong to more than one library.

    Notes
    -----
    Reads the types only: no passes over the data, no transfers, no synchronisation.
    """
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
            "Bring them together first with manyfit.arrays.to_device(array, xp=...)."
        )
    return next(iter(found.values()))


def device(array: Array) -> Device:
    """Find the device on which an array lies.

    Parameters
    ----------
    array : array
        Array of any library, shape and dtype, on host or device.

    Returns
    -------
    device
        The library's own device object (for NumPy the string ``"cpu"``), fit for ``device=`` of its
        creation functions.

    Raises
    ------
    TypeError
        If `array` is not an array.
    """
    require_array(array, "device")
    return compat.device(array)


def is_array(array: object) -> bool:
    """Whether this is an array that the array API, as array-api-compat widens it, covers.

    Parameters
    ----------
    array : object
        Anything.

    Returns
    -------
    bool
        True for arrays of NumPy, CuPy, torch and other libraries of the array API; not for lists, scalars,
        data frames and sparse matrices.
    """
    # Their classes have all that the arrays are known by.
    return not isinstance(array, type) and bool(compat.is_array_api_obj(array))


def require_array(array: object, who: str) -> None:
    """Raise TypeError in the name of `who` unless this is an array."""
    if not is_array(array):
        raise TypeError(f"{who} needs an array, got {type(array).__name__}. {_ADVICE}")


def library_name(xp: Namespace) -> str:
    """The library's name as its users write it: ``numpy``, not ``array_api_compat.numpy``."""
    return str(xp.__name__).removeprefix("array_api_compat.")


def names_host(device: Device) -> bool:
    """Whether a device, by its name, is the host's memory."""
    return "cpu" in str(device).lower()


def is_on_device(value: object) -> bool:
    """Whether a value is an array that NumPy cannot read where it lies. Nothing is read."""
    # The first half spares NumPy's arrays, by far the most common, the look-up.
    return not isinstance(value, np.ndarray) and is_array(value) and not names_host(compat.device(value))


def host_device(xp: Namespace) -> Device:
    """The device of a namespace that is the host's memory; ``"cpu"`` if it has none of its own.

    CuPy has none, but array-api-compat takes ``"cpu"`` for the way out of CuPy to NumPy.
    """
    return next((d for d in xp.__array_namespace_info__().devices() if names_host(d)), "cpu")


def numpy_dtype(array: Array) -> np.dtype[Any]:
    """The dtype of an array as NumPy calls it.

    Parameters
    ----------
    array : array
        Array of any library.

    Returns
    -------
    numpy.dtype
        Of the same kind and size.

    Raises
    ------
    TypeError
        If NumPy has no such dtype, as bfloat16.
    """
    return _numpy(array.dtype)


def numpy_float_dtype(array: Array) -> np.dtype[Any]:
    """What `float_dtype` is called by NumPy.

    Parameters
    ----------
    array : array
        Array of any library.

    Returns
    -------
    numpy.dtype
        float64, or float32 where the device has no other.
    """
    return _numpy(float_dtype(array))


def _numpy(dtype: Any) -> np.dtype[Any]:
    return dtype if isinstance(dtype, np.dtype) else np.dtype(str(dtype).rpartition(".")[2])


def float_dtype(array: Array) -> Any:
    """The widest floating dtype that the library of an array has on its device.

    Parameters
    ----------
    array : array
        Array of any library.

    Returns
    -------
    dtype
        float64 of that library, or float32 where the device has no other.
    """
    info = array_namespace(array).__array_namespace_info__()
    dtypes = info.dtypes(device=device(array), kind="real floating")
    return dtypes.get("float64", dtypes["float32"])
