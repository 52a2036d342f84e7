"""A second route in extended precision: penalised linear models at their optimum, by Newton's method.

scikit-learn's own solvers stop where their objective no longer falls, which far from the origin can be where
they start. Here a step is only taken if the objective falls, both are computed with 64 bits of significand on
centred columns of one size, and nothing stops before the gradient is rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, TweedieRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.class_weight import compute_class_weight

from tests.differential._oracle import EPS, Real

# Of Newton's method; and after the first at which the gradient may be rounding, which is an estimate.
MAX_STEPS, MORE_STEPS = 300, 20
# The share of `tol` that a family's answers are held to; and, where that is less, the machine epsilons of the
# gradient at the start, but never more than `tol`.
CERTIFIED, CERTIFIED_ROUNDING = 1e-2, 1e3

Derivatives = tuple[np.ndarray, np.ndarray, np.ndarray]
Loss = Callable[[np.ndarray], Derivatives]
"""From linear predictors (n, K): the loss of each row (n,), its gradient (n, K) and its Hessian (n, K, K)."""


def at_the_optimum(estimator: Any, aside: int | None = None) -> Any:
    """The estimator, or the pipeline with a last step, that stops nowhere but at the optimum.

    With `aside`, the seed of a direction, it stops where the gradient, measured as scikit-learn's solver
    measures it, is a hundredth of what `tol` asks, which is as near as a family that converges has to come.
    """
    if type(estimator) is OneVsRestClassifier:
        return estimator.set_params(estimator=at_the_optimum(estimator.estimator, aside))
    if type(estimator) is Pipeline:
        name, last = estimator.steps[-1]
        return estimator.set_params(**{name: at_the_optimum(last, aside)})
    cls = OPTIMAL.get(type(estimator))
    return estimator if cls is None else _as(cls, estimator, aside)


def _as(cls: type, estimator: Any, aside: int | None) -> Any:
    # An attribute of the class, since clones keep no other.
    new = type(cls.__name__, (cls,), {"aside": aside})(**estimator.get_params(deep=False))
    if hasattr(estimator, "_metadata_request"):
        new._metadata_request = estimator._metadata_request
    return new


def _largest(G: np.ndarray) -> Any:
    return np.abs(G).max()


class _Optimal:
    aside: int | None = None
    tol: float
    # Of gradients, as the solver measures them.
    norm: Callable[[np.ndarray], Any] = staticmethod(_largest)

    def _entries(self, at_start: np.ndarray, asked: float | None = None, k: int = 0) -> Any:
        """The gradient to stop at in the k-th problem, by the gradient at the start and the norm asked."""
        if self.aside is None:
            return 0.0
        asked = self.tol if asked is None else asked
        rounding = CERTIFIED_ROUNDING * np.finfo(np.float64).eps * self.norm(at_start)
        direction = np.random.default_rng([self.aside, k]).choice([-1.0, 1.0], at_start.shape)
        return min(asked, max(CERTIFIED * asked, rounding)) / self.norm(direction) * direction


class _OptimalTweedie(_Optimal):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""
        super().fit(X, y, sample_weight)
        y = np.asarray(y, dtype=Real)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        power = (
            1 if isinstance(self, PoissonRegressor) else 2 if isinstance(self, GammaRegressor) else self.power
        )
        start = np.log([np.average(y.astype(float), weights=weights)])
        coef, intercept = optimum(
            _dense(X), _tweedie(y, power), weights, self.alpha, start, self.fit_intercept, self._entries
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


class _OptimalMachine(_Optimal):
    """liblinear's objective: the intercept is penalised as the weight of one more feature."""

    norm = staticmethod(np.linalg.norm)

    def _one(
        self,
        X: Any,
        loss: Loss,
        weights: np.ndarray,
        k: int = 0,
        rarest: float = 1.0,
        objective: type[Objective] | None = None,
    ) -> tuple[np.ndarray, Any]:
        """Coefficients (p,) and intercept of the k-th problem; `rarest` is the share of its rarer class."""
        A, weights = _dense(X), np.maximum(weights, 0)  # rows that weigh less than nothing are left out too
        if self.fit_intercept:
            A = np.column_stack([A, np.full(len(A), Real(self.intercept_scaling))])

        def entries(at_start: np.ndarray) -> Any:
            return self._entries(at_start, self.tol * rarest * self.norm(at_start), k)

        penalty = 1.0 / (self.C * weights.sum())
        B, _ = optimum(A, loss, weights, penalty, np.zeros(1), False, entries, objective or Squares)
        coef, p = B[:, 0].astype(np.float64), A.shape[1] - self.fit_intercept
        return coef[:p], self.intercept_scaling * coef[p:].sum()


