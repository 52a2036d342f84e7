"""Centred first and second moments of rows, which add over blocks, atoms, chunks and workers.

Every group of rows is summed at its own mean and groups are merged, so nothing cancels, however far
the data lie from the origin. Nothing is ever subtracted: the training set of a fold is the merge of
the other atoms.

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

# Values in one block of rows: 0.5 MiB of float64. Centring, summing and multiplying then run in the
# second-level cache, and are a small part of X.
BLOCK_VALUES = 2**16
# A matrix product on fewer rows than this no longer runs at the machine's rate.
MIN_BLOCK_ROWS = 256
# Blocks that one thread sums before it takes the next piece of rows.
PIECE_BLOCKS = 4
# Values in all rows under which starting threads costs more than they save: 8 MiB of float64.
MIN_THREADED_VALUES = 2**20


@dataclass(frozen=True)
class Moments:
    """Moments of the columns ``[X, y]`` over some rows.

    Attributes
    ----------
    rows : float
        Number of rows, with repetitions.
    weight : float
        Sum of the weights; the number of rows where there are none.
    mean : ndarray of shape (d,)
        Weighted mean.
    scatter : ndarray of shape (d, d)
        ``sum_i w_i (z_i - mean)(z_i - mean)'``, not divided by anything.
    """

    rows: float
    weight: float
    mean: Array
    scatter: Array


def moments_of_rows(X: Array, Y: Array, rows: Rows, weights: Array | None = None) -> Moments:
    """Moments of ``[X, Y]`` over `rows`, in float64, in one pass.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Read in blocks of about 0.5 MiB; never copied as a whole.
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
    p, d = X.shape[1], X.shape[1] + Y.shape[1]
    total = _Running(d)
    for block in _blocks(rows, max(MIN_BLOCK_ROWS, BLOCK_VALUES // max(d, 1))):
        Z = np.empty((_length(block), d))
        Z[:, :p] = X[block]
        Z[:, p:] = Y[block]
        w = None if weights is None else np.asarray(weights[block], dtype=np.float64)
        total.add(Z, w)
    return total.moments()


class _Running:
    """Moments that grow block by block, merged at a common mean."""

    def __init__(self, d: int) -> None:
        self.rows, self.weight = 0, 0.0
        self.mean, self.scatter = np.zeros(d), np.zeros((d, d))

    def add(self, Z: Array, w: Array | None) -> None:
        """Merge one block; `Z` is overwritten."""
        n = Z.shape[0]
        weight = float(n) if w is None else float(w.sum())
        self.rows += n
        if weight == 0.0:
            return
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are found in the sums
            self._merge(Z, w, weight)

    def _merge(self, Z: Array, w: Array | None, weight: float) -> None:
        n = Z.shape[0]
        # A product with ones sums columns several times faster than a reduction over rows.
        mean = (np.ones(n) if w is None else w) @ Z / weight
        Z -= mean
        if w is not None:
            Z *= np.sqrt(w)[:, None]
        scatter = Z.T @ Z
        if self.weight == 0.0:
            self.weight, self.mean, self.scatter = weight, mean, scatter
            return
        delta = mean - self.mean
        merged = self.weight + weight
        self.scatter += scatter
        self.scatter += np.outer(delta, delta * (self.weight * weight / merged))
        self.mean = self.mean + delta * (weight / merged)
        self.weight = merged

    def moments(self) -> Moments:
        return Moments(float(self.rows), self.weight, self.mean, self.scatter)


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
        size = _piece_rows(d)
        pieces = [(a, piece) for a, rows in enumerate(group.rows) for piece in _blocks(rows, size)]
        threaded = sum(_length(rows) for rows in group.rows) * d >= MIN_THREADED_VALUES
        run = map_threads if threaded else _map_here
        parts = run(lambda item: moments_of_rows(X, Y, item[1], weights), pieces)
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
    mean: Array
    scatter: Array

    @classmethod
    def of(cls, parts: Sequence[Moments]) -> "_Stack":
        return cls(
            np.array([part.rows for part in parts]),
            np.array([part.weight for part in parts]),
            np.stack([part.mean for part in parts]),
            np.stack([part.scatter for part in parts]),
        )

    def merged(self, counts: Array) -> Moments:
        """Sets are recentred at the mean of their merge, so all terms are positive."""
        # What is not in the merge stays out of the sums: it may hold NaN.
        used = np.flatnonzero(counts)
        counts = counts[used]
        if used.size == 1 and counts[0] == 1.0:
            a = used[0]
            return Moments(float(self.rows[a]), float(self.weight[a]), self.mean[a], self.scatter[a])
        weights = counts * self.weight[used]
        weight = float(weights.sum())
        means = self.mean[used]
        mean = weights @ means / weight if weight else np.full(means.shape[1], np.nan)
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are found in the sums
            delta = means - mean
            scatter = np.tensordot(counts, self.scatter[used], axes=1)
            scatter += delta.T @ (weights[:, None] * delta)
        return Moments(float(counts @ self.rows[used]), weight, mean, scatter)


def _map_here(task: Callable[[T], Moments], items: Sequence[T]) -> list[Moments]:
    return [task(item) for item in items]


def _merged(parts: Sequence[Moments]) -> Moments:
    return parts[0] if len(parts) == 1 else _Stack.of(parts).merged(np.ones(len(parts)))


def _piece_rows(d: int) -> int:
    """Rows that one thread sums at a time: some blocks, and enough for the sums to be small beside them."""
    return max(PIECE_BLOCKS * max(MIN_BLOCK_ROWS, BLOCK_VALUES // max(d, 1)), 16 * d)


def column_ranges(X: Array, rows: list[Rows], columns: Array) -> tuple[Array, Array]:
    """Minimum and maximum of some columns over each set of rows.

    Returns
    -------
    low, high : ndarray of shape (n_sets, n_columns)
    """
    low = np.full((len(rows), len(columns)), np.inf)
    high = np.full((len(rows), len(columns)), -np.inf)
    for a, index in enumerate(rows):
        for block in _blocks(index, max(MIN_BLOCK_ROWS, BLOCK_VALUES // max(len(columns), 1))):
            part = X[block][:, columns]
            low[a] = np.minimum(low[a], part.min(axis=0))
            high[a] = np.maximum(high[a], part.max(axis=0))
    return low, high


def _blocks(rows: Rows, size: int) -> Iterator[Rows]:
    """Cut `rows` into pieces of at most `size` rows."""
    if isinstance(rows, slice):
        for start in range(rows.start, rows.stop, size):
            yield slice(start, min(start + size, rows.stop))
    else:
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def _length(rows: Rows) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)
