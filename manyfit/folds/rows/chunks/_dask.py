"""Rows of Dask's arrays and frames, computed block by block."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.folds.rows.chunks._cuts import joined_borders
from manyfit.folds.rows.chunks._frames import FrameRows, number_dtype_of
from manyfit.folds.rows.chunks._parts import PartRows
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.rows.chunks._sliced import matrix_shape, number_dtype

Array = NDArray[Any]

ARRAY, FRAME = "dask.array.Array", "dask.dataframe.DataFrame"
_RECOMPUTED = (
    "Dask computes the {parts} of X anew in each pass: persist X if the memory of its workers holds it, or "
    "write it to {files} first"
)


class DaskRows(ChunkRows):
    """Rows of a `dask.array.Array` with known chunks of NumPy arrays.

    Dask's current scheduler computes some row chunks at a time, with all their column chunks. They are summed
    in this process, in the order of the rows.
    """

    def __init__(self, X: Any, memory: int) -> None:
        shape, dtype = matrix_shape(X, ARRAY), number_dtype(X, ARRAY)
        borders = joined_borders(X.chunks[0], shape[1] * dtype.itemsize, memory)
        super().__init__(ARRAY, shape, dtype, borders, memory)
        self._X = X
        self.identity = (ARRAY, X.name)
        self.recomputed = recomputed_array(X)

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self._X[start:stop].compute())


class DaskParts(PartRows):
    """Rows of a `dask.array.Array` whose row chunks are of unknown sizes; the first pass counts them."""

    def __init__(self, X: Any, memory: int) -> None:
        dtype = number_dtype(X, ARRAY)
        super().__init__(ARRAY, int(X.shape[1]), dtype, X.numblocks[0], None, memory)
        self._X = X
        self.identity = (ARRAY, X.name)
        self.recomputed = recomputed_array(X)

    def read_part(self, k: int, columns: Sequence[int] | None = None) -> Array:
        part = np.asarray(self._X.blocks[k].compute())
        return part if columns is None else part[:, columns]


class DaskFrameRows(FrameRows):
    """Rows of a `dask.dataframe.DataFrame` of pandas' frames, whose lengths the first pass counts."""

    def __init__(self, X: Any, memory: int) -> None:
        dtypes = [number_dtype_of(dtype) for dtype in X.dtypes]
        super().__init__(FRAME, list(X.columns), dtypes, X.npartitions, None, memory)
        self._X = X
        self._parts: dict[tuple[str, ...], list[Any]] = {}
        self.identity = (FRAME, X.__dask_keys__()[0][0])
        if not _is_persisted(X):
            self.recomputed = _RECOMPUTED.format(parts="partitions", files="Parquet")

    def read_columns(self, k: int, columns: Sequence[str]) -> Any:
        chosen = tuple(columns)
        if chosen not in self._parts:
            # Dask reads no other columns of a file.
            self._parts[chosen] = (self._X if chosen == self.names else self._X[list(chosen)]).to_delayed()
        return self._parts[chosen][k].compute()


def recomputed_array(X: Any) -> str:
    """See `ChunkRows.recomputed`, of a Dask array."""
    return "" if _is_persisted(X) else _RECOMPUTED.format(parts="chunks", files="Zarr or HDF5")


def size_of_parts(X: Any) -> int:
    """Bytes of all parts of a Dask collection of unknown lengths, from two that are computed."""
    is_array = hasattr(X, "numblocks")
    n = X.numblocks[0] if is_array else X.npartitions
    parts = [X.blocks[k] if is_array else X.partitions[k] for k in sorted({0, n // 2})]
    return n * max(_nbytes(part.compute()) for part in parts)


def _nbytes(part: Any) -> int:
    return int(part.nbytes) if isinstance(part, np.ndarray) else int(part.memory_usage(deep=True).sum())


def _is_persisted(X: Any) -> bool:
    """Whether the chunks of a Dask collection are data or futures, not tasks."""
    key = X.__dask_keys__()
    while isinstance(key, list):
        key = key[0]
    chunk = X.__dask_graph__()[key]
    return hasattr(chunk, "dtypes") or type(chunk).__name__ in ("ndarray", "Future", "DataNode", "Alias")