class OptimalLogistic(_OptimalMachine, LogisticRegression):
    """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""

    @property
    def norm(self) -> Any:  # type: ignore[override]
        """The length of a gradient for liblinear, else its largest entry."""
        return np.linalg.norm if self.solver == "liblinear" else _largest

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
        if "l1" in (self.penalty, {1: "l1"}.get(self.l1_ratio)):  # not smooth: as scikit-learn fits it
            return self
        if self.solver == "liblinear":
            counts = np.bincount(index[weights > 0], minlength=K)
            if counts.all():
                share = counts.min() / counts.sum()
                coef, intercept = self._one(X, _binomial(index), weights, 0, share, Objective)
                self.coef_, self.intercept_ = coef[None], np.array([intercept])
            return self
        loss, start = (_binomial(index), np.zeros(1)) if K == 2 else (_multinomial(index, K), np.zeros(K))
        penalty = 1.0 / (self.C * weights.sum())
        coef, intercept = optimum(_dense(X), loss, weights, penalty, start, self.fit_intercept, self._entries)
        self.coef_ = coef.T.astype(np.float64)
        self.intercept_ = intercept.astype(np.float64)
        return self


class OptimalLinearSVC(_OptimalMachine, LinearSVC):
    """LinearSVC with the squared hinge loss at its optimum."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OptimalLinearSVC:
        """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""
        super().fit(X, y, sample_weight)
        index, K = np.searchsorted(self.classes_, y), len(self.classes_)
        weights = np.ones(len(index)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        of_class = compute_class_weight(
            self.class_weight, classes=self.classes_, y=np.asarray(y), sample_weight=weights
        )
        # Rows without weight do not count, and liblinear does not know of a class that has no others.
        counts = np.bincount(index[weights > 0], minlength=K)
        if not counts.all():
            return self
        found = []
        for k in range(K) if K > 2 else [1]:
            own = index == k
            # Of several classes the rest counts once.
            both = np.where(own, of_class[k], of_class[0] if K == 2 else 1.0)
            rarest = min(counts[k], counts.sum() - counts[k]) / counts.sum()
            found.append(self._one(X, _squared_hinge(np.where(own, 1, -1)), weights * both, k, rarest))
        self.coef_ = np.array([coef for coef, _ in found])
        self.intercept_ = np.array([intercept for _, intercept in found])
        return self


class OptimalLinearSVR(_OptimalMachine, LinearSVR):
    """LinearSVR with the squared loss at its optimum."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OptimalLinearSVR:
        """Fitted by scikit-learn, which refuses what it refuses; then moved to the optimum."""
        super().fit(X, y, sample_weight)
        y = np.asarray(y, dtype=Real).ravel()
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.coef_, self.intercept_ = self._one(X, _squared_insensitive(y, self.epsilon), weights)
        return self


OPTIMAL = {
    LogisticRegression: OptimalLogistic,
    PoissonRegressor: OptimalPoisson,
    GammaRegressor: OptimalGamma,
    TweedieRegressor: OptimalTweedie,
    LinearSVC: OptimalLinearSVC,
    LinearSVR: OptimalLinearSVR,
}


def _dense(X: Any) -> np.ndarray:
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(Real)


# ------------------------------------------------------------------------------------------- the losses


def _binomial(index: np.ndarray) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        # Mirrored so that the probability of the wrong class is what is computed: it may be tiny.
        side = 1 - 2 * index
        wrong = 1 / (1 + np.exp(-side * Z[:, 0]))
        value = np.logaddexp(0, side * Z[:, 0])
        return value, (side * wrong)[:, None], (wrong * (1 - wrong))[:, None, None]

    return loss


