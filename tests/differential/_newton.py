"""Newton's method in extended precision, for a penalised loss of linear predictors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.differential._losses import Loss
from tests.differential._oracle import EPS, Real

# Of Newton's method; and after the first at which the gradient may be rounding, which is an estimate.
MAX_STEPS, MORE_STEPS = 300, 20


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
