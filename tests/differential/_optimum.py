"""A second route in extended precision: penalised linear models at their optimum, by Newton's method.

scikit-learn's own solvers stop where their objective no longer falls, which far from the origin can be where
they start. Here a step is only taken if the objective falls, both are computed with 64 bits of significand on
centred columns of one size, and nothing stops before the gradient is rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_class_weight

from ._oracle import EPS, Real

MAX_STEPS = 300

Derivatives = tuple[np.ndarray, np.ndarray, np.ndarray]
Loss = Callable[[np.ndarray], Derivatives]
"""From linear predictors (n, K): the loss of each row (n,), its gradient (n, K) and its Hessian (n, K, K)."""


def at_the_optimum(estimator: Any) -> Any:
    """The estimator, or the pipeline with a last step, that stops nowhere but at the optimum."""
    if type(estimator) is Pipeline:
        name, last = estimator.steps[-1]
        return estimator.set_params(**{name: at_the_optimum(last)})
    cls = OPTIMAL.get(type(estimator))
    return estimator if cls is None else _as(cls, estimator)


def _as(cls: type, estimator: Any) -> Any:
    new = cls(**estimator.get_params(deep=False))
    if hasattr(estimator, "_metadata_request"):
        new._metadata_request = estimator._metadata_request
    return new


class OptimalLogistic(LogisticRegression):
    """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OptimalLogistic:
        """See LogisticRegression."""
        super().fit(X, y, sample_weight)
        index = np.searchsorted(self.classes_, y)
        weights = np.ones(len(index)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        of_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=np.asarray(y), sample_weight=weights
        )
        weights = weights * of_class[index]
        K = len(self.classes_)
        loss, start = (_binomial(index), np.zeros(1)) if K == 2 else (_multinomial(index, K), np.zeros(K))
        penalty = 1.0 / (self.C * weights.sum())
        coef, intercept = optimum(_dense(X), loss, weights, penalty, start, self.fit_intercept)
        self.coef_ = coef.T.astype(np.float64)
        self.intercept_ = intercept.astype(np.float64)
        return self


class _OptimalTweedie:
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""
        super().fit(X, y, sample_weight)
        y = np.asarray(y, dtype=Real)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        power = {OptimalPoisson: 1, OptimalGamma: 2}.get(type(self)) or self.power
        start = np.log([np.average(y.astype(float), weights=weights)])
        coef, intercept = optimum(
            _dense(X), _tweedie(y, power), weights, self.alpha, start, self.fit_intercept
        )
        self.coef_ = coef[:, 0].astype(np.float64)
        self.intercept_ = float(intercept[0])
        return self


class OptimalPoisson(_OptimalTweedie, PoissonRegressor):
    """PoissonRegressor at its optimum."""


class OptimalGamma(_OptimalTweedie, GammaRegressor):
    """GammaRegressor at its optimum."""


class OptimalTweedie(_OptimalTweedie, TweedieRegressor):
    """TweedieRegressor with a logarithmic link at its optimum."""


OPTIMAL = {
    LogisticRegression: OptimalLogistic,
    PoissonRegressor: OptimalPoisson,
    GammaRegressor: OptimalGamma,
    TweedieRegressor: OptimalTweedie,
}


def _dense(X: Any) -> np.ndarray:
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(Real)


# ------------------------------------------------------------------------------------------- the losses


def _binomial(index: np.ndarray) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        z = Z[:, 0]
        p = 1 / (1 + np.exp(-z))
        value = np.logaddexp(0, z) - index * z
        return value, (p - index)[:, None], (p / (1 + np.exp(z)))[:, None, None]

    return loss


def _multinomial(index: np.ndarray, K: int) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        Z = Z - Z.max(axis=1, keepdims=True)
        E = np.exp(Z)
        P = E / E.sum(axis=1, keepdims=True)
        value = np.log(E.sum(axis=1)) - Z[np.arange(len(Z)), index]
        hessian = P[:, :, None] * (np.eye(K) - P[:, None, :])
        return value, P - np.eye(K)[index], hessian

    return loss


def _tweedie(y: np.ndarray, power: float) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        z = Z[:, 0]
        a, b = 2 - Real(power), 1 - Real(power)
        up = np.exp(a * z) / a if a else z
        down = y * np.exp(b * z) / b if b else y * z
        slope = np.exp(a * z) - y * np.exp(b * z)
        curvature = a * np.exp(a * z) - b * y * np.exp(b * z)
        return up - down, slope[:, None], curvature[:, None, None]

    return loss


