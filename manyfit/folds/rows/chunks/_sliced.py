"""Arrays in files, whose rows are read by slicing: those of h5py and Zarr, and NumPy's memory maps."""

import mmap
import os
from typing import Any

import numpy as np

from manyfit.folds.rows._inputs import NUMBERS
from manyfit.folds.rows.chunks._cuts import file_stamp, regular_borders
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.splits._atoms import Array

GENOTYPES = "manyfit.folds.Genotypes"
# Of Zarr 3 and 2.
LOCAL_STORES = ("LocalStore", "DirectoryStore", "NestedDirectoryStore")


class SlicedRows(ChunkRows):
    """Rows of an `h5py.Dataset`, a `zarr.Array` of format 2 or 3, or any array of a file like them.

    Such an array has ``shape``, ``dtype`` and ``chunks``, and ``X[start:stop]`` reads rows.
    """

    def __init__(self, X: Any, kind: str, memory: int) -> None:
        shape, dtype = matrix_shape(X, kind), number_dtype(X, kind)
        # A shard of Zarr is read whole, whatever chunks it holds.
        chunks = getattr(X, "shards", None) or getattr(X, "chunks", None)
        chunk_rows = int(chunks[0]) if chunks else 1
        borders = regular_borders(shape[0], shape[1] * dtype.itemsize, chunk_rows, memory)
        super().__init__(kind, shape, dtype, borders, memory)
        self._X = X
        self.in_files = kind in ("h5py.Dataset", "zarr.Array") or (kind == GENOTYPES and not X.is_in_memory)
        store = getattr(X, "store", None) or getattr(getattr(X, "file", None), "filename", None) or id(X)
        self.identity = (kind, str(store), getattr(X, "name", None), shape, str(dtype))

    def file_identity(self) -> tuple[Any, ...] | None:
        stamps = self._stamps()
        return (self.kind, self.shape, str(self.dtype), stamps) if stamps else None

    def _stamps(self) -> list[Any]:
        """The stamps of the files that hold X, if they lie on a disk of this machine and X is not written."""
        if self.kind == "h5py.Dataset":
            return [self._X.name, file_stamp(self.path)] if _is_in_one_file(self._X) else []
        top = self.path
        if self.kind != "zarr.Array" or not os.path.isdir(top):
            return []
        walk = os.walk(top, followlinks=True)
        paths = [os.path.join(folder, name) for folder, _, names in walk for name in names]
        return [file_stamp(path, os.path.relpath(path, top)) for path in sorted(paths)]

    @property
    def path(self) -> str:
        """The HDF5 file, or the folder of a local store of Zarr."""
        if self.kind == "h5py.Dataset":
            return os.path.abspath(self._X.file.filename)
        store = getattr(self._X, "store", None)
        if type(store).__name__ not in LOCAL_STORES:
            return ""
        root = getattr(store, "root", None) or getattr(store, "path", "")
        return os.path.join(os.path.abspath(str(root)), self._X.path)

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self._X[start:stop])

    def why_not_on_workers(self) -> str:
        if self.kind == "zarr.Array":
            memory = type(self._X.store).__name__ == "MemoryStore"
            return "its store is the memory of this process" if memory else ""
        if self.kind == GENOTYPES:
            return "its bytes are in the memory of this process" if self._X.is_in_memory else ""
        if self.kind != "h5py.Dataset":
            return super().why_not_on_workers()
        memory = getattr(self._X.file, "driver", "") == "core"
        return "its file is in the memory of this process" if memory else ""

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if self.kind == "h5py.Dataset":  # cannot be pickled
            state["_X"] = os.path.abspath(self._X.file.filename), self._X.name
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.kind == "h5py.Dataset":
            import h5py

            path, name = self._X
            self._X = h5py.File(path, "r")[name]


def _is_in_one_file(X: Any) -> bool:
    """Whether all numbers of an `h5py.Dataset` lie in the file that its path names, which is only read."""
    file = X.file
    if getattr(file, "mode", "") != "r" or file.driver != "sec2" or X.is_virtual or X.external:
        return False
    try:
        opened, named = os.fstat(file.id.get_vfd_handle()), os.stat(file.filename)
    except (OSError, TypeError, ValueError):
        return False
    return (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)  # it may have been replaced


class MemmapRows(ChunkRows):
    """Rows of a NumPy memory map, copied block by block; the pages of earlier blocks leave this process."""

    read_by_sklearn = in_files = True

    def __init__(self, X: Any, memory: int) -> None:
        borders = regular_borders(X.shape[0], X.shape[1] * X.dtype.itemsize, 1, memory)
        super().__init__("numpy.memmap", (X.shape[0], X.shape[1]), X.dtype, borders, memory)
        self._X = X
        # The changes to a map of mode "c" are in its pages only.
        self._pages = _pages(X) if X.mode in ("r", "r+", "w+") else None

    def read(self, start: int, stop: int) -> Array:
        block = np.array(self._X[start:stop])
        if self._pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._pages.madvise(mmap.MADV_DONTNEED)
        return block

    def why_not_on_workers(self) -> str:
        if self._pages is None or self._X.filename is None:
            return "its changes are in the memory of this process"
        return "" if self._X.flags.c_contiguous else "its rows are not stored one after the other"

    def __getstate__(self) -> dict[str, Any]:
        X, state = self._X, super().__getstate__()
        # A view of a map has the offset of the whole.
        first = X.ctypes.data - np.frombuffer(_pages(X), np.uint8).ctypes.data  # type: ignore[arg-type]
        offset = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY + first
        return {**state, "_pages": None, "_X": (os.path.abspath(X.filename), X.dtype, "r", offset, X.shape)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._X = np.memmap(*self._X)
        self._pages = _pages(self._X)


def _pages(X: Any) -> mmap.mmap | None:
    """The map that an array, or a view of one, reads."""
    while X is not None and not isinstance(X, mmap.mmap):
        X = X.obj if isinstance(X, memoryview) else getattr(X, "base", None)
    return X


def matrix_shape(X: Any, kind: str) -> tuple[int, int]:
    """The shape of X; raises ValueError, as scikit-learn does, unless it has two dimensions."""
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead: X is a {kind} of shape {tuple(X.shape)}. "
            "It needs one row for each sample and one column for each feature."
        )
    n, p = map(int, X.shape)
    if not n:
        raise ValueError(f"Found array with 0 sample(s) (shape=({n}, {p})): X, a {kind}, has no rows.")
    if not p:
        raise ValueError(f"Found array with 0 feature(s) (shape=({n}, {p})): X, a {kind}, has no columns.")
    return n, p


def number_dtype(X: Any, kind: str) -> np.dtype[Any]:
    """The dtype of X in the byte order of this machine; raises ValueError if rows of it are not read."""
    try:
        dtype = np.dtype(X.dtype).newbyteorder("=")
    except TypeError:  # NumPy has no such dtype
        dtype = np.dtype(object)
    if dtype.str[1:] not in NUMBERS | {"b1"}:
        raise ValueError(
            f"X is a {kind} of dtype {X.dtype}. Chunks are read of float32, float64, integers or bools; "
            "store X as one of these."
        )
    return dtype
