"""Centred first and second moments of rows, which add over blocks, atoms, chunks and workers.

Every group of rows is summed about a point amid it. Where its mean turns out to lie more than two standard
deviations from that point it is summed again, so that a sum of squares is at most five times what is left
of it about the mean: little more than two bits cancel, however far the data lie from zero. Groups are merged
at their common mean, by adding only; no set of rows is ever taken away from another, since the training set
of a fold is the merge of the other atoms. Means are kept relative to a point amid the data, since a mean of
1e5 would be rounded to 1e-11.

References
----------
Chan, Golub, LeVeque: Algorithms for computing the sample variance (1983).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.arrays import numpy_dtype, to_device_of, to_host_together
from manyfit.folds._blas_threads import map_threads
from manyfit.folds.moments._device import DeviceSums, device_column_ranges
from manyfit.folds.rows._index import n_rows, row_blocks
from manyfit.folds.splits._atoms import AtomGroup, Rows

Array = NDArray[Any]

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
    """Moments of ``[X, Y]`` over `rows`, in float64.

    Parameters
    ----------
    X : array of shape (n, p)
        Read in blocks, of at most 0.25 MiB on the host and of 32 MiB on a device; never copied as a whole.
    Y : array of shape (n, q)
        Targets, where X lies.
    rows : slice or ndarray of int
        The rows to sum.
    weights : ndarray of shape (n,), optional
        Weights of all n rows, finite and not negative.

    Returns
    -------
    Moments
        Of dimension p + q, in host memory.

    Notes
    -----
    One pass, and a second where the mean lies far from the medians of some rows.
    """
    if not isinstance(X, np.ndarray):
        return _sum_there(X, Y, [rows], weights)[0][0]
    return _summed(middle(X, Y, slice(0, len(X))), X, Y, rows, weights)[0]


def middle(X: Array, Y: Array, rows: Rows) -> Array:
    """The medians of some of `rows` of ``[X, Y]``, of shape (p + q,); 0 where they are not finite."""
    size = n_rows(rows)
    n = min(size, SAMPLED_ROWS)
    if n == 0:
        return np.zeros(X.shape[1] + Y.shape[1])
    n -= (n + 1) % 2
    place = np.arange(n) * (size - 1) // max(n - 1, 1)
    index = place + rows.start if isinstance(rows, slice) else rows[place]
    sample = np.concatenate([X[index], Y[index]], axis=1, dtype=np.float64)
    median = np.sort(sample, axis=0)[len(index) // 2]
    return np.where(np.isfinite(median), median, 0.0)


def _summed(origin: Array, X: Array, Y: Array, rows: Rows, weights: Array | None) -> tuple[Moments, int]:
    """Moments with means relative to `origin`, and how many rows were read for them."""
    n = n_rows(rows)
    # A column with a trend is far from the middle of all data in most pieces of rows, but not from their own.
    shift = middle(X, Y, rows)
    moments, far = _from_sums(_sums_about(shift, X, Y, rows, weights), shift, origin, n)
    if not far:
        return moments, n
    # Too much was subtracted: once more, about the mean itself.
    shift = moments.mean
    return _from_sums(_sums_about(shift, X, Y, rows, weights), shift, origin, n)[0], 2 * n


def _from_sums(sums: Array, shift: Array, origin: Array, n: int) -> tuple[Moments, bool]:
    """Moments from sums about `shift`, and whether that was too far from the mean."""
    d = origin.size
    weight = float(sums[d, d])
    if weight == 0.0:
        return Moments(float(n), 0.0, origin, np.zeros(d), np.zeros((d, d))), False
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity are found in the sums
        delta = sums[:d, d] / weight
        scatter = sums[:d, :d] - np.outer(sums[:d, d], delta)
        offset = (shift - origin) + delta
        far = weight * delta**2 > MAX_SHIFT * np.diagonal(scatter)
    # What is left of the scatter of a column of one value is rounding, and may be negative.
    diagonal = np.einsum("ii->i", scatter)
    np.maximum(diagonal, 0.0, out=diagonal)
    return Moments(float(n), weight, origin, offset, scatter), bool(far.any())


def _sum_there(
    X: Any, Y: Any, atoms: Sequence[Rows], weights: Any | None = None
) -> list[tuple[Moments, int]]:
    """`sum_atoms` on a device: one transfer, and another where means lie far from medians of some rows."""
    sums_there, every = DeviceSums(X, Y, weights), slice(0, X.shape[0])
    shifts = sums_there.middles([every, *atoms])
    (origin, *own), sums = to_host_together(shifts, sums_there.about(shifts[1:, :], atoms), label="moments")
    found = [
        (*_from_sums(of_atom, shift, origin, n_rows(rows)), n_rows(rows))
        for of_atom, shift, rows in zip(sums, own, atoms, strict=True)
    ]
    again = [a for a, (_, far, _) in enumerate(found) if far]
    if again:
        means = np.stack([found[a][0].mean for a in again])
        moved = to_device_of(means, X, label="middles of columns")
        (sums,) = to_host_together(sums_there.about(moved, [atoms[a] for a in again]), label="moments")
        for a, mean, of_atom in zip(again, means, sums, strict=True):
            n = n_rows(atoms[a])
            found[a] = (*_from_sums(of_atom, mean, origin, n), 2 * n)
    return [(moments, read) for moments, _, read in found]


def _sums_about(shift: Array, X: Array, Y: Array, rows: Rows, weights: Array | None) -> Array:
    """``Z' W Z`` with ``Z = [X - x_shift, Y - y_shift, 1]``: squares, sums and the weight at once."""
    p, d = X.shape[1], shift.size
    size = min(_block_rows(len(X), d), n_rows(rows))
    buffer = np.empty((size, d + 1))
    buffer[:, d] = 1.0
    sums = np.zeros((d + 1, d + 1))
    with np.errstate(invalid="ignore", over="ignore"):
        for block in row_blocks(rows, size):
            Z = buffer[: n_rows(block)]
            np.subtract(X[block], shift[:p], out=Z[:, :p])
            np.subtract(Y[block], shift[p:], out=Z[:, p:d])
            if weights is not None:
                Z[:, d] = 1.0
                Z *= np.sqrt(np.asarray(weights[block], dtype=np.float64))[:, None]
            sums += Z.T @ Z
    return sums


