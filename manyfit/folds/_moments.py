"""Centred first and second moments of rows, which add over blocks, atoms, chunks and workers.

Every group of rows is summed about a point so near to its mean that at most two bits cancel, and groups
are merged at their common mean, so nothing is lost however far the data lie from zero. Means are kept
relative to a point amid the data, since a mean of 1e5 would be rounded to 1e-11. Nothing is ever
subtracted: the training set of a fold is the merge of the other atoms.

References
----------
Chan, Golub, LeVeque: Algorithms for computing the sample variance (1983).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from manyfit.folds._atoms import AtomGroup, Rows
from manyfit.folds._threads import map_threads

Array = NDArray[Any]
T = TypeVar("T")

# Values in one block of rows at most: 0.25 MiB of float64. Centring and multiplying then run in the
# second-level cache.
BLOCK_VALUES = 2**15
# One block is at most this part of X, which is what a pass may need beside it.
BLOCK_PARTS = 16
# A matrix product on fewer rows than this no longer runs at the machine's rate.
MIN_BLOCK_ROWS = 256
# Blocks that one thread sums before it takes the next piece of rows.
PIECE_BLOCKS = 16
# Rows are summed about a point; where its distance from their mean, squared, is more than so many
# variances, they are summed again about the mean.
MAX_SHIFT = 4.0
# Values in all rows under which starting threads costs more than they save: 8 MiB of float64.
MIN_THREADED_VALUES = 2**20
# Rows that the middle of the data is found from, an odd number: the median is then one of the values.
SAMPLED_ROWS = 15


@dataclass(frozen=True)
class Moments:
    """Moments of the columns ``[X, y]`` over some rows.

    Attributes
    ----------
    rows : float
        Number of rows, with repetitions.
    weight : float
        Sum of the weights; the number of rows where there are none.
    origin : ndarray of shape (d,)
        A point amid the data, the same for all rows of the same arrays.
    offset : ndarray of shape (d,)
        Weighted mean less the origin, to the rounding of the spread of the data.
    scatter : ndarray of shape (d, d)
        ``sum_i w_i (z_i - mean)(z_i - mean)'``, not divided by anything.
    """

    rows: float
    weight: float
    origin: Array
    offset: Array
    scatter: Array

    @property
    def mean(self) -> Array:
        """Weighted mean of shape (d,), rounded."""
        return self.origin + self.offset


def moments_of_rows(X: Array, Y: Array, rows: Rows, weights: Array | None = None) -> Moments:
    """Moments of ``[X, Y]`` over `rows`, in float64, in one pass.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Read in blocks of at most 0.25 MiB; never copied as a whole.
    Y : ndarray of shape (n, q)
        Targets.
    rows : slice or ndarray of int
        The rows to sum.
    weights : ndarray of shape (n,), optional
        Weights of all n rows, finite and not negative.

    Returns
    -------
    Moments
        Of dimension p + q, in host memory.
    """
    return _moments_about(middle(X, Y), X, Y, rows, weights)


def middle(X: Array, Y: Array) -> Array:
    """The medians of some rows of ``[X, Y]``, of shape (p + q,); 0 where they are not finite."""
    n = min(len(X), SAMPLED_ROWS)
    if n == 0:
        return np.zeros(X.shape[1] + Y.shape[1])
    index = np.linspace(0, len(X) - 1, n - (n + 1) % 2, dtype=np.intp)
    sample = np.concatenate([X[index], Y[index]], axis=1, dtype=np.float64)
    median = np.sort(sample, axis=0)[len(index) // 2]
    return np.where(np.isfinite(median), median, 0.0)


def _moments_about(origin: Array, X: Array, Y: Array, rows: Rows, weights: Array | None) -> Moments:
    n, d = length_of(rows), origin.size
    shift = origin
    for _ in range(2):
        sums = _sums_about(shift, X, Y, rows, weights)
        weight = float(sums[d, d])
        if weight == 0.0:
            return Moments(float(n), 0.0, origin, np.zeros(d), np.zeros((d, d)))
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are found in the sums
            delta = sums[:d, d] / weight
            scatter = sums[:d, :d] - np.outer(sums[:d, d], delta)
            offset = (shift - origin) + delta
            far = weight * delta**2 > MAX_SHIFT * np.diagonal(scatter)
        if not far.any():
            break
        # Too much was subtracted: once more, about the mean itself.
        shift = origin + offset
    # What is left of the scatter of a column of one value is rounding, and may be negative.
    diagonal = np.einsum("ii->i", scatter)
    np.maximum(diagonal, 0.0, out=diagonal)
    return Moments(float(n), weight, origin, offset, scatter)


def _sums_about(shift: Array, X: Array, Y: Array, rows: Rows, weights: Array | None) -> Array:
    """``Z' W Z`` with ``Z = [X - x_shift, Y - y_shift, 1]``: squares, sums and the weight at once."""
    p, d = X.shape[1], shift.size
    size = min(_block_rows(len(X), d), length_of(rows))
    buffer = np.empty((size, d + 1))
    buffer[:, d] = 1.0
    sums = np.zeros((d + 1, d + 1))
    with np.errstate(invalid="ignore", over="ignore"):
        for block in blocks_of(rows, size):
            Z = buffer[: length_of(block)]
            np.subtract(X[block], shift[:p], out=Z[:, :p])
            np.subtract(Y[block], shift[p:], out=Z[:, p:d])
            if weights is not None:
                Z[:, d] = 1.0
                Z *= np.sqrt(np.asarray(weights[block], dtype=np.float64))[:, None]
            sums += Z.T @ Z
    return sums


