"""D2, the score that generalised linear models with a logarithmic link have of their own."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

from manyfit._drop_in_classes import sklearn_class_of
from manyfit.metrics.scoring._targets import ScoredTargets, Scores, SearchMetric

Array = NDArray[Any]

# Part of the digits of float64 or float32 that the sums of a null deviance may lose by cancelling.
LOST_DIGITS = 0.25


def deviance_explained(estimator: Any) -> SearchMetric | None:
    """The score of a generalised linear model as a batched metric.

    Parameters
    ----------
    estimator : estimator
        Unfitted.

    Returns
    -------
    Batched or None
        None for anything else than scikit-learn's own classes, by exact type, with a logarithmic link and a
        power from 1 to 2.

    References
    ----------
    sklearn.linear_model.PoissonRegressor.score, and those of GammaRegressor and TweedieRegressor (1.7 to
    1.9). ``sklearn.metrics.d2_tweedie_score`` is the same quotient of other sums: it loses fewer digits.
    """
    power = explained_power(estimator)
    return None if power is None else SearchMetric(("predict",), partial(_prepare, power))


def explained_power(estimator: Any) -> float | None:
    """The power of the deviance that a generalised linear model is scored by; None as above."""
    served = sklearn_class_of(type(estimator))
    if served is PoissonRegressor:
        power: Any = 1
    elif served is GammaRegressor:
        power = 2
    elif served is TweedieRegressor and estimator.link in ("auto", "log"):
        power = estimator.power
    else:
        return None
    return float(power) if 1 <= power <= 2 else None


def _prepare(power: float, truth: ScoredTargets, predicted: Array) -> Scores | None:
    dtype = predicted.dtype
    if predicted.ndim != 2 or dtype not in (np.float64, np.float32) or truth.y.dtype.kind not in "fiu":
        return None
    y = truth.y.astype(dtype)
    least = y.min()
    if len(y) < 2 or not truth.varied or not (least > 0 if power == 2 else least >= 0):
        return None
    # scikit-learn casts the weights to the dtype of the predictions.
    rows = ScoredTargets(y, None if truth.weight is None else truth.weight.astype(dtype))
    mean = np.average(y, weights=rows.weight)
    null = _losses(power, y, np.full((1, len(y)), mean, dtype=dtype))
    constants = _constants(power, y)[None]
    constant, at_mean = rows.mean(constants)[0], rows.mean(null)[0]
    size = float(rows.mean(np.abs(constants))[0] + rows.mean(np.abs(null))[0])
    if not float(at_mean + constant) > float(np.finfo(dtype).eps) ** LOST_DIGITS * size:
        return None

    def scores(P: Array) -> Array:
        lost = rows.mean(_losses(power, y, P)) + constant
        return np.where(P.min(axis=1) > 0, 1 - lost / (at_mean + constant), np.nan)

    return scores


def _losses(power: float, y: Array, P: Array) -> Array:
    """Half the deviance of each row but for what depends on y only: computed in float64, kept as y is."""
    out, P = np.empty(P.shape, y.dtype), P.astype(np.float64, copy=False)
    if power == 1:
        out[...] = P - y * np.log(P)
    elif power == 2:
        out[...] = np.log(P) + y / P
    else:
        high = P ** (2 - power)
        out[...] = high / (2 - power) - y * (high / P) / (1 - power)
    return out


def _constants(power: float, y: Array) -> Array:
    """What makes half the deviance of each row 0 at its optimum."""
    if power == 1:
        return np.asarray(xlogy(y, y) - y)
    if power == 2:
        return -np.log(y) - 1
    return np.power(y, 2 - power) / (1 - power) / (2 - power)
