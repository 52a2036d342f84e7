"""Arrays in files as h5py and Zarr have them, without these libraries, which count what is read of them."""

from __future__ import annotations

from types import SimpleNamespace

import dask.array as da
import numpy as np

from manyfit.folds.rows.chunks._cuts import MOST_READS


class Dataset:
    """An `h5py.Dataset` of some values; `reads` are the numbers of rows of each read."""

    def __init__(self, values, chunks=None):
        self._values, self.chunks, self.reads = values, chunks, []
        self.shape, self.dtype, self.name = values.shape, values.dtype, "/X"
        self.file = SimpleNamespace(filename="X.h5")

    def __len__(self):
        return len(self._values)

    def __array__(self, *_, **__):
        raise AssertionError("the whole file was read")

    def __getitem__(self, rows):
        taken = np.array(self._values[rows])
        self.reads.append(len(taken))
        return taken


class Array(Dataset):
    """A `zarr.Array` of some values, in shards if they are given."""

    def __init__(self, values, chunks, shards=None):
        super().__init__(values, chunks)
        self.shards, self.store = shards, "file://X.zarr"


Dataset.__module__, Array.__module__ = "h5py._hl.dataset", "zarr.core.array"


def memory_map(values, folder):
    """A memory map of a file with these values."""
    np.save(folder / "X.npy", values)
    return np.load(folder / "X.npy", mmap_mode="r")


def given_as(kind, values, rows, folder):
    """The values as an X of a kind, in chunks of so many rows and, where X has such, two column chunks."""
    columns = -(-values.shape[1] // 2)
    if kind == "h5py":
        return Dataset(values, (rows, columns))
    if kind == "zarr":
        return Array(values, (rows, columns))
    return da.from_array(values, chunks=(rows, columns)) if kind == "dask" else memory_map(values, folder)


def limit_for(values, rows):
    """A memory limit with which `rows` rows are read at a time."""
    return MOST_READS * rows * values[0].nbytes
