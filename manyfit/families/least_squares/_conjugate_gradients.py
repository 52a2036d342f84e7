"""Conjugate gradients on moments, which stop where scikit-learn's stop."""

from __future__ import annotations

import numpy as np

from manyfit.families.protocol import Array

# Within this relative distance of the tolerance, rounding decides whether one more iteration is made.
NEAR_STOP = 1e-6
# Iterations amplify rounding. An iterate is not shared if rounding of S and b by so many machine epsilons
# moves its predictions by more than this part of their norm, in one of some trials. The norm of the
# coefficients does not show it: a small one may be that of a large column.
ROUNDING_EPS, MAX_MOVED, TRIALS = 32.0, 1e-10, 4
# Values of matrices that are worked on together: 4 MiB of float64.
VALUES_TOGETHER = 2**19


def solve_by_cg(
    scatter: Array, rhs: Array, alphas: Array, tol: float, max_iter: int | None, sizes: Array | None = None
) -> tuple[Array, Array, Array]:
    """Iterates of conjugate gradients for ``(S + alpha I) x = b``, for all alphas (m,) and columns b at once.

    `scatter` is S, (p, p), or its diagonal if it has no other entries; `rhs` holds the columns b, (p, q). The
    result is the iterates at which scikit-learn stops, (p, m, q), and for which alphas rounding decides which
    iterate that is, (m,); and which of these have lost more than `tol` to rounding, (m,): others are as
    good as scikit-learn's. scikit-learn multiplies by X and X' where this multiplies by ``S = X'X``: iterates
    are equal to rounding. The rounding of S grows with `sizes`, the norms of the columns about zero, (p,),
    where scikit-learn has them there; by default they are centred.

    Reference: scipy.sparse.linalg.cg, as called by ``sklearn.linear_model.Ridge(solver="sparse_cg")`` (1.9):
    an iteration ends if the residual is less than `tol` times the norm of b, or after `max_iter`, by default
    ten for each feature.
    """
    rng, unit = np.random.default_rng(0), ROUNDING_EPS * np.finfo(np.float64).eps
    if sizes is None:
        sizes = np.sqrt(scatter if scatter.ndim == 1 else np.diagonal(scatter))
    products = sizes**2 if scatter.ndim == 1 else np.outer(sizes, sizes)
    matrices, sides = [scatter], [rhs]
    for _ in range(TRIALS):
        noise = rng.uniform(-1.0, 1.0, scatter.shape)
        noise = noise + noise.T if scatter.ndim == 2 else noise
        matrices.append(scatter + unit * products * noise)
        sides.append(rhs * (1.0 + unit * rng.uniform(-1.0, 1.0, rhs.shape)))
    together = max(1, VALUES_TOGETHER // scatter.size)
    found = [
        _iterates(
            np.stack(matrices[t : t + together]), np.stack(sides[t : t + together]), alphas, tol, max_iter
        )
        for t in range(0, len(matrices), together)
    ]
    solutions, doubtful = (np.concatenate(parts) for parts in zip(*found, strict=True))
    solution, near = solutions[0], doubtful[0]
    size, lost = _squared_predictions(scatter, solution), np.zeros_like(near)
    for other in solutions[1:]:
        moved = _squared_predictions(scatter, solution - other)
        near |= (moved > MAX_MOVED**2 * size).any(axis=1)
        lost |= (moved > tol**2 * size).any(axis=1)
    return solution, near, lost


def _squared_predictions(scatter: Array, coef: Array) -> Array:
    """The sums of squares of centred predictions, (m, q), of coefficients (p, m, q)."""
    flat = coef.reshape(len(coef), -1)
    product = scatter[:, None] * flat if scatter.ndim == 1 else scatter @ flat
    return np.asarray(np.einsum("ij,ij->j", flat, product).reshape(coef.shape[1:]))


def _iterates(
    scatters: Array, sides: Array, alphas: Array, tol: float, max_iter: int | None
) -> tuple[Array, Array]:
    """The iterates at which scikit-learn stops, (t, p, m, q), for t matrices and right-hand sides.

    Also whether the residual was near `tol` on the way, (t, m).
    """
    t, p, q = sides.shape
    shift, is_diagonal = np.repeat(alphas, q), scatters.ndim == 2
    residual = np.tile(sides, (1, 1, len(alphas)))
    solution, x = np.zeros_like(residual), np.zeros_like(residual)
    doubtful = np.zeros((t, len(shift)), dtype=bool)
    left = np.arange(len(shift))  # columns with an iterate that goes on
    limit = tol * np.sqrt(np.einsum("tpc,tpc->tc", residual, residual))
    running = limit > 0  # without a right-hand side the solution is zero
    direction, old = residual.copy(), limit
    for k in range(10 * p if max_iter is None else max_iter):
        rho = np.einsum("tpc,tpc->tc", residual, residual)
        norm = np.sqrt(rho)
        doubtful[:, left] |= running & (np.abs(norm - limit) <= NEAR_STOP * limit)
        running &= ~(norm < limit)
        go_on = running.any(axis=0)
        if not go_on.all():
            solution[:, :, left[~go_on]] = x[:, :, ~go_on]
            x, residual, direction = (one[:, :, go_on] for one in (x, residual, direction))
            limit, running, old, rho = (one[:, go_on] for one in (limit, running, old, rho))
            left, shift = left[go_on], shift[go_on]
        if not left.size:
            break
        if k:
            direction *= np.divide(rho, old, out=np.zeros_like(rho), where=running)[:, np.newaxis]
            direction += residual
        product = scatters[:, :, np.newaxis] * direction if is_diagonal else scatters @ direction
        product += shift * direction
        curvature = np.einsum("tpc,tpc->tc", direction, product)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=running)[:, np.newaxis]
        x += step * direction
        residual -= step * product
        old = rho
    solution[:, :, left] = x
    shape = len(alphas), q
    return solution.reshape(t, p, *shape), np.asarray(doubtful.reshape(t, *shape).any(axis=2))
