"""The global matrix of a search: numbers, marks of gaps and one-hot categories of all rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.exceptions import Unsupported
from manyfit.folds._mixed_matrix import MixedMatrix, OneHot
from manyfit.folds.encodings._table import Categories, Table
from manyfit.folds.rows._mixed import MixedRows

Array = NDArray[Any]


class Encoding(MixedRows):
    """The columns that the steps of a search read, as one matrix G that holds no gaps.

    A column of numbers has one column in G, with its median in place of gaps, and another that marks the
    gaps, if there are any. A column of categories has one column in G for each category; only the position of
    the one that is set is stored. What a step learns from the training rows of a fold is a linear map of G,
    see `FoldColumns`.

    Steps ask for columns while a search is planned. The matrix is made when it is first read, and has no room
    for further columns from then on.

    Attributes
    ----------
    table : Table
        The columns of X.
    n_divisions : int
        How often a fold has asked to divide a column into ranges.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._columns: list[tuple[int, Callable[[], Array]]] = []  # of numbers: their place in G, and they
        self._blocks: list[OneHot] = []
        self._starts: dict[Hashable, int] = {}
        self._width = 0
        self._numbers: dict[Hashable, tuple[Array, float]] = {}
        self._cuts: dict[tuple[int, Any], set[int]] = {}  # of columns that folds divide into ranges
        self._is_planned = False
        self.n_divisions = 0

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows of X, and columns of G so far."""
        return self.table.shape[0], self._width

    def derived(self, j: int, function: Callable[[Array], Array] | None) -> tuple[Array, float]:
        """A column of numbers, NaN in gaps, behind an elementwise function; and the median of its values."""
        key = (j, function)
        if key not in self._numbers:
            values = self.table.numbers(j)
            if function is not None:
                with np.errstate(all="ignore"):
                    changed = function(values)
                if not np.array_equal(np.isfinite(changed), np.isfinite(values)):
                    raise Unsupported("a function has no finite value for an entry of X")
                values = changed
            if not (np.isfinite(values) | np.isnan(values)).all():
                raise Unsupported("X holds infinity")
            known = values[~np.isnan(values)]
            if not known.size:
                raise Unsupported("a column of X holds no number")
            self._numbers[key] = values, float(np.sort(known)[known.size // 2])
        return self._numbers[key]

    def number_index(self, j: int, function: Callable[[Array], Array] | None) -> tuple[int, int | None]:
        """The columns of G with the numbers of a column of X, and with the marks of its gaps, if any."""
        values, middle = self.derived(j, function)
        gaps = np.isnan(values)
        has_gaps = bool(gaps.any())
        start, is_new = self._place(("numbers", j, function), 1 + has_gaps)
        if is_new:
            self._columns.append((start, lambda: np.where(gaps, middle, values)))
            if has_gaps:
                self._columns.append((start + 1, lambda: gaps))
        return start, start + 1 if has_gaps else None

    def category_start(self, j: int) -> int:
        """The column of G of the first category of a column of X; the others follow."""
        categories = self.table.categories(j)
        start, is_new = self._place(("categories", j), len(categories.labels))
        if is_new:
            self._blocks.append(OneHot(start, len(categories.labels), categories.codes))
        return start

    def number_has_gaps(self, j: int, function: Callable[[Array], Array] | None) -> bool:
        """Whether a column of numbers has gaps."""
        return bool(np.isnan(self.derived(j, function)[0]).any())

    def distinct(self, j: int, function: Callable[[Array], Array] | None) -> Array:
        """The different numbers of a column behind an elementwise function, sorted."""
        values = self.derived(j, function)[0]
        return np.unique(values[~np.isnan(values)])

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
        return self._starts.get(("ranges", j, function), 0), np.array(sorted(cuts), dtype=np.intp)

    def finish_plan(self) -> None:
        """Make columns of the ranges that all folds need."""
        self._is_planned = True
        for (j, function), cuts in self._cuts.items():
            values = self.derived(j, function)[0]
            gaps = np.isnan(values)
            width = len(cuts) + 1 + bool(gaps.any())
            rank = np.searchsorted(self.distinct(j, function), values)
            codes = np.where(gaps, width - 1, np.searchsorted(sorted(cuts), rank, side="right"))
            start, _ = self._place(("ranges", j, function), width)
            self._blocks.append(OneHot(start, width, codes))

    def categories(self, j: int) -> Categories:
        """The categories of a column of X."""
        return self.table.categories(j)

    def _place(self, key: Hashable, width: int) -> tuple[int, bool]:
        """The first column of some in G, and whether they are new."""
        is_new = key not in self._starts
        if is_new:
            if "mixed" in vars(self):
                raise Unsupported("a fold reads a column that the plan did not foresee")
            self._starts[key] = self._width
            self._width += width
        return self._starts[key], is_new

    @property
    def entries_a_row(self) -> int:
        """Numbers that a row of G stores."""
        return len(self._columns) + len(self._blocks)

    @cached_property
    def mixed(self) -> MixedMatrix:  # type: ignore[override]
        """G."""
        numbers = np.empty((self.shape[0], len(self._columns)))
        for k, (_, values) in enumerate(self._columns):
            numbers[:, k] = values()
        places = np.array([place for place, _ in self._columns], dtype=np.intp)
        return MixedMatrix(numbers, places, tuple(self._blocks))
