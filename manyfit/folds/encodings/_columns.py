"""The columns of one fold as steps have left them: raw, or linear in the columns of the encoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from manyfit.exceptions import Unsupported
from manyfit.folds.encodings._encoding import Encoding
from manyfit.folds.encodings._known_numbers import KnownNumbers
from manyfit.folds.moments._transformed import NO_NOTES, StepNotes, TransformedMoments
from manyfit.folds.splits._atoms import Array

FLOAT64 = np.dtype(np.float64)


class MomentsNeeded(Exception):
    """A step reads moments, and the fold has none since the search is only planned."""


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: ``(f(x) - shift) / scale``, with `fill` in place of a gap."""

    j: int  # the column of X
    function: Callable[[Array], Array] | None = None  # an elementwise function, applied first
    fill: float | None = None  # in the units of ``f(x)``; None while gaps are left
    shift: float = 0.0
    scale: float = 1.0
    dtype: np.dtype[Any] = FLOAT64  # of the numbers that scikit-learn has here

    @property
    def is_raw(self) -> bool:
        """Whether the numbers are those of X."""
        return self.function is None and self.fill is None and self.is_unscaled

    @property
    def is_rounded(self) -> bool:
        """Whether scikit-learn has rounded the numbers to float32."""
        return bool(self.dtype == np.float32) and not self.is_raw

    @property
    def is_unscaled(self) -> bool:
        """Whether no step has moved or scaled the numbers."""
        return self.shift == 0.0 and self.scale == 1.0


