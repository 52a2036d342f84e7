"""Scores of many predictors on many sets of rows of one size, from their residuals."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    explained_variance_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)

Array = NDArray[Any]


def _explained(E: Array, Y: Array) -> Array:
    """1 less the quotient of the sums of squares; NaN where a target has one value, or a set one row."""
    constant = (Y[:, :1] == Y).all(axis=1).any(axis=1)
    total = ((Y - Y.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = (1.0 - (E**2).sum(axis=1) / total[:, None]).mean(axis=2)
    return np.where(constant[:, None], np.nan, scores)


def _explained_variance(E: Array, Y: Array) -> Array:
    return _explained(E - E.mean(axis=1, keepdims=True), Y)


def _mse(E: Array, Y: Array) -> Array:
    return np.asarray((E**2).mean(axis=1).mean(axis=2))


def _rmse(E: Array, Y: Array) -> Array:
    return np.asarray(np.sqrt((E**2).mean(axis=1)).mean(axis=2))


def _mae(E: Array, Y: Array) -> Array:
    return np.asarray(np.abs(E).mean(axis=1).mean(axis=2))


RESIDUAL_METRICS: dict[Callable[..., Any], Callable[[Array, Array], Array]] = {
    r2_score: _explained,
    explained_variance_score: _explained_variance,
    mean_squared_error: _mse,
    root_mean_squared_error: _rmse,
    mean_absolute_error: _mae,
}


# Those that read nothing of the residuals but their sums of squares.
SQUARES_METRICS = frozenset({r2_score, mean_squared_error, root_mean_squared_error})


def scores_from_residuals(metric: Callable[..., Any], residuals: Array, targets: Array) -> Array:
    """Scores of a key of `RESIDUAL_METRICS` with its default arguments, (k, s).

    `residuals`, (k, m, s, q), are those of s predictors on k sets of m rows; `targets`, (k, m, q), what they
    predict. NaN: call the metric itself, since it might warn or differ.
    """
    return RESIDUAL_METRICS[metric](residuals, targets)
