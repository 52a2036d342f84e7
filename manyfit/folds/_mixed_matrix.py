"""A matrix of numbers beside one-hot columns, which are kept as the code of the one that is set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from manyfit.folds.splits._atoms import Array

# Categories of several columns are read through one code for all of them, as long as it has no more values. A
# table of so many rows for each linear predictor stays in a second-level cache.
JOINT_LEVELS = 1024


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
class JointCodes:
    """Neighbouring `OneHot` blocks that are read through one code, (n,).

    A row of numbers for each code is a sum of one row for each block.
    """

    blocks: tuple[OneHot, ...]
    codes: Array

    @cached_property
    def width(self) -> int:
        """Number of codes."""
        return math.prod(block.width for block in self.blocks)

    def table(self, coef: Array) -> Array:
        """From coefficients, (p, m), to the part of the linear predictor that each code gives, (width, m)."""
        table, *rest = (coef[block.columns] for block in self.blocks)
        for part in rest:
            table = (table[:, None, :] + part).reshape(len(table) * len(part), coef.shape[1])
        return np.ascontiguousarray(table)


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

    @cached_property
    def joint(self) -> tuple[JointCodes, ...]:
        """The one-hot columns, as few codes a row as tables of `JOINT_LEVELS` rows allow."""
        return tuple(_joined(group) for group in _grouped(self.blocks))

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
        """See `JointCodes.table`, for all joint codes."""
        return [one.table(coef) for one in self.joint]

    def add_tables(self, tables: Sequence[Array], rows: slice, out: Array) -> None:
        """Add the parts of the linear predictors that codes give to those of some rows, (n_rows, m)."""
        part = np.empty_like(out) if self.joint else out
        for one, table in zip(self.joint, tables, strict=True):
            out += np.take(table, one.codes[rows], axis=0, out=part, mode="clip")


def _grouped(blocks: Sequence[OneHot]) -> Iterator[list[OneHot]]:
    group: list[OneHot] = []
    width = 1
    for block in sorted(blocks, key=lambda one: one.width):
        if group and width * block.width > JOINT_LEVELS:
            yield group
            group, width = [], 1
        group.append(block)
        width *= block.width
    if group:
        yield group


def _joined(blocks: Sequence[OneHot]) -> JointCodes:
    first, *rest = blocks
    codes = first.codes
    for block in rest:
        codes = codes * block.width + block.codes
    return JointCodes(tuple(blocks), codes)


def cross_table(one: OneHot, other: OneHot, weights: Array | None) -> Array:
    """Sums of weights, or numbers of rows, by the codes of two blocks, (width of one, width of the other)."""
    both = one.codes * other.width + other.codes
    return np.bincount(both, weights, one.width * other.width).reshape(one.width, other.width)
