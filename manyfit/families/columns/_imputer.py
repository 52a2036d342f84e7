"""SimpleImputer: gaps of a column become one value, learned from its training rows."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from manyfit.families.protocol import ColumnStep, register_column_step
from manyfit.folds import (
    CategoryColumn,
    FoldColumns,
    KnownNumbers,
    LinearColumns,
    NumberColumn,
    Unsupported,
    as_categories,
)


class SimpleImputerStep(ColumnStep):
    """SimpleImputer (1.9), for gaps that are NaN, or None in columns of categories.

    Reference: sklearn.impute.SimpleImputer: of several most frequent values the smallest is taken.
    """

    serves = (SimpleImputer,)

    def check(self, step: Any) -> None:
        if callable(step.strategy):
            raise Unsupported("strategy is a function")
        missing = step.missing_values
        if missing is not None and not (isinstance(missing, float) and math.isnan(missing)):
            raise Unsupported(f"missing_values={missing!r} is neither NaN nor None")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        if all(isinstance(part, NumberColumn) for part in columns.parts):
            return self._numbers(step, columns)
        if any(isinstance(part, NumberColumn | LinearColumns) for part in columns.parts):
            raise Unsupported("SimpleImputer reads numbers beside categories")
        return self._categories(step, columns)

    def _numbers(self, step: Any, columns: FoldColumns) -> FoldColumns:
        if step.missing_values is None:
            raise Unsupported("missing_values=None, and the columns are numbers")
        parts, marks, dtype = list[Any](), list[Any](), columns.dtype
        if step.strategy in ("most_frequent", "constant"):
            _require_filled_alike(step, columns)
        elif dtype.kind != "f":
            dtype = np.dtype(np.float64)
        for part in columns.parts:
            assert isinstance(part, NumberColumn)
            known = columns.fold.known(part)
            if not known.size:
                raise Unsupported(f"{columns.name_of(part)} has no number in the training rows")
            fill = self._fill(step, known)
            if part.fill is not None:
                parts.append(replace(part, dtype=dtype))
                continue
            if dtype == np.float32:
                fill = float(np.float32(fill))
            parts.append(replace(part, fill=part.shift + part.scale * fill, dtype=dtype))
            if step.add_indicator and known.n_gaps:
                marks.append(_mark(columns, part))
        return columns.changed([*parts, *marks])

    def _fill(self, step: Any, known: KnownNumbers) -> float:
        if step.strategy == "mean":
            return known.mean
        if step.strategy == "median":
            return float(np.median(known.values))
        if step.strategy == "most_frequent":
            values, counts = np.unique(known.values, return_counts=True)
            return float(values[np.argmax(counts)])
        if step.fill_value is None:
            return 0.0
        if isinstance(step.fill_value, bool) or not isinstance(step.fill_value, Real):
            raise Unsupported(f"fill_value={step.fill_value!r} is no number")
        if not math.isfinite(step.fill_value):
            raise Unsupported(f"fill_value={step.fill_value!r} is not finite")
        return float(step.fill_value)

    def _categories(self, step: Any, columns: FoldColumns) -> FoldColumns:
        if step.add_indicator:
            raise Unsupported("add_indicator=True on columns of categories or objects")
        if step.strategy not in ("most_frequent", "constant"):
            raise Unsupported(f"strategy={step.strategy!r} on columns of categories or objects")
        return columns.changed([self._filled(step, columns, part) for part in columns.parts])

    def _filled(self, step: Any, columns: FoldColumns, part: Any) -> CategoryColumn:
        column = as_categories(columns.fold.encoding, part)
        if not all(type(label) is str for label, _ in column.groups if label is not column.missing):
            raise Unsupported("SimpleImputer reads categories that are no strings")
        train, _ = columns.fold.counts(column.j)
        counts = Counter({label: int(train[list(codes)].sum()) for label, codes in column.groups})
        if column.missing is ...:
            absent: tuple[int, ...] = ()
        elif (column.missing is None) != (step.missing_values is None):
            raise Unsupported("missing_values is not the missing value of a column")
        else:
            absent = dict(column.groups)[column.missing]
            del counts[column.missing]
        if step.strategy == "constant":
            fill = "missing_value" if step.fill_value is None else step.fill_value
            if type(fill) is not str:
                raise Unsupported(f"fill_value={fill!r} is no string")
        else:
            most = max(counts.values(), default=0)
            if not most:
                raise Unsupported("a column has no value in the training rows")
            fill = min(label for label, count in counts.items() if count == most)
        groups = {label: codes for label, codes in column.groups if label is not column.missing}
        if absent:
            groups[fill] = (*groups.get(fill, ()), *absent)
        return CategoryColumn(column.j, tuple(sorted(groups.items())))


def _require_filled_alike(step: Any, columns: FoldColumns) -> None:
    """Raise `Unsupported` unless a number of the step's own fits the array of columns that it reads."""
    kinds = {part.dtype.kind for part in columns.parts if isinstance(part, NumberColumn)}
    if "b" in kinds:
        raise Unsupported(f"strategy={step.strategy!r} on a column of bools")
    whole = step.strategy != "constant" or step.fill_value is None or isinstance(step.fill_value, Integral)
    if ("f" not in kinds and not whole) or (kinds == {"u"} and step.strategy == "constant"):
        raise Unsupported(f"fill_value={step.fill_value!r} does not fit columns of integers")


def _mark(columns: FoldColumns, part: NumberColumn) -> LinearColumns:
    """The column that marks the gaps of another."""
    _, gap = columns.fold.encoding.number_index(part.j, part.function)
    assert gap is not None
    return LinearColumns(((np.array([gap]), np.array([0]), np.array([1.0])),), np.zeros(1))


register_column_step(SimpleImputerStep())
