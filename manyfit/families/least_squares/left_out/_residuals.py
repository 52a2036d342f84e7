"""Residuals of rows left out of a ridge fit, from the fit of all rows.

With ``A = X'X + alpha I`` of all rows, and ``H = X_b A^-1 X_b'`` the block of the hat matrix of some rows,
their residuals under the fit of all other rows are ``(I - H)^-1 e_b``, where ``e_b`` are those under the fit
of all rows. Conjugate gradients solve this for many sets of rows, settings and targets at once: one product
with ``X_b`` and its transpose for each iteration. A few iterations are enough, since H is small where a set
is a small part of the rows; one is enough for a single row. With weights W of the rows they solve
``(I - W^1/2 H W^1/2) u = W^1/2 e_b``, and the residuals are ``e_b + H W^1/2 u``.

Reference: Cook, Weisberg: Residuals and influence in regression (1982), section 2.2.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from manyfit.families.least_squares.left_out._damped_inverse import DampedInverse, Floors, damped_inverse
from manyfit.families.protocol import Array, LeftOut
from manyfit.folds import FoldedMatrix, Moments, Spectrum, Unsupported
from manyfit.metrics.scoring import lost_predictions

POOR = "the normal equations are (nearly) singular"
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
# Where a set may hold nearly all that is known of a direction, a right-hand side of standard normal numbers
# is solved beside the others, to this residual. Such a direction is overlooked only if its part along it is
# smaller, so with a probability of less than this; and only if the others have no part along it either.
PROBE_TOLERANCE = 1e-6
# Products of rows and residuals estimate the squares of what rounding does, up to about this factor.
ESTIMATE_FACTOR = 4.0
# Bytes of rows, and of as many right-hand sides, that are worked on together: a part of the last cache.
BLOCK_BYTES = 2**23
# Rows whose centre is further from zero, in standard deviations, are centred in two steps.
MOST_SHIFT = 10.0
# With fewer right-hand sides, products with one after the other are faster than a thin matrix product.
MIN_COLUMNS = 4
# Iterations that most sets take.
USUAL_ITERATIONS = 6
# What is tried of all that is known of a direction: a quarter of the rows seldom holds half.
HALF = 0.5
# Operations at the rate of memory take so many times as long as those of a product of large matrices.
SLOWNESS = 4.0


class WholeFit(NamedTuple):
    """The equations of all rows: their matrix, (p, p), and right-hand sides, and the centre of the rows.

    Rows about the centre are ``(x - origin) + offset``; `intercept` is added to predictions, (q,). `weight`
    is the number of rows, or their weight, if there is an intercept, else 0. `y_size`, (q,), are sizes of the
    targets. `parts` are moments of disjoint sets of rows, each of some whole test sets.
    """

    matrix: Array
    spectrum: Callable[[], Spectrum]
    rhs: Array
    origin: Array
    offset: Array
    intercept: Array
    weight: float
    y_size: Array
    parts: Sequence[Moments]


def operations(n: int, p: int, m: int, k: int, columns: int) -> float:
    """Operations for k sets of m of n rows, with so many right-hand sides."""
    iterations = min(m, USUAL_ITERATIONS)
    return iterations * columns * (SLOWNESS * 4.0 * n * p + 4.0 * k * p**2)


def leave_out(
    data: FoldedMatrix, whole: WholeFit, alphas: Array, floors: Floors, squares: bool = False
) -> Iterator[LeftOut]:
    """The residuals of the test rows of all splits, for some alphas; `alphas` may repeat.

    `floors`: of the least eigenvalue of the equations of any training set. Raises `Unsupported` if it may be
    smaller. `squares`: only the sums of squares of residuals are read.
    """
    distinct, place = np.unique(alphas, return_inverse=True)
    p, columns = data.X.shape[1], len(distinct) * whole.rhs.shape[1] + 1
    inverse = damped_inverse(
        whole.matrix, whole.spectrum, whole.rhs, distinct,
        Floors(floors.ratio / MIN_LEFT, floors.number / MIN_LEFT), rotates=_rotates(data, columns),
    )  # fmt: skip
    if inverse is None:
        raise Unsupported(POOR)
    equations = _Equations(whole, distinct, inverse, squares=squares)

    def most(m: int) -> int:
        return int(BLOCK_BYTES // (8 * (m * p + (m + p) * columns)))

    for splits, X, Y, weights in data.test_blocks(most):
        residuals, merged, lost = equations.solve(X, Y, weights)
        yield LeftOut(splits, Y, residuals[:, :, place], merged[:, place], lost[:, place])


def _rotates(data: FoldedMatrix, columns: int) -> bool:
    """Whether turning all rows to the eigenvectors is cheaper than turning each iterate."""
    return data.X.shape[0] <= USUAL_ITERATIONS * 2 * columns * data.n_splits


class _Equations:
    """The equations of all rows, for some distinct alphas, the smallest first.

    Right-hand sides lie along the second axis: settings x targets, then the probe with the smallest alpha, if
    there is one.
    """

    def __init__(
        self, whole: WholeFit, alphas: Array, inverse: DampedInverse, *, squares: bool = False
    ) -> None:
        self._whole, self._inverse, self._squares = whole, inverse, squares
        s, q, p = inverse.coef.shape
        damped = whole.matrix + alphas[0] * np.eye(p)
        self._most_held = bound_leverage(damped, whole.offset, whole.weight, whole.parts)
        self._probes = int(self._most_held > 1.0 - MIN_LEFT)
        self._place = np.concatenate([np.repeat(np.arange(s), q), np.zeros(self._probes, dtype=int)])
        self._norms = np.sqrt((inverse.coef**2).sum(axis=2))  # (s, q)
        self._draw, self._buffer = np.random.default_rng(0).standard_normal, np.empty(0)
        # Rows are centred at once if that loses no digits: the centre, which is rounded, is not far from 0.
        self._centre = whole.origin - whole.offset
        spread = np.sqrt(inverse.least / whole.weight) if whole.weight else 0.0
        self._near = bool((np.abs(self._centre) <= MOST_SHIFT * spread).all())

    def solve(self, X: Array, Y: Array, weights: Array | None = None) -> tuple[Array, Array, Array]:
        """Residuals, and which are not known or lost, see `LeftOut`.

        For rows (k, m, p) and (k, m, q), with weights (k, m) or none.
        """
        (k, m, q), s = Y.shape, len(self._norms)
        Z, c = self._centred(X), s * q
        start = np.empty((k, c + self._probes, m))
        np.subtract(
            np.tile((Y - self._whole.intercept).transpose(0, 2, 1), (1, s, 1)),
            _onto_rows(self._inverse.coef.reshape(1, c, -1), Z),
            out=start[:, :c],
        )
        if self._probes:
            start[:, c] = self._draw((k, m))
        roots = None if weights is None else np.sqrt(weights)[:, None]
        part, left, solved = self._iterate(Z, start, roots)
        if roots is not None:
            solved = self._inverse.times(_products(start, Z), self._place)
        residuals = (start + part)[:, :c].reshape(k, s, q, m).transpose(0, 3, 1, 2)
        left = np.minimum(
            left[:, :c].reshape(k, s, q).min(axis=2), left[:, c:].min(axis=1, initial=1.0)[:, None]
        )
        merged = ~(left > MIN_LEFT)
        scales = np.sqrt((residuals**2).mean(axis=1)), np.maximum(left, MIN_LEFT)
        return residuals, merged, self._lost(Z, *scales, start[:, :c], solved[:, :c]) & ~merged

    def _centred(self, X: Array) -> Array:
        """The rows about the centre, along the eigenvectors if these are few; until the next call."""
        whole = self._whole
        if self._buffer.size < X.size:
            self._buffer = np.empty(X.size)
        Z: Array = self._buffer[: X.size].reshape(X.shape)
        if self._near:
            np.subtract(X, self._centre, out=Z)
        else:
            np.subtract(X, whole.origin, out=Z)
            Z += whole.offset
        rotation = self._inverse.rotation
        return Z if rotation is None else (Z.reshape(-1, Z.shape[2]) @ rotation).reshape(Z.shape)

    def _lost(self, Z: Array, sizes: Array, left: Array, start: Array, solved: Array) -> Array:
        """Which answers rounding may change too much, (k, s), for residuals of such sizes, (k, s, q).

        ``solved = A^-1 Z' start``, (k, s q, p). Residuals have any signs, so its squares are on average
        those of ``A^-1 Z'``. Where these would be too many, rows are read once more.
        """
        k, s, q = sizes.shape
        m, noise = Z.shape[1], np.finfo(np.float64).eps * self._inverse.scale

        def lost(squares: Array, sets: Any = slice(None), alphas: Any = slice(None)) -> Array:
            """For sums of squares of ``A^-1 z`` over some sets, with some alphas."""
            errors = noise * np.sqrt(squares / m) * self._norms[alphas] / left[sets][:, alphas, None]
            return lost_predictions(errors, sizes[sets][:, alphas], self._whole.y_size)

        if self._inverse.rotation is not None:
            return lost(self._inverse.squares(Z, np.arange(s))[:, :, None])
        own, squares = _squares(solved, solved), _squares(start, start)
        own = np.divide(m * own, squares, out=np.zeros_like(own), where=squares > 0.0).reshape(k, s, q)
        found = lost(ESTIMATE_FACTOR * np.maximum(own, own.mean(axis=0)))
        for a in np.flatnonzero(found.any(axis=0)):
            sets, one = np.flatnonzero(found[:, a]), np.array([a])
            found[sets, a] = lost(self._inverse.squares(Z[sets], one)[:, :, None], sets, one)[:, 0]
        return found

    def _iterate(self, Z: Array, start: Array, roots: Array | None) -> tuple[Array, Array, Array]:
        """Solutions of ``(I - H) v = start`` as ``H v``, (k, c, m); `roots` of the weights, (k, 1, m).

        Also the least of ``v'(I - H)v / v'v`` that was seen, (k, c), and ``A^-1 Z' start``, (k, c, p).
        """
        part = np.zeros_like(start)
        residual = start.copy() if roots is None else start * roots
        direction, squares = residual.copy(), _squares(residual, residual)
        start_squares = squares.copy()
        left, solved = np.ones_like(squares), np.zeros((*squares.shape, Z.shape[2]))
        runs, merged = squares > 0.0, np.zeros(squares.shape, dtype=bool)
        for iteration in range(MOST_ITERATIONS):
            active = np.flatnonzero(runs.any(axis=0))
            if not active.size:
                return part, left, solved
            c = slice(active[0], active[-1] + 1)
            own, going, of_own = direction[:, c], runs[:, c], squares[:, c]
            image, last = self._hat(Z, own if roots is None else own * roots, c)
            if iteration == 0:
                solved[:, c] = last
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
            most = self._most_squares(left, start_squares)
            runs = (squares > most) & ~merged
        left[runs] = 0.0  # not solved
        return part, left, solved

    def _most_squares(self, left: Array, start_squares: Array) -> Array:
        """The squares of the residuals at which to stop, (k, c), for what is `left` as seen so far."""
        if self._probes:
            h = LEVERAGE_FACTOR * (1.0 - np.minimum(left, left[:, -1:]))
        else:
            h = np.full_like(left, self._most_held)
        # A solution with the residual r is off by less than H r / (1 - h).
        goals = TOLERANCE * np.clip((1.0 - h) / np.maximum(h, 1e-9), 1.0, MOST_EASE)
        if self._squares:
            goals = np.maximum(goals, np.sqrt(SQUARES_TOLERANCE / SQUARES_FACTOR) * (1.0 - h))
        most = np.asarray(goals**2 * start_squares)
        most[:, most.shape[1] - self._probes :] = PROBE_TOLERANCE**2
        return most

    def _hat(self, Z: Array, direction: Array, columns: slice) -> tuple[Array, Array]:
        """``H direction`` for some right-hand sides, and ``A^-1 Z' direction``."""
        solved = self._inverse.times(_products(direction, Z), self._place[columns])
        image = _onto_rows(solved, Z)
        if self._whole.weight:
            image += direction.sum(axis=2, keepdims=True) / self._whole.weight
        return image, solved


