"""A matrix of numbers beside one-hot columns, which are kept as the code of the one that is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from manyfit.folds.splits._atoms import Array


@dataclass(frozen=True)
class OneHot:
    """One-hot columns, of which each row has one: its code says which, (n,)."""

    start: int  # the first of the columns in the matrix
    width: int
    codes: Array

    @property
    def columns(self) -> slice:
        """The columns in the matrix."""
        return slice(self.start, self.start + self.width)


@dataclass(frozen=True)
class MixedMatrix:
    """Rows of numbers and one-hot columns; a product with it takes one addition for each `OneHot` block."""

    numbers: Array  # (n, q), columns of numbers, C-contiguous float64
    places: Array  # (q,), the columns of the matrix that they are
    blocks: tuple[OneHot, ...]  # the other columns

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns with all one-hot ones."""
        return len(self.numbers), self.places.size + sum(block.width for block in self.blocks)

    def take(self, rows: Any) -> MixedMatrix:
        """Some rows."""
        blocks = (OneHot(block.start, block.width, block.codes[rows]) for block in self.blocks)
        return MixedMatrix(np.ascontiguousarray(self.numbers[rows]), self.places, tuple(blocks))

    def dense(self, rows: Any = slice(None)) -> Array:
        """Some rows as a dense matrix, C-contiguous."""
        numbers = self.numbers[rows]
        out = np.zeros((len(numbers), self.shape[1]))
        out[:, self.places] = numbers
        for block in self.blocks:
            out[np.arange(len(out)), block.start + block.codes[rows]] = 1.0
        return out

    def by_code(self, rows: slice) -> Any:
        """Which of some rows has each code of the blocks: ones in a CSR array, (n_codes, n_rows)."""
        parts, counts = [np.empty(0, dtype=np.int32)], [np.zeros(1, dtype=np.int32)]
        for block in self.blocks:
            codes = block.codes[rows]
            parts.append(np.argsort(codes, kind="stable").astype(np.int32))
            counts.append(np.bincount(codes, minlength=block.width).astype(np.int32))
        order, ends = np.concatenate(parts), np.cumsum(np.concatenate(counts), dtype=np.int32)
        shape = len(ends) - 1, rows.stop - rows.start
        return scipy.sparse.csr_array((np.ones(order.size), order, ends), shape=shape)

    def tables(self, coef: Array) -> list[Array]:
        """From coefficients, (p, m), to the part of the linear predictor that each code of a block gives."""
        return [np.ascontiguousarray(coef[block.columns]) for block in self.blocks]

    def add_tables(self, tables: Sequence[Array], rows: slice, out: Array) -> None:
        """Add the parts of the linear predictors that codes give to those of some rows, (n_rows, m)."""
        part = np.empty_like(out) if self.blocks else out
        for block, table in zip(self.blocks, tables, strict=True):
            out += np.take(table, block.codes[rows], axis=0, out=part, mode="clip")


def cross_table(one: OneHot, other: OneHot, weights: Array | None) -> Array:
    """Sums of weights, or numbers of rows, by the codes of two blocks, (width of one, width of the other)."""
    both = one.codes * other.width + other.codes
    return np.bincount(both, weights, one.width * other.width).reshape(one.width, other.width)