@dataclass(frozen=True)
class ObjectColumn:
    """A column of X that holds no numbers, as it is."""

    j: int


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories."""

    j: int  # the column of X
    # Each label with the codes that have it, in scikit-learn's order. Steps may merge categories.
    groups: tuple[tuple[Any, tuple[int, ...]], ...]
    missing: Any = ...  # the label that is a missing value, None or NaN; else an object of no meaning


@dataclass(frozen=True)
class LinearColumns:
    """Columns ``g @ matrix + constant`` of rows g of the encoding, see `Encoding`."""

    # Entries of the matrix: their rows, columns and numbers. Those of one place are added up.
    entries: tuple[tuple[Array, Array, Array], ...]
    constant: Array  # (p,)
    # Entries that scikit-learn would store for the training rows in a sparse matrix, at most; None for dense
    # columns.
    stored: float | None = None
    # Those of them that a dense matrix had: when it was joined with sparse ones, its zeros were dropped.
    may_be_zero: float = 0.0
    dtype: np.dtype[Any] = FLOAT64  # of the numbers that scikit-learn has here
    is_rounded: bool = False  # whether scikit-learn has rounded some of them to float32

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.constant.size

    @property
    def _joined(self) -> tuple[Array, Array, Array]:
        """All entries: their rows, columns and numbers."""
        empty = (np.empty(0, dtype=int), np.empty(0, dtype=int), np.empty(0))
        rows, columns, numbers = map(np.concatenate, zip(empty, *self.entries, strict=True))
        return rows, columns, numbers

    @property
    def by_column(self) -> list[tuple[Array, Array]]:
        """Rows and numbers of the entries of each column."""
        rows, columns, numbers = self._joined
        order = np.argsort(columns, kind="stable")
        ends = np.cumsum(np.bincount(columns, minlength=self.width))[:-1]
        found = zip(np.split(rows[order], ends), np.split(numbers[order], ends), strict=True)
        return list(found)[: self.width]

    def matrix(self, height: int) -> Any:
        """The matrix, of shape (height, p), as a sparse array."""
        rows, columns, numbers = self._joined
        return scipy.sparse.csr_array((numbers, (rows, columns)), shape=(height, self.width))

    @property
    def selection(self) -> tuple[Array, Array, Array] | None:
        """Columns g of the matrix, with shifts and scales, if all are ``(g - shift) / scale``; or None."""
        rows, columns, numbers = self._joined
        order = np.argsort(columns, kind="stable")
        rows, numbers = rows[order], numbers[order]
        is_one_each = np.array_equal(columns[order], np.arange(self.width)) and numbers.all()
        if not is_one_each or np.unique(rows).size < rows.size:
            return None
        return rows, -self.constant / numbers, 1.0 / numbers

    def moved(self, by: int) -> tuple[tuple[Array, Array, Array], ...]:
        """The entries with all columns moved to the right."""
        return tuple((rows, columns + by, numbers) for rows, columns, numbers in self.entries)


Part = NumberColumn | ObjectColumn | CategoryColumn | LinearColumns


@dataclass
class EncodedFold:
    """One fold of an encoding: its rows, and its moments once the matrix is made.

    `root` gives the training moments of the columns of G; None while a search is planned. `split` is the
    number of the split.
    """

    encoding: Encoding
    train: Array
    test: Array
    root: Callable[[], TransformedMoments] | None = None
    split: int = 0
    _counts: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    @cached_property
    def moments(self) -> TransformedMoments:
        """The training moments of the columns of G; raises `MomentsNeeded` while a search is planned."""
        if self.root is None:
            raise MomentsNeeded
        return self.root()

    @property
    def n_train(self) -> int:
        """Number of training rows."""
        return int(self.train.size)

    def numbers(self, column: NumberColumn) -> Array:
        """Values of a column in the training rows, NaN in the gaps that are left."""
        values = self.encoding.derived(column.j, column.function)[0][self.train]
        if column.fill is not None:
            values = np.where(np.isnan(values), column.fill, values)
        return (values - column.shift) / column.scale

    def counts(self, j: int) -> tuple[Array, Array]:
        """How many training and how many test rows have each category of a column of X."""
        if j not in self._counts:
            categories = self.encoding.categories(j)
            n = len(categories.labels)
            train, test = (
                np.bincount(categories.codes[rows], minlength=n) for rows in (self.train, self.test)
            )
            self._counts[j] = train, test
        return self._counts[j]

    def has_gaps(self, column: NumberColumn) -> bool:
        """Whether a column has gaps, in any row of X, that no step has filled."""
        return column.fill is None and self.encoding.number_has_gaps(column.j, column.function)

    def known(self, column: NumberColumn) -> KnownNumbers:
        """The numbers of a column in the training rows, without the gaps that are left."""
        return self.encoding.known(column, self)


@dataclass(frozen=True)
class FoldColumns:
    """The columns of one fold behind some steps."""

    fold: EncodedFold  # the rows of the fold
    parts: tuple[Part, ...]  # in the order of the columns
    # The first row of a frame with these columns, by which columns are chosen by name; None for arrays.
    head: Any = None
    notes: StepNotes = NO_NOTES

    @classmethod
    def start(cls, fold: EncodedFold) -> FoldColumns:
        """The columns of X."""
        table = fold.encoding.table
        parts = tuple(
            NumberColumn(j, dtype=dtype) if kind else ObjectColumn(j)
            for j, (kind, dtype) in enumerate(table.kinds)
        )
        return cls(fold, parts, table.head(tuple(range(table.shape[1]))) if table.is_frame else None)

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(part.width if isinstance(part, LinearColumns) else 1 for part in self.parts)

    @property
    def is_raw(self) -> bool:
        """Whether no step has mixed the columns."""
        return not any(isinstance(part, LinearColumns) for part in self.parts)

    @property
    def is_rounded(self) -> bool:
        """Whether scikit-learn has rounded some numbers to float32."""
        return any(part.is_rounded for part in self.parts if isinstance(part, NumberColumn | LinearColumns))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array of all columns of numbers."""
        found = [part.dtype for part in self.parts if isinstance(part, NumberColumn | LinearColumns)]
        return np.result_type(*found) if found else FLOAT64

    def numbers_of(self, step: Any, encoded: bool = False) -> tuple[NumberColumn, ...]:
        """The columns as numbers that a step reads; raises `Unsupported` for gaps and for float32.

        If `encoded`, these may be numbers that an encoder has made of categories.
        """
        name = type(step).__name__
        if self.is_sparse:
            raise Unsupported(f"{name} reads a sparse matrix")
        parts = [one for part in self.parts for one in self._coded(part)] if encoded else self.parts
        numbers = tuple(part for part in parts if isinstance(part, NumberColumn))
        for part in parts:
            if not isinstance(part, NumberColumn):
                raise Unsupported(f"{name} reads {self.name_of(part)}, which is not numbers of X")
            if self.fold.has_gaps(part):
                raise Unsupported(f"{name} reads {self.name_of(part)}, which has gaps")
        if self.dtype == np.float32 or self.is_rounded:
            raise Unsupported(f"{name} reads numbers of float32")
        return numbers

    def _coded(self, part: Part) -> Sequence[Part]:
        """The columns that an encoder has made of categories, one by one, as numbers; others as they are."""
        if not isinstance(part, LinearColumns) or part.stored is not None or part.constant.any():
            return (part,)
        coded = [self.fold.encoding.coded(*entries) for entries in part.by_column]
        return [NumberColumn(j, numbers, dtype=part.dtype) for j, numbers in coded]

    def name_of(self, part: Part) -> str:
        """The name of a column, for messages."""
        return "a column" if isinstance(part, LinearColumns) else self.fold.encoding.name(part.j)

    def selected(self, index: Sequence[int]) -> FoldColumns:
        """Some of the columns."""
        if not self.is_raw:
            raise Unsupported("columns are chosen behind a step that has mixed them")
        if self.head is not None and len(set(index)) < len(index):
            raise Unsupported("a transformer reads a column of a frame twice, which scikit-learn may refuse")
        parts, head = tuple(self.parts[j] for j in index), self.head
        if head is not None:
            of_X = tuple(part.j for part in parts if not isinstance(part, LinearColumns))
            head = self.fold.encoding.table.head(of_X)
        return replace(self, parts=parts, head=head)

    def without_scores(self, why: str) -> FoldColumns:
        """The columns of a fold of which scikit-learn can fit the rows, and cannot transform the test rows.

        Raises `Unsupported` with the reason if scikit-learn reads X, and so makes the fit.
        """
        if self.fold.encoding.read_by_sklearn:
            raise Unsupported(why)
        return replace(self, notes=self.notes.joined(StepNotes(unscored=why)))

    def with_warning(self, message: str, why: str) -> FoldColumns:
        """The columns of a fold for which scikit-learn warns when it transforms rows.

        Raises `Unsupported` with the reason if scikit-learn reads X, and so makes the fit.
        """
        if self.fold.encoding.read_by_sklearn:
            raise Unsupported(why)
        return replace(self, notes=self.notes.joined(StepNotes(warnings=(message,))))

    def changed(self, parts: Sequence[Part]) -> FoldColumns:
        """Other columns, as the array that a step returns."""
        return replace(self, parts=tuple(parts), head=None)

    @property
    def is_sparse(self) -> bool:
        """Whether scikit-learn has the columns as a sparse matrix."""
        return any(isinstance(part, LinearColumns) and part.stored is not None for part in self.parts)

    @property
    def linear(self) -> LinearColumns:
        """All columns as linear ones; raises `Unsupported` if there is a gap or a column of categories."""
        start, stored, may_be_zero, is_sparse = 0, 0.0, 0.0, False
        found = list[tuple[Array, Array, Array]]()
        constants = [np.empty(0)]
        for part in self.parts:
            one = part if isinstance(part, LinearColumns) else self._number_as_linear(part)
            found.extend(one.moved(start))
            constants.append(one.constant)
            start += one.width
            is_sparse = is_sparse or one.stored is not None
            stored += one.width * self.fold.n_train if one.stored is None else one.stored
            may_be_zero += one.may_be_zero
        return LinearColumns(
            tuple(found),
            np.concatenate(constants),
            stored if is_sparse else None,
            may_be_zero if is_sparse else 0.0,
            self.dtype,
            self.is_rounded,
        )

    def _number_as_linear(self, part: NumberColumn | ObjectColumn | CategoryColumn) -> LinearColumns:
        if not isinstance(part, NumberColumn):
            raise Unsupported(f"{self.name_of(part)} holds no numbers, and no step encodes it")
        if self.fold.has_gaps(part):
            raise Unsupported(f"{self.name_of(part)} has gaps that no step fills")
        value, gap = self.fold.encoding.number_index(part.j, part.function)
        rows, numbers = [value], [1.0 / part.scale]
        if gap is not None:
            assert part.fill is not None
            middle = self.fold.encoding.middle_of(part.j, part.function)
            rows.append(gap)
            numbers.append((part.fill - middle) / part.scale)
        entry = (np.array(rows), np.zeros(len(rows), dtype=int), np.array(numbers))
        return LinearColumns((entry,), np.array([-part.shift / part.scale]))

    @property
    def _in_double(self) -> LinearColumns:
        """All columns as linear ones; raises `Unsupported` where the next step would compute in float32."""
        if self.dtype == np.float32:
            raise Unsupported("the columns are of float32 together, and the next step computes in it")
        return self.linear

    @property
    def moments(self) -> TransformedMoments:
        """The training moments of the columns."""
        linear = self._in_double  # asks for its columns of G
        root = self.fold.moments
        view = _behind(root, linear)
        eps = float(np.finfo(np.float32 if linear.is_rounded else np.float64).eps)
        return replace(view, is_sparse=linear.stored is not None, eps=max(view.eps, eps), notes=self.notes)

    @property
    def without_moments(self) -> TransformedMoments:
        """The columns as a map of G, for passes over G: the moments are left empty."""
        linear = self._in_double
        encoding = self.fold.encoding
        view = TransformedMoments.of_map(
            encoding.middle, linear.matrix(encoding.shape[1]), linear.constant, self.fold.n_train
        )
        return replace(view, notes=self.notes)


