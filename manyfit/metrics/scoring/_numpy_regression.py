"""Regression metrics of many settings at once, in the precision and by the formulas of scikit-learn."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    mean_absolute_error,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)

from manyfit.arrays import numpy_dtype
from manyfit.metrics.scoring._targets import ScoredTargets, Scores, SearchMetric

Array = NDArray[Any]


def numbers(truth: ScoredTargets, predicted: Array) -> Array | None:
    """The targets in the precision that scikit-learn computes in; None where it is not float32 or float64.

    References
    ----------
    sklearn.metrics._regression._check_reg_targets_with_floating_dtype (1.7 to 1.9).
    """
    known, dtype = (np.float64, np.float32), numpy_dtype(predicted)
    if predicted.ndim != 2 or dtype not in known:
        return None
    if truth.y.dtype not in known and truth.y.dtype.kind not in "iu":
        return None
    dtypes = [dtype]
    if truth.given_dtype is not None and truth.y.dtype.kind == "f":
        dtypes.append(truth.y.dtype)
    if truth.weight is not None:
        dtypes.append(truth.weight.dtype)
    return truth.y.astype(np.result_type(*dtypes))


def _residual_metric(of_residuals: Callable[[ScoredTargets, Array], Array]) -> SearchMetric:
    """A metric of the residuals, which it may overwrite."""

    def prepare(truth: ScoredTargets, predicted: Array) -> Scores | None:
        y = numbers(truth, predicted)
        return None if y is None else lambda P: of_residuals(truth, y - P)

    return SearchMetric(("predict",), prepare)


def _mean_square(truth: ScoredTargets, residuals: Array) -> Array:
    return truth.mean(np.square(residuals, out=residuals))


def _r2(truth: ScoredTargets, predicted: Array) -> Scores | None:
    y = numbers(truth, predicted)
    # Where the targets are all the same, a rounding decides between 1, 0 and anything.
    if y is None or len(y) < 2 or not truth.varied:
        return None
    weight: Any = 1.0 if truth.weight is None else truth.weight
    spread = (weight * (y - np.average(y, weights=truth.weight)) ** 2).sum()

    def scores(P: Array) -> Array:
        lost = (weight * (y - P) ** 2).sum(axis=1)
        return np.asarray(1 - lost / spread) if spread > 0 else np.full(len(P), np.nan)

    return scores


def _poisson(truth: ScoredTargets, predicted: Array) -> Scores | None:
    y = numbers(truth, predicted)
    if y is None or not y.min() >= 0:
        return None
    # Multiplied by y = 0, any logarithm will do: the mask that xlogy needs is taken once.
    numerator = np.where(y == 0, y.dtype.type(1), y)

    def scores(P: Array) -> Array:
        P = P.astype(y.dtype, copy=False)
        deviances = numerator / P
        np.log(deviances, out=deviances)
        deviances *= y
        deviances -= y
        deviances += P
        deviances *= 2
        return np.where(P.min(axis=1) > 0, truth.mean(deviances), np.nan)

    return scores


def _gamma(truth: ScoredTargets, predicted: Array) -> Scores | None:
    y = numbers(truth, predicted)
    if y is None or not y.min() > 0:
        return None

    def scores(P: Array) -> Array:
        P = P.astype(y.dtype, copy=False)
        deviances = P / y
        np.log(deviances, out=deviances)
        deviances += y / P
        deviances -= 1
        deviances *= 2
        return np.where(P.min(axis=1) > 0, truth.mean(deviances), np.nan)

    return scores


R2 = SearchMetric(("predict",), _r2)

NUMBER_METRICS: dict[Callable[..., Any], SearchMetric] = {
    mean_absolute_error: _residual_metric(lambda truth, r: truth.mean(np.abs(r, out=r))),
    mean_gamma_deviance: SearchMetric(("predict",), _gamma),
    mean_poisson_deviance: SearchMetric(("predict",), _poisson),
    mean_squared_error: _residual_metric(_mean_square),
    r2_score: R2,
    root_mean_squared_error: _residual_metric(lambda truth, r: np.sqrt(_mean_square(truth, r))),
}
