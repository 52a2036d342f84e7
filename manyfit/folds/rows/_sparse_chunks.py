"""Sparse rows that are read in chunks: each read is a CSR matrix in memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from manyfit.exceptions import Unsupported
from manyfit.folds.passes._scan import Scan
from manyfit.folds.rows._csr import DENSE_ONLY, CsrRows, RowsWithoutMoments
from manyfit.folds.rows._source import RowSource
from manyfit.folds.rows.chunks._cuts import join_parts, ordered
from manyfit.folds.rows.chunks._parts import PartRows
from manyfit.folds.rows.chunks._passes import Held
from manyfit.folds.rows.chunks._rows import sum_finite
from manyfit.folds.rows.chunks._sums import ChunkSums
from manyfit.folds.splits._atoms import Rows, as_rows
from manyfit.folds.splits._row_index import row_blocks

Array = NDArray[Any]


class _SparseSums(RowsWithoutMoments, ChunkSums):
    """Base class of a `RowSource` whose reads are CSR matrices."""

    source: Any

    def scan(self) -> Scan:
        """The origin of sparse rows is zero, always."""
        return Scan(None, bool(np.isfinite(self.reduced(sum_finite, operator.add))))

    def origin(self, Y: Array | None = None) -> Array:
        if Y is not None:
            raise Unsupported(DENSE_ONLY)
        return np.zeros(self.shape[1])

    def rows_in_memory(self, rows: Rows) -> CsrRows:
        return CsrRows(self.take(rows))

    def blocks(self, rows: Rows, size: int) -> Iterator[tuple[Rows, Any]]:
        for block in row_blocks(rows, size):
            yield block, self.take(block)

    def merge_features(self) -> tuple[RowSource, Any]:
        """Leave out columns without an entry, see `RowSource`; one pass."""
        counts = self.reduced(_count_entries, operator.add)
        kept = np.flatnonzero(counts)
        if not kept.size:
            raise Unsupported("X holds nothing but zeros")
        if kept.size == self.shape[1]:
            return self, None
        T = scipy.sparse.csr_array(
            (np.ones(kept.size), (kept, np.arange(kept.size))), shape=(self.shape[1], kept.size)
        )
        return MappedRows(self, kept.size, partial(_columns, kept)), T


class SparseRows(_SparseSums, PartRows):
    """Base class of sparse rows in parts: blocks of a user, or chunks of Dask.

    Parameters
    ----------
    entry_bytes : float
        Bytes of the entries of one row, about.
    kind, p, dtype, n_parts, lengths, memory
        See `PartRows`; integers are read as float64.
    """

    def __init__(
        self,
        kind: str,
        p: int,
        dtype: np.dtype[Any],
        n_parts: int,
        lengths: Sequence[int] | None,
        memory: int,
        entry_bytes: float,
    ) -> None:
        self.entry_bytes = max(1, round(entry_bytes))
        own = dtype if dtype == np.float32 else np.dtype(np.float64)
        super().__init__(kind, p, own, n_parts, lengths, memory)

    @property
    def row_bytes(self) -> int:
        return self.entry_bytes

    @property
    def nnz(self) -> int:  # type: ignore[override]
        """Number of stored entries, about."""
        return self.shape[0] * max(1, self.entry_bytes // (self.dtype.itemsize + 4))

    def as_numbers(self, block: Any, n: int) -> Any:
        """`n` rows that were read, as a CSR matrix of the dtype of X; raises ValueError for others."""
        if not scipy.sparse.issparse(block) or block.shape != (n, self.n_columns):
            found = f"{type(block).__name__} of shape {getattr(block, 'shape', None)}"
            raise ValueError(f"X gave a {found}, not a sparse matrix of shape {(n, self.n_columns)}.")
        block = block.tocsr()
        if block.dtype.kind not in "biu" and not np.can_cast(block.dtype, self.dtype):
            raise ValueError(f"X gave numbers of dtype {block.dtype}, not {self.dtype}.")
        self.bytes_read += bytes_of(block)
        return block.astype(self.dtype, copy=False)

    def held(
        self, sets: Sequence[Rows] | None = None, reads: range | None = None
    ) -> Iterator[tuple[slice, CsrRows, list[Rows]]]:
        for rows, block, local in self.in_turn(sets, self.load, reads):
            yield rows, CsrRows(block), local

    def take(self, rows: Any) -> Any:
        """Some rows as a CSR matrix."""
        self.count()
        n = self.shape[0]
        index = np.arange(n)[rows] if isinstance(rows, slice) else as_rows(rows, n)
        own, order = ordered(index)
        if not len(index):
            return scipy.sparse.csr_array((0, self.n_columns), dtype=self.dtype)
        found = sorted(self.pieces(_taken, own), key=operator.itemgetter(0))
        joined = join_parts([part for _, part in found])
        return joined if order is None else joined[np.argsort(order)]

    def look(self, rows: Array) -> Any:
        return self.take(rows)

    def require_finite(self, rows: slice, block: Held) -> None:
        assert isinstance(block, CsrRows)
        wrong = np.flatnonzero(~np.isfinite(block.X.data))
        if not wrong.size:
            return
        self.refuse_row(rows.start + int(np.searchsorted(block.X.indptr, wrong[0], side="right")) - 1)


class MappedRows(_SparseSums):
    """What a function makes of sparse rows in chunks, row by row, as CSR; workers import the function."""

    def __init__(self, rows: _SparseSums, p: int, mapped: Callable[[Any], Any]) -> None:
        self.rows, self.mapped = rows, mapped
        self.shape, self.dtype, self.nnz = (rows.shape[0], p), rows.dtype, rows.nnz

    @property
    def source(self) -> SparseRows:  # type: ignore[override]
        return self.rows.source  # type: ignore[no-any-return]

    @property
    def row_bytes(self) -> int:
        return self.rows.row_bytes

    def for_thread(self) -> Self:
        other = self.copied()
        other.rows = self.rows.for_thread()
        return other

    def held(
        self, sets: Sequence[Rows] | None = None, reads: range | None = None
    ) -> Iterator[tuple[slice, CsrRows, list[Rows]]]:
        for rows, block, local in self.rows.held(sets, reads):
            self.require_entries(rows, block)
            yield rows, CsrRows(self.mapped(block.X)), local

    def require_entries(self, rows: slice, block: CsrRows) -> None:
        """Raise ValueError for entries that `mapped` cannot read."""

    def take(self, rows: Any) -> Any:
        return self.mapped(self.rows.take(rows))

    def sample(self, rows: Array) -> RowSource | None:
        found = self.rows.sample(rows)
        return None if found is None else CsrRows(self.mapped(found.take(slice(None))))

    def require_finite(self, rows: slice, block: Any) -> None:
        self.rows.require_finite(rows, block)


class TransformedRows(MappedRows):
    """Sparse rows in chunks behind a fitted transformer, which maps each row by itself."""

    def __init__(self, rows: Any, transformer: Any) -> None:
        super().__init__(rows, rows.shape[1], partial(_transformed, transformer))

    def require_entries(self, rows: slice, block: CsrRows) -> None:
        if not np.isfinite(block.X.data).all():
            self.rows.require_finite(rows, block)


def _columns(columns: Array, X: Any) -> Any:
    return X[:, columns]


def _transformed(transformer: Any, X: Any) -> Any:
    return transformer.transform(X).tocsr() if X.shape[0] else X


def bytes_of(X: Any) -> int:
    """Bytes of an array, of a frame of pandas or polars, or of the entries of a sparse matrix, as CSR."""
    if isinstance(X, np.ndarray):
        return int(X.nbytes)
    if scipy.sparse.issparse(X):
        return int(X.nnz) * (X.dtype.itemsize + 4)
    return int(X.memory_usage(deep=True).sum() if hasattr(X, "memory_usage") else X.estimated_size())


def _taken(block: CsrRows, rows: Rows) -> Any:
    return block.take(rows)


def _count_entries(X: Any, rows: slice, block: CsrRows, local: list[Rows]) -> Array:
    """The number of entries of each column in a read."""
    return np.bincount(block.X.indices, minlength=X.shape[1])
