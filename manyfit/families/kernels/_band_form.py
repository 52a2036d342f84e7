"""A symmetric matrix as a band matrix between orthogonal factors, by products of matrices alone.

``K = Q B Q'`` has the operations of a tridiagonal form. That one multiplies vectors half of the time, at the
rate of memory; this one multiplies panels of `WIDTH` columns. A solution with ``B + alpha I`` costs little
for each alpha. All products are of SciPy's BLAS: NumPy has another copy, whose threads would wait for these.

References: Bischof, Lang, Sun: A framework for symmetric band reduction (2000). Joffrain et al.: Accumulating
Householder transformations, revisited (2006).
"""

from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from manyfit.families.protocol import Array
from manyfit.folds import Unsupported, single_blas_thread

# Columns beside the diagonal: fewer make the products thin, more make solutions with the band slow.
WIDTH = 64
# Panels after which the matrix moves together: BLAS takes it whole, and a copy after each panel costs more.
SKIPPED = 2
# Threads of BLAS wait for each other longer than the products of a smaller matrix take.
MOST_ROWS_OF_ONE_THREAD = 1024
# Iterations of the power method. The norm is then missed by less than `NORM_FACTOR`, whatever the spectrum,
# but for a start that has hardly a part along the largest eigenvector.
POWERS, NORM_FACTOR = 8, 2.0


class BandForm:
    """``K = Q B Q'`` with a band matrix B.

    The upper triangle of K, (n, n), is read, which holds finite numbers. K is overwritten.
    """

    def __init__(self, K: Array) -> None:
        with single_blas_thread() if len(K) <= MOST_ROWS_OF_ONE_THREAD else nullcontext():
            self._reduce(K)

    def _reduce(self, K: Array) -> None:
        n, done = len(K), 0
        self._width = width = min(WIDTH, n - 1)
        self._band = np.zeros((width + 1, n), order="F")  # diagonals, the main one first
        self._panels: list[tuple[int, Array, Array]] = []
        # Its lower triangle, in Fortran order, holds what is left, behind `done` rows and columns.
        A = np.asfortranarray(K.T)
        for j in range(0, n - width - 1, width):
            if done >= SKIPPED * width:
                A, done = _without_first(A, done), 0
            start = done + width
            R, V, T = _reflectors(A[start:, done:start])
            self._keep(j, np.concatenate([A[done:start, done:start], R]))
            A = _transformed(A, start, V, T)
            self._panels.append((j + width, V, T))
            done = start
        self._keep(len(self._panels) * width, A[done:, done:])

    def _keep(self, j: int, columns: Array) -> None:
        """Note some columns of B, from the diagonal on."""
        for i in range(min(len(columns), self._width + 1)):
            own = np.diagonal(columns, -i)
            self._band[i, j : j + len(own)] = own

    def turned(self, columns: Array) -> Array:
        """``Q' columns``, for (n, d)."""
        out = columns.copy()
        for start, V, T in self._panels:
            out[start:] -= V @ (T.T @ (V.T @ out[start:]))
        return out

    def turned_back(self, columns: Array) -> Array:
        """``Q columns``, for (n, d)."""
        out = columns.copy()
        for start, V, T in reversed(self._panels):
            out[start:] -= V @ (T @ (V.T @ out[start:]))
        return out

    def solve(self, alpha: float, right: Array) -> tuple[Array, float]:
        """``(B + alpha I)^-1 right`` for (n, d), and a bound of the condition; infinite if not positive."""
        band = self._band.copy(order="F")
        band[0] += alpha
        factor, info = lapack.dpbtrf(band, lower=1, overwrite_ab=1)
        if info:
            return right, np.inf
        inverse = _norm(lambda x: lapack.dpbtrs(factor, x[:, np.newaxis], lower=1)[0][:, 0], len(right))
        return lapack.dpbtrs(factor, right, lower=1)[0], (self._norm + alpha) * inverse

    @cached_property
    def _norm(self) -> float:
        band, width = self._band, self._width
        return _norm(lambda x: blas.dsbmv(width, 1.0, band, x, lower=1), band.shape[1])


def _norm(multiply: Any, n: int) -> float:
    """A bound of the largest eigenvalue, in size, of a symmetric matrix."""
    x, size = np.random.default_rng(0).normal(size=n), 1.0
    for _ in range(POWERS):
        x = multiply(x / np.linalg.norm(x))
        size = float(np.linalg.norm(x))
        if not (np.isfinite(size) and size > 0.0):
            return size
    return NORM_FACTOR * size


def _reflectors(panel: Array) -> tuple[Array, Array, Array]:
    """R of a panel, (m, w), and V and T with ``Q = I - V T V'``."""
    factored, tau, _, info = lapack.dgeqrf(np.asfortranarray(panel), overwrite_a=1)
    if info:
        raise Unsupported("the kernel matrix has no band form")
    k = len(tau)
    V, idle = np.tril(factored[:, :k], -1), tau == 0.0
    np.fill_diagonal(V, 1.0)
    V[:, idle] = 0.0
    inverse = np.triu(blas.dgemm(1.0, V, V, trans_a=1), 1)
    np.fill_diagonal(inverse, 1.0 / np.where(idle, 1.0, tau))
    return np.triu(factored[:k]), V, lapack.dtrtri(inverse)[0]


def _transformed(A: Array, start: int, V: Array, T: Array) -> Array:
    """A with ``Q' A Q`` in its lower triangle from row `start` on, in place; ``Q = I - V T V'`` for these."""
    padded = np.zeros((len(A), V.shape[1]), order="F")
    padded[start:] = V
    X = blas.dgemm(1.0, blas.dsymm(1.0, A, padded, lower=1)[start:], T)
    inner = blas.dgemm(1.0, T, blas.dgemm(1.0, V, X, trans_a=1), trans_a=1)
    W = np.zeros_like(padded)
    W[start:] = blas.dgemm(-0.5, V, inner, 1.0, X)
    return np.asarray(blas.dsyr2k(-1.0, W, padded, beta=1.0, c=A, lower=1, overwrite_c=1))


def _without_first(A: Array, n: int) -> Array:
    """A without its first `n` rows and columns, in Fortran order in the same memory."""
    left = len(A) - n
    memory = A.reshape(-1, order="F")[: left * left].reshape(left, left, order="F")
    for j in range(left):
        memory[:, j] = A[n:, n + j]
    return memory
