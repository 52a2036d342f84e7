"""What holds data, whether an array, a sparse matrix or a frame: where it lies, how it moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse

from manyfit.arrays._namespace import Device, Namespace, is_array, library_name, names_host
from manyfit.arrays.transfer._counts import count
from manyfit.arrays.transfer._host_device import to_device, to_host

# Arrays by the names of the array API that are left to whom they are given to: lazy ones, and sparse ones.
_NOT_OURS = (compat.is_dask_array, compat.is_pydata_sparse_array, compat.is_ndonnx_array)
_FRAMES = ("DataFrame", "Series", "Index")
# Of CuPy's sparse matrices, which hold no integers.
_SPARSE_FORMATS, _SPARSE_DTYPES = ("csr", "csc", "coo", "dia"), "?fdFD"
_forms: dict[type, str | None] = {}


@dataclass(frozen=True)
class Place:
    """Where something lies that is not the host's own: neither NumPy's nor a list, pandas' or SciPy's.

    Attributes
    ----------
    library : str
        Name of the library, ``"cudf"`` for its frames.
    form : {"array", "sparse", "frame"}
        What it is. Dense results for a sparse matrix are arrays of its library.
    xp : module
        Namespace of the library's arrays; CuPy's for frames.
    device : device
        As the library names it.
    home : bool
        Whether it is the host's memory, so that nothing crosses if NumPy reads it.
    """

    library: str
    form: str
    xp: Namespace
    device: Device
    home: bool

    def bring(self, value: Any) -> Any:
        """Something of the host brought there: numbers as an array, a frame or a sparse matrix.

        Parameters
        ----------
        value : object
            Result of a computation on the host. Of a tuple, list or dict each part is brought.

        Returns
        -------
        object
            What has no equal there stays as it is: strings, scalars, objects, data frames, and sparse
            matrices where the library has none, or none of their dtype.
        """
        if type(value) in (tuple, list):
            return type(value)(self.bring(part) for part in value)
        if type(value) is dict:
            return {name: self.bring(part) for name, part in value.items()}
        if scipy.sparse.issparse(value):
            return self._sparse(value)
        if not is_array(value) or not self._holds(value):
            return value
        array = to_device(value, self.device, self.xp)
        if self.form != "frame" or array.ndim not in (1, 2):
            return array
        return getattr(import_module(self.library), "Series" if array.ndim == 1 else "DataFrame")(array)

    def array(self, value: Any) -> Any:
        """Data of the host, of any kind that NumPy makes an array of, or an array of another place, there."""
        if container_kind(value) == "frame":
            value = value.to_cupy()
        array = value if is_array(value) else np.asarray(value)
        return to_device(array, self.device, self.xp)

    def same(self, other: Place | None) -> bool:
        """Whether arrays of both can be worked on together."""
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


def _form(value: Any) -> str | None:
    kind = type(value)
    package, _, rest = kind.__module__.partition(".")
    if package == "cupyx" and rest.startswith("scipy.sparse"):
        return "sparse"
    if package == "cudf" and kind.__name__ in _FRAMES:
        return "frame"
    if isinstance(value, np.ndarray | np.generic) or not is_array(value):
        return None
    return None if any(check(value) for check in _NOT_OURS) else "array"


def container_kind(value: Any) -> str | None:
    """The kind of container, if it is not one of the host's own.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    {"array", "sparse", "frame"} or None
        By the type, which is looked at once: a second look costs a tenth of a microsecond. None for NumPy's
        arrays, lists, pandas, SciPy's matrices and all that holds no data, and for lazy arrays.
    """
    kind = type(value)
    try:
        return _forms[kind]
    except KeyError:
        return _forms.setdefault(kind, _form(value))


def is_xp_array(value: Any) -> bool:
    """Whether a value is an array in memory of another library than NumPy, on the host or on a device."""
    return container_kind(value) == "array"


def container_place(value: Any) -> Place | None:
    """Where a container lies.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    Place or None
        None for whatever `container_kind` has no name for. Nothing is read.
    """
    form = container_kind(value)
    if form is None:
        return None
    if form == "array":
        xp, device = compat.array_namespace(value), compat.device(value)
        return Place(library_name(xp), form, xp, device, names_host(device))
    cupy = import_module("cupy")
    xp = compat.array_namespace(cupy.empty(0))
    return Place("cudf" if form == "frame" else "cupy", form, xp, cupy.cuda.Device(), False)


def container_to_host(value: Any, *, label: str | None = None) -> Any:
    """A container as the host's own libraries have it: NumPy, SciPy or pandas.

    Parameters
    ----------
    value : object
        Anything.
    label : str, optional
        Why it crosses, for `transfers`; by default what `label_transfers` says.

    Returns
    -------
    object
        The same content on the host: what `to_host` makes of an array, a SciPy matrix, a pandas frame. What
        is the host's own already comes back as it is.
    """
    form = container_kind(value)
    if form is None:
        return value
    home: Callable[[], Any] = {
        "array": lambda: to_host(value, label=label),
        "sparse": lambda: value.get(),
        "frame": lambda: value.to_pandas(),
    }[form]
    host = home()
    if form != "array":
        count(to_host=_bytes_of(host), label=label)
    return host


def _bytes_of(value: Any) -> int:
    if scipy.sparse.issparse(value):
        names = ("data", "indices", "indptr", "row", "col", "offsets")
        parts = (getattr(value, name, None) for name in names)
        return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
    return int(np.sum(value.memory_usage(deep=False)))
