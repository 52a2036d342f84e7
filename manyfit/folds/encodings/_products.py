"""Products of columns, whatever scalers and imputers have made of these, as linear maps of products of X.

A scaled column is ``a g + b`` with a column g of all rows, whose gaps are 0; a mark m of its gaps adds a
number where they are. Since ``m g`` is 0 and ``m m`` is m, each power of ``a g + b + c m`` is linear in the
powers of g and in m, and a product of powers is linear in products of these. These have columns in the global
matrix.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyfit.exceptions import Unsupported
from manyfit.folds.encodings._columns import EncodedFold, LinearColumns, NumberColumn
from manyfit.folds.encodings._encoding import Encoding
from manyfit.folds.encodings._known_numbers import CodeNumbers
from manyfit.folds.splits._atoms import Array

MARK = -1  # in place of a power: the mark of a gap
# Numbers of X stand for themselves if, by their mean and spread, a scaled power loses a digit at most.
MOST_OFFSET, LEAST_SPREAD, MOST_SPREAD = 1.0, 1e-2, 1e2
# The terms of a product may be so many times larger than the product. Variances lose twice as many digits.
MOST_CANCELLED = 30.0


@dataclass(frozen=True)
class _Factor:
    """The column ``g = (f(x) - center) / spread`` of all rows, 0 in gaps."""

    encoding: Encoding
    j: int
    function: Any
    center: float
    spread: float
    has_gaps: bool

    @classmethod
    def of(cls, encoding: Encoding, part: NumberColumn) -> _Factor:
        if isinstance(part.function, CodeNumbers):
            return cls(encoding, part.j, part.function, 0.0, 1.0, False)
        has_gaps = encoding.number_has_gaps(part.j, part.function)
        center = encoding.derived(part.j, part.function)[1]
        mean, spread = encoding.spread(part.j, part.function)
        if not math.isfinite(spread):
            raise Unsupported("the squares of a column are not finite")
        is_plain = abs(mean) <= MOST_OFFSET * spread and LEAST_SPREAD <= spread <= MOST_SPREAD
        if not has_gaps and (part.is_unscaled or is_plain):
            center, spread = 0.0, 1.0
        return cls(encoding, part.j, part.function, center, spread or 1.0, has_gaps)

    @property
    def key(self) -> Hashable:
        """Equal for equal columns."""
        return (self.j, self.function, self.center, self.spread)

    @cached_property
    def _powers(self) -> dict[int, Array]:
        return {}

    def power(self, t: int) -> Array:
        """The column to the power `t`, or the mark of its gaps, (n,)."""
        if t not in self._powers:
            made = self.power(t - 1) * self.power(1) if t > 1 else self._made(t, slice(None))
            self._powers[t] = made
        return self._powers[t]

    def _made(self, t: int, rows: slice | Array) -> Array:
        """The mark, or the first power, of some rows."""
        values, middle = self.encoding.derived(self.j, self.function)
        values = values[rows]
        gaps = np.isnan(values)
        if t == MARK:
            return gaps.astype(np.float64)
        return np.asarray((np.where(gaps, middle, values) - self.center) / self.spread)

    def at(self, t: int, rows: slice | Array) -> Array:
        """`power` of some rows; of an X in chunks no power of all rows is kept."""
        if isinstance(self.function, CodeNumbers):
            powers = CodeNumbers(tuple(x**t for x in self.function.numbers))
            return powers(self.encoding.categories(self.j).codes[rows])
        if self.encoding.read_by_sklearn:
            return self.power(t)[rows]
        first = made = self._made(min(t, 1), rows)
        for _ in range(t - 1):
            made = made * first
        return made

    def is_exact(self, part: NumberColumn) -> bool:
        """Whether a column is g itself."""
        return part.is_unscaled and not self.has_gaps and (self.center, self.spread) == (0.0, 1.0)

    def cancelled(self, part: NumberColumn, fold: EncodedFold) -> float:
        """How many times larger ``a g`` and b are than a column, in the training rows."""
        if isinstance(self.function, CodeNumbers):
            return 1.0
        g, z = self.at(1, fold.train), fold.numbers(part)
        a, b = self._line(part)
        terms, size = abs(a) * _root_mean_square(g) + abs(b), _root_mean_square(z)
        return 1.0 if terms == size else terms / size if size else math.inf

    def _line(self, part: NumberColumn) -> tuple[float, float]:
        """The numbers of ``a g + b``."""
        return self.spread / part.scale, (self.center - part.shift) / part.scale

    def coefficient(self, part: NumberColumn, e: int, t: int) -> float:
        """The factor of power `t`, or of the mark, in the power `e` of a column."""
        a, b = self._line(part)
        if t == MARK:
            assert part.fill is not None
            return float(((part.fill - part.shift) / part.scale) ** e - b**e)
        return float(math.comb(e, t) * a**t * b ** (e - t))


@dataclass(frozen=True)
class _ProductMap:
    """Where the products that make up some columns are in G."""

    rows: Array  # (m,), of each entry of the map: a column of G, or -1 for a constant
    columns: Array  # (m,), and the column that it belongs to
    # Different factors of entries: number of the factor, power in the product, and power of g or mark.
    terms: Sequence[tuple[int, int, int]]
    slots: Array  # (m, d), the factors of each entry: positions in `terms`, and -1 for no further factor

    @classmethod
    def of(cls, encoding: Encoding, factors: Sequence[_Factor], exact: bool, powers: Array) -> _ProductMap:
        rows, columns, slots = list[int](), list[int](), list[list[int]]()
        terms: dict[tuple[int, int, int], int] = {}
        for column, exponents in enumerate(powers.tolist()):
            used = [(j, e) for j, e in enumerate(exponents) if e]
            choices = [_choices(factors[j], e, exact) for j, e in used]
            for chosen in itertools.product(*choices):
                slots.append(
                    [terms.setdefault((j, e, t), len(terms)) for (j, e), t in zip(used, chosen, strict=True)]
                )
                columns.append(column)
                parts = [(factors[j], t) for (j, _), t in zip(used, chosen, strict=True) if t]
                rows.append(_product_start(encoding, parts) if parts or exact else -1)
            encoding.require_room(len(rows))
        table = np.full((len(rows), max(map(len, slots), default=0)), -1, dtype=np.intp)
        for k, own in enumerate(slots):
            table[k, : len(own)] = own
        return cls(np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp), list(terms), table)

    def linear(self, factors: Sequence[_Factor], parts: Sequence[NumberColumn], width: int) -> LinearColumns:
        """The columns for the numbers that a fold has learned."""
        found = [factors[j].coefficient(parts[j], e, t) for j, e, t in self.terms]
        numbers = np.array([*found, 1.0])[self.slots].prod(axis=1)
        is_constant = self.rows < 0
        constant = np.bincount(self.columns[is_constant], numbers[is_constant], width)
        read = ~is_constant
        return LinearColumns(((self.rows[read], self.columns[read], numbers[read]),), constant)


def _choices(factor: _Factor, e: int, exact: bool) -> list[int]:
    """The powers of g, and the mark, in the power `e` of a column."""
    if exact:
        return [e]
    return [*range(e + 1), *([MARK] if factor.has_gaps else [])]


def _product_start(encoding: Encoding, parts: Sequence[tuple[_Factor, int]]) -> int:
    """The column of G with a product of powers and marks."""

    def make(rows: slice) -> Array:
        if not parts:
            return np.ones(len(range(*rows.indices(encoding.table.shape[0]))))
        first, *others = (factor.at(t, rows) for factor, t in parts)
        for other in others:
            first = first * other
        return first

    return encoding.made_start(tuple((factor.key, t) for factor, t in parts), 1, make)


def _root_mean_square(values: Array) -> float:
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.mean(values**2)))


def product_columns(fold: EncodedFold, parts: Sequence[NumberColumn], powers: Array) -> LinearColumns:
    """Products of powers of some columns, as scikit-learn has them behind scalers and imputers of a fold.

    `parts` are float64 without gaps that are left; `powers`, (p, len(parts)), has the power of each for each
    product. Raises `Unsupported` if the terms of a product cancel, as where a column varies far less in the
    fold than in all rows.
    """
    encoding = fold.encoding
    factors = [_Factor.of(encoding, part) for part in parts]
    exact = all(factor.is_exact(part) for factor, part in zip(factors, parts, strict=True))
    if not exact:
        cancelled = [factor.cancelled(part, fold) for factor, part in zip(factors, parts, strict=True)]
        if not (np.prod(np.array(cancelled) ** powers, axis=1) <= MOST_CANCELLED).all():
            raise Unsupported("products of scaled columns would lose digits in a fold")
    key = tuple(factor.key for factor in factors), exact, powers.tobytes(), powers.shape
    if key not in encoding.product_maps:
        encoding.product_maps[key] = _ProductMap.of(encoding, factors, exact, powers)
    return encoding.product_maps[key].linear(factors, parts, len(powers))
