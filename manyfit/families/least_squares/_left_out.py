"""Residuals of rows left out of a ridge fit, from the fit of all rows.

With ``A = X'X + alpha I`` of all rows, and ``H = X_b A^-1 X_b'`` the block of the hat matrix of some rows,
their residuals under the fit of all other rows are ``(I - H)^-1 e_b``, where ``e_b`` are those under the fit
of all rows. Conjugate gradients solve this for many sets of rows, settings and targets at once: one product
with ``X_b`` and its transpose for each iteration. A few iterations are enough, since H is small where a set
is a small part of the rows; one is enough for a single row. With weights W of the rows they solve
``(I - W^1/2 H W^1/2) u = W^1/2 e_b``, and the residuals are ``e_b + H W^1/2 u``.

Reference: Cook, Weisberg: Residuals and influence in regression (1982), section 2.2.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from manyfit.families.protocol import Array, LeftOut
from manyfit.folds import FoldedMatrix, Spectrum
from manyfit.metrics.scoring import lost_predictions

# A set of rows may hold all but this part of what is known of a direction. Solutions lose as much accuracy,
# and the equations without the rows as much of their condition.
MIN_LEFT = 0.05
# The residual at which conjugate gradients stop, relative to the right-hand side.
TOLERANCE = 1e-11
MOST_ITERATIONS = 40
# Sums of squares are off by at most ten times the square of the residual of conjugate gradients, divided by
# ``(1 - h)^2`` with the largest eigenvalue h of H; so if nothing else is asked for, it may be larger.
SQUARES_TOLERANCE, SQUARES_FACTOR = 1e-13, 10.0
# It may be larger too where H is small; h is at most about this times the largest seen.
LEVERAGE_FACTOR, MOST_EASE = 2.0, 1e3
# A right-hand side of standard normal numbers is solved beside the others, to this residual. A direction of
# which little is left is overlooked only if its part along that direction is smaller, so with a probability
# of less than this; and only if the other right-hand sides have no part along it either.
PROBE_TOLERANCE = 1e-6
# Its product with the rows estimates their sums of squares along the eigenvectors, up to about this factor.
ESTIMATE_FACTOR = 4.0
# Bytes of rows, and of as many right-hand sides, that are worked on together: a part of the last cache.
BLOCK_BYTES = 2**23
# Bytes of rows that are multiplied by one right-hand side after the other: a part of the second-level cache.
PIECE_BYTES = 2**19
# Rows whose origin is further from zero, in standard deviations, are centred in two steps.
MOST_SHIFT = 10.0
# With fewer right-hand sides, products with one after the other are faster than a thin matrix product.
MIN_COLUMNS = 4
# Iterations that most sets take.
USUAL_ITERATIONS = 6
# Operations at the rate of memory take so many times as long as those of a product of large matrices.
SLOWNESS = 4.0


class WholeFit(NamedTuple):
    """The fit of all rows: spectrum of the equations, their right-hand side, and the centre of the rows.

    Rows about the centre are ``(x - origin) + offset``; `intercept` is added to predictions, (q,).
    `inverse_rows` is the inverse of the number of rows, or of their weight, if there is an intercept, else 0.
    """

    spectrum: Spectrum
    rhs: Array
    origin: Array
    offset: Array
    intercept: Array
    inverse_rows: float
    y_size: Array


def operations(n: int, p: int, m: int, k: int, columns: int) -> float:
    """Operations for k sets of m of n rows, with so many right-hand sides."""
    iterations = min(m, USUAL_ITERATIONS)
    return iterations * columns * (SLOWNESS * 4.0 * n * p + 4.0 * k * p**2)


def leave_out(data: FoldedMatrix, whole: WholeFit, alphas: Array, squares: bool = False) -> Iterator[LeftOut]:
    """The residuals of the test rows of all splits, for some alphas; `alphas` may repeat.

    `squares`: only the sums of squares of residuals are read.
    """
    distinct, place = np.unique(alphas, return_inverse=True)
    p, columns = data.X.shape[1], len(distinct) * whole.rhs.shape[1] + 1

    def most(m: int) -> int:
        return int(BLOCK_BYTES // (8 * (m * p + (m + p) * columns)))

    equations = _Equations(whole, distinct, rotates=_rotates(data, columns), squares=squares)
    for splits, X, Y, weights in data.test_blocks(most):
        residuals, merged, lost = equations.solve(X, Y, weights)
        yield LeftOut(splits, Y, residuals[:, :, place], merged[:, place], lost[:, place])


def _rotates(data: FoldedMatrix, columns: int) -> bool:
    """Whether turning all rows to the eigenvectors is cheaper than turning each iterate."""
    return data.X.shape[0] <= USUAL_ITERATIONS * 2 * columns * data.n_splits


class _Equations:
    """The equations of all rows, for some distinct alphas, the smallest first.

    Right-hand sides lie along the second axis: settings x targets, then the probe with the smallest alpha.
    """

    def __init__(self, whole: WholeFit, alphas: Array, *, rotates: bool, squares: bool = False) -> None:
        self._whole, self._alphas, self._squares = whole, alphas, squares
        self._q = whole.rhs.shape[1]
        spectrum = whole.spectrum
        damped = spectrum.values[:, None] + alphas  # (p, s)
        along = spectrum.onto_axes(whole.rhs)[:, None, :] / damped[:, :, None]
        self._norms = np.sqrt((along**2).sum(axis=0))  # (s, q)
        flat = along.reshape(len(damped), -1)
        vectors = spectrum.vectors
        self._rotation = vectors if rotates else None
        self._coef = np.ascontiguousarray((flat if rotates else spectrum.from_axes(flat)).T)
        self._damped = np.concatenate([np.repeat(damped, self._q, axis=1), damped[:, :1]], axis=1).T
        self._noise = np.finfo(np.float64).eps * spectrum.values[0] / damped
        self._inverse = self._vectors = None
        if not rotates and vectors is not None:
            self._vectors = np.ascontiguousarray(vectors)
            if len(alphas) == 1:
                self._inverse = (vectors / damped[:, 0]) @ vectors.T
        self._random, self._buffer = np.random.default_rng(0), np.empty(0)
        # Rows are centred at once if that loses no digits: the origin is not far from zero.
        spread = np.sqrt(spectrum.values[-1] * whole.inverse_rows)
        self._near = bool((np.abs(whole.origin) <= MOST_SHIFT * spread).all())

    def solve(self, X: Array, Y: Array, weights: Array | None = None) -> tuple[Array, Array, Array]:
        """Residuals, and which are not known or lost, see `LeftOut`.

        For rows (k, m, p) and (k, m, q), with weights (k, m) or none.
        """
        (k, m, q), s = Y.shape, len(self._alphas)
        Z = self._centred(X)
        start = np.empty((k, s * q + 1, m))
        np.subtract(
            np.tile((Y - self._whole.intercept).transpose(0, 2, 1), (1, s, 1)),
            _onto_rows(self._coef[None], Z),
            out=start[:, :-1],
        )
        start[:, -1] = self._random.normal(size=(k, m))
        roots = None if weights is None else np.sqrt(weights)[:, None]
        part, left, along = self._iterate(Z, start, roots)
        if roots is not None:
            along = _across_rows(start[:, -1:], Z)[:, 0]
        residuals = (start + part)[:, :-1].reshape(k, s, q, m).transpose(0, 3, 1, 2)
        left = np.minimum(left[:, :-1].reshape(k, s, q).min(axis=2), left[:, -1:])
        merged = ~(left > MIN_LEFT)
        errors = self._errors(Z, along) / np.maximum(left, MIN_LEFT)[:, :, None]
        sizes = np.sqrt((residuals**2).mean(axis=1))
        return residuals, merged, lost_predictions(errors, sizes, self._whole.y_size) & ~merged

    def _centred(self, X: Array) -> Array:
        """The rows about the centre, along the eigenvectors if these are few; until the next call."""
        whole = self._whole
        if self._buffer.size < X.size:
            self._buffer = np.empty(X.size)
        Z: Array = self._buffer[: X.size].reshape(X.shape)
        if self._near:
            np.subtract(X, whole.origin - whole.offset, out=Z)
        else:
            np.subtract(X, whole.origin, out=Z)
            Z += whole.offset
        return Z if self._rotation is None else (Z.reshape(-1, Z.shape[2]) @ self._rotation).reshape(Z.shape)

    def _errors(self, Z: Array, along: Array) -> Array:
        """The root mean square of what rounding does to predictions of the rows, (k, s, q).

        `along`, (k, p), is the product of rows and probe, which is random: squares are on average sums of
        squares of the rows.
        """
        m = Z.shape[1]
        if self._vectors is None:
            squares = np.einsum("kmp,kmp->kp", Z, Z) @ self._noise**2 / m
        else:
            found = (along @ self._vectors) ** 2 @ self._noise**2 / m
            squares = ESTIMATE_FACTOR * np.maximum(found, found.mean(axis=0))
        return np.asarray(np.sqrt(squares)[:, :, None] * self._norms)

    def _iterate(self, Z: Array, start: Array, roots: Array | None) -> tuple[Array, Array, Array]:
        """Solutions of ``(I - H) v = start`` as ``H v``, (k, c, m); `roots` of the weights, (k, 1, m).

        Also the least of ``v'(I - H)v / v'v`` that was seen, (k, c), and ``start' Z`` of the last, (k, p).
        """
        part = np.zeros_like(start)
        residual = start.copy() if roots is None else start * roots
        direction, squares = residual.copy(), _squares(residual, residual)
        start_squares = squares.copy()
        left, along = np.ones_like(squares), np.empty(0)
        runs, merged = squares > 0.0, np.zeros(squares.shape, dtype=bool)
        for iteration in range(MOST_ITERATIONS):
            active = np.flatnonzero(runs.any(axis=0))
            if not active.size:
                return part, left, along
            c = slice(active[0], active[-1] + 1)
            own, going, of_own = direction[:, c], runs[:, c], squares[:, c]
            image, last = self._hat(Z, own if roots is None else own * roots, c)
            along = last if iteration == 0 else along
            image_of_all = image
            if roots is not None:
                image = image * roots
            size, inner = _squares(own, own), _squares(own, image)
            share = np.where(going, 1.0 - inner / np.where(going, size, 1.0), 1.0)
            left[:, c] = np.minimum(left[:, c], share)
            merged[:, c] |= share <= MIN_LEFT
            going &= ~merged[:, c]
            step = np.where(going, of_own / np.where(going, size - inner, 1.0), 0.0)[:, :, None]
            part[:, c] += step * image_of_all
            image -= own
            image *= step
            residual[:, c] += image
            now = _squares(residual[:, c], residual[:, c])
            # Those that rest keep their direction: they go on if another shows that more is left to do.
            own *= np.where(going, now / np.where(going, of_own, 1.0), 1.0)[:, :, None]
            own += residual[:, c] if going.all() else residual[:, c] * going[:, :, None]
            of_own[...] = np.where(going, now, of_own)
            most = self._most_squares(np.minimum(left, left[:, -1:]), start_squares)
            runs = (squares > most) & ~merged
        left[runs] = 0.0  # not solved
        return part, left, along

    def _most_squares(self, left: Array, start_squares: Array) -> Array:
        """The squares of the residuals at which to stop, (k, c), for what is `left` as seen so far."""
        h = LEVERAGE_FACTOR * (1.0 - left)
        # A solution with the residual r is off by less than H r / (1 - h).
        goals = TOLERANCE * np.clip((1.0 - h) / np.maximum(h, 1e-9), 1.0, MOST_EASE)
        if self._squares:
            goals = np.maximum(goals, np.sqrt(SQUARES_TOLERANCE / SQUARES_FACTOR) * (1.0 - h))
        most = np.asarray(goals**2 * start_squares)
        most[:, -1] = PROBE_TOLERANCE**2
        return most

    def _hat(self, Z: Array, direction: Array, columns: slice) -> tuple[Array, Array]:
        """``H direction`` for some right-hand sides; and ``direction' Z`` of the last of them."""
        U = _across_rows(direction, Z)
        along = U[:, -1].copy()
        image = _onto_rows(self._divided(U, columns), Z)
        if self._whole.inverse_rows:
            image += self._whole.inverse_rows * direction.sum(axis=2, keepdims=True)
        return image, along

    def _divided(self, U: Array, columns: slice) -> Array:
        """``A^-1 U`` with the alpha of each right-hand side, (k, c, p)."""
        if self._inverse is not None:
            return np.asarray((U.reshape(-1, U.shape[2]) @ self._inverse).reshape(U.shape))
        if self._vectors is None:
            U /= self._damped[columns]
            return U
        turned = (U.reshape(-1, U.shape[2]) @ self._vectors).reshape(U.shape) / self._damped[columns]
        return np.asarray((turned.reshape(-1, U.shape[2]) @ self._vectors.T).reshape(U.shape))


