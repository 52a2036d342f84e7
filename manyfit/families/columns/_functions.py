"""FunctionTransformer of NumPy functions that work on each number by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from manyfit.families.protocol import register_column_step
from manyfit.folds import FoldColumns, NumberColumn, Unsupported

ELEMENTWISE = frozenset(
    [np.abs, np.arctan, np.cbrt, np.cos, np.exp, np.expm1, np.log, np.log10, np.log1p, np.log2, np.negative,
     np.reciprocal, np.sign, np.sin, np.sqrt, np.square, np.tanh]
)  # fmt: skip


class FunctionTransformerStep:
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
        """The columns behind the function."""
        if step.func is None:
            return columns
        parts = []
        for part in columns.parts:
            if not isinstance(part, NumberColumn) or part != NumberColumn(part.j):
                raise Unsupported("a function reads columns that a step has changed")
            if columns.fold.encoding.table.number_kind(part.j) != "f":
                raise Unsupported("a function reads integers or bools")
            if columns.fold.has_gaps(part):
                raise Unsupported("a function reads gaps")
            parts.append(replace(part, function=step.func))
        for part in parts:
            columns.fold.numbers(part)  # or the reason why not
        return replace(columns, parts=tuple(parts))


register_column_step(FunctionTransformerStep())
