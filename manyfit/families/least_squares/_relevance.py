"""ARDRegression: its iterations on the Gram matrix of each fold."""

from typing import Any

import numpy as np
from scipy.linalg import pinvh
from sklearn.linear_model import ARDRegression

from manyfit.families.least_squares._bayesian_ridge import MIN_RESIDUAL
from manyfit.families.least_squares._matching_pursuit import require_independent
from manyfit.families.least_squares._moment_family import MomentFamily, NormalEquations
from manyfit.families.protocol import Array, LinearAnswers, Setting, Settings, register_family, require_number
from manyfit.folds import TransformedMoments, Unsupported

# Relative distances of a precision from its threshold, and of a step from `tol`, that rounding may decide.
NEAR_THRESHOLD, NEAR_TOL = 1e-6, 1e-4


class ARDFamily(MomentFamily):
    """ARDRegression, with a precision for each feature.

    Reference: sklearn.linear_model.ARDRegression (1.9): features whose precision reaches `threshold_lambda`
    are left out, until the coefficients change by less than ``tol`` in sum.
    """

    serves = (ARDRegression,)
    free = frozenset({"alpha_1", "alpha_2", "lambda_1", "lambda_2", "threshold_lambda"})

    def check(self, estimator: Any, settings: Settings) -> None:
        if estimator.verbose or estimator.compute_score:
            raise Unsupported("verbose and compute_score follow single fits")
        require_number("tol", estimator.tol)
        for setting in settings:
            for name, value in setting.items():
                require_number(name, value)

    def fit_fold(self, estimator: Any, settings: Settings, view: TransformedMoments) -> LinearAnswers:
        if not view.single_target:
            raise Unsupported("y has two dimensions")
        equations = NormalEquations.of(view, estimator.fit_intercept)
        require_independent(equations, view)
        coef, refused = np.zeros((len(equations.xx), len(settings), 1)), dict[int, str]()
        for j, setting in enumerate(settings):
            try:
                coef[:, j, 0] = _coefficients(estimator, setting, equations, view)
            except Unsupported as why:
                refused[j] = str(why)
        return equations.answers(view, coef, refused)


def _coefficients(
    estimator: Any, setting: Setting, equations: NormalEquations, view: TransformedMoments
) -> Array:
    """Coefficients, (p,), where scikit-learn's iterations end; `Unsupported` if rounding could decide it."""
    xx, xy, yy, n = equations.xx, equations.xy[:, 0], float(equations.yy[0]), view.plain.rows
    alpha = 1.0 / (float(view.plain.yy[0]) / n + np.finfo(np.float64).eps)
    lambdas, keep, before = np.ones(len(xx)), np.ones(len(xx), dtype=bool), None
    for _ in range(estimator.max_iter):
        sigma, coef = _posterior(xx, xy, alpha, lambdas, keep)
        residual = yy - float(coef @ (2.0 * xy - xx @ coef))
        if not residual > MIN_RESIDUAL * yy:
            raise Unsupported("the residuals are too small beside y")
        gamma = 1.0 - lambdas[keep] * np.diag(sigma)
        with np.errstate(all="ignore"):
            lambdas[keep] = (gamma + 2.0 * setting["lambda_1"]) / (
                coef[keep] ** 2 + 2.0 * setting["lambda_2"]
            )
        alpha = (n - gamma.sum() + 2.0 * setting["alpha_1"]) / (residual + 2.0 * setting["alpha_2"])
        if not (np.isfinite(lambdas).all() and (lambdas > 0.0).all() and 0.0 < alpha < np.inf):
            raise Unsupported("a precision is not finite")
        threshold = setting["threshold_lambda"]
        if (np.abs(lambdas - threshold) <= NEAR_THRESHOLD * threshold).any():
            raise Unsupported("rounding decides whether a feature is left out")
        keep = lambdas < threshold
        coef[~keep] = 0.0
        if before is not None:
            change = float(np.abs(before - coef).sum())
            if abs(change - estimator.tol) <= NEAR_TOL * estimator.tol:
                raise Unsupported("rounding decides where the iterations stop")
            if change < estimator.tol:
                break
        before = coef.copy()
        if not keep.any():
            return coef
    return _posterior(xx, xy, alpha, lambdas, keep)[1] if keep.any() else coef


def _posterior(xx: Array, xy: Array, alpha: float, lambdas: Array, keep: Array) -> tuple[Array, Array]:
    """Covariance of the coefficients that are kept, and all coefficients."""
    sigma = pinvh(np.diag(lambdas[keep]) + alpha * xx[np.ix_(keep, keep)])
    coef = np.zeros(len(xx))
    coef[keep] = alpha * (sigma @ xy[keep])
    return sigma, coef


register_family(ARDFamily())
