"""Summaries of some columns of an X in chunks, in parts that workers can make: sums, codes and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from manyfit.exceptions import Unsupported
from manyfit.folds.encodings._known_numbers import apply_function
from manyfit.folds.encodings._table import Categories, Table
from manyfit.folds.moments._classes import merge_spreads
from manyfit.folds.moments._spreads import Spreads
from manyfit.folds.rows._chunk_reduction import ChunkReduction
from manyfit.folds.rows.chunks._rows import ChunkRows
from manyfit.folds.splits._atoms import Array, Rows

Function = Callable[[Array], Array] | None

# Numbers of a read by which a point amid a column is found.
MIDDLE_NUMBERS = 1024
# Stands for NaN among labels: two objects of NaN are no equal keys, and pickles make new ones.
_NAN = ("NaN",)


class ColumnReads(ChunkReduction):
    """Some columns of an X in chunks, each read as a `Table`; no others are read, where they lie apart."""

    def __init__(self, rows: ChunkRows, columns: Sequence[int]) -> None:
        self.rows, self.columns = rows, columns

    @property
    def source(self) -> ChunkRows:
        return self.rows

    def for_thread(self) -> ColumnReads:
        return ColumnReads(self.rows.for_thread(), self.columns)

    def held(
        self, sets: Sequence[Rows] | None = None, reads: range | None = None
    ) -> Iterator[tuple[slice, Table, list[Rows]]]:
        load = partial(self.rows.load_columns, columns=self.columns)
        for rows, frame, local in self.rows.in_turn(sets, load, reads):
            yield rows, Table(frame), local


@dataclass(frozen=True)
class ColumnSums:
    """A column of numbers over some atoms, as those of all groups of splits.

    Attributes
    ----------
    spreads : Spreads
        The numbers of each atom.
    gaps : ndarray of shape (n_atoms,)
        Numbers of gaps.
    middle : float
        A point amid the numbers; NaN if there are none.
    has_gaps : bool
        Whether there is a gap in any row of X, of an atom or not.
    """

    spreads: Spreads
    gaps: Array
    middle: float
    has_gaps: bool

    def merged(self, atoms: slice, repeats: Array) -> tuple[tuple[float, ...], int]:
        """Count, mean, squares, minimum and maximum of some atoms, each repeated; and the number of gaps."""
        own = self.spreads
        used = np.flatnonzero(repeats * own.counts[atoms])
        n_gaps = int((repeats * self.gaps[atoms]).sum())
        if not used.size:
            return (0.0, math.nan, 0.0, math.nan, math.nan), n_gaps
        counts, means, squares, low, high = (
            one[atoms][used] for one in (own.counts, own.means, own.squares, own.low, own.high)
        )
        repeats = repeats[used]
        total, mean, merged = merge_spreads(
            repeats * counts, means[:, None], np.array([(repeats * squares).sum()])
        )
        return (float(total), float(mean[0]), float(merged[0]), float(low.min()), float(high.max())), n_gaps

    def of_one(self, atoms: slice) -> ColumnSums:
        """The same of one atom, which is the merge of some."""
        spread, n_gaps = self.merged(atoms, np.ones(len(self.gaps[atoms])))
        own = Spreads(*(np.array([one]) for one in spread))
        return ColumnSums(own, np.array([float(n_gaps)]), self.middle, self.has_gaps)


@dataclass(frozen=True)
class SumColumns:
    """The sums of each column of a read behind a function; a text says why steps cannot read a column.

    The first set of rows is all rows; the others are the atoms.
    """

    function: Function

    def __call__(self, X: Any, rows: slice, table: Table, local: list[Rows]) -> list[ColumnSums | str]:
        return [self._sums(table.numbers(c), local[1:]) for c in range(table.shape[1])]

    def _sums(self, values: Array, atoms: Sequence[Rows]) -> ColumnSums | str:
        changed = apply_function(self.function, values)
        if not np.array_equal(np.isfinite(changed), np.isfinite(values)):
            return "a function has no finite value for an entry of X"
        values = changed
        if np.isinf(values).any():
            return "X holds infinity"
        is_gap = np.isnan(values)
        known = values[~is_gap]
        spreads = Spreads.joined([Spreads.of_columns(values[rows, None]) for rows in atoms])
        gaps = np.array([float(is_gap[rows].sum()) for rows in atoms])
        some = np.sort(known[:: max(1, known.size // MIDDLE_NUMBERS)])
        middle = float(some[some.size // 2]) if some.size else math.nan
        return ColumnSums(spreads, gaps, middle, bool(is_gap.any()))


def merge_sums(one: ColumnSums | str, other: ColumnSums | str) -> ColumnSums | str:
    """The sums of a column over two parts of X, of which `one` comes first."""
    if isinstance(one, str) or isinstance(other, str):
        return one if isinstance(one, str) else other
    middle = other.middle if math.isnan(one.middle) else one.middle
    has_gaps = one.has_gaps or other.has_gaps
    return ColumnSums(one.spreads.merged(other.spreads), one.gaps + other.gaps, middle, has_gaps)


@dataclass
class ColumnCodes:
    """The categories of a column in some neighbouring rows.

    Attributes
    ----------
    number : dict
        The code of each label, in the order in which labels were found.
    codes : list of ndarray of int
        The codes of the rows, in order.
    nbytes : int
        Bytes of the codes.
    """

    number: dict[Any, int]
    codes: list[Array]
    nbytes: int

    def take_categories(self) -> Categories:
        """The categories in scikit-learn's order, and no codes here; `Unsupported` for several types."""
        gaps = [v for v in self.number if v is None or v == _NAN]
        known = [v for v in self.number if not (v is None or v == _NAN)]
        if len(gaps) > 1 or len({type(v) is str for v in known}) > 1:
            raise Unsupported("a column of categories holds values of several types")
        missing = [math.nan if v == _NAN else v for v in gaps]
        ordered = [*sorted(known), *gaps]
        place = np.empty(len(ordered), dtype=np.min_scalar_type(max(len(ordered) - 1, 0)))
        place[[self.number[label] for label in ordered]] = np.arange(len(ordered))
        codes, stop = np.empty(sum(map(len, self.codes)), dtype=place.dtype), 0
        for own in self.codes:
            start, stop = stop, stop + len(own)
            codes[start:stop] = place[own]
        self.codes.clear()
        return Categories((*sorted(known), *missing), codes, missing[0] if missing else ...)


