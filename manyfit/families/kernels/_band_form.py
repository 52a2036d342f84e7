"""A symmetric matrix as a band matrix between orthogonal factors, by products of matrices alone.

``K = Q B Q'`` has the operations of a tridiagonal form. That one multiplies vectors half of the time, at the
rate of memory; this one multiplies panels of `WIDTH` columns. A solution with ``B + alpha I`` costs little
for each alpha.

References
----------
Bischof, Lang, Sun: A framework for symmetric band reduction (2000). Joffrain et al.: Accumulating Householder
transformations, revisited (2006).
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from manyfit.folds import Unsupported

Array = NDArray[Any]

# Columns beside the diagonal: fewer make the products thin, more make solutions with the band slow.
WIDTH = 64
# Rows of the matrix that are updated at a time, while they are in the cache.
ROWS = 256
# Iterations of the power method. The norm is then missed by less than `NORM_FACTOR`, whatever the spectrum,
# but for a start that has hardly a part along the largest eigenvector.
POWERS, NORM_FACTOR = 8, 2.0


class BandForm:
    """``K = Q B Q'`` with a band matrix B.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        A symmetric matrix of finite numbers, which is overwritten.
    """

    def __init__(self, K: Array) -> None:
        n = len(K)
        self._width = width = min(WIDTH, n - 1)
        self._band = np.zeros((width + 1, n), order="F")  # diagonals, the main one first
        self._panels: list[tuple[int, Array, Array]] = []
        for j in range(0, n - width - 1, width):
            start, panel = j + width, K[j + width :, j : j + width]
            R, V, T = _reflectors(panel)
            self._keep(j, np.concatenate([K[j:start, j:start], R]))
            panel[...] = 0.0
            _transform(K[start:, start:], V, T)
            panel = panel[:, : V.shape[1]]  # the memory of K keeps V
            panel[...] = V
            self._panels.append((start, panel, T))
        done = len(self._panels) * width
        self._keep(done, K[done:, done:])

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
    inverse = np.triu(V.T @ V, 1)
    np.fill_diagonal(inverse, 1.0 / np.where(idle, 1.0, tau))
    return np.triu(factored[:k]), V, lapack.dtrtri(inverse)[0]


def _transform(A: Array, V: Array, T: Array) -> None:
    """``Q' A Q`` with ``Q = I - V T V'`` in place of the lower triangle of a symmetric matrix A."""
    m = len(A)
    blocks = [(s, min(s + ROWS, m)) for s in range(0, m, ROWS)]
    product = np.zeros(V.shape)
    for s, e in blocks:
        lower = np.tril(A[s:e, s:e])
        product[s:e] += (lower + np.tril(lower, -1).T) @ V[s:e]
        if s:
            product[s:e] += A[s:e, :s] @ V[:s]
            product[:s] += A[s:e, :s].T @ V[s:e]
    X = product @ T
    W = X - 0.5 * V @ (T.T @ (V.T @ X))
    left, right = np.hstack([W, V]), np.vstack([V.T, W.T])
    for s, e in blocks:
        A[s:e, :e] -= left[s:e] @ right[:, :e]