def _squares(a: Array, b: Array) -> Array:
    """Inner products of the right-hand sides, (k, c)."""
    return np.einsum("kcm,kcm->kc", a, b)


def _onto_rows(U: Array, Z: Array) -> Array:
    """``U Z'`` for (k, c, p), or (1, c, p), and (k, m, p)."""
    return _products(U, Z.transpose(0, 2, 1))


def _products(left: Array, right: Array) -> Array:
    """``left @ right`` for (k, c, a), or (1, c, a), and (k, a, b); few rows of `left` one after the other."""
    c = left.shape[1]
    if not 1 < c < MIN_COLUMNS:
        return np.asarray(left @ right)
    out = np.empty((len(right), c, right.shape[2]))
    for j in range(c):
        np.matmul(left[:, j : j + 1], right, out=out[:, j : j + 1])
    return out


def bound_leverage(A: Array, offset: Array, weight: float, parts: Sequence[Moments]) -> float:
    """A bound on the eigenvalues of ``X_b A^-1 X_b'`` for all rows of any of some parts, and so for a few.

    A, (p, p), is the matrix of the normal equations about a centre, which is the origin of `parts` less
    `offset`. `weight`: that of all rows, if there is an intercept, else 0; X and A then have a column for it.
    The bound is `HALF` where ``A / 2 - X_b'X_b`` is positive definite for each part, else 1.
    """
    p = len(A)
    d = p + (weight > 0.0)
    half = np.zeros((d, d))
    half[:p, :p], half[p:, p:] = HALF * A, HALF * weight
    for part in parts:
        mean = np.ones(d)
        mean[:p] = part.offset[:p] + offset
        left = half - np.outer(part.weight * mean, mean)
        left[:p, :p] -= part.scatter[:p, :p]
        try:
            np.linalg.cholesky(left)
        except np.linalg.LinAlgError:
            return 1.0
    return HALF
