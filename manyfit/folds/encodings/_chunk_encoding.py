"""The encoding of an X that is read in chunks: made chunk by chunk, from numbers and kept codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

import numpy as np

from manyfit.folds._mixed_matrix import MixedMatrix, OneHot
from manyfit.folds.encodings._chunk_table import ChunkTable
from manyfit.folds.encodings._columns import EncodedFold, NumberColumn
from manyfit.folds.encodings._encoding import Encoding
from manyfit.folds.encodings._known_numbers import CodeNumbers, KnownNumbers, SummedNumbers, apply_function
from manyfit.folds.encodings._table import Table
from manyfit.folds.moments._classes import merge_spreads
from manyfit.folds.moments._host import evenly_spread, median_row
from manyfit.folds.passes._scan import Scan
from manyfit.folds.rows._mixed import MixedRows
from manyfit.folds.rows._source import RowSource
from manyfit.folds.rows.chunks._cuts import RowCuts, ordered
from manyfit.folds.rows.chunks._passes import Held
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.rows.chunks._sums import SAMPLE_PARTS, ChunkSums
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows

Function = Callable[[Array], Array] | None


class ChunkEncoding(ChunkSums, Encoding):
    """`Encoding` of an X in chunks. A pass reads the columns of numbers that G holds, and no others."""

    table: ChunkTable
    read_by_sklearn = False

    def behind(self, table: ChunkTable) -> ChunkEncoding:
        """The same encoding of a table that has other atoms."""
        other = self.copied()
        other.table = table
        return other

    # Columns

    def derived(self, j: int, function: Function) -> tuple[Array, float]:
        if isinstance(function, CodeNumbers):
            return super().derived(j, function)
        middle = self.middle_of(j, function)  # refuses numbers that steps cannot read
        return self.table.numbers(j, function), middle

    def middle_of(self, j: int, function: Function) -> float:
        return self.table.sums(j, function).middle

    def number_has_gaps(self, j: int, function: Function) -> bool:
        return not isinstance(function, CodeNumbers) and self.table.sums(j, function).has_gaps

    def known(self, column: NumberColumn, fold: EncodedFold) -> KnownNumbers:
        sums, start = self.table.sums(column.j, column.function), 0
        for group in self.table.groups:
            atoms = slice(start, start + len(group.rows))
            if fold.split in group.splits:
                break
            start = atoms.stop
        spread, n_gaps = sums.merged(atoms, np.asarray(group.train[fold.split - group.splits.start]))
        if column.fill is not None and n_gaps:
            spread, n_gaps = _with_fills(spread, column.fill, n_gaps), 0
        size, mean, squares, low, high = spread
        shift, scale = column.shift, column.scale
        ends = sorted(((low - shift) / scale, (high - shift) / scale))
        moved = (size, (mean - shift) / scale, squares / scale**2, *ends)
        return SummedNumbers(moved, n_gaps, lambda: fold.numbers(column))

    def _numbers_in_chunk(self, j: int, function: Function, table: Table, place: int) -> Array:
        """The columns of G of a column of X, in the rows of a chunk."""
        values = apply_function(function, table.numbers(place))
        if not self.number_has_gaps(j, function):
            return values
        gaps = np.isnan(values)
        return np.column_stack([np.where(gaps, self.middle_of(j, function), values), gaps])

    # Rows

    @property
    def source(self) -> ChunkRows:
        return self.table.rows

    @property
    def row_bytes(self) -> int:
        return 8 * self.entries_a_row

    def for_thread(self) -> ChunkEncoding:
        other = self.behind(copy(self.table))
        other.table.rows = self.table.rows.for_thread()
        return other

    def held(
        self, sets: Sequence[Rows] | None = None, reads: range | None = None
    ) -> Iterator[tuple[slice, Held, list[Rows]]]:
        source = self.table.rows
        columns = sorted({piece.column[0] for piece in self._pieces.values() if piece.column is not None})
        if columns:
            load = partial(source.load_columns, columns=columns)
            for rows, frame, local in source.in_turn(sets, load, reads):
                yield rows, MixedRows(self._made(rows, Table(frame), columns)), local
            return
        every = [slice(0, self.shape[0])]
        for rows, local in RowCuts(every if sets is None else sets).reads(source.borders, reads):
            yield rows, MixedRows(self._made(rows, None, columns)), local

    def _made(self, rows: slice, table: Table | None, columns: Sequence[int]) -> MixedMatrix:
        """G in the rows of a chunk."""
        n, parts, places, blocks = rows.stop - rows.start, list[Array](), list[Array](), list[OneHot]()
        for piece in self._pieces.values():
            if piece.codes is not None:
                codes = piece.codes[rows].astype(np.intp, copy=False)
                blocks.append(OneHot(piece.start, piece.width, codes))
                continue
            if piece.column is not None:
                assert table is not None
                own = self._numbers_in_chunk(*piece.column, table, columns.index(piece.column[0]))
            else:
                assert piece.numbers is not None
                own = piece.numbers(rows)
            parts.append(own.reshape(n, piece.width))
            places.append(np.arange(piece.start, piece.start + piece.width))
        numbers = np.ascontiguousarray(np.concatenate([np.empty((n, 0)), *parts], axis=1))
        return MixedMatrix(numbers, np.concatenate([np.empty(0, dtype=np.intp), *places]), tuple(blocks))

    def rows_in_memory(self, rows: Rows) -> Held:
        index, order = ordered(rows)
        parts = [part for _, part in sorted(self.pieces(_taken, index), key=itemgetter(0))]
        joined = MixedMatrix(
            np.concatenate([part.numbers for part in parts]),
            parts[0].places,
            tuple(
                OneHot(one.start, one.width, np.concatenate([part.blocks[b].codes for part in parts]))
                for b, one in enumerate(parts[0].blocks)
            ),
        )
        return MixedRows(joined if order is None else joined.take(np.argsort(order)))

    def take(self, rows: Any) -> Array:
        index = rows if isinstance(rows, slice) and rows.step is None else np.arange(self.shape[0])[rows]
        if not n_rows(index):
            return np.empty((0, self.shape[1]))
        return np.asarray(self.rows_in_memory(index).take(slice(None)))

    def sample(self, rows: Array) -> RowSource | None:
        nbytes = self.row_bytes * n_rows(rows)
        return None if nbytes > self.table.rows.memory // SAMPLE_PARTS else self.rows_in_memory(rows)

    def scan(self) -> Scan:
        return Scan(self.origin(), True)  # `ColumnSums` know of no infinity

    @cached_property
    def middle(self) -> Array:  # type: ignore[override]
        out = np.zeros(self.shape[1])
        for piece in self._pieces.values():
            if piece.column is not None:
                out[piece.start] = self.middle_of(*piece.column)
            elif piece.numbers is not None:
                first = piece.numbers(slice(0, 1))
                out[piece.start : piece.start + piece.width] = median_row(first.reshape(1, piece.width))
        return out

    def origin(self, Y: Array | None = None) -> Array:
        if Y is None:
            return self.middle
        return np.concatenate([self.middle, median_row(np.asarray(Y[evenly_spread(len(Y))], dtype=float))])

    def require_finite(self, rows: slice, block: Held) -> None:
        """G has no gaps."""


def _taken(block: MixedRows, rows: Rows) -> MixedMatrix:
    return block.mixed.take(rows)


def _with_fills(spread: tuple[float, ...], fill: float, n: int) -> tuple[float, ...]:
    """A spread with the same number `n` times more."""
    size, mean, squares, low, high = spread
    if not size:
        return float(n), fill, 0.0, fill, fill
    counts, means = np.array([size, float(n)]), np.array([[mean], [fill]])
    total, merged, squared = merge_spreads(counts, means, np.array([squares]))
    return float(total), float(merged[0]), float(squared[0]), min(low, fill), max(high, fill)
