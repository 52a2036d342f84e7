"""FunctionTransformer and Binarizer: functions that work on each number by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import Binarizer, FunctionTransformer

from manyfit.families.protocol import ColumnStep, register_column_step
from manyfit.folds import FoldColumns, NumberColumn, Unsupported

ELEMENTWISE = frozenset(
    [np.abs, np.arctan, np.cbrt, np.cos, np.exp, np.expm1, np.log, np.log10, np.log1p, np.log2, np.negative,
     np.reciprocal, np.sign, np.sin, np.sqrt, np.square, np.tanh]
)  # fmt: skip


class FunctionTransformerStep(ColumnStep):
    """FunctionTransformer (1.9) of one of NumPy's elementwise functions, on numbers as X has them."""

    serves = (FunctionTransformer,)

    def check(self, step: Any) -> None:
        if step.func is not None and step.func not in ELEMENTWISE:
            raise Unsupported(
                "the function of FunctionTransformer is not one of NumPy's elementwise functions"
            )
        if step.kw_args or (step.inverse_func is not None and step.check_inverse) or step.validate:
            raise Unsupported("FunctionTransformer has kw_args, check_inverse or validate")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        if step.func is None:
            return columns
        return replace(columns, parts=_behind(step.func, columns))


def _behind(function: Any, columns: FoldColumns) -> tuple[NumberColumn, ...]:
    """The columns behind an elementwise function; raises `Unsupported` where they are not known to be so."""
    parts = []
    for part in columns.parts:
        if not isinstance(part, NumberColumn) or part.function is not None or not part.is_unscaled:
            raise Unsupported("a function reads columns that a step has changed")
        if part.dtype != np.float64:
            raise Unsupported(f"a function reads numbers of {part.dtype}")
        if columns.fold.has_gaps(part):
            raise Unsupported(f"a function reads {columns.name_of(part)}, which has gaps")
        fill = None if part.fill is None else _at(function, part.fill)
        parts.append(replace(part, function=function, fill=fill))
    for part in parts:
        columns.fold.known(part)  # or the reason why not
    return tuple(parts)


def _at(function: Any, fill: float) -> float:
    """The value of a function where a gap was filled."""
    with np.errstate(all="ignore"):
        value = float(function(np.array([fill]))[0])
    if not np.isfinite(value):
        raise Unsupported("a function has no finite value where a gap is filled")
    return value


@dataclass(frozen=True)
class Above:
    """The function of a `Binarizer`: 1 above a threshold, else 0, and NaN in gaps."""

    threshold: float

    def __call__(self, values: Any) -> Any:
        return np.where(np.isnan(values), np.nan, values > self.threshold)


class BinarizerStep(ColumnStep):
    """Binarizer (1.9), on numbers as X has them or an imputer leaves them."""

    serves = (Binarizer,)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        return columns.changed(_behind(Above(float(step.threshold)), columns))


register_column_step(BinarizerStep())
register_column_step(FunctionTransformerStep())
