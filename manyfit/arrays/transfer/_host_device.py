"""Copies of arrays between host and device; all of manyfit copies through these functions."""

from __future__ import annotations

from importlib import import_module

import array_api_compat as compat
import numpy as np

from manyfit.arrays._namespace import (
    Array,
    Device,
    Namespace,
    array_namespace,
    host_device,
    is_on_device,
    library_name,
    names_host,
    require_array,
)
from manyfit.arrays.transfer._counts import count


def to_host(array: Array, *, label: str | None = None) -> np.ndarray:
    """Copy an array to the host, as a NumPy array.

    Parameters
    ----------
    array : array
        Array of any library, with a dtype that NumPy has. Gradients of a torch tensor are dropped.
    label : str, optional
        Label of the transfer for `transfers`; by default that of `label_transfers`.

    Returns
    -------
    numpy.ndarray
        Array of the same shape and dtype. It shares the memory of an array that lies on the host already.

    Raises
    ------
    TypeError
        If `array` is not an array, or is a lazy Dask array, which is not computed here.

    Notes
    -----
    A copy from a device is one transfer and one synchronisation, both counted by `transfers`.
    """
    require_array(array, "to_host")
    if isinstance(array, np.ndarray):
        return array
    if compat.is_dask_array(array):
        raise TypeError(
            f"to_host needs an array in memory, got a lazy Dask array of shape {array.shape}. "
            "Call its compute() where all of it may be gathered, and pass the result."
        )
    crosses = is_on_device(array)
    if compat.is_torch_array(array):
        array = array.detach()
    if crosses:
        array = compat.to_device(array, host_device(compat.array_namespace(array)))
    host = np.asarray(array)
    if crosses:
        count(to_host=host.nbytes, label=label)
    return host


def to_host_together(*arrays: Array, label: str | None = None) -> list[np.ndarray]:
    """Copy arrays of one library, dtype and device to the host in one transfer; their shapes are kept."""
    if not arrays:
        return []
    xp = array_namespace(*arrays)
    host = to_host(xp.concat([xp.reshape(array, (-1,)) for array in arrays]), label=label)
    ends = np.cumsum([int(np.prod(array.shape)) for array in arrays])
    parts = np.split(host, ends[:-1])
    return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


def to_device(
    array: Array, device: Device | None = None, xp: Namespace | None = None, *, label: str | None = None
) -> Array:
    """Copy an array to a device, to another library, or to both.

    Parameters
    ----------
    array : array
        Array of any library, with a dtype that NumPy and `xp` have.
    device : device, optional
        Device of the result, as `xp` names it. By default the array stays where it is or, if `xp` is
        another library, goes to that library's default device.
    xp : module, optional
        Namespace of the result: a library, or what `array_namespace` returns; by default the array's own.
    label : str, optional
        Label of the transfer for `transfers`; by default that of `label_transfers`.

    Returns
    -------
    array
        Array of `xp` on `device`, of the same shape and dtype: `array` itself if nothing changes, and an
        array that shares its memory if only the library changes and both are on the host.

    Raises
    ------
    TypeError
        If `array` is not an array, or is a lazy Dask array that would have to be computed.
    ValueError
        If NumPy is to hold a device array, or a library without a host device a host array.

    Notes
    -----
    A copy between two libraries on a device passes the host and counts in both directions. A copy between
    two devices of one library does not pass the host and is not counted. Errors of the library keep their
    type and gain a note that says what was moved.
    """
    require_array(array, "to_device")
    own = compat.array_namespace(array)
    target = own if xp is None else _compatible(xp)
    _check_device(device, target)
    try:
        return _moved(array, device, own, target, label)
    except Exception as error:
        error.add_note(
            f"While manyfit.arrays.to_device moved an array of {library_name(own)}, shape {array.shape}, "
            f"dtype {array.dtype}, to {library_name(target)} on device {device!r}."
        )
        raise


def place_of(array: Array) -> tuple[str, str]:
    """Library and kind of device of an array, as names that another process understands: see `to_place`."""
    own = compat.array_namespace(array)
    return library_name(own), _kind(compat.device(array))


def to_place(host: np.ndarray, place: tuple[str, str]) -> Array:
    """Make an array of the library, and on this process' device of the kind, that `place_of` named.

    A library whose default device is not the host uses that one, as CuPy's current device. Raises ImportError
    or ValueError if the library or such a device is missing; a host array shares its memory.
    """
    library, kind = place
    xp = _compatible(import_module(library))
    info = xp.__array_namespace_info__()
    if names_host(kind):
        return to_device(host, host_device(xp), xp)
    if not names_host(info.default_device()):
        return to_device(host, None, xp)
    found = next((device for device in info.devices() if _kind(device) == kind), None)
    if found is None:
        raise ValueError(f"{library} has no device {kind!r} in this process, but an array needs one.")
    return to_device(host, found, xp)


def _kind(device: Device) -> str:
    """The name of a device without its number: CuPy's is ``<CUDA Device 0>``, torch's ``cuda:0``."""
    name = str(device)
    return "cuda" if name.startswith("<CUDA Device ") else name.partition(":")[0]


def _moved(
    array: Array, device: Device | None, own: Namespace, target: Namespace, label: str | None
) -> Array:
    if own.__name__ == target.__name__:
        if device is None or device == compat.device(array):
            return array
        # Between two devices, or from the host to another name of the host: no transfer.
        if names_host(device) != is_on_device(array):
            return compat.to_device(array, device)
    return _into(to_host(array, label=label), device, target, label)


def _into(host: np.ndarray, device: Device | None, xp: Namespace, label: str | None) -> Array:
    """An array of `xp` with the content of a NumPy array."""
    if compat.is_numpy_namespace(xp):
        return host
    crosses = not names_host(device if device is not None else xp.__array_namespace_info__().default_device())
    if compat.is_torch_namespace(xp) and not _torch_can_share(host):
        host = host.copy()
    # array-api-strict's devices are host memory, which it would share; a transfer always makes a copy.
    # CUDA libraries copy once either way.
    # torch 2.11 does not move a NumPy array without axes to a GPU, so it gets one on the way.
    result = xp.asarray(np.atleast_1d(host), device=device, copy=True if crosses else None)
    result = xp.reshape(result, ()) if host.ndim == 0 else result
    if crosses:
        count(to_device=host.nbytes, label=label)
    return result


def _torch_can_share(host: np.ndarray) -> bool:
    """Whether torch takes the memory: no negative strides, and not read-only as joblib's memory maps are."""
    return host.flags.writeable and all(stride >= 0 for stride in host.strides)


def _compatible(xp: Namespace) -> Namespace:
    """array-api-compat's namespace for a library's top module or for any of its namespaces."""
    empty = getattr(xp, "empty", None)
    if empty is None:
        raise TypeError(
            f"to_device needs xp to be the namespace of an array library, got {xp!r}. "
            "Pass a module such as numpy or cupy, or manyfit.arrays.array_namespace(some_array)."
        )
    return compat.array_namespace(empty(0))


def _check_device(device: Device | None, xp: Namespace) -> None:
    if device is None:
        return
    if compat.is_numpy_namespace(xp) and not names_host(device):
        raise ValueError(
            f"to_device cannot put a NumPy array on device {device!r}: NumPy has the host only, 'cpu'. "
            "Pass xp= as well, the library that holds it on the device, such as cupy or torch."
        )
    if compat.is_cupy_namespace(xp) and names_host(device):
        raise ValueError(
            f"to_device cannot put a CuPy array on device {device!r}: CuPy has CUDA devices only. "
            "Use manyfit.arrays.to_host, which returns a NumPy array."
        )
