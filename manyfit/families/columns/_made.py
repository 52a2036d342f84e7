"""PolynomialFeatures, SplineTransformer, Normalizer: columns of others, for which a step learns nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import Normalizer, PolynomialFeatures, SplineTransformer

from manyfit.families.protocol import Array, ColumnStep, register_column_step
from manyfit.folds import FoldColumns, LinearColumns, Unsupported, product_columns
from manyfit.introspection.structural_key import Unkeyable, structural_key


class PolynomialFeaturesStep(ColumnStep):
    """PolynomialFeatures (1.9), also behind scalers and imputers of single columns, and behind encoders."""

    serves = (PolynomialFeatures,)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        fitted = clone(step).set_output(transform="default").fit(np.zeros((1, columns.width)))
        columns.fold.encoding.require_room(fitted.n_output_features_)  # before each column has its numbers
        parts = columns.numbers_of(step, encoded=True)
        return columns.changed([product_columns(columns.fold, parts, fitted.powers_)])


class _RowFunction(ColumnStep):
    """A step whose fit learns nothing from the rows, and that maps each row of numbers of X by itself."""

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        parts, name = columns.numbers_of(step), type(step).__name__
        if not all(part.is_unscaled for part in parts):
            raise Unsupported(f"{name} reads columns that a step has changed")
        if columns.fold.n_train < 2:
            raise Unsupported(f"{name} is fitted to one row")
        encoding = columns.fold.encoding
        values = [encoding.derived(part.j, part.function)[0] for part in parts]
        if any(np.isnan(one).any() for one in values):
            raise Unsupported(f"{name} reads gaps that were filled")
        fitted = clone(step).set_output(transform="default")
        try:
            key = structural_key(step), tuple((part.j, part.function) for part in parts)
        except Unkeyable as error:
            raise Unsupported(f"{name} has a parameter that cannot be compared") from error
        first = fitted.fit_transform(_stacked(values, slice(0, 2)))[:1]
        encoding.require_room(first.shape[1])

        def make(rows: slice) -> Array:
            return np.asarray(fitted.transform(_stacked(values, rows)))

        index = encoding.made_start(key, first.shape[1], make) + np.arange(first.shape[1])
        entry = (index, np.arange(index.size), np.ones(index.size))
        return columns.changed([LinearColumns((entry,), np.zeros(index.size))])


def _stacked(values: Sequence[Array], rows: slice) -> Array:
    """Some rows of columns, as an array."""
    return np.column_stack([one[rows] for one in values])


class NormalizerStep(_RowFunction):
    """Normalizer (1.9): each row over its norm."""

    serves = (Normalizer,)


class SplineTransformerStep(_RowFunction):
    """SplineTransformer (1.9) with knots of its own; others depend on the training rows."""

    serves = (SplineTransformer,)

    def check(self, step: Any) -> None:
        if isinstance(step.knots, str):
            raise Unsupported(f"knots={step.knots!r} are learned from the training rows")
        if step.sparse_output:
            raise Unsupported("sparse_output=True")


for _step in (NormalizerStep(), PolynomialFeaturesStep(), SplineTransformerStep()):
    register_column_step(_step)