def sum_atoms(
    X: Array, Y: Array, atoms: Sequence[Rows], weights: Array | None = None
) -> list[tuple[Moments, int]]:
    """The moments of some sets of rows, and how many rows were read for each: the same for any company.

    Parameters
    ----------
    X : array of shape (n, p)
        Read once, in blocks, on the host or on a device.
    Y : ndarray of shape (n, q)
        Targets.
    atoms : sequence of slice or ndarray of int
        The sets.
    weights : ndarray of shape (n,), optional
        As for `moments_of_rows`.

    Returns
    -------
    list of (Moments, int)
    """
    if not isinstance(X, np.ndarray):
        return _sum_there(X, Y, atoms, weights)
    d = X.shape[1] + Y.shape[1]
    size = _piece_rows(len(X), d)
    pieces = [(a, piece) for a, rows in enumerate(atoms) for piece in row_blocks(rows, size)]
    threaded = sum(n_rows(rows) for rows in atoms) * d >= MIN_THREADED_VALUES
    origin = middle(X, Y, slice(0, len(X)))

    def task(item: tuple[int, Rows]) -> tuple[Moments, int]:
        return _summed(origin, X, Y, item[1], weights)

    parts = map_threads(task, pieces) if threaded else [task(item) for item in pieces]
    own: list[list[Moments]] = [[] for _ in atoms]
    read = [0] * len(atoms)
    for (a, _), (part, n) in zip(pieces, parts, strict=True):
        own[a].append(part)
        read[a] += n
    # In the order of the rows, whatever thread summed them: results do not depend on the threads.
    return [(_merged(part), n) for part, n in zip(own, read, strict=True)]


class AtomMoments:
    """The moments of every atom of a group, and their merges.

    Parameters
    ----------
    X : array of shape (n, p)
        Read once, in blocks, on the host or on a device.
    Y : ndarray of shape (n, q)
        Targets.
    group : AtomGroup
        The atoms.
    weights : ndarray of shape (n,), optional
        As for `moments_of_rows`.

    Attributes
    ----------
    rows : ndarray of shape (n_atoms,)
        Rows of each atom.
    rows_read : int
        Rows that were read to sum them: those of all atoms once, and again those whose mean lay far from
        the medians of some of them.

    Notes
    -----
    Keeps ``n_atoms (p + q)^2`` numbers of float64.
    """

    def __init__(self, X: Array, Y: Array, group: AtomGroup, weights: Array | None = None) -> None:
        summed = sum_atoms(X, Y, group.rows, weights)
        self._atoms = _Stack.of([moments for moments, _ in summed])
        self.rows = self._atoms.rows
        self.rows_read = sum(read for _, read in summed)

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
    if not isinstance(X, np.ndarray):
        return device_column_ranges(X, rows, columns)
    low, high = np.empty((2, len(rows), len(columns)), dtype=X.dtype)
    for a, index in enumerate(rows):
        blocks = row_blocks(index, max(MIN_BLOCK_ROWS, BLOCK_VALUES // max(len(columns), 1)))
        ends = [(part.min(axis=0), part.max(axis=0)) for part in (X[block][:, columns] for block in blocks)]
        low[a], high[a] = np.min([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0)
    return low, high


class AtomRanges:
    """Which columns hold one value over a merge of sets of rows; each column is read once, when asked for.

    Parameters
    ----------
    X : array of shape (n, p)
        On the host or on a device.
    rows : list of slice or ndarray of int
        The sets of rows.

    Notes
    -----
    Keeps ``2 n_sets p`` numbers.
    """

    def __init__(self, X: Array, rows: list[Rows]) -> None:
        self._X, self._rows = X, rows
        self._low, self._high = np.empty((2, len(rows), X.shape[1]), dtype=numpy_dtype(X))
        self._known = np.zeros(X.shape[1], dtype=bool)

    def constant(self, columns: Array, used: Array) -> Array:
        """Whether each of `columns` holds one value, exactly, over the sets at the positions `used`."""
        new = columns[~self._known[columns]]
        if new.size:
            self._low[:, new], self._high[:, new] = column_ranges(self._X, self._rows, new)
            self._known[new] = True
        where = np.ix_(used, columns)
        return np.asarray(self._low[where].min(axis=0) == self._high[where].max(axis=0))
