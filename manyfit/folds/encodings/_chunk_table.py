"""The columns of an X that is read in chunks: summaries of numbers, and codes of categories."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from manyfit._config.sizes import format_count
from manyfit.exceptions import Unsupported
from manyfit.folds.encodings._chunk_columns import (
    ColumnReads,
    ColumnSums,
    EncodeColumns,
    Function,
    SumColumns,
    merge_codes,
    merge_sums,
    read_numbers,
)
from manyfit.folds.encodings._table import Categories, Table
from manyfit.folds.moments._setwise_merge import SetwiseMerge
from manyfit.folds.rows._chunk_reduction import MergeTree
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.splits._atoms import Array, AtomGroup

# Columns that are kept in memory take at most one in so many bytes of the limit, and codes two.
KEPT_PARTS = 4


class ChunkTable(Table):
    """The columns of an X that is read in chunks, as `Table` has those of a frame in memory.

    Columns that a step reads together are read in one pass when the first of them is asked for. The codes of
    categories are kept, in 1 to 4 bytes a row; numbers are kept only if a step needs them all at once.
    """

    def __init__(self, rows: ChunkRows, groups: Sequence[AtomGroup], memory: int) -> None:
        self.rows, self.groups, self._memory = rows, groups, memory
        self._first = Table(rows.load_frame(0, 1))
        self.is_frame, self.names, self.shape = self._first.is_frame, self._first.names, rows.shape
        dtypes = getattr(rows, "dtypes", None) or [rows.dtype] * rows.shape[1]
        self.kinds = [  # type: ignore[misc]
            (None, np.dtype(object)) if dtype is None else (dtype.kind, dtype) for dtype in dtypes
        ]
        self._together: list[tuple[int, ...]] = [tuple(range(self.shape[1]))]
        self._kept: dict[tuple[int, Function], Array] = {}
        self._categories: dict[int, Categories] = {}
        self._unread: dict[int, str] = {}  # columns whose categories are not read, and why
        self._sums: dict[tuple[int, Function], ColumnSums | str] = {}

    def like(self) -> ChunkTable:
        """A copy with groups and sums of its own."""
        other = copy(self)
        other._sums = dict(self._sums)
        return other

    def merge_sums(self, atoms: slice | None) -> None:
        """Merge the sums over some atoms into those of one; None forgets them."""
        sums, self._sums = self._sums, {}
        if atoms is not None:
            for key, one in sums.items():
                self._sums[key] = one if isinstance(one, str) else one.of_one(atoms)

    def known_labels(self) -> dict[int, list[Any]]:
        """The categories of the columns that steps read as such."""
        return {j: list(one.labels) for j, one in self._categories.items()}

    def head(self, columns: tuple[int, ...]) -> Any:
        if columns != self._together[-1]:  # a step will read them
            self._together.append(columns)
        return self._first.head(columns)

    def number_kind(self, j: int) -> str | None:
        return self.kinds[j][0]

    def dtype(self, j: int) -> np.dtype[Any]:
        return self.kinds[j][1]

    def _beside(self, j: int, done: Any, numbers: bool) -> list[int]:
        """Column j and those that a step reads together with it, of numbers or not, that are not done."""
        own = next(one for one in reversed(self._together) if j in one)
        return [c for c in own if c == j or ((self.kinds[c][0] is not None) == numbers and c not in done)]

    def numbers(self, j: int, function: Function = None) -> Array:
        """A column as float64 with NaN for gaps, (n,), behind an elementwise function; it is kept.

        Raises `Unsupported` for want of memory.
        """
        key = j, function
        if key not in self._kept:
            self._first.numbers(j)  # refuses its dtype
            self._require_memory(j, function)
            out = np.empty(self.shape[0])
            work = partial(read_numbers, function)
            for _, _, parts in ColumnReads(self.rows, [j]).nodes(work, operator.add, None):
                for rows, own in parts:
                    out[rows] = own
            self._kept[key] = out
        return self._kept[key]

    def _require_memory(self, j: int, function: Function) -> None:
        """Raise `Unsupported` if a column cannot be kept beside those that are kept."""
        n, limit = self.shape[0], self._memory // KEPT_PARTS
        if 8 * n * (len(self._kept) + 1) <= limit:
            return
        done = {c for c, other in self._kept if other is function}
        wanted = 8 * n * len({*self._kept, *((c, function) for c in self._beside(j, done, numbers=True))})
        columns = format_count(wanted // (8 * n), "column")
        raise Unsupported(
            f"a step needs all numbers of {self._name(j)} at once. With the others that are kept these are "
            f"{columns} of {8 * n:,} bytes, {wanted:,} bytes together. They may take {limit:,} bytes, a "
            f"quarter of memory_limit. Set memory_limit={KEPT_PARTS * wanted} or more, or choose steps "
            "without medians, quantiles and most frequent numbers"
        )

    def sums(self, j: int, function: Function) -> ColumnSums:
        """The summary of a column of numbers behind an elementwise function."""
        if (j, function) not in self._sums:
            if self.kinds[j][0] is None:
                raise Unsupported(f"{self._name(j)} is read as numbers, and holds none")
            done = {c for c, other in self._sums if other is function}
            self._sum(self._beside(j, done, numbers=True), function)
        found = self._sums[j, function]
        if isinstance(found, str):
            raise Unsupported(f"{found} ({self._name(j)})")
        return found

    def _name(self, j: int) -> str:
        return f"column {self.names[j]!r}"

    def _sum(self, columns: list[int], function: Function) -> None:
        for j in columns:
            self._first.numbers(j)  # refuses its dtype
        sets = [slice(0, self.rows.shape[0]), *(rows for group in self.groups for rows in group.rows)]
        found = ColumnReads(self.rows, columns).reduced(SumColumns(function), SetwiseMerge(merge_sums), sets)
        for j, one in zip(columns, found, strict=True):
            is_empty = not isinstance(one, str) and math.isnan(one.middle)
            self._sums[j, function] = "a column of X holds no number" if is_empty else one

    def categories(self, j: int) -> Categories:
        if j in self._unread:
            raise Unsupported(self._unread[j])
        if j not in self._categories:
            try:
                self._categorize(self._beside(j, self._categories, numbers=self.kinds[j][0] is not None))
            except Unsupported as why:
                self._unread[j] = str(why)
                raise
        return self._categories[j]

    def _categorize(self, columns: list[int]) -> None:
        work = EncodeColumns(tuple(self.kinds[j][1].kind == "f" for j in columns))
        tree = MergeTree(SetwiseMerge(merge_codes))
        kept = sum(one.codes.nbytes for one in self._categories.values())
        for node in ColumnReads(self.rows, columns).nodes(work, tree.merge, None):
            tree.add(*node)
            found = [one for _, _, part in tree.nodes() for one in part]
            for i, why in enumerate(found):
                if isinstance(why, str):
                    raise Unsupported(f"{why} ({self._name(columns[i % len(columns)])})")
            if kept + sum(one.nbytes for one in found) > self._memory // 2:
                raise Unsupported("the codes of the categories of X take more than half of memory_limit")
        for j, one in zip(columns, tree.result(), strict=True):
            self._categories[j] = one.take_categories()
