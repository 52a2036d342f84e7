"""PoissonRegressor, GammaRegressor and TweedieRegressor with a logarithmic link, all alpha at once."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

from manyfit.families.protocol import (
    Array,
    Settings,
    register_family,
    require_number,
)
from manyfit.families.smooth._cost import IteratingFamily
from manyfit.families.smooth._glm_answers import GLMAnswers, LogLink, linked_answers
from manyfit.families.smooth.solver._coarse_to_fine import Model, fit_path
from manyfit.families.smooth.solver._losses import HalfTweedie
from manyfit.families.smooth.solver._objective import RowLoss
from manyfit.families.smooth.solver._trial import sklearn_stopping
from manyfit.folds import PassData, Unsupported
from manyfit.introspection.class_names import sklearn_class_of


class TweedieFamily(IteratingFamily):
    """Generalised linear models: half the mean deviance and ``alpha / 2 ||w||^2``, the intercept free.

    Reference: sklearn.linear_model.PoissonRegressor, GammaRegressor, TweedieRegressor (1.9).
    """

    serves = (PoissonRegressor, GammaRegressor, TweedieRegressor)
    free = frozenset({"alpha"})

    def check(self, estimator: Any, settings: Settings) -> None:
        power = _power(estimator)
        # Others are not convex under a logarithmic link, or have another link.
        if not 1 <= power <= 2 or getattr(estimator, "link", "log") not in ("auto", "log"):
            raise Unsupported(f"power={power!r} is shared from 1 to 2, with a logarithmic link")
        if estimator.warm_start or estimator.verbose:
            raise Unsupported("warm_start and verbose follow single fits")
        for setting in settings:
            require_number("alpha", setting["alpha"])

    def fit_many(self, estimator: Any, settings: Settings, folded: PassData) -> Iterator[GLMAnswers]:
        power = _power(estimator)
        y = np.asarray(folded.targets, dtype=np.float64)
        smallest = y.min()
        if smallest < 0 or (power == 2 and smallest <= 0):
            end = "negative values" if power < 2 else "values that are not positive"
            raise Unsupported(f"y has {end}, which the distribution does not have")
        if folded.weight is not None and not folded.weight.any():
            raise Unsupported("all weights are zero")
        mean = float(np.average(y, weights=folded.weight))
        if not 0 < mean < np.inf:
            raise Unsupported("the mean of y is not a positive number")
        alphas = np.array([float(setting["alpha"]) for setting in settings])
        model = Model(
            RowLoss(HalfTweedie(float(power)), y[None], folded.weight),
            lambda total: alphas,
            "free" if estimator.fit_intercept else "none",
            float(estimator.tol),
            stopping=sklearn_stopping(estimator, folded.X, _first_loss(power, float(y.mean()))),
            start=_log_means(y, folded),
        )
        yield from linked_answers(fit_path(folded, model), LogLink())


def _first_loss(power: float, mean: float) -> float:
    """Size of the terms of the mean loss at the start, where all predictions are the mean of y."""
    if 1 < power < 2:
        return float(mean ** (2 - power) * (1 / (power - 1) + 1 / (2 - power)))
    return (mean if power == 1 else 1.0) * (1.0 + abs(float(np.log(mean))))


def _log_means(y: Array, data: PassData) -> Array:
    """Logarithm of the mean of y in each training part; 0 where that has none, and no optimum."""
    weight = np.ones(len(y)) if data.weight is None else data.weight
    means = []
    for group in data.groups:
        sums = np.array([[(weight[rows] * y[rows]).sum(), weight[rows].sum()] for rows in group.rows])
        means.append(group.train @ sums)
    top, bottom = np.concatenate(means).T
    sound = (top > 0) & (bottom > 0) & np.isfinite(top) & np.isfinite(bottom)
    return np.log(np.where(sound, top, 1.0) / np.where(sound, bottom, 1.0))


def _power(estimator: Any) -> Any:
    """The power of the variance function."""
    return {PoissonRegressor: 1, GammaRegressor: 2}.get(
        sklearn_class_of(type(estimator)), getattr(estimator, "power", 0)
    )


register_family(TweedieFamily())
