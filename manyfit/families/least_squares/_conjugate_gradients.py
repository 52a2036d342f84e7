"""Conjugate gradients on moments, which stop where scikit-learn's stop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Within this relative distance of the tolerance, rounding decides whether one more iteration is made.
NEAR_STOP = 1e-6
# Iterations amplify rounding. An iterate is not shared if rounding of S and b by so many machine epsilons
# moves its predictions by more than this part of their norm, in one of some trials. The norm of the
# coefficients does not show it: a small one may be that of a large column.
ROUNDING_EPS, MAX_MOVED, TRIALS = 32.0, 1e-10, 4


def solve_by_cg(
    scatter: Array, rhs: Array, alphas: Array, tol: float, max_iter: int | None, sizes: Array | None = None
) -> tuple[Array, Array]:
    """Iterates of conjugate gradients for ``(S + alpha I) x = b``, for all alphas and columns b at once.

    scikit-learn multiplies by X and X' where this multiplies by ``S = X'X``: iterates are equal to rounding.

    Parameters
    ----------
    scatter : ndarray of shape (p, p) or (p,)
        S, or its diagonal if it has no other entries.
    rhs : ndarray of shape (p, q)
        Right-hand sides.
    alphas : ndarray of shape (m,)
        Penalties.
    tol : float
        An iteration ends if the residual is less than `tol` times the norm of b.
    max_iter : int or None
        Iterations at most; None for ten for each feature.
    sizes : ndarray of shape (p,), optional
        Norms of the columns about zero, where scikit-learn has them: the rounding of S grows with these. The
        default are those of centred columns.

    Returns
    -------
    solution : ndarray of shape (p, m, q)
        The iterates at which scikit-learn stops.
    doubtful : ndarray of bool of shape (m,)
        Where rounding decides which iterate that is.

    References
    ----------
    scipy.sparse.linalg.cg, as called by ``sklearn.linear_model.Ridge(solver="sparse_cg")`` (1.9).
    """
    solution, near = _iterates(scatter, rhs, alphas, tol, max_iter)
    rng, unit = np.random.default_rng(0), ROUNDING_EPS * np.finfo(np.float64).eps
    size = _squared_predictions(scatter, solution)
    if sizes is None:
        sizes = np.sqrt(scatter if scatter.ndim == 1 else np.diagonal(scatter))
    products = sizes**2 if scatter.ndim == 1 else np.outer(sizes, sizes)
    for _ in range(TRIALS):
        noise = rng.uniform(-1.0, 1.0, scatter.shape)
        noise = noise + noise.T if scatter.ndim == 2 else noise
        rhs_noise = rng.uniform(-1.0, 1.0, rhs.shape)
        other, _ = _iterates(
            scatter + unit * products * noise, rhs * (1.0 + unit * rhs_noise), alphas, tol, max_iter
        )
        moved = _squared_predictions(scatter, solution - other) > MAX_MOVED**2 * size
        near |= moved.any(axis=1)
    return solution, near


def _squared_predictions(scatter: Array, coef: Array) -> Array:
    """The sums of squares of centred predictions, (m, q), of coefficients (p, m, q)."""
    flat = coef.reshape(len(coef), -1)
    product = scatter[:, None] * flat if scatter.ndim == 1 else scatter @ flat
    return np.asarray(np.einsum("ij,ij->j", flat, product).reshape(coef.shape[1:]))


def _iterates(
    scatter: Array, rhs: Array, alphas: Array, tol: float, max_iter: int | None
) -> tuple[Array, Array]:
    """The iterates at which scikit-learn stops, and whether the residual was near `tol` on the way."""
    p, q = rhs.shape
    shift = np.repeat(alphas, q)
    residual = np.tile(rhs, (1, len(alphas)))
    limit = tol * np.linalg.norm(residual, axis=0)
    x, direction = np.zeros_like(residual), residual.copy()
    doubtful = np.zeros(residual.shape[1], dtype=bool)
    running = limit > 0  # without a right-hand side the solution is zero
    old = np.ones(residual.shape[1])
    for k in range(10 * p if max_iter is None else max_iter):
        norm = np.linalg.norm(residual, axis=0)
        doubtful |= running & (np.abs(norm - limit) <= NEAR_STOP * limit)
        running &= ~(norm < limit)
        if not running.any():
            break
        rho = norm[running] ** 2
        if k:
            direction[:, running] *= rho / old[running]
            direction[:, running] += residual[:, running]
        d = direction[:, running]
        product = (scatter[:, None] * d if scatter.ndim == 1 else scatter @ d) + shift[running] * d
        step = rho / np.einsum("ij,ij->j", d, product)
        x[:, running] += step * d
        residual[:, running] -= step * product
        old[running] = rho
    return x.reshape(p, len(alphas), q), np.asarray(doubtful.reshape(len(alphas), q).any(axis=1))