def _behind(root: TransformedMoments, linear: LinearColumns) -> TransformedMoments:
    """The moments of linear columns of the matrix, whose moments are `root`."""
    selection = linear.selection
    if selection is None:
        return root.mapped(linear.matrix(root.origin.size), linear.constant)
    index, shift, scale = selection
    view = root if np.array_equal(index, np.arange(root.n_features)) else root.selected(index)
    return view if (shift == 0.0).all() and (scale == 1.0).all() else view.scaled(shift, scale)


def as_categories(encoding: Encoding, part: Part) -> CategoryColumn:
    """A raw column as categories; raises `Unsupported` if a step has changed its numbers."""
    if isinstance(part, CategoryColumn):
        return part
    if isinstance(part, LinearColumns) or (isinstance(part, NumberColumn) and not part.is_raw):
        raise Unsupported("categories are read of numbers that a step has changed")
    categories = encoding.categories(part.j)
    groups = tuple((label, (code,)) for code, label in enumerate(categories.labels))
    return CategoryColumn(part.j, groups, categories.missing)


def from_moments(fold: EncodedFold, view: TransformedMoments) -> LinearColumns:
    """The columns behind a step that maps moments, as linear ones."""
    matrix = view.to_X(np.eye(view.n_features))
    rows, columns = np.nonzero(matrix)
    constant = view.plain.x_origin - view.origin @ matrix
    is_rounded = bool(view.eps > np.finfo(np.float64).eps)
    return LinearColumns(((rows, columns, matrix[rows, columns]),), constant, is_rounded=is_rounded)
