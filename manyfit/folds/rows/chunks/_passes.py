"""Passes over rows that are read in chunks: those over each chunk in memory, added up in order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from manyfit.folds.passes._protocol import (
    EPS,
    QUICK_COLUMNS,
    QUICK_SPARSE_COLUMNS,
    Curvature,
    Passes,
    Residual,
)
from manyfit.folds.passes._samples import RowSample
from manyfit.folds.rows._csr import CsrRows
from manyfit.folds.rows._host import NumPyRows
from manyfit.folds.rows._mixed import MixedRows
from manyfit.folds.rows.chunks._cuts import shifted
from manyfit.folds.splits._atoms import Array, Rows

if TYPE_CHECKING:
    from manyfit.folds.rows.chunks._sums import ChunkSums

Held = NumPyRows | MixedRows | CsrRows

# Pieces of an atom's rows in a read, which threads share.
PARTS = 4


class ChunkPasses(Passes):
    """Passes over some atoms of rows that are read in chunks; callbacks see the numbers of the rows of X."""

    eps, quick_columns, kept_per_column = EPS, QUICK_COLUMNS, 0

    def __init__(self, X: "ChunkSums", rows: Sequence[Rows], origin: Array) -> None:
        self.X, self.rows, self.origin, self.rows_read = X, rows, origin, 0
        if X.nnz is not None:
            self.quick_columns, self.single_is_quicker = QUICK_SPARSE_COLUMNS, False

    def sample(self, rows: Rows) -> RowSample:
        held = self.X.rows_in_memory(rows)
        every = slice(0, held.shape[0])
        return replace(held.passes([every], self.origin).sample(every), rows=rows)

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        used, none = np.asarray(counts.any(axis=0)), slice(0, 0)
        sets = [rows if used[a] else none for a, rows in enumerate(self.rows)]
        return self._summed(("gradient", (theta, counts), residual), theta.shape, sets)

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> Array:
        K, d = theta.shape[1], (theta.shape[2] if features is None else len(features) + 1)
        work = "gram", (theta,), curvature, (dtype, features)
        return self._summed(work, (len(self.rows), K * d, K * d), self.rows)

    def squares(self, theta: Array, curvature: Curvature) -> Array:
        shape = len(self.rows), theta.shape[1] * theta.shape[2]
        return self._summed(("squares", (theta,), curvature), shape, self.rows)

    def _summed(self, work: tuple[Any, ...], shape: tuple[int, ...], sets: Sequence[Rows]) -> Array:
        found = self.X.reduced(_SumsOfRead(self.origin, *work), _add, sets)
        if found is None:
            return np.zeros(shape)
        total, rows_read = found
        self.rows_read += rows_read
        return np.asarray(total)


@dataclass(frozen=True)
class _SumsOfRead:
    """Gradients or second derivatives over the rows of a read, by a method of `Passes`, and how many rows.

    The method takes the `given` arguments, a `callback`, which sees the numbers of the rows of X, and `more`.
    """

    origin: Array
    method: str
    given: tuple[Any, ...]
    callback: Any  # a `Residual` or a `Curvature`
    more: tuple[Any, ...] = ()

    def __call__(self, X: Any, rows: slice, block: Any, local: list[Rows]) -> tuple[Array, int]:
        passes = block.passes(local, self.origin)
        passes.n_parts = PARTS  # the same whatever the number of threads

        def callback(Z: Any, index: Any, *columns: Array) -> Any:
            return self.callback(Z, shifted(index, rows.start), *columns)

        return getattr(passes, self.method)(*self.given, callback, *self.more), passes.rows_read


def _add(before: tuple[Array, int], after: tuple[Array, int]) -> tuple[Array, int]:
    return np.add(before[0], after[0], out=before[0]), before[1] + after[1]