class AtomMoments:
    """The moments of every atom of a group, from one pass, and their merges.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Read once, in blocks, on the host.
    Y : ndarray of shape (n, q)
        Targets.
    group : AtomGroup
        The atoms.
    weights : ndarray of shape (n,), optional
        As for `moments_of_rows`.

    Notes
    -----
    Keeps ``n_atoms (p + q)^2`` numbers of float64.
    """

    def __init__(self, X: Array, Y: Array, group: AtomGroup, weights: Array | None = None) -> None:
        d = X.shape[1] + Y.shape[1]
        size = _piece_rows(len(X), d)
        pieces = [(a, piece) for a, rows in enumerate(group.rows) for piece in blocks_of(rows, size)]
        threaded = sum(length_of(rows) for rows in group.rows) * d >= MIN_THREADED_VALUES
        run = map_threads if threaded else _map_here
        origin = middle(X, Y)
        parts = run(lambda item: _moments_about(origin, X, Y, item[1], weights), pieces)
        atoms: list[list[Moments]] = [[] for _ in group.rows]
        for (a, _), part in zip(pieces, parts, strict=True):
            atoms[a].append(part)
        # In the order of the rows, whatever thread summed them: results do not depend on the threads.
        summed = [_merged(own) for own in atoms]
        self._atoms = _Stack.of(summed)
        self.rows = self._atoms.rows

    def merged(self, counts: Array) -> Moments:
        """Moments of a set that repeats atom ``a`` ``counts[a]`` times."""
        return self._atoms.merged(counts)


@dataclass(frozen=True)
class _Stack:
    """Moments of several sets of rows, stacked to be merged."""

    rows: Array
    weight: Array
    origin: Array
    offset: Array
    scatter: Array

    @classmethod
    def of(cls, parts: Sequence[Moments]) -> "_Stack":
        return cls(
            np.array([part.rows for part in parts]),
            np.array([part.weight for part in parts]),
            parts[0].origin,
            np.stack([part.offset for part in parts]),
            np.stack([part.scatter for part in parts]),
        )

    def merged(self, counts: Array) -> Moments:
        """Sets are recentred at the mean of their merge, so all terms are positive."""
        # What is not in the merge stays out of the sums: it may hold NaN.
        used = np.flatnonzero(counts)
        counts = counts[used]
        if used.size == 1 and counts[0] == 1.0:
            a = used[0]
            return Moments(
                float(self.rows[a]), float(self.weight[a]), self.origin, self.offset[a], self.scatter[a]
            )
        weights = counts * self.weight[used]
        weight = float(weights.sum())
        means = self.offset[used]
        mean = weights @ means / weight if weight else np.full(means.shape[1], np.nan)
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are found in the sums
            delta = means - mean
            scatter = np.tensordot(counts, self.scatter[used], axes=1)
            scatter += delta.T @ (weights[:, None] * delta)
        return Moments(float(counts @ self.rows[used]), weight, self.origin, mean, scatter)


def _map_here(task: Callable[[T], Moments], items: Sequence[T]) -> list[Moments]:
    return [task(item) for item in items]


def _merged(parts: Sequence[Moments]) -> Moments:
    return parts[0] if len(parts) == 1 else _Stack.of(parts).merged(np.ones(len(parts)))


def _block_rows(n: int, d: int) -> int:
    return max(MIN_BLOCK_ROWS, min(BLOCK_VALUES // max(d, 1), n // BLOCK_PARTS))


def _piece_rows(n: int, d: int) -> int:
    """Rows that one thread sums at a time: some blocks, and enough for the sums to be small beside them."""
    return max(PIECE_BLOCKS * _block_rows(n, d), 16 * d)


def column_ranges(X: Array, rows: list[Rows], columns: Array) -> tuple[Array, Array]:
    """Minimum and maximum of some columns over each set of rows.

    Returns
    -------
    low, high : ndarray of shape (n_sets, n_columns)
    """
    low = np.full((len(rows), len(columns)), np.inf)
    high = np.full((len(rows), len(columns)), -np.inf)
    for a, index in enumerate(rows):
        for block in blocks_of(index, max(MIN_BLOCK_ROWS, BLOCK_VALUES // max(len(columns), 1))):
            part = X[block][:, columns]
            low[a] = np.minimum(low[a], part.min(axis=0))
            high[a] = np.maximum(high[a], part.max(axis=0))
    return low, high


def blocks_of(rows: Rows, size: int) -> Iterator[Rows]:
    """Cut `rows` into pieces of at most `size` rows."""
    if isinstance(rows, slice):
        for start in range(rows.start, rows.stop, size):
            yield slice(start, min(start + size, rows.stop))
    else:
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def length_of(rows: Rows) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)
