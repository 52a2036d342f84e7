"""D2, the score of generalised linear models with a logarithmic link."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from manyfit.arrays import array_namespace, float_dtype, numpy_dtype
from manyfit.introspection.class_names import public_name, sklearn_class_of
from manyfit.metrics.kernels._kernel import Targets, or_nan
from manyfit.metrics.scoring._search_metric import FLOATS, Reader, SearchMetric
from manyfit.metrics.scoring._targets import ScoredTargets

Array = NDArray[Any]

# Part of the digits of float64 or float32 that the sums of a null deviance may lose by cancelling.
LOST_DIGITS = 0.25


@dataclass(frozen=True)
class _DevianceTargets(Targets):
    """Targets with half their null deviance and the part of half a deviance that no prediction changes."""

    null: float = 0.0
    constant: float = 0.0


def deviance_explained(power: float) -> SearchMetric:
    """The score of a generalised linear model for many settings, by scikit-learn's own sums (1.7 to 1.9).

    ``sklearn.metrics.d2_tweedie_score`` is the same quotient of other sums, which lose fewer digits.
    """
    return SearchMetric(("predict",), partial(_prepare, power), partial(_score, power))


def explained_power(estimator: Any) -> float | None:
    """The power of the deviance that scikit-learn's class scores by, from 1 to 2 with a logarithmic link."""
    served = public_name(sklearn_class_of(type(estimator)))
    powers = {"sklearn.linear_model.PoissonRegressor": 1.0, "sklearn.linear_model.GammaRegressor": 2.0}
    if served == "sklearn.linear_model.TweedieRegressor" and estimator.link in ("auto", "log"):
        return float(estimator.power) if 1 <= estimator.power <= 2 else None
    return powers.get(served)


def _prepare(power: float, truth: ScoredTargets, predicted: Array) -> tuple[Targets, Reader] | None:
    dtype = numpy_dtype(predicted)
    if predicted.ndim != 2 or dtype not in FLOATS or truth.y.dtype.kind not in "fiu":
        return None
    # scikit-learn casts targets and weights to the dtype of the predictions.
    y, weight = truth.y.astype(dtype), None if truth.weight is None else truth.weight.astype(dtype)
    least = y.min()
    if len(y) < 2 or not truth.varied or not (least > 0 if power == 2 else least >= 0):
        return None
    rows = Targets(numbers=y, weight=weight)
    mean = np.full_like(y, np.average(y, weights=weight))
    parts = [_losses(power, y, mean), _constants(power, y)]
    at_mean, constant = (rows.mean(part) for part in parts)
    size = sum(float(rows.mean(np.abs(part))) for part in parts)
    if not at_mean + constant > float(np.finfo(dtype).eps) ** LOST_DIGITS * size:
        return None
    return _DevianceTargets(
        numbers=y, weight=weight, null=float(at_mean + constant), constant=float(constant)
    ), lambda P: (P, None)


def _score(power: float, targets: Any, P: Array) -> Array:
    scores = 1 - (targets.mean(_losses(power, targets.numbers, P)) + targets.constant) / targets.null
    return or_nan(scores, array_namespace(P).min(P, axis=1) > 0)


def _losses(power: float, y: Array, P: Array) -> Array:
    """Half the deviance of each row without `_constants`, computed in the widest dtype and kept as y is."""
    xp = array_namespace(P)
    P = xp.astype(P, float_dtype(P), copy=False)
    if power == 1:
        losses = P - y * xp.log(P)
    elif power == 2:
        losses = xp.log(P) + y / P
    else:
        high = P ** (2 - power)
        losses = high / (2 - power) - y * (high / P) / (1 - power)
    return xp.astype(losses, y.dtype, copy=False)


def _constants(power: float, y: Array) -> Array:
    """The terms that make half the deviance of each row 0 at its optimum."""
    if power == 1:
        return np.asarray(xlogy(y, y) - y)
    if power == 2:
        return -np.log(y) - 1
    return np.power(y, 2 - power) / (1 - power) / (2 - power)
