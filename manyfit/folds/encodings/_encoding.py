"""The encoding of X: one matrix of numbers, marks of gaps, products and one-hot categories of all rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyfit.exceptions import Unsupported
from manyfit.folds._mixed_matrix import MixedMatrix, OneHot
from manyfit.folds.encodings._known_numbers import CodeNumbers, KnownNumbers, apply_function
from manyfit.folds.encodings._table import Categories, Table
from manyfit.folds.rows._mixed import MixedRows
from manyfit.folds.splits._atoms import Array

# The columns of G are made for so many rows at a time, which a cache holds.
MADE_ROWS = 4096


@dataclass(frozen=True)
class _Piece:
    """Neighbouring columns of G: numbers of some rows, made when G is, or the codes of one-hot columns."""

    start: int
    width: int
    numbers: Callable[[slice], Array] | None = None  # (n_rows,) or (n_rows, width)
    codes: Array | None = None
    column: tuple[int, Any] | None = None  # of X, and its function, if `numbers` are made of one


class Encoding(MixedRows):
    """The columns that the steps of a search read, as one matrix G that holds no gaps.

    A column of numbers has one column in G, with its median in place of gaps, and another that marks the
    gaps, if there are any. A column of categories has one column in G for each category; only the position of
    the one that is set is stored. What a step makes of columns and learns nothing for, as a product of two,
    has columns of its own. What a step learns from the training rows of a fold is a linear map of G, see
    `FoldColumns`.

    Steps ask for columns while a search is planned. `only` chooses some of these; a matrix that is made has
    no room for further ones.

    Attributes
    ----------
    table : Table
        The columns of X.
    n_divisions : int
        How often a fold has asked to divide a column into ranges.
    asked : set
        Keys of the columns that were asked for since it was last emptied.
    read_by_sklearn : bool
        Whether scikit-learn can read X, too.
    most_made : int or None
        How many columns a step may make; None for no limit.
    """

    read_by_sklearn = True

    def __init__(self, table: Table, most_made: int | None = None) -> None:
        self.table, self.most_made = table, most_made
        self.asked = set[Hashable]()
        self._pieces: dict[Hashable, _Piece] = {}
        self._width = 0
        self._is_closed = False
        self._numbers: dict[Hashable, tuple[Array, float]] = {}
        self._spreads: dict[Hashable, tuple[float, float]] = {}
        self._cuts: dict[tuple[int, Any], set[int]] = {}  # of columns that folds divide into ranges
        self._is_planned = False
        self.n_divisions = 0
        self.product_maps: dict[Hashable, Any] = {}  # see `product_columns`

    def only(self, keys: Collection[Hashable]) -> Encoding:
        """The encoding of some of the columns, by the keys under which they were asked for."""
        part = type(self)(self.table)
        part._numbers, part._spreads, part._cuts = self._numbers, self._spreads, self._cuts
        part._is_planned = True
        for key, piece in self._pieces.items():
            if key in keys:
                part._place(key, piece.width, piece.numbers, piece.codes, piece.column)
        part._is_closed = True
        return part

    def numbers_stored(self, keys: Collection[Hashable]) -> int:
        """Numbers that a row stores for the columns of some keys."""
        found = (self._pieces[key] for key in keys)
        return sum(piece.width if piece.codes is None else 1 for piece in found)

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows of X, and columns of G so far."""
        return self.table.shape[0], self._width

    def name(self, j: int) -> str:
        """The name of a column of X, for messages."""
        return f"column {self.table.names[j]!r}"

    def derived(self, j: int, function: Callable[[Array], Array] | None) -> tuple[Array, float]:
        """A column of numbers, NaN in gaps, behind an elementwise function; and the median of its values.

        The median of what an encoder has made of categories is 0.
        """
        if isinstance(function, CodeNumbers):
            return function(self.categories(j).codes), 0.0
        key = (j, function)
        if key not in self._numbers:
            raw = self.table.numbers(j)
            values = apply_function(function, raw)
            if not np.array_equal(np.isfinite(values), np.isfinite(raw)):
                raise Unsupported(f"a function has no finite value for an entry of {self.name(j)}")
            if not (np.isfinite(values) | np.isnan(values)).all():
                raise Unsupported(f"{self.name(j)} holds infinity")
            known = values[~np.isnan(values)]
            if not known.size:
                raise Unsupported(f"{self.name(j)} holds no number")
            self._numbers[key] = values, float(np.sort(known)[known.size // 2])
        return self._numbers[key]

    def number_index(self, j: int, function: Callable[[Array], Array] | None) -> tuple[int, int | None]:
        """The columns of G with the numbers of a column of X, and with the marks of its gaps, if any."""
        has_gaps = self.number_has_gaps(j, function)

        def numbers(rows: slice) -> Array:
            values, middle = self.derived(j, function)
            own = values[rows]
            missing = np.isnan(own)
            return np.column_stack([np.where(missing, middle, own), missing]) if has_gaps else own

        start = self._place(("numbers", j, function), 1 + has_gaps, numbers, column=(j, function))
        return start, start + 1 if has_gaps else None

    def middle_of(self, j: int, function: Callable[[Array], Array] | None) -> float:
        """A point amid the numbers of a column, which stands in its gaps."""
        return self.derived(j, function)[1]

    def known(self, column: Any, fold: Any) -> KnownNumbers:
        """The numbers of a `NumberColumn` in the training rows of a fold, without gaps."""
        return KnownNumbers(fold.numbers(column))

    def require_room(self, width: int) -> None:
        """Raise `Unsupported` if a step makes more columns than `most_made`."""
        if self.most_made is not None and width > self.most_made:
            raise Unsupported(f"{width} columns would need more than memory_limit")

    def made_start(self, key: Hashable, width: int, make: Callable[[slice], Array]) -> int:
        """The first column of G of some that a step makes; the others follow.

        `make` returns them for some rows, as an array, when G is made.
        """
        return self._place(("made", key), width, make)

    def category_start(self, j: int) -> int:
        """The column of G of the first category of a column of X; the others follow."""
        categories = self.table.categories(j)
        return self._place(("categories", j), len(categories.labels), codes=categories.codes)

    def spread(self, j: int, function: Callable[[Array], Array] | None) -> tuple[float, float]:
        """Mean and standard deviation of the numbers of a column."""
        key = (j, function)
        if key not in self._spreads:
            values = self.derived(j, function)[0]
            with np.errstate(over="ignore"):
                self._spreads[key] = float(np.nanmean(values)), float(np.nanstd(values))
        return self._spreads[key]

    def number_has_gaps(self, j: int, function: Callable[[Array], Array] | None) -> bool:
        """Whether a column of numbers has gaps."""
        return bool(np.isnan(self.derived(j, function)[0]).any())

    def distinct(self, j: int, function: Callable[[Array], Array] | None) -> Array:
        """The different numbers of a column behind an elementwise function, sorted."""
        values = self.derived(j, function)[0]
        return np.unique(values[~np.isnan(values)])

    def coded(self, rows: Array, numbers: Array) -> tuple[int, CodeNumbers]:
        """The column of X of some one-hot columns of G, and their numbers, as a function of its codes.

        Raises `Unsupported` if these are no columns of one column of X. Folds may have other numbers, and
        all are planned.
        """
        self.n_divisions += 1
        for key, piece in self._pieces.items():
            own = rows - piece.start
            if piece.codes is None or not rows.size or own.min() < 0 or own.max() >= piece.width:
                continue
            assert isinstance(key, tuple)
            kind, j, *_ = key
            if kind == "categories":
                return j, CodeNumbers(tuple(np.bincount(own, numbers, piece.width).tolist()))
        raise Unsupported("a step reads what another one has made of several columns")

    def number_ranges(
        self, j: int, function: Callable[[Array], Array] | None, places: Array
    ) -> tuple[int, Array]:
        """The first column of G of the ranges of a column of numbers, and the places that divide these.

        Places count the distinct numbers below them. While a search is planned, those of the call are noted,
        and the column is not known yet; then there is a column of G for each range, and one for gaps.
        """
        self.n_divisions += 1
        cuts = self._cuts.setdefault((j, function), set())
        if not self._is_planned:
            cuts.update(places.tolist())
        elif not cuts.issuperset(places.tolist()):
            raise Unsupported("a fold divides a column in another way than the plan foresaw")
        key = ("ranges", j, function)
        self.asked.add(key)
        start = self._pieces[key].start if key in self._pieces else 0
        return start, np.array(sorted(cuts), dtype=np.intp)

    def finish_plan(self) -> None:
        """Make columns of the ranges that all folds need."""
        self._is_planned = True
        for (j, function), cuts in self._cuts.items():
            values = self.derived(j, function)[0]
            gaps = np.isnan(values)
            width = len(cuts) + 1 + bool(gaps.any())
            rank = np.searchsorted(self.distinct(j, function), values)
            codes = np.where(gaps, width - 1, np.searchsorted(sorted(cuts), rank, side="right"))
            self._place(("ranges", j, function), width, codes=codes)

    def categories(self, j: int) -> Categories:
        """The categories of a column of X."""
        return self.table.categories(j)

    def _place(
        self,
        key: Hashable,
        width: int,
        numbers: Callable[[slice], Array] | None = None,
        codes: Array | None = None,
        column: tuple[int, Any] | None = None,
    ) -> int:
        """The first column of some in G, which are new if their key is."""
        self.asked.add(key)
        if key not in self._pieces:
            if self._is_closed or "mixed" in vars(self):
                raise Unsupported("a fold reads a column that the plan did not foresee")
            self._pieces[key] = _Piece(self._width, width, numbers, codes, column)
            self._width += width
        return self._pieces[key].start

    @property
    def entries_a_row(self) -> int:
        """Numbers that a row of G stores."""
        return self.numbers_stored(self._pieces)

    @cached_property
    def mixed(self) -> MixedMatrix:  # type: ignore[override]
        """G."""
        of_numbers = [piece for piece in self._pieces.values() if piece.numbers is not None]
        out = np.empty((self.shape[0], sum(piece.width for piece in of_numbers)))
        for start in range(0, len(out), MADE_ROWS):
            rows, done = slice(start, start + MADE_ROWS), 0
            for piece in of_numbers:
                own = out[rows, done : done + piece.width]
                assert piece.numbers is not None
                own[:] = piece.numbers(rows).reshape(own.shape)
                done += piece.width
        places = [np.arange(piece.start, piece.start + piece.width) for piece in of_numbers]
        blocks = [
            OneHot(piece.start, piece.width, piece.codes)
            for piece in self._pieces.values()
            if piece.codes is not None
        ]
        return MixedMatrix(out, np.concatenate([np.empty(0, dtype=np.intp), *places]), tuple(blocks))
