"""Scores of many predictors from sums of squares of residuals, which moments give of linear predictors.

The residual of a linear predictor is a linear function of ``[X, y]``, so its sums of squares follow from the
moments: no predictions, and no pass over the data, however many settings there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import (
    explained_variance_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)

from manyfit.folds import Array, Moments, wrap_rows

# A residual sum of squares v'Sv has an error of about eps (|v| sqrt(diag S))^2. If that is more than
# MAX_CANCELLATION eps of the result (2e-12), the score is computed from predictions.
MAX_CANCELLATION = 1e4
# Largest error of predictions by rounding in a fit, in units of their residual.
MAX_ERROR = 3e-11
# Smaller residuals, as a part of y, count as this much: they are rounding themselves.
MIN_RESIDUAL = 1e-9
# A target whose variance is less than this part of its squared mean may be a constant.
MIN_VARIATION = 1e-20


@dataclass(frozen=True)
class LinearPredictors:
    """Linear predictors ``y = (x - origin) @ coef + at_origin`` of one fold, for m settings and q targets.

    `coef` is (p, m, q), `at_origin` (m, q), `origin` (p,).
    """

    coef: Array
    at_origin: Array
    origin: Array

    def __call__(self, X: Any, keeps_single: bool = True) -> Any:
        """Predictions of shape (m, n, q), float32 if X is and the estimator's predictions are too.

        They lie where X does.
        """
        return wrap_rows(X).predict(self, keeps_single=keeps_single)

    def subset(self, settings: Sequence[int]) -> "LinearPredictors":
        """Those of some settings."""
        index = list(settings)
        return LinearPredictors(self.coef[:, index], self.at_origin[index], self.origin)

    @staticmethod
    def joined(parts: Sequence["LinearPredictors"], axis: int) -> "LinearPredictors":
        """Predictors of the same columns, joined along the settings (0) or the targets (1)."""
        coef = np.concatenate([one.coef for one in parts], axis=axis + 1)
        at_origin = np.concatenate([one.at_origin for one in parts], axis=axis)
        return LinearPredictors(coef, at_origin, parts[0].origin)


@dataclass(frozen=True)
class Rounding:
    """Bounds of the errors that rounding in a fit leaves in the coefficients of m predictors of q targets.

    `along`, (p, k), are directions as coefficients of the columns of X, with the values `at_origin`, (k,), at
    a point amid the data. `noise`, (k, m), is the error along each, relative to `norms`, (m, q), of the
    coefficients.
    """

    origin: Array
    along: Array
    at_origin: Array
    noise: Array
    norms: Array

    @classmethod
    def none(cls, linear: LinearPredictors) -> "Rounding":
        """No errors."""
        p, m, q = linear.coef.shape
        return cls(linear.origin, np.zeros((p, 0)), np.zeros(0), np.zeros((0, m)), np.zeros((m, q)))

    def error(self, moments: Moments) -> Array:
        """Root mean square, over some rows, of the error of the predictions, (m, q)."""
        p = self.origin.size
        offset = (moments.mean[:p] - self.origin) @ self.along + self.at_origin
        squares = np.einsum("pk,pk->k", self.along, moments.scatter[:p, :p] @ self.along)
        spread = np.maximum(squares, 0.0) / moments.weight + offset**2
        return np.asarray(np.sqrt(spread @ self.noise**2)[:, None] * self.norms)


@dataclass(frozen=True)
class Residuals:
    """Sums of squares of the residuals of m predictors of q targets, from moments.

    `weight` is the sum of the weights of the rows. `about_mean` and `about_zero`, (m, q), are weighted
    squares of the residuals, `y`, (q,), those of the targets about their mean. `lost`, (m, q), bounds the
    rounding of both sums in machine epsilons. `varied` says whether every target takes several values, as R2
    needs.
    """

    weight: float
    about_mean: Array
    about_zero: Array
    y: Array
    lost: Array
    varied: bool

    def exact(self, sums: Array) -> Array:
        """Predictors for which `sums` keep enough digits, for all targets."""
        return np.asarray((self.lost <= MAX_CANCELLATION * sums).all(axis=1))


def _explained(squares: Array, spread: Array, weight: float) -> Array:
    return np.asarray((1.0 - squares / spread).mean(axis=-1))


# Scores from sums of squares of residuals, about their mean for explained variance, and of the targets about
# theirs; the last axis is that of the targets.
MOMENT_METRICS: dict[Callable[..., Any], Callable[[Array, Array, float], Array]] = {
    r2_score: _explained,
    explained_variance_score: _explained,
    mean_squared_error: lambda squares, spread, weight: np.asarray((squares / weight).mean(axis=-1)),
    root_mean_squared_error: lambda squares, spread, weight: np.asarray(
        np.sqrt(squares / weight).mean(axis=-1)
    ),
}
# Those that need targets of several values.
NEED_SPREAD = (r2_score, explained_variance_score)
# Those that residuals give.
RESIDUAL_METRICS = (*MOMENT_METRICS, mean_absolute_error)


def scores_from_moments(metric: Callable[..., Any], residuals: Residuals) -> Array:
    """Scores (m,) of a key of `MOMENT_METRICS`, with its default arguments.

    NaN where moments cannot give the score to about 1e-11: score those settings from predictions.
    """
    squares = residuals.about_mean if metric is explained_variance_score else residuals.about_zero
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = MOMENT_METRICS[metric](squares, residuals.y, residuals.weight)
    exact = residuals.exact(squares) & (residuals.varied or metric not in NEED_SPREAD)
    return np.where(exact, scores, np.nan)


def scores_from_residuals(metric: Callable[..., Any], residuals: Array, targets: Array) -> Array:
    """Scores of one of `RESIDUAL_METRICS` with its default arguments, (k, s).

    `residuals`, (k, m, s, q), are those of s predictors on k sets of m rows; `targets`, (k, m, q), what they
    predict. NaN: call the metric itself, since it might warn or differ.
    """
    E, Y = residuals, targets
    if metric is mean_absolute_error:
        return np.asarray(np.abs(E).mean(axis=1).mean(axis=2))
    if metric is explained_variance_score:
        E = E - E.mean(axis=1, keepdims=True)
    spread = ((Y - Y.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = MOMENT_METRICS[metric]((E**2).sum(axis=1), spread, E.shape[1])
    # A target has one value, or a set one row.
    constant = (Y[:, :1] == Y).all(axis=1).any(axis=1)
    return np.where(constant[:, None], np.nan, scores) if metric in NEED_SPREAD else scores


def lost_to_rounding(residuals: Residuals, roundings: Sequence[Rounding], moments: Moments) -> Array:
    """Which of m predictors may be wrong by more than `MAX_ERROR` of their residual.

    `roundings` are those of consecutive predictors; `residuals` were computed from `moments`.
    """
    errors = np.concatenate([one.error(moments) for one in roundings])
    q = residuals.y.size
    size = np.sqrt(residuals.about_zero / residuals.weight)
    y_size = np.sqrt(residuals.y / residuals.weight) + np.abs(moments.mean[-q:])
    return lost_predictions(errors, size, y_size)


def lost_predictions(errors: Array, sizes: Array, y_sizes: Array) -> Array:
    """Where errors of predictions are more than `MAX_ERROR` of their residuals; (..., q) becomes (...)."""
    return np.asarray((errors > MAX_ERROR * np.maximum(sizes, MIN_RESIDUAL * y_sizes)).any(axis=-1))


def residuals_from_moments(linear: LinearPredictors, moments: Moments) -> Residuals:
    """Sums of squares of the residuals of m predictors, from moments of ``[X, y]`` over the rows to score.

    No pass over the data: ``m q p**2`` multiplications.
    """
    p, m, q = linear.coef.shape
    flat = linear.coef.reshape(p, m * q)
    size = np.abs(flat)
    xx, xy = moments.scatter[:p, :p], moments.scatter[:p, p:]
    yy = np.maximum(np.diagonal(moments.scatter)[p:], 0.0)
    # Origins first: their difference is not rounded as a mean far from 0 would be.
    x_off = (moments.origin[:p] - linear.origin) + moments.offset[:p]
    y_off = (moments.origin[p:] - linear.at_origin) + moments.offset[p:]
    mean = y_off - (x_off @ flat).reshape(m, q)
    quadratic = np.einsum("pk,pk->k", flat, xx @ flat).reshape(m, q)
    cross = np.einsum("pq,pmq->mq", xy, linear.coef)
    about_mean = np.maximum(quadratic - 2.0 * cross + yy, 0.0)
    about_zero = about_mean + moments.weight * mean**2
    # |v|' |S| |v| for the quadratic form, and the loss of the squared mean residual.
    spread = (np.sqrt(np.maximum(np.diagonal(xx), 0.0)) @ size).reshape(m, q) + np.sqrt(yy)
    mean_spread = np.abs(y_off) + (np.abs(x_off) @ size).reshape(m, q)
    lost = spread**2 + 2.0 * moments.weight * np.abs(mean) * mean_spread
    # The scatter of a constant target is rounding.
    varied = moments.rows >= 2 and bool((yy > MIN_VARIATION * moments.weight * moments.mean[p:] ** 2).all())
    return Residuals(moments.weight, about_mean, about_zero, yy, lost, varied)
