"""Rows of numbers beside one-hot columns, in host memory."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from manyfit.folds._mixed_matrix import MixedMatrix
from manyfit.folds.moments._mixed import mixed_middle, mixed_ranges, sum_mixed_atoms
from manyfit.folds.moments._moments import SummedMoments
from manyfit.folds.passes._mixed import MixedPasses
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.passes._scan import Scan
from manyfit.folds.rows._host import NumPyRows
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows, row_blocks

# Rows that are predicted at a time.
PREDICTED_ROWS = 4096


class MixedRows(RowSource):
    """Rows of a `MixedMatrix`, whose one-hot columns are never written out but by `take`."""

    dtype = np.dtype(np.float64)
    nnz: int | None = None
    samples_pay = True

    def __init__(self, mixed: MixedMatrix) -> None:
        self.mixed, self.shape = mixed, mixed.shape

    @property
    def entries_a_row(self) -> int:
        """Numbers that a row stores."""
        return self.mixed.places.size + len(self.mixed.blocks)

    @cached_property
    def _numbers_only(self) -> NumPyRows | None:
        """The rows as a dense array, if there are no one-hot columns."""
        return None if self.mixed.blocks else NumPyRows(self.mixed.numbers)

    @cached_property
    def middle(self) -> Array:
        """A point amid the rows, (p,)."""
        return mixed_middle(self.mixed)

    def take(self, rows: Any) -> Array:
        """Some rows as a dense array."""
        return self.mixed.dense(rows)

    def scan(self) -> Scan:
        if self._numbers_only is not None:
            return self._numbers_only.scan()
        return Scan(self.middle, bool(np.isfinite(self.mixed.numbers.sum())))

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        if self._numbers_only is not None:
            return self._numbers_only.moments(Y, atoms, weights, in_pieces=in_pieces)
        return sum_mixed_atoms(self.mixed, Y, atoms, weights, in_pieces=in_pieces)

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        if self._numbers_only is not None:
            return self._numbers_only.ranges(atoms, columns)
        return mixed_ranges(self.mixed, atoms, columns)

    def passes(self, atoms: Sequence[Rows], origin: Array | None = None) -> Passes:
        if self._numbers_only is not None:
            return self._numbers_only.passes(atoms, self.middle if origin is None else origin)
        return MixedPasses(self.mixed, atoms, self.middle if origin is None else origin)

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Array:
        if self._numbers_only is not None:
            return self._numbers_only.predict(linear, rows)
        X = self.mixed if rows is None else self.mixed.take(rows)
        p, m, q = linear.coef.shape
        flat = linear.coef.reshape(p, m * q)
        places, tables, one_hot = X.places, X.tables(flat), np.ones(p, dtype=bool)
        one_hot[places] = False
        # The numbers count from the origin, and nothing cancels.
        start = linear.at_origin.ravel() - linear.origin[one_hot] @ flat[one_hot]
        out = np.empty((m, X.shape[0], q))
        for block in row_blocks(slice(0, X.shape[0]), PREDICTED_ROWS):
            Z = (X.numbers[block] - linear.origin[places]) @ flat[places] + start
            assert isinstance(block, slice)
            X.add_tables(tables, block, Z)
            out[:, block] = Z.reshape(n_rows(block), m, q).transpose(1, 0, 2)
        return out

    def some(self, rows: Rows) -> "MixedRows":
        """A copy of some rows."""
        return MixedRows(self.mixed.take(rows))

    def sample(self, rows: Array) -> RowSource | None:
        return MixedRows(self.mixed.take(rows))
