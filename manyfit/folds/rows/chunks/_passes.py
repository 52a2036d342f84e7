"""Passes over rows that are read in chunks: those over each chunk in memory, added up in order."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from manyfit.folds._blas_threads import single_blas_thread
from manyfit.folds.passes._protocol import EPS, QUICK_COLUMNS, Curvature, Passes, Residual
from manyfit.folds.passes._samples import RowSample
from manyfit.folds.rows._host import NumPyRows
from manyfit.folds.rows._mixed import MixedRows
from manyfit.folds.rows.chunks._cuts import shifted
from manyfit.folds.splits._atoms import Rows

Array = NDArray[Any]


class ChunkReader(Protocol):
    """The part of `ChunkSums` that passes read."""

    def rows_in_memory(self, rows: Rows) -> NumPyRows | MixedRows:
        """Some rows, in memory."""

    def held(self, sets: Sequence[Rows] | None = None) -> Iterator[tuple[slice, Any, list[Rows]]]:
        """The reads that hold rows of some sets."""


class ChunkPasses(Passes):
    """Passes over some atoms of rows that are read in chunks; callbacks see the numbers of the rows of X."""

    eps, quick_columns, kept_per_column = EPS, QUICK_COLUMNS, 0

    def __init__(self, X: ChunkReader, rows: Sequence[Rows], origin: Array) -> None:
        self.X, self.rows, self.origin, self.rows_read = X, rows, origin, 0

    def sample(self, rows: Rows) -> RowSample:
        held = self.X.rows_in_memory(rows)
        every = slice(0, held.shape[0])
        return replace(held.passes([every], self.origin).sample(every), rows=rows)

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        out = np.zeros(theta.shape)
        for start, passes in self._chunks(np.asarray(counts.any(axis=0))):
            out += passes.gradient(theta, counts, _shift_residual(residual, start))
        return out

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> Array:
        K, d = theta.shape[1], (theta.shape[2] if features is None else len(features) + 1)
        out = np.zeros((len(self.rows), K * d, K * d))
        for start, passes in self._chunks():
            out += passes.gram(theta, _shift(curvature, start), dtype, features)
        return out

    def squares(self, theta: Array, curvature: Curvature) -> Array:
        out = np.zeros((len(self.rows), theta.shape[1] * theta.shape[2]))
        for start, passes in self._chunks():
            out += passes.squares(theta, _shift(curvature, start))
        return out

    def _chunks(self, used: Array | None = None) -> Iterator[tuple[int, Passes]]:
        """Passes over the rows of each chunk, with the number of its first row."""
        none = slice(0, 0)
        sets = [rows if used is None or used[a] else none for a, rows in enumerate(self.rows)]
        with single_blas_thread():  # the threads of all chunks are the same
            for read, block, local in self.X.held(sets):
                passes = block.passes(local, self.origin)
                yield read.start, passes
                self.rows_read += passes.rows_read


def _shift(curvature: Curvature, start: int) -> Curvature:
    return lambda Z, rows: curvature(Z, shifted(rows, start))


def _shift_residual(residual: Residual, start: int) -> Residual:
    return lambda Z, rows, columns: residual(Z, shifted(rows, start), columns)
