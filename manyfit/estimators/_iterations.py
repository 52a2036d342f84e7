"""What scikit-learn's own solver would have come to: how many iterations it needs, by a quadratic model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators._lbfgs import LBFGS

Array = NDArray[Any]

# What scipy's L-BFGS-B keeps.
MEMORY = 10


class _Quadratics:
    """``(v - target)' A (v - target) / 2`` of each column, one matrix for all, from scikit-learn's view.

    Coefficients are (m, K, d), the last of d an intercept whose origin is zero.
    """

    def __init__(self, matrix: Array, penalty: Array, origin: Array | None, target: Array) -> None:
        self.matrix, self.penalty, self.origin, self.target = matrix, penalty, origin, target

    def gradient(self, V: Array, columns: Array) -> Array:
        off = V - self.target[columns]
        moved = self._about(off)
        H = (moved.reshape(len(V), -1) @ self.matrix).reshape(V.shape)
        out = self.penalty[columns, None, None] * off
        if self.origin is not None:
            out[:, :, -1] = 0.0
            out[:, :, :-1] += H[:, :, -1:] * self.origin
        return out + H

    def _about(self, V: Array) -> Array:
        """Intercepts as values at the origin that the matrix has."""
        if self.origin is None:
            return V
        moved = V.copy()
        moved[:, :, -1] += V[:, :, :-1] @ self.origin
        return moved

    def size(self, G: Array, columns: Array) -> Array:
        return np.asarray(np.abs(G).max(axis=(1, 2)))

    def precondition(self, G: Array, columns: Array) -> Array:
        return G


def within(matrix: Array, penalty: Array, origin: Array | None, W: Array, tol: float, max_iter: int) -> Array:
    """Whether L-BFGS as scikit-learn runs it would come to `tol` within `max_iter` iterations.

    Parameters
    ----------
    matrix : ndarray of shape (K d, K d)
        Hessian of the mean loss where the columns ended, with intercepts as values at `origin`.
    penalty : ndarray of shape (m,)
        Of the columns.
    origin : ndarray of shape (d - 1,) or None
        See `matrix`; None where no intercept is free.
    W : ndarray of shape (m, K, d)
        Where the columns ended.
    tol : float
        Largest entry of the gradient that scikit-learn is content with.
    max_iter : int
        Its iterations.

    Returns
    -------
    ndarray of bool of shape (m,)
    """
    if not np.isfinite(matrix).all():
        return np.ones(len(W), dtype=bool)  # nobody knows
    target = W.copy()
    if origin is not None:
        target[:, :, -1] -= W[:, :, :-1] @ origin
    problem = _Quadratics(matrix, penalty, origin, target)
    columns = np.arange(len(W))
    solver = LBFGS(max_passes=max_iter + 1, memory=MEMORY)
    return np.asarray(solver.solve(problem, np.zeros(W.shape), columns, np.full(len(W), tol)).converged)
