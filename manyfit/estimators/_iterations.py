"""What scikit-learn's own solver would have come to: how many iterations it needs, by a quadratic model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators._lbfgs import LBFGS

Array = NDArray[Any]

# What scipy's L-BFGS-B keeps.
MEMORY = 10


class _Quadratics:
    """``(v - target)' A (v - target) / 2`` of each column, from scikit-learn's view.

    Coefficients are (m, K, d), the last of d an intercept whose origin is zero.
    """

    def __init__(
        self, matrices: Sequence[tuple[Array, Array]], penalty: Array, origin: Array | None, target: Array
    ) -> None:
        self.matrices, self.penalty, self.origin, self.target = matrices, penalty, origin, target

    def gradient(self, V: Array, columns: Array) -> Array:
        off = V - self.target[columns]
        moved = self._about(off)
        H = np.empty_like(moved)
        for matrix, own in self.matrices:
            j = np.isin(columns, own)
            if j.any():
                H[j] = (moved[j].reshape(-1, len(matrix)) @ matrix).reshape(-1, *V.shape[1:])
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


def within(
    matrices: Sequence[tuple[Array, Array]],
    penalty: Array,
    origin: Array | None,
    W: Array,
    tol: float,
    max_iter: int,
) -> Array:
    """Whether L-BFGS as scikit-learn runs it would come to `tol` within `max_iter` iterations.

    Parameters
    ----------
    matrices : sequence of tuple of ndarrays of shapes (K d, K d) and (m_i,)
        Hessians of the mean loss near where the columns ended, with intercepts as values at `origin`; and
        whose they are. Columns that have none are taken as done.
    penalty : ndarray of shape (m,)
        Of the columns.
    origin : ndarray of shape (d - 1,) or None
        See `matrices`; None where no intercept is free.
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
    done = np.ones(len(W), dtype=bool)
    # Of what is not finite nobody knows.
    matrices = [(matrix, own) for matrix, own in matrices if np.isfinite(matrix).all()]
    columns = np.sort(np.concatenate([np.empty(0, dtype=int), *(own for _, own in matrices)]))
    if not columns.size:
        return done
    target = W.copy()
    if origin is not None:
        target[:, :, -1] -= W[:, :, :-1] @ origin
    problem = _Quadratics(matrices, penalty, origin, target)
    solver = LBFGS(max_passes=max_iter + 1, memory=MEMORY)
    tols = np.full(columns.size, tol)
    done[columns] = solver.solve(problem, np.zeros((columns.size, *W.shape[1:])), columns, tols).converged
    return done
