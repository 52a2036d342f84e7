"""Scores of many predictors on many sets of rows of one size, from their residuals."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import explained_variance_score, mean_absolute_error

from manyfit.metrics.scoring._from_moments import MOMENT_METRICS, NEED_SPREAD

Array = NDArray[Any]

RESIDUAL_METRICS = (*MOMENT_METRICS, mean_absolute_error)


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
