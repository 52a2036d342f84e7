"""Scalers of single columns of numbers, which leave gaps as they are."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from manyfit.families.protocol import ColumnStep, register_column_step
from manyfit.folds import FoldColumns, KnownNumbers, NumberColumn, Unsupported

EPS = float(np.finfo(np.float64).eps)
# scikit-learn does not divide by a scale of fewer machine epsilons than this.
MIN_SCALE_EPS = 10.0
# Within this factor of a bound rounding decides whether scikit-learn takes a column for a constant.
DOUBT = 16.0
# A scaled column of float32 loses more than two digits where it varies by less of its largest number.
SINGLE_SPREAD = 1e-2


class _Scaler(ColumnStep):
    """A scaler ``(z - shift) / scale`` whose numbers come from the training rows of each column alone."""

    def check(self, step: Any) -> None:
        if getattr(step, "clip", False):
            raise Unsupported("clip=True is not linear")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        parts, dtype = [], columns.dtype if columns.dtype.kind == "f" else np.dtype(np.float64)
        for part in columns.parts:
            if not isinstance(part, NumberColumn):
                raise Unsupported(
                    f"{type(step).__name__} reads {columns.name_of(part)}, which is not numbers of X"
                )
            known = columns.fold.known(part)
            if not known.size:
                raise Unsupported(f"{columns.name_of(part)} has no number in the training rows")
            if dtype == np.float32 and known.high - known.low < SINGLE_SPREAD * _largest(known):
                raise Unsupported(f"{columns.name_of(part)}, of float32, varies little: rounding decides")
            shift, scale = self.learn(step, known)
            shift, scale = part.shift + shift * part.scale, part.scale * scale
            parts.append(replace(part, shift=shift, scale=scale, dtype=dtype))
        return columns.changed(parts)

    @abstractmethod
    def learn(self, step: Any, known: KnownNumbers) -> tuple[float, float]:
        """Shift and scale of a column, from its numbers in the training rows."""


def _largest(known: KnownNumbers) -> float:
    return max(abs(known.low), abs(known.high))


class StandardScalerStep(_Scaler):
    """StandardScaler (1.9): population variance; a constant column is not scaled."""

    serves = (StandardScaler,)

    def learn(self, step: Any, known: KnownNumbers) -> tuple[float, float]:
        mean = known.mean
        shift = mean if step.with_mean else 0.0
        if not step.with_std or known.low == known.high:
            return shift, 1.0
        variance = known.variance
        if variance <= DOUBT * (known.size * EPS * variance + (known.size * mean * EPS) ** 2):
            raise Unsupported("a feature is nearly constant: rounding decides")
        return shift, variance**0.5


class MinMaxScalerStep(_Scaler):
    """MinMaxScaler (1.9), which maps minimum and maximum of the training rows to `feature_range`."""

    serves = (MinMaxScaler,)

    def learn(self, step: Any, known: KnownNumbers) -> tuple[float, float]:
        low, high = map(float, step.feature_range)
        if not low < high:
            raise Unsupported("feature_range is not in order")
        smallest, spread = known.low, known.high - known.low
        spread = 1.0 if spread < MIN_SCALE_EPS * EPS else spread
        scale = spread / (high - low)
        return smallest - low * scale, scale


class MaxAbsScalerStep(_Scaler):
    """MaxAbsScaler (1.9): the largest magnitude becomes 1."""

    serves = (MaxAbsScaler,)

    def learn(self, step: Any, known: KnownNumbers) -> tuple[float, float]:
        largest = _largest(known)
        return 0.0, 1.0 if largest < MIN_SCALE_EPS * EPS else largest


class RobustScalerStep(_Scaler):
    """RobustScaler (1.9): median and a range of quantiles, which need the sorted training rows."""

    serves = (RobustScaler,)

    def learn(self, step: Any, known: KnownNumbers) -> tuple[float, float]:
        center = float(np.median(known.values)) if step.with_centering else 0.0
        if not step.with_scaling:
            return center, 1.0
        low, high = step.quantile_range
        if not 0 <= low <= high <= 100:
            raise Unsupported("quantile_range is not in order")
        ends = np.percentile(known.values, (low, high))
        spread = float(ends[1] - ends[0])
        if spread < MIN_SCALE_EPS * EPS:
            spread = 1.0
        if step.unit_variance:
            spread /= float(norm.ppf(high / 100.0) - norm.ppf(low / 100.0))
        return center, spread


for _step in (StandardScalerStep(), MinMaxScalerStep(), MaxAbsScalerStep(), RobustScalerStep()):
    register_column_step(_step)