# ------------------------------------------------------------------------------------ Newton's method


def optimum(
    X: np.ndarray,
    loss: Loss,
    weights: np.ndarray,
    penalty: float,
    start: np.ndarray,
    fit_intercept: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (p, K) and intercepts (K,) that minimise the weighted mean loss with its penalty.

    They start at zero and at `start`, of shape (K,). NaN where the optimum is not reached: there is none if
    a class has no weight, say.
    """
    w = (weights / weights.sum()).astype(Real)
    free = Real(fit_intercept)
    centre = free * (w @ X)
    A = np.column_stack([X - centre, np.full(len(X), free)])
    strength = np.append(np.full(X.shape[1], Real(penalty)), 0)[:, None]
    B = np.zeros((A.shape[1], len(start)), dtype=Real)
    B[-1] = free * start
    with np.errstate(all="ignore"):
        for _ in range(MAX_STEPS):
            value, G, step = _newton(A, loss, w, strength, B, fit_intercept)
            slope = (G * step).sum()
            if not slope > (16 * EPS) ** 2 * max(abs(value), 1e-9):
                break
            B = _shortened(lambda B: _value(A, loss, w, strength, B), value, B, step, slope)
        noise = np.abs(A).T @ (w[:, None] * np.abs(loss(A @ B)[1])) + strength * np.abs(B)
        reached = np.all(np.abs(G) <= 1e3 * len(A) * EPS * (noise + np.abs(A).T @ w[:, None]))
    coef = B[:-1] if reached else np.full_like(B[:-1], np.nan)
    return coef, B[-1] - centre @ coef


def _value(A: np.ndarray, loss: Loss, w: np.ndarray, strength: np.ndarray, B: np.ndarray) -> Any:
    return w @ loss(A @ B)[0] + (strength * B**2).sum() / 2


def _newton(
    A: np.ndarray, loss: Loss, w: np.ndarray, strength: np.ndarray, B: np.ndarray, fit_intercept: bool
) -> tuple[Any, np.ndarray, np.ndarray]:
    """The objective, its gradient, and the step to be subtracted."""
    (d, K), (losses, R, H) = B.shape, loss(A @ B)
    value = w @ losses + (strength * B**2).sum() / 2
    G = A.T @ (w[:, None] * R) + strength * B
    hessian = np.zeros((d, K, d, K), dtype=Real)
    for k in range(K):
        for j in range(K):
            hessian[:, k, :, j] = A.T @ ((w * H[:, k, j])[:, None] * A)
    hessian[np.arange(d)[:, None], np.arange(K), np.arange(d)[:, None], np.arange(K)] += strength
    # Probabilities do not change if all intercepts do, so any curvature may stand there.
    hessian[-1, :, -1, :] += 1.0 if not fit_intercept else 1.0 / K if K > 1 else 0.0
    return value, G, _solved(hessian.reshape(d * K, d * K), G.ravel()).reshape(d, K)


def _shortened(value_at: Callable, value: Any, B: np.ndarray, step: np.ndarray, slope: Any) -> np.ndarray:
    """The step, or the half, the quarter ... of it, with which the objective falls."""
    for halvings in range(60):
        share = Real(0.5) ** halvings
        # As far as rounding can tell: near the optimum the whole step is right.
        if value_at(B - share * step) <= value - 1e-4 * share * slope + 8 * EPS * abs(value):
            return B - share * step
    return B


def _solved(matrix: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The solution of a positive definite system, equilibrated, by Cholesky's method."""
    root = np.sqrt(np.diagonal(matrix))
    root = np.where(root > 0, root, 1)
    L, n = matrix / np.outer(root, root), len(g)
    x = g / root
    for i in range(n):
        L[i, i] = np.sqrt(max(L[i, i], 16 * EPS))
        L[i + 1 :, i] /= L[i, i]
        L[i + 1 :, i + 1 :] -= np.outer(L[i + 1 :, i], L[i + 1 :, i])
        x[i] /= L[i, i]
        x[i + 1 :] -= x[i] * L[i + 1 :, i]
    for i in range(n)[::-1]:
        x[i] = (x[i] - L[i + 1 :, i] @ x[i + 1 :]) / L[i, i]
    return x / root