def _multinomial(index: np.ndarray, K: int) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        E = np.exp(Z - Z[np.arange(len(Z)), index][:, None])
        P = E / E.sum(axis=1, keepdims=True)
        wrong = np.where(np.eye(K)[index], 0, E)
        R = wrong / E.sum(axis=1, keepdims=True)
        R[np.arange(len(Z)), index] = -R.sum(axis=1)
        return np.log1p(wrong.sum(axis=1)), R, P[:, :, None] * (np.eye(K) - P[:, None, :])

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


def _squared_hinge(side: np.ndarray) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        short = np.maximum(1 - side * Z[:, 0], 0)
        return short**2, (-2 * side * short)[:, None], np.where(short > 0, Real(2), 0)[:, None, None]

    return loss


def _squared_insensitive(y: np.ndarray, epsilon: float) -> Loss:
    def loss(Z: np.ndarray) -> Derivatives:
        apart = Z[:, 0] - y
        over = np.maximum(np.abs(apart) - epsilon, 0)
        slope = 2 * np.sign(apart) * over
        return over**2, slope[:, None], np.where(over > 0, Real(2), 0)[:, None, None]

    return loss


# ------------------------------------------------------------------------------------ Newton's method


@dataclass(frozen=True)
class Objective:
    """The weighted mean loss of ``A @ B`` with a penalty and a linear term, by coefficients B of (d, K)."""

    A: np.ndarray
    loss: Loss
    w: np.ndarray
    strength: np.ndarray
    fit_intercept: bool
    tilt: Any = 0.0

    def value(self, B: np.ndarray) -> Any:
        """The objective."""
        return self.w @ self.loss(self.A @ B)[0] + (self.strength * B**2 / 2 - self.tilt * B).sum()

    def gradient(self, B: np.ndarray) -> np.ndarray:
        """By the coefficients, (d, K)."""
        return self.A.T @ (self.w[:, None] * self.loss(self.A @ B)[1]) + self.strength * B - self.tilt

    def rounding(self, B: np.ndarray) -> tuple[Any, np.ndarray]:
        """Rounding of the value and of the gradient: epsilons of the parts that they are sums of."""
        value, R, H = self.loss(self.A @ B)
        Z, w = np.abs(self.A) @ np.abs(B), self.w[:, None]
        of_value = self.w @ (np.abs(value) + (np.abs(R) * Z).sum(axis=1)) + np.abs(self.tilt * B).sum()
        moved = np.einsum("nkj,nj->nk", np.abs(H), Z)
        of_gradient = np.abs(self.A).T @ (w * (1 + np.abs(R) + moved)) + self.strength * np.abs(B)
        return 16 * EPS * of_value, 100 * EPS * of_gradient

    def hessian(self, B: np.ndarray) -> np.ndarray:
        """By the coefficients, (d K, d K), made positive definite where nothing depends on them."""
        (d, K), (_, _, H) = B.shape, self.loss(self.A @ B)
        out = np.zeros((d, K, d, K), dtype=Real)
        for k in range(K):
            for j in range(K):
                out[:, k, :, j] = self.A.T @ ((self.w * H[:, k, j])[:, None] * self.A)
        row, column = np.arange(d)[:, None], np.arange(K)
        out[row, column, row, column] += self.strength
        # Probabilities do not change if all intercepts do, so any curvature may stand there.
        out[-1, :, -1, :] += 1.0 if not self.fit_intercept else 1.0 / K if K > 1 else 0.0
        return out.reshape(d * K, d * K)

    def step(self, B: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Newton's, (d, K), to be subtracted."""
        return _solved(self.hessian(B), G.ravel()).reshape(B.shape)

    def minimum(self, B: np.ndarray) -> tuple[np.ndarray, bool]:
        """Where the objective is least, and whether it is, from a start."""
        size = np.sqrt((self.A**2).mean(axis=0))[:, None]
        left, reached = MAX_STEPS, False
        while left:
            G, (of_value, of_gradient) = self.gradient(B), self.rounding(B)
            step = self.step(B, G)
            slope = (G * step).sum()
            # Nothing is left to be gained: the step is no step in any column.
            if np.all(size * np.abs(step) <= 1e-14 * np.abs(size * B).max()):
                return B, True
            left -= 1
            if np.all(np.abs(G) <= of_gradient):
                left, reached = min(left, MORE_STEPS), True
            # From there on only where the objective is seen to fall.
            most = self.value(B) + (0 if reached else of_value)
            moved = _shortened(self.value, most, B, step, slope)
            if not slope > 0 or np.array_equal(moved, B):
                break
            B = moved
        return B, reached


class Squares(Objective):
    """Of a loss of one output that is a square, or zero, with a penalty on all coefficients.

    Newton's step is exact then as long as no row changes from one to the other: few steps are taken.
    """

    def step(self, B: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Newton's, by least squares: in a Hessian of few rows the penalty may be less than rounding."""
        _, R, H = self.loss(self.A @ B)
        root = np.sqrt(self.w * H[:, 0, 0])
        counts = root > 0
        held = np.sqrt(np.where(self.strength > 0, self.strength, 1))
        M = np.vstack([root[counts, None] * self.A[counts], np.diag(held[:, 0])])
        q = np.append(self.w[counts] * R[counts, 0] / root[counts], (self.strength * B - self.tilt) / held)
        return _least_squares(M, q)[:, None]


def optimum(
    X: np.ndarray,
    loss: Loss,
    weights: np.ndarray,
    penalty: float,
    start: np.ndarray,
    fit_intercept: bool,
    entries: Callable[[np.ndarray], Any],
    kind: type[Objective] = Objective,
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (p, K) and intercepts (K,) that minimise the weighted mean loss with its penalty.

    They start at zero and at `start`, of shape (K,). NaN where the optimum is not reached: there is none if
    a class has no weight, say. `entries` gives the gradient to aim at, not zero, from that at the start,
    both with the intercept at the origin of X.
    """
    w = (weights / weights.sum()).astype(Real)
    free = Real(fit_intercept)
    centre = free * (w @ X)
    A = np.column_stack([X - centre, np.full(len(X), free)])
    strength = np.append(np.full(X.shape[1], Real(penalty)), 0)[:, None]
    objective = kind(A, loss, w, strength, fit_intercept)
    B = np.zeros((A.shape[1], len(start)), dtype=Real)
    B[-1] = free * start
    with np.errstate(all="ignore"):
        at_start = objective.gradient(B)
        at_start[:-1] += centre[:, None] * at_start[-1]
        tilt = np.zeros_like(B) + entries(at_start)
        tilt[:-1] -= centre[:, None] * tilt[-1]
        tilt[-1] *= free
        B, reached = objective.minimum(B)
        if tilt.any():
            B, reached = replace(objective, tilt=tilt).minimum(B)
    coef = B[:-1] if reached else np.full_like(B[:-1], np.nan)
    return coef, B[-1] - centre @ coef


def _shortened(value_at: Callable, value: Any, B: np.ndarray, step: np.ndarray, slope: Any) -> np.ndarray:
    """The step, or the half, the quarter ... of it, with which the objective falls below `value`."""
    for halvings in range(60):
        share = Real(0.5) ** halvings
        if value_at(B - share * step) <= value - 1e-4 * share * slope:
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


def _least_squares(M: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The least ``|M x - q|``, by Householder's method with pivots, for rows and columns of any size."""
    M, q = M.copy(), q.copy()
    order, x = np.arange(M.shape[1]), np.zeros(M.shape[1], dtype=M.dtype)
    for k in range(len(x)):
        j = k + np.argmax((M[k:, k:] ** 2).sum(axis=0))
        M[:, [k, j]], order[[k, j]] = M[:, [j, k]], order[[j, k]]
        i = k + np.argmax(np.abs(M[k:, k]))
        M[[k, i]], q[[k, i]] = M[[i, k]], q[[i, k]]
        v = M[k:, k].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        v /= np.sqrt(v @ v)
        M[k:] -= 2 * np.outer(v, v @ M[k:])
        q[k:] -= 2 * v * (v @ q[k:])
    for k in range(len(x))[::-1]:
        x[order[k]] = (q[k] - M[k, k + 1 :] @ x[order[k + 1 :]]) / M[k, k]
    return x
