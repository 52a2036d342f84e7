"""Rows of Dask's arrays and frames, computed block by block."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.sparse import hstack, issparse

from manyfit.folds.rows._sparse_chunks import SparseRows, bytes_of
from manyfit.folds.rows.chunks._cuts import chunk_and_rows, joined_borders
from manyfit.folds.rows.chunks._frames import FrameRows, number_dtype_of
from manyfit.folds.rows.chunks._parts import PartRows
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.rows.chunks._sliced import matrix_shape, number_dtype
from manyfit.folds.splits._atoms import Array

ARRAY, FRAME = "dask.array.Array", "dask.dataframe.DataFrame"
_RECOMPUTED = (
    "Dask computes the {parts} of X anew in each pass: persist X if the memory of its workers holds it, or "
    "write it to {files} first"
)


class _DaskSource(ChunkRows):
    """A collection of Dask: its chunks are computed where they are read, or lie on workers that keep them.

    Attributes
    ----------
    X : dask collection
        The collection.
    starts : ndarray of int
        The first row of each block of rows, and the number of rows, once they are known.
    """

    X: Any
    starts: Array
    _scheduler: str | None = None  # Dask's current one; within a task of a worker, none of its own
    _futures: Sequence[Sequence[Any]] = ()  # of the blocks of rows, if workers keep them
    _taken: Mapping[int, Sequence[Any]] = MappingProxyType({})  # on a worker: some blocks of rows

    def _open(self, X: Any, files: str) -> None:
        self.X = X
        if not _is_persisted(X):
            parts = "chunks" if hasattr(X, "numblocks") else "partitions"
            self.recomputed = _RECOMPUTED.format(parts=parts, files=files)
        self._futures = _futures_of(X)

    def compute(self, part: Any) -> Any:
        """Compute a part of the collection."""
        return part.compute(scheduler=self._scheduler)

    def why_not_on_workers(self) -> str:
        if self._futures:
            return ""
        if not self.recomputed:
            return "its chunks are in the memory of this process"
        from distributed import futures_of

        # A task within a task could wait for them, and fill the worker.
        return "its chunks are computed of data that workers keep" if futures_of(self.X) else ""

    @property
    def kept_by_workers(self) -> bool:
        return bool(self._futures)

    def lets_workers_read(self) -> bool:
        if isinstance(self, PartRows) and not self.is_counted:
            from dask.base import compute
            from dask.delayed import delayed

            parts = np.reshape(self.X.to_delayed(), (len(_keys(self.X)), -1))[:, 0]
            self.take_lengths(compute(*map(delayed(_length), parts)))
        return True

    def blocks_of(self, start: int, stop: int) -> range:
        """The blocks that hold some rows."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        return range(first, int(np.searchsorted(self.starts, stop, side="left")))

    def _blocks_read(self, reads: range) -> range:
        return self.blocks_of(self.borders[reads.start], self.borders[min(reads.stop, self.n_reads)])

    def inputs(self, reads: range) -> list[Any]:
        return [one for k in self._blocks_read(reads) for one in self._futures[k]] if self._futures else []

    def take_inputs(self, inputs: Sequence[Any], reads: range) -> None:
        if inputs:
            blocks = self._blocks_read(reads)
            each = len(inputs) // len(blocks)
            self._taken = {k: inputs[i * each : (i + 1) * each] for i, k in enumerate(blocks)}

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__(), "_futures": (), "_scheduler": "synchronous"}
        return {**state, "X": None} if self._futures else state


class DaskRows(_DaskSource):
    """Rows of a `dask.array.Array` with known chunks of NumPy arrays.

    Dask's current scheduler computes some row chunks at a time, with all their column chunks.
    """

    def __init__(self, X: Any, memory: int) -> None:
        shape, dtype = matrix_shape(X, ARRAY), number_dtype(X, ARRAY)
        borders = joined_borders(X.chunks[0], shape[1] * dtype.itemsize, memory)
        super().__init__(ARRAY, shape, dtype, borders, memory)
        self.identity, self.starts = (ARRAY, X.name), np.cumsum([0, *X.chunks[0]])
        self._failed: int | None = None  # the block of rows that could not be computed
        self._open(X, "Zarr or HDF5")

    def read(self, start: int, stop: int) -> Array:
        if not self._taken:
            self._failed = None
            try:
                return _dense(self.compute(self.X[start:stop]))
            except Exception:
                self._failed = self._failing_block(start, stop)
                raise
        blocks = self.blocks_of(start, stop)
        first = self.starts[blocks.start]
        return np.block([list(self._taken[k]) for k in blocks])[start - first : stop - first]

    def _failing_block(self, start: int, stop: int) -> int | None:
        """The block of rows that cannot be computed, among those of a read that failed."""
        blocks = self.blocks_of(start, stop)
        for k in blocks[:-1]:
            try:
                self.compute(self.X.blocks[k])
            except Exception:
                return k
        return blocks[-1]

    def where(self, start: int, stop: int | None) -> str:
        return (
            super().where(start, stop) if self._failed is None else chunk_and_rows(self._failed, self.starts)
        )


