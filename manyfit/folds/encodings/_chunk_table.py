"""The columns of an X that is read in chunks: summaries of numbers, and codes of categories."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.exceptions import Unsupported
from manyfit.folds.encodings._table import Categories, Table
from manyfit.folds.moments._classes import merge_spreads
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.splits._atoms import AtomGroup

Array = NDArray[Any]
Function = Callable[[Array], Array] | None

# Columns that are kept in memory take at most one in so many bytes of the limit, and codes two.
KEPT_PARTS = 4


@dataclass(frozen=True)
class ColumnSums:
    """A column of numbers over the atoms of all groups of splits.

    Attributes
    ----------
    counts, means, squares, low, high : ndarray of shape (n_atoms,)
        Of the numbers that are no gaps; `squares` about the means.
    gaps : ndarray of shape (n_atoms,)
        Numbers of gaps.
    middle : float
        A point amid the numbers.
    has_gaps : bool
        Whether there is a gap in any row of X, of an atom or not.
    """

    counts: Array
    means: Array
    squares: Array
    low: Array
    high: Array
    gaps: Array
    middle: float
    has_gaps: bool

    def merged(self, atoms: slice, repeats: Array) -> tuple[tuple[float, ...], int]:
        """Count, mean, squares, minimum and maximum of some atoms, each repeated; and the number of gaps."""
        used = np.flatnonzero(repeats * self.counts[atoms])
        n_gaps = int((repeats * self.gaps[atoms]).sum())
        if not used.size:
            return (0.0, math.nan, 0.0, math.nan, math.nan), n_gaps
        counts, means, squares, low, high = (
            one[atoms][used] for one in (self.counts, self.means, self.squares, self.low, self.high)
        )
        repeats = repeats[used]
        total, mean, merged = merge_spreads(
            repeats * counts, means[:, None], np.array([(repeats * squares).sum()])
        )
        return (float(total), float(mean[0]), float(merged[0]), float(low.min()), float(high.max())), n_gaps

    def of_one(self, atoms: slice) -> ColumnSums:
        """The same of one atom, which is the merge of some."""
        spread, n_gaps = self.merged(atoms, np.ones(len(self.counts[atoms])))
        counts, means, squares, low, high = (np.array([one]) for one in spread)
        gaps = np.array([float(n_gaps)])
        return ColumnSums(counts, means, squares, low, high, gaps, self.middle, self.has_gaps)


class ChunkTable(Table):
    """The columns of an X that is read in chunks, as `Table` has those of a frame in memory.

    Columns that a step reads together are read in one pass when the first of them is asked for. The codes of
    categories are kept, in 1 to 4 bytes a row; numbers are kept only if a step needs them all at once.
    """

    def __init__(self, rows: ChunkRows, groups: Sequence[AtomGroup], memory: int) -> None:
        self.rows, self.groups, self._memory = rows, groups, memory
        self._first = Table(rows.load_frame(0, 1))
        self.is_frame, self.shape = self._first.is_frame, rows.shape
        dtypes = getattr(rows, "dtypes", None) or [rows.dtype] * rows.shape[1]
        self.kinds = [  # type: ignore[misc]
            (None, np.dtype(object)) if dtype is None else (dtype.kind, dtype) for dtype in dtypes
        ]
        self._together: list[tuple[int, ...]] = [tuple(range(self.shape[1]))]
        self._numbers: dict[int, Array] = {}
        self._categories: dict[int, Categories] = {}
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

    def numbers(self, j: int) -> Array:
        """A column as float64 with NaN for gaps, (n,), which is kept; `Unsupported` for want of memory."""
        if j not in self._numbers:
            n = self.shape[0]
            if 8 * n * (len(self._numbers) + 1) > self._memory // KEPT_PARTS:
                raise Unsupported(
                    f"a step needs all numbers of a column of X at once, {8 * n:,} bytes, and X is read in "
                    "chunks: columns that are kept take a quarter of memory_limit at most"
                )
            out = np.empty(n)
            for rows, frame, _ in self.rows.in_turn(None, partial(self.rows.load_columns, columns=[j])):
                out[rows] = Table(frame).numbers(0)
            self._numbers[j] = out
        return self._numbers[j]

    def sums(self, j: int, function: Function) -> ColumnSums:
        """The summary of a column of numbers behind an elementwise function."""
        if (j, function) not in self._sums:
            if self.kinds[j][0] is None:
                raise Unsupported("a column that is no numbers is read as numbers")
            done = {c for c, other in self._sums if other is function}
            self._sum(self._beside(j, done, numbers=True), function)
        found = self._sums[j, function]
        if isinstance(found, str):
            raise Unsupported(found)
        return found

    def _sum(self, columns: list[int], function: Function) -> None:
        sets = [slice(0, self.rows.shape[0]), *(rows for group in self.groups for rows in group.rows)]
        running = [_Running(len(sets) - 1, function) for _ in columns]
        load = partial(self.rows.load_columns, columns=columns)
        for _, frame, (_, *local) in self.rows.in_turn(sets, load):
            table = Table(frame)
            for c, one in enumerate(running):
                one.add(table.numbers(c), local)
        for j, one in zip(columns, running, strict=True):
            self._sums[j, function] = one.result()

    def categories(self, j: int) -> Categories:
        if j not in self._categories:
            self._categorize(self._beside(j, self._categories, numbers=self.kinds[j][0] is not None))
        return self._categories[j]

    def _categorize(self, columns: list[int]) -> None:
        encoders = [_Encoder(self.kinds[j][1].kind == "f") for j in columns]
        load = partial(self.rows.load_columns, columns=columns)
        for _, frame, _ in self.rows.in_turn(None, load):
            table = Table(frame)
            for c, one in enumerate(encoders):
                one.add(table.categories(c))
            nbytes = sum(one.codes.nbytes for one in self._categories.values())
            nbytes += sum(one.nbytes for one in encoders)
            if nbytes > self._memory // 2:
                raise Unsupported("the codes of the categories of X take more than half of memory_limit")
        for j, one in zip(columns, encoders, strict=True):
            self._categories[j] = one.result()


class _Running:
    """Sums of a column over atoms, and of the chunks so far."""

    def __init__(self, n_atoms: int, function: Function) -> None:
        self._function, self._why, self._middle, self._has_gaps = function, "", math.nan, False
        self._counts, self._means, self._squares, self._gaps = np.zeros((4, n_atoms))
        self._low, self._high = np.full(n_atoms, np.inf), np.full(n_atoms, -np.inf)

    def add(self, values: Array, local: Sequence[Any]) -> None:
        """Add the rows of a chunk; `local` are those of each atom."""
        if self._function is not None:
            with np.errstate(all="ignore"):
                changed = self._function(values)
            if not np.array_equal(np.isfinite(changed), np.isfinite(values)):
                self._why = "a function has no finite value for an entry of X"
            values = changed
        is_gap = np.isnan(values)
        self._has_gaps |= bool(is_gap.any())
        if np.isinf(values).any():
            self._why = self._why or "X holds infinity"
        if self._why:
            return
        known = values[~is_gap]
        if math.isnan(self._middle) and known.size:
            self._middle = float(np.sort(known)[known.size // 2])
        for a, rows in enumerate(local):
            own, gaps = values[rows], is_gap[rows]
            self._gaps[a] += gaps.sum()
            own = own[~gaps]
            if own.size:
                self._merge(a, own)

    def _merge(self, a: int, own: Array) -> None:
        mean = own.mean()
        counts = np.array([self._counts[a], own.size])
        squares = self._squares[a] + ((own - mean) ** 2).sum()
        total, merged, squares = merge_spreads(
            counts, np.array([[self._means[a]], [mean]]), np.array([squares])
        )
        self._counts[a], self._means[a], self._squares[a] = total, merged[0], squares[0]
        self._low[a], self._high[a] = min(self._low[a], own.min()), max(self._high[a], own.max())

    def result(self) -> ColumnSums | str:
        """The sums, or the reason why steps cannot read the column."""
        if self._why or math.isnan(self._middle):
            return self._why or "a column of X holds no number"
        return ColumnSums(
            self._counts, self._means, self._squares, self._low, self._high, self._gaps,
            self._middle, self._has_gaps,
        )  # fmt: skip


class _Encoder:
    """The categories of a column, and the codes of the chunks so far."""

    def __init__(self, as_floats: bool) -> None:
        self._as_floats = as_floats
        self._number: dict[Any, int] = {}
        self._codes: list[Array] = []
        self.nbytes = 0

    def add(self, own: Categories) -> None:
        """Add a chunk."""
        number = self._number.setdefault
        labels = [float(v) if self._as_floats and v == v else v for v in own.labels]
        place = np.array([number(label, len(self._number)) for label in labels], dtype=np.intp)
        codes = place[own.codes].astype(np.min_scalar_type(max(len(self._number) - 1, 0)))
        self._codes.append(codes)
        self.nbytes += codes.nbytes

    def result(self) -> Categories:
        """The categories of all rows, in scikit-learn's order; raises `Unsupported` for several types."""
        gaps = [v for v in self._number if v is None or v is math.nan]
        known = [v for v in self._number if not (v is None or v is math.nan)]
        if len(gaps) > 1 or len({type(v) is str for v in known}) > 1:
            raise Unsupported("a column of categories holds values of several types")
        ordered = (*sorted(known), *gaps)
        place = np.empty(len(ordered), dtype=np.min_scalar_type(max(len(ordered) - 1, 0)))
        place[[self._number[label] for label in ordered]] = np.arange(len(ordered))
        codes = np.concatenate([place[codes] for codes in self._codes])
        self._codes = []
        return Categories(ordered, codes, gaps[0] if gaps else ...)
