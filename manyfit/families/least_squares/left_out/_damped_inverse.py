"""The inverse of a scatter matrix plus alpha, for many alphas and many right-hand sides."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotri

from manyfit.families.protocol import Array
from manyfit.folds import Spectrum

# Alphas of which each has an inverse of its own, which takes the memory of the scatter.
MOST_INVERSES = 4
# Products that find the largest eigenvalue, to some percent.
POWERS = 10


class DampedInverse(ABC):
    """``A^-1`` with ``A = S + alpha I`` for some alphas, the smallest first.

    Attributes
    ----------
    coef : ndarray of shape (s, q, p)
        The solutions for each alpha.
    rotation : ndarray of shape (p, p) or None
        Eigenvectors, along which all vectors lie that are given and returned.
    least, largest : float
        Bounds on the eigenvalues of A with the smallest alpha.
    scale : float
        About the largest eigenvalue of S.
    """

    coef: Array
    rotation: Array | None = None
    least: float
    largest: float
    scale: float

    @abstractmethod
    def times(self, U: Array, place: Array) -> Array:
        """``A^-1 U`` for (k, c, p), where column j has the alpha at ``place[j]``; U is overwritten."""

    @abstractmethod
    def squares(self, Z: Array, place: Array) -> Array:
        """Sums of the squares of ``A^-1 z`` over k sets of rows (k, m, p), with the alphas at `place`."""


class Floors(NamedTuple):
    """What the least eigenvalue of A has to be larger than: a part of the largest, and a number."""

    ratio: float
    number: float

    def hold(self, inverse: DampedInverse) -> bool:
        """Whether the least eigenvalue is larger, for the smallest alpha and so for all."""
        return inverse.least > max(self.ratio * inverse.largest, self.number)


class Eigenvectors(DampedInverse):
    """By eigenvectors of S; `rotates`: vectors lie along them."""

    def __init__(self, spectrum: Spectrum, rhs: Array, alphas: Array, *, rotates: bool) -> None:
        self._vectors = vectors = np.eye(len(rhs)) if spectrum.vectors is None else spectrum.vectors
        self._damped = (spectrum.values[:, None] + alphas).T  # (s, p)
        self.rotation = vectors if rotates else None
        with np.errstate(divide="ignore", invalid="ignore"):  # `Floors` refuse what is singular
            along = (vectors.T @ rhs).T / self._damped[:, None]
        self.coef = along if rotates else along @ vectors.T
        self.least, self.largest, self.scale = (
            self._damped[0, -1], self._damped[0, 0], spectrum.values[0],
        )  # fmt: skip

    def times(self, U: Array, place: Array) -> Array:
        damped = self._damped[place]
        if self.rotation is not None:
            U /= damped
            return U
        turned = (U.reshape(-1, U.shape[2]) @ self._vectors).reshape(U.shape) / damped
        return np.asarray((turned.reshape(-1, U.shape[2]) @ self._vectors.T).reshape(U.shape))

    def squares(self, Z: Array, place: Array) -> Array:
        if self.rotation is None:
            Z = (Z.reshape(-1, Z.shape[2]) @ self._vectors).reshape(Z.shape)
        return np.asarray(np.einsum("kmp,kmp->kp", Z, Z) @ (self._damped[place] ** -2.0).T)


class Inverses(DampedInverse):
    """By a Cholesky factor and an inverse for each alpha, which takes a fifth of an eigendecomposition."""

    def __init__(self, S: Array, rhs: Array, alphas: Array) -> None:
        p, bounds = len(S), np.empty(2)
        self._inverses, self.coef = np.empty((len(alphas), p, p)), np.empty((len(alphas), rhs.shape[1], p))
        for a, alpha in enumerate(alphas):
            A = S.copy()
            A[range(p), range(p)] += alpha
            factor, _ = cho_factor(A, lower=True, check_finite=False)
            self.coef[a] = cho_solve((factor, True), rhs, check_finite=False).T
            half, _ = dpotri(factor, lower=True)
            self._inverses[a] = np.tril(half) + np.tril(half, -1).T
            if a == 0:
                bounds[:] = 1.0 / np.linalg.norm(self._inverses[a]), np.linalg.norm(A)
        self.least, self.largest = bounds
        self.scale = _largest_eigenvalue(S)

    def times(self, U: Array, place: Array) -> Array:
        p = U.shape[2]
        if len(self._inverses) == 1:
            return np.asarray((U.reshape(-1, p) @ self._inverses[0]).reshape(U.shape))
        for a in np.unique(place):
            own = np.flatnonzero(place == a)
            U[:, own] = (U[:, own].reshape(-1, p) @ self._inverses[a]).reshape(len(U), -1, p)
        return U

    def squares(self, Z: Array, place: Array) -> Array:
        flat = Z.reshape(-1, Z.shape[2])
        found = [((flat @ self._inverses[a]) ** 2).reshape(len(Z), -1).sum(axis=1) for a in place]
        return np.stack(found, axis=1)


def damped_inverse(
    S: Array, spectrum: Callable[[], Spectrum], rhs: Array, alphas: Array, floors: Floors, *, rotates: bool
) -> DampedInverse | None:
    """The inverse for the scatter S, (p, p), and the solutions for right-hand sides `rhs`, (p, q).

    None if A may be worse conditioned than the floors say. `spectrum` decomposes S. That is done where the
    bounds of a Cholesky factor do not suffice.
    """
    if not rotates and len(alphas) <= MOST_INVERSES:
        try:
            inverses = Inverses(S, rhs, alphas)
        except LinAlgError:
            pass
        else:
            if floors.hold(inverses):
                return inverses
    exact = Eigenvectors(spectrum(), rhs, alphas, rotates=rotates)
    return exact if floors.hold(exact) else None


def _largest_eigenvalue(S: Array) -> float:
    """About the largest eigenvalue of a scatter matrix, from some products with a vector."""
    v = np.sqrt(np.diagonal(S))
    size = 0.0
    for _ in range(POWERS):
        size = float(np.linalg.norm(v))
        if not size:
            return 0.0
        v = S @ (v / size)
    return float(np.linalg.norm(v))
