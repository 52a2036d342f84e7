"""From X to the `ChunkRows` that read it."""

from typing import Any

import numpy as np

from manyfit.folds.rows._inputs import NUMBERS, has_dtype
from manyfit.folds.rows.chunks._dask import DaskRows
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.rows.chunks._sliced import MemmapRows, SlicedRows

# By package and class; the packages are not imported.
_IN_FILES = {("h5py", "Dataset"): "h5py.Dataset", ("zarr", "Array"): "zarr.Array"}
_DASK = ("dask", "Array")
_kinds: dict[type, str] = {}


def is_in_file(X: Any) -> bool:
    """Whether X is an `h5py.Dataset` or a `zarr.Array`."""
    return _kind_of(X) in _IN_FILES.values()


def may_be_in_chunks(X: Any) -> bool:
    """Whether X is of a class whose rows can be read in chunks; takes no longer than a look at its class."""
    return bool(_kind_of(X))


def size_in_chunks(X: Any) -> int | None:
    """The bytes of an X that `as_chunk_rows` reads; None for any other X."""
    kind = _kind_of(X)
    if kind == "rows":
        return int(X.nbytes)
    if not kind or (kind == "dask" and not _has_known_chunks(X)):
        return None
    return int(np.prod(X.shape, dtype=np.int64)) * getattr(X.dtype, "itemsize", 8)


def as_chunk_rows(X: Any, memory: int) -> ChunkRows | None:
    """The rows of an X outside memory, read in chunks; None for an X of any other kind.

    Raises ValueError if X is no matrix of numbers, and MemoryError if one chunk is too large for `memory`.
    """
    if isinstance(X, ChunkRows):
        return X
    kind = _kind_of(X)
    if kind == "memmap":
        return MemmapRows(X, memory) if X.ndim == 2 and has_dtype(X, NUMBERS | {"b1"}) else None
    if kind == "dask":
        return DaskRows(X, memory) if _has_known_chunks(X) else None
    return SlicedRows(X, kind, memory) if kind else None


def _kind_of(X: Any) -> str:
    """The kind of an object that is read in chunks; empty for any other."""
    cls = type(X)
    if cls not in _kinds:
        _kinds[cls] = _class_kind(cls)
    return _kinds[cls]


def _class_kind(cls: type) -> str:
    if cls is np.memmap:
        return "memmap"
    if issubclass(cls, ChunkRows):
        return "rows"
    names = [(base.__module__.partition(".")[0], base.__name__) for base in cls.__mro__]
    return "dask" if _DASK in names else next((_IN_FILES[name] for name in names if name in _IN_FILES), "")


def _has_known_chunks(X: Any) -> bool:
    """Whether the sizes of a Dask array's chunks are known, and Dask makes arrays of NumPy."""
    import dask

    on_host = dask.config.get("array.backend", None) in (None, "numpy")
    return on_host and not np.isnan(sum(map(sum, X.chunks)))