@dataclass(frozen=True)
class EncodeColumns:
    """The `ColumnCodes` of each column of a read; a text says why its categories are not read.

    `as_floats` are the columns whose labels are floats, in whatever dtype a chunk has them.
    """

    as_floats: tuple[bool, ...]

    def __call__(self, X: Any, rows: slice, table: Table, local: list[Rows]) -> list[ColumnCodes | str]:
        return [self._codes(table, c, as_floats) for c, as_floats in enumerate(self.as_floats)]

    def _codes(self, table: Table, c: int, as_floats: bool) -> ColumnCodes | str:
        try:
            own = table.categories(c)
        except Unsupported as why:
            return str(why)
        labels = [_NAN if v != v else float(v) if as_floats else v for v in own.labels]
        codes = own.codes.astype(_code_dtype(len(labels)))
        return ColumnCodes({label: code for code, label in enumerate(labels)}, [codes], codes.nbytes)


def merge_codes(one: ColumnCodes | str, other: ColumnCodes | str) -> ColumnCodes | str:
    """The codes of a column in two neighbouring parts of X; `one`, which comes first, may be changed."""
    if isinstance(one, str) or isinstance(other, str):
        return one if isinstance(one, str) else other
    number = one.number.setdefault
    place = np.array([number(label, len(one.number)) for label in other.number], dtype=np.intp)
    place = place.astype(_code_dtype(len(one.number)))
    moved = [place[codes] for codes in other.codes]
    one.codes += moved
    one.nbytes += sum(codes.nbytes for codes in moved)
    return one


def _code_dtype(n_labels: int) -> np.dtype[Any]:
    return np.min_scalar_type(max(n_labels - 1, 0))


def read_numbers(
    function: Function, X: Any, rows: slice, table: Table, local: list[Rows]
) -> list[tuple[slice, Array]]:
    """The rows of a read, and the numbers of its one column behind a function."""
    return [(rows, apply_function(function, table.numbers(0)))]
