"""Rows of a Dask array, computed block by block."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.folds.rows.chunks._cuts import joined_borders
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.rows.chunks._sliced import matrix_shape, number_dtype

Array = NDArray[Any]


class DaskRows(ChunkRows):
    """Rows of a `dask.array.Array` with known chunks of NumPy arrays.

    Dask's current scheduler computes some row chunks at a time, with all their column chunks. They are summed
    in this process, in the order of the rows.
    """

    def __init__(self, X: Any, memory: int) -> None:
        kind = "dask.array.Array"
        shape, dtype = matrix_shape(X, kind), number_dtype(X, kind)
        borders = joined_borders(X.chunks[0], shape[1] * dtype.itemsize, memory)
        super().__init__(kind, shape, dtype, borders, memory)
        self._X = X
        self.identity = (kind, X.name)
        if not _is_persisted(X):
            self.recomputed = (
                "Dask computes the chunks of X anew in each pass: persist X if the memory of its workers "
                "holds it, or write it to Zarr or HDF5 first"
            )

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self._X[start:stop].compute())


def _is_persisted(X: Any) -> bool:
    """Whether the chunks of a Dask array are data or futures, not tasks."""
    key = X.__dask_keys__()
    while isinstance(key, list):
        key = key[0]
    chunk = X.__dask_graph__()[key]
    return isinstance(chunk, np.ndarray) or type(chunk).__name__ in ("Future", "DataNode")
