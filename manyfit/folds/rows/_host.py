"""Dense rows in host memory, or read into it a block at a time."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyfit.folds.moments._host import column_ranges, sum_atoms
from manyfit.folds.moments._moments import SummedMoments
from manyfit.folds.passes._dense import DensePasses
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.passes._scan import Scan, scan_host
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows

# Rows that are predicted at a time.
PREDICTED_ROWS = 4096


class HostRows(RowSource):
    """Base class of a `RowSource` whose rows the host reads a block at a time.

    A subclass sets `shape` and `dtype` and defines `take`. Several threads call `take` at once.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and columns.
    dtype : dtype
        float32, float64, integer or bool.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    nnz: int | None = None
    samples_pay = True

    @abstractmethod
    def take(self, rows: Any) -> Array:
        """Some rows as an ndarray of shape (n_rows, p); see `RowSource`."""

    def scan(self) -> Scan:
        return scan_host(self)

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        return sum_atoms(self, Y, atoms, weights, in_pieces=in_pieces)

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        return column_ranges(self, atoms, columns)

    def passes(self, atoms: Sequence[Rows], origin: Array | None = None) -> Passes:
        return DensePasses(self, atoms, origin)

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Array:
        rows = slice(0, self.shape[0]) if rows is None else rows
        p, m, q = linear.coef.shape
        flat = linear.coef.reshape(p, m * q)
        dtype = np.float32 if keeps_single and self.dtype == np.float32 else np.float64
        out, start = np.empty((m, n_rows(rows), q), dtype=dtype), 0
        # About the origin, in blocks: nothing cancels if X lies far from 0, and X is not copied.
        for _, block in self.blocks(rows, PREDICTED_ROWS):
            stop = start + len(block)
            predicted = (block - linear.origin) @ flat + linear.at_origin.ravel()
            out[:, start:stop] = predicted.reshape(-1, m, q).transpose(1, 0, 2)
            start = stop
        return out

    def sample(self, rows: Array) -> RowSource | None:
        """A copy in memory."""
        return NumPyRows(self.take(rows))


class NumPyRows(HostRows):
    """Rows of a NumPy array of shape (n, p), float32, float64, integer or bool."""

    def __init__(self, X: Array) -> None:
        self.X, self.shape, self.dtype = X, (X.shape[0], X.shape[1]), X.dtype

    def take(self, rows: Any) -> Array:
        return self.X[rows]

    def some(self, rows: Rows) -> "NumPyRows":
        """Some of the rows; a view if they are neighbours."""
        return NumPyRows(self.X[rows])
