"""Arrays, sparse matrices and data frames that are not the host's own: their place and their transfers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse

from manyfit.arrays._namespace import Device, Namespace, is_array, library_name, names_host
from manyfit.arrays.transfer._counts import count
from manyfit.arrays.transfer._host_device import to_device, to_host

# Lazy and sparse arrays of the array API, which are passed on as they are.
_IGNORED = (compat.is_dask_array, compat.is_pydata_sparse_array, compat.is_ndonnx_array)
_FRAMES = ("DataFrame", "Series", "Index")
# CuPy's sparse matrices hold no integers.
_SPARSE_FORMATS, _SPARSE_DTYPES = ("csr", "csc", "coo", "dia"), "?fdFD"


@dataclass(frozen=True)
class Place:
    """The place of a container that is not NumPy's, SciPy's, pandas' or Python's own.

    `library` is "cudf" for its frames, whose `xp` is CuPy; `kind` is that of `container_kind`, and dense
    results for a sparse matrix are arrays. `on_host` says whether NumPy reads the memory without a transfer.
    """

    library: str
    kind: str
    xp: Namespace
    device: Device
    on_host: bool

    def move(self, value: Any) -> Any:
        """Move a result of the host to this place, as an array, frame or sparse matrix; collections by part.

        Strings, scalars, objects, host frames, and sparse matrices that the library cannot hold stay.
        """
        if type(value) in (tuple, list):
            return type(value)(self.move(part) for part in value)
        if type(value) is dict:
            return {name: self.move(part) for name, part in value.items()}
        if scipy.sparse.issparse(value):
            return self._sparse(value)
        if not is_array(value) or not self._holds(value):
            return value
        array = to_device(value, self.device, self.xp)
        if self.kind != "frame" or array.ndim not in (1, 2):
            return array
        return getattr(import_module(self.library), "Series" if array.ndim == 1 else "DataFrame")(array)

    def as_array(self, value: Any) -> Any:
        """An array at this place from an array of any place, a device frame, or anything NumPy converts."""
        if container_kind(value) == "frame":
            value = value.to_cupy()
        array = value if is_array(value) else np.asarray(value)
        return to_device(array, self.device, self.xp)

    def is_same(self, other: Place | None) -> bool:
        """Whether arrays of both places can be combined."""
        return other is not None and (self.xp.__name__, self.device) == (other.xp.__name__, other.device)

    def _holds(self, value: Any) -> bool:
        if not isinstance(value, np.ndarray):
            return True
        return type(value) is np.ndarray and value.dtype.kind in "biufc"

    def _sparse(self, value: Any) -> Any:
        has = value.ndim == 2 and value.format in _SPARSE_FORMATS and value.dtype.char in _SPARSE_DTYPES
        if not has or self.library not in ("cupy", "cudf"):
            return value
        module = import_module("cupyx.scipy.sparse")
        moved = getattr(module, f"{value.format}_matrix")(value)
        count(to_device=_bytes_of(value))
        return moved


def container_kind(value: Any) -> str | None:
    """Return "array", "sparse" or "frame" for a container of another library than the host's own.

    None for NumPy, SciPy, pandas and lists, for lazy arrays, and for values that hold no data.
    """
    kind = type(value)
    package, _, rest = kind.__module__.partition(".")
    if package == "cupyx" and rest.startswith("scipy.sparse"):
        return "sparse"
    if package == "cudf" and kind.__name__ in _FRAMES:
        return "frame"
    if isinstance(value, np.ndarray | np.generic) or not is_array(value):
        return None
    return None if any(check(value) for check in _IGNORED) else "array"


def is_xp_array(value: Any) -> bool:
    """Whether a value is an array in memory of another library than NumPy, on the host or on a device."""
    return container_kind(value) == "array"


def container_place(value: Any) -> Place | None:
    """The place of a container; None if `container_kind` is None. No data are read."""
    kind = container_kind(value)
    if kind is None:
        return None
    if kind == "array":
        xp, device = compat.array_namespace(value), compat.device(value)
        return Place(library_name(xp), kind, xp, device, names_host(device))
    cupy = import_module("cupy")
    xp = compat.array_namespace(cupy.empty(0))
    return Place("cudf" if kind == "frame" else "cupy", kind, xp, cupy.cuda.Device(), False)


def container_to_host(value: Any, *, label: str | None = None) -> Any:
    """A container as NumPy, SciPy or pandas holds it; the host's own values stay as they are."""
    kind = container_kind(value)
    if kind is None:
        return value
    if kind == "array":
        return to_host(value, label=label)
    host = value.get() if kind == "sparse" else value.to_pandas()
    count(to_host=_bytes_of(host), label=label)
    return host


def _bytes_of(value: Any) -> int:
    if scipy.sparse.issparse(value):
        names = ("data", "indices", "indptr", "row", "col", "offsets")
        parts = (getattr(value, name, None) for name in names)
        return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
    return int(np.sum(value.memory_usage(deep=False)))
