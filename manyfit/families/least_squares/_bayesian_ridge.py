"""BayesianRidge: its iterations on the eigenvalues of the scatter of each fold."""

from typing import Any

import numpy as np
from sklearn.linear_model import BayesianRidge

from manyfit.families.least_squares._moment_family import MomentFamily, NormalEquations
from manyfit.families.least_squares._ridge import (
    MIN_SPECTRAL_RATIO,
    RidgeEquations,
    ridge_equations,
    solve_ridge,
)
from manyfit.families.least_squares.left_out._residuals import POOR
from manyfit.families.protocol import Array, LinearAnswers, Setting, Settings, register_family, require_number
from manyfit.folds import TransformedMoments, Unsupported

# The squared residuals are the squares of y less those of the predictions. Under this part of y the
# difference keeps too few digits.
MIN_RESIDUAL = 1e-5
# A scatter that is rounded may change the penalty of an iteration by this share. Later iterations need not
# make up for it.
MAX_ROUNDING = 1e-9


class BayesianRidgeFamily(MomentFamily):
    """BayesianRidge: a Ridge whose penalty ``lambda / alpha`` follows from the data.

    Reference: sklearn.linear_model.BayesianRidge (1.9). Both precisions are updated as by MacKay (1992),
    until the coefficients change by less than ``tol`` in sum.
    """

    serves = (BayesianRidge,)
    free = frozenset({"alpha_1", "alpha_2", "lambda_1", "lambda_2", "alpha_init", "lambda_init"})

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.verbose:
            raise Unsupported("verbose follows single fits")
        require_number("tol", estimator.tol)
        for setting in settings:
            for name, value in setting.items():
                if not (name.endswith("_init") and value is None):
                    require_number(name, value, positive=name.endswith("_init"))

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        if view.eps > np.finfo(np.float64).eps:
            raise Unsupported("scikit-learn iterates in float32 here, and stops by its rounding")
        if not view.single_target:
            raise Unsupported("y has two dimensions")
        yy = NormalEquations.of(view, estimator.fit_intercept).yy
        equations = ridge_equations(view, estimator.fit_intercept)
        largest = float(equations.spectrum.values[0])
        penalties, refused = np.empty(len(settings)), {}
        for j, setting in enumerate(settings):
            try:
                penalties[j] = _penalty(estimator, setting, equations, float(yy[0]), view)
            except Unsupported as why:
                penalties[j], refused[j] = largest + 1.0, str(why)
        linear, rounding = solve_ridge(view, penalties, estimator.fit_intercept)
        return LinearAnswers(linear, refused, (rounding,))


def _penalty(
    estimator: Any, setting: Setting, equations: RidgeEquations, yy: float, view: TransformedMoments
) -> float:
    """``lambda / alpha`` where scikit-learn's iterations end; `Unsupported` if digits are lost on the way."""
    moments, values = view.weighted, equations.spectrum.values
    along = equations.spectrum.onto_axes(equations.rhs[:, 0])
    alpha, lambda_ = setting["alpha_init"], setting["lambda_init"]
    if alpha is None:
        alpha = 1.0 / (float(moments.yy[0]) / moments.weight + np.finfo(np.float64).eps)
    if lambda_ is None:
        lambda_ = 1.0
    before = None
    for _ in range(estimator.max_iter):
        damped = values + lambda_ / alpha
        if not damped[-1] > MIN_SPECTRAL_RATIO * damped[0]:
            raise Unsupported(POOR)
        coef = along / damped
        residual = yy - float(coef @ (2.0 * along - values * coef))
        if not residual > MIN_RESIDUAL * yy:
            raise Unsupported("the residuals are too small beside y")
        if not _rounding(values, damped, coef, residual) < MAX_ROUNDING:
            raise Unsupported("rounding of the normal equations changes the precisions")
        gamma = float(np.sum(alpha * values / (lambda_ + alpha * values)))
        lambda_ = (gamma + 2.0 * setting["lambda_1"]) / (float(coef @ coef) + 2.0 * setting["lambda_2"])
        alpha = (moments.weight - gamma + 2.0 * setting["alpha_1"]) / (residual + 2.0 * setting["alpha_2"])
        if not (0.0 < alpha < np.inf and 0.0 < lambda_ < np.inf):
            raise Unsupported("a precision is not finite")
        on_features = equations.spectrum.from_axes(coef)
        if before is not None and np.abs(before - on_features).sum() < estimator.tol:
            break
        before = on_features
    penalty = float(lambda_ / alpha)
    if not values[-1] + penalty > MIN_SPECTRAL_RATIO * (values[0] + penalty):
        raise Unsupported(POOR)
    return penalty


def _rounding(values: Array, damped: Array, coef: Array, residual: float) -> float:
    """By what share the rounding of a scatter may change gamma, the squares of `coef`, and the residual."""
    if not values[0] > 0.0:
        return 0.0
    error = np.finfo(np.float64).eps * values[0]
    squares = float(coef @ coef)
    of_gamma = ((damped - values) / damped**2).sum() / (values / damped).sum()
    of_squares = 2.0 * np.sqrt(((coef / damped) ** 2).sum() / squares) if squares > 0.0 else 0.0
    return float(error * (of_gamma + of_squares + 2.0 * squares / residual))


register_family(BayesianRidgeFamily())