class DaskParts(_DaskSource, PartRows):
    """Rows of a `dask.array.Array` whose row chunks are of unknown sizes; the first pass counts them."""

    def __init__(self, X: Any, memory: int) -> None:
        dtype = number_dtype(X, ARRAY)
        PartRows.__init__(self, ARRAY, int(X.shape[1]), dtype, X.numblocks[0], None, memory)
        self.identity = (ARRAY, X.name)
        self._open(X, "Zarr or HDF5")

    def read_part(self, k: int, columns: Sequence[int] | None = None) -> Array:
        part = np.block([list(self._taken[k])]) if self._taken else self.compute(self.X.blocks[k])
        return _dense(part) if columns is None else _dense(part)[:, columns]


class DaskSparseRows(_DaskSource, SparseRows):
    """Rows of a `dask.array.Array` whose chunks are sparse matrices of SciPy; the first pass counts them."""

    def __init__(self, X: Any, memory: int) -> None:
        dtype, n_parts = number_dtype(X, ARRAY), X.numblocks[0]
        # Of the parts that `size_of_parts` computes.
        row_bytes = max((bytes_of(part) / part.shape[0] for part in _some_parts(X, n_parts)), default=0.0)
        SparseRows.__init__(
            self, f"{ARRAY} of sparse chunks", int(X.shape[1]), dtype, n_parts, None, memory,
            row_bytes,
        )  # fmt: skip
        self.identity = (ARRAY, X.name)
        if not np.isnan(X.shape[0]):
            self.expect(X.shape[0])
        self._open(X, "files that Blocks reads")

    def read_part(self, k: int, columns: Sequence[int] | None = None) -> Any:
        if self._taken:
            parts = list(self._taken[k])
        else:
            row = self.X.blocks[k]
            parts = [self.compute(row.blocks[:, j]) for j in range(row.numblocks[1])]
        part = parts[0] if len(parts) == 1 else hstack(parts, format="csr")
        return part if columns is None else part[:, columns]


def _dense(part: Any) -> Array:
    """A part of an array whose chunks are dense, as its ``_meta`` says."""
    if issparse(part):
        raise ValueError(
            f"A chunk of X is a sparse {type(part).__name__}, and its Dask array says that chunks are dense. "
            "Give it meta=scipy.sparse.csr_array((0, 0)), in map_blocks or from_delayed."
        )
    return np.asarray(part)


def has_sparse_chunks(X: Any) -> bool:
    """Whether the chunks of a Dask array are sparse matrices of SciPy, as its ``_meta`` says."""
    return issparse(getattr(X, "_meta", None))


class DaskFrameRows(_DaskSource, FrameRows):
    """Rows of a `dask.dataframe.DataFrame` of pandas' frames, whose lengths the first pass counts."""

    def __init__(self, X: Any, memory: int) -> None:
        dtypes = [number_dtype_of(dtype) for dtype in X.dtypes]
        FrameRows.__init__(self, FRAME, list(X.columns), dtypes, X.npartitions, None, memory)
        self._parts: dict[tuple[str, ...], list[Any]] = {}
        self.identity = (FRAME, X.__dask_keys__()[0][0])
        self._open(X, "Parquet")

    def read_columns(self, k: int, columns: Sequence[str]) -> Any:
        if self._taken:
            return self._taken[k][0][list(columns)]
        chosen = tuple(columns)
        if chosen not in self._parts:
            # Dask reads no other columns of a file.
            self._parts[chosen] = (self.X if chosen == self.names else self.X[list(chosen)]).to_delayed()
        return self.compute(self._parts[chosen][k])

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_parts": {}}


def with_pandas(X: Any) -> Any:
    """A `dask.dataframe.DataFrame` of pandas' frames; partitions of cuDF are copied when they are read."""
    package = type(X._meta).__module__.partition(".")[0]
    return X if package == "pandas" else X.to_backend("pandas")


def size_of_parts(X: Any) -> int:
    """Bytes of all parts of a Dask collection of unknown lengths, from two that are computed.

    More are computed as long as all are empty.
    """
    n = X.numblocks[0] if hasattr(X, "numblocks") else X.npartitions
    return n * max(map(bytes_of, _some_parts(X, n)), default=0)


def _some_parts(X: Any, n: int) -> Iterator[Any]:
    """Two parts of a Dask collection that are not empty, or one, or none, computed."""
    found = 0
    for i, k in enumerate(dict.fromkeys([0, n // 2, *range(n)])):
        if i > 1 and found:
            return
        part = (X.blocks[k] if hasattr(X, "numblocks") else X.partitions[k]).compute()
        if part.shape[0]:
            found += 1
            yield part


def _length(part: Any) -> int:
    return int(part.shape[0])


def _is_persisted(X: Any) -> bool:
    """Whether the chunks of a Dask collection are data or futures, not tasks."""
    chunk = X.__dask_graph__()[_keys(X)[0][0]]
    return hasattr(chunk, "dtypes") or type(chunk).__name__ in ("ndarray", "Future", "DataNode", "Alias")


def _futures_of(X: Any) -> list[list[Any]]:
    """The futures of each block of rows, if the chunks of a collection are futures; else empty."""
    graph = X.__dask_graph__()
    found = [[graph[key] for key in row] for row in _keys(X)] if _is_persisted(X) else [[None]]
    return found if all(type(one).__name__ == "Future" for row in found for one in row) else []


def _keys(X: Any) -> list[list[Any]]:
    """The keys of the chunks in each block of rows."""
    return [row if isinstance(row, list) else [row] for row in X.__dask_keys__()]