def _squares(a: Array, b: Array) -> Array:
    """Inner products of the right-hand sides, (k, c)."""
    return np.einsum("kcm,kcm->kc", a, b)


def _onto_rows(U: Array, Z: Array) -> Array:
    """``U Z'`` for (k, c, p), or (1, c, p), and (k, m, p)."""
    (k, m, _), c = Z.shape, U.shape[1]
    if not _in_pieces(c, Z):
        return np.asarray(U @ Z.transpose(0, 2, 1))
    out, one = np.empty((k, c, m)), len(U) == 1
    for sets, rows in _pieces(Z):
        piece = Z[sets, rows].transpose(0, 2, 1)
        for j in range(c):
            np.matmul(U[:, j : j + 1] if one else U[sets, j : j + 1], piece, out=out[sets, j : j + 1, rows])
    return out


def _across_rows(D: Array, Z: Array) -> Array:
    """``D Z`` for (k, c, m) and (k, m, p)."""
    (k, _, p), c = Z.shape, D.shape[1]
    if not _in_pieces(c, Z):
        return np.asarray(D @ Z)
    out = np.empty((k, c, p))
    for sets, rows in _pieces(Z):
        for j in range(c):
            if rows.start == 0:
                np.matmul(D[sets, j : j + 1, rows], Z[sets, rows], out=out[sets, j : j + 1])
            else:
                out[sets, j : j + 1] += D[sets, j : j + 1, rows] @ Z[sets, rows]
    return out


def _in_pieces(c: int, Z: Array) -> bool:
    return c < MIN_COLUMNS and min(Z.shape[1:]) >= MIN_COLUMNS


def _pieces(Z: Array) -> Iterator[tuple[slice, slice]]:
    """Sets and rows of (k, m, p), some whole sets or a part of one at a time."""
    k, m, p = Z.shape
    rows = max(1, PIECE_BYTES // (8 * p))
    if m <= rows:
        for start in range(0, k, rows // m):
            yield slice(start, start + rows // m), slice(0, m)
        return
    for one in range(k):
        for start in range(0, m, rows):
            yield slice(one, one + 1), slice(start, start + rows)
