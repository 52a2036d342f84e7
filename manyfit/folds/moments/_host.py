"""Sums of squares over rows in host memory, in blocks that fit a cache, by several threads."""

from collections.abc import Sequence

import numpy as np

from manyfit.folds._blas_threads import map_threads
from manyfit.folds.moments._moments import Moments, SummedMoments, merged_moments, moments_about
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import RowReader, n_rows, row_blocks

# Values in one block of rows of few columns: 0.25 MiB of float64. Centring and multiplying then run in the
# second-level cache.
BLOCK_VALUES = 2**15
# The same where rows are not copied to be centred: 1 MiB.
UNCOPIED_VALUES = 2**17
# A block has twice as many rows as columns, if it is not more than 4 MiB: adding up the squares of a block
# then takes little beside their product.
BLOCK_SHAPE, MOST_BLOCK_VALUES = 2, 2**19
# One block is at most this part of X, which is what a pass may need beside it.
BLOCK_PARTS = 16
# A matrix product on fewer rows than this no longer runs at the machine's rate.
MIN_BLOCK_ROWS = 256
# Blocks that one thread sums before it takes the next piece of rows.
PIECE_BLOCKS = 16
# Values in all rows under which starting threads costs more than they save: 8 MiB of float64.
MIN_THREADED_VALUES = 2**20
# Rows that the middle of the data is found from, an odd number: the median is then one of the values.
SAMPLED_ROWS = 15
# Columns whose median is at most this part of the range of the sampled values are summed about zero. That is
# 0.9 standard deviations of normal numbers; `MAX_SHIFT` allows two.
NEAR_ZERO = 0.25


def middle(X: RowReader, Y: Array, rows: Rows) -> Array:
    """The medians of some of `rows` of ``[X, Y]``, of shape (p + q,); 0 where they are not finite."""
    return median_row(_sample(X, Y, rows))


def _sample(X: RowReader, Y: Array, rows: Rows) -> Array:
    """An odd number of rows of ``[X, Y]``, evenly spread over `rows`; zeros if there are none."""
    if not n_rows(rows):
        return np.zeros((1, X.shape[1] + Y.shape[1]))
    place = evenly_spread(n_rows(rows))
    index = place + rows.start if isinstance(rows, slice) else rows[place]
    return np.concatenate([X.take(index), Y[index]], axis=1, dtype=np.float64)


def evenly_spread(n: int) -> Array:
    """An odd number of rows among `n`, in order."""
    some = min(n, SAMPLED_ROWS)
    some -= (some + 1) % 2
    return np.arange(some) * (n - 1) // max(some - 1, 1)


def _starting_point(X: RowReader, Y: Array, rows: Rows, weights: Array | None) -> Array:
    """A point amid `rows` of ``[X, Y]``; zero for X if that is amid them too, and X can be read as it is."""
    sample, p = _sample(X, Y, rows), X.shape[1]
    point = median_row(sample)
    if weights is None and X.dtype == np.float64:
        with np.errstate(invalid="ignore", over="ignore"):
            spread = np.ptp(sample[:, :p], axis=0)
        if (np.abs(point[:p]) <= NEAR_ZERO * spread).all():
            point[:p] = 0.0
    return point


def median_row(sample: Array) -> Array:
    """The medians of the columns of an odd number of rows; 0 where they are not finite."""
    median = np.sort(sample, axis=0)[len(sample) // 2]
    return np.where(np.isfinite(median), median, 0.0)


def sum_atoms(
    X: RowReader,
    Y: Array,
    atoms: Sequence[Rows],
    weights: Array | None,
    *,
    in_pieces: bool = True,
    origin: Array | None = None,
) -> SummedMoments:
    """The moments of ``[X, Y]`` over each atom.

    Rows are read in blocks of at most 4 MiB, or 256 rows. `in_pieces`: threads sum pieces of the atoms, which
    are merged in the order of the rows, so that results do not depend on the threads. Means are relative to
    `origin`, a point amid the rows by default.
    """
    origin = middle(X, Y, slice(0, X.shape[0])) if origin is None else origin
    if not in_pieces:
        return [_summed(origin, X, Y, rows, weights) for rows in atoms]
    d = X.shape[1] + Y.shape[1]
    size = _piece_rows(X.shape[0], d)
    pieces = [(a, piece) for a, rows in enumerate(atoms) for piece in row_blocks(rows, size)]
    threaded = sum(n_rows(rows) for rows in atoms) * d >= MIN_THREADED_VALUES

    def task(item: tuple[int, Rows]) -> tuple[Moments, int]:
        return _summed(origin, X, Y, item[1], weights)

    parts = map_threads(task, pieces) if threaded else [task(item) for item in pieces]
    own: list[list[Moments]] = [[] for _ in atoms]
    read = [0] * len(atoms)
    for (a, _), (part, n) in zip(pieces, parts, strict=True):
        own[a].append(part)
        read[a] += n
    return [(merged_moments(part), n) for part, n in zip(own, read, strict=True)]


def _summed(origin: Array, X: RowReader, Y: Array, rows: Rows, weights: Array | None) -> tuple[Moments, int]:
    """Moments with means relative to `origin`, and how many rows were read for them."""
    # A column with a trend is far from the middle of all data in most pieces of rows, but not from their own.
    shift = _starting_point(X, Y, rows, weights)
    return moments_about(shift, lambda point: _sums_about(point, X, Y, rows, weights), origin, n_rows(rows))


def _sums_about(shift: Array, X: RowReader, Y: Array, rows: Rows, weights: Array | None) -> Array:
    """``Z' W Z`` with ``Z = [X - x_shift, Y - y_shift, 1]``: squares, sums and the weight at once."""
    p, d = X.shape[1], shift.size
    size = min(_block_rows(X.shape[0], d), n_rows(rows))
    if weights is None and X.dtype == np.float64 and not shift[:p].any():
        return _sums_about_zero(shift[p:], X, Y, rows, size)
    buffer = np.empty((size, d + 1))
    buffer[:, d] = 1.0
    sums = np.zeros((d + 1, d + 1))
    with np.errstate(invalid="ignore", over="ignore"):
        for block in row_blocks(rows, size):
            Z = buffer[: n_rows(block)]
            np.subtract(X.take(block), shift[:p], out=Z[:, :p])
            np.subtract(Y[block], shift[p:], out=Z[:, p:d])
            if weights is not None:
                Z[:, d] = 1.0
                Z *= np.sqrt(np.asarray(weights[block], dtype=np.float64))[:, None]
            sums += Z.T @ Z
    return sums


def _sums_about_zero(y_shift: Array, X: RowReader, Y: Array, rows: Rows, size: int) -> Array:
    """The same about zero, for X in float64, of which no copy is made."""
    p, q = X.shape[1], y_shift.size
    if isinstance(rows, slice):  # nothing is copied: blocks need not fit the second-level cache
        size = min(max(size, UNCOPIED_VALUES // (p + q)), n_rows(rows))
    beside = np.ones((q + 1, size))
    xx, bx, bb = np.zeros((p, p)), np.zeros((q + 1, p)), np.zeros((q + 1, q + 1))
    with np.errstate(invalid="ignore", over="ignore"):
        for block in row_blocks(rows, size):
            Z, own = X.take(block), beside[:, : n_rows(block)]
            np.subtract(Y[block].T, y_shift[:, None], out=own[:q])
            xx += Z.T @ Z
            bx += own @ Z
            bb += own @ own.T
    return np.block([[xx, bx.T], [bx, bb]])


def _block_rows(n: int, d: int) -> int:
    d = max(d, 1)
    wanted = max(BLOCK_VALUES // d, min(BLOCK_SHAPE * d, MOST_BLOCK_VALUES // d))
    return max(MIN_BLOCK_ROWS, min(wanted, n // BLOCK_PARTS))


def _piece_rows(n: int, d: int) -> int:
    """Rows that one thread sums at a time: some blocks, and enough for the sums to be small beside them."""
    small = max(MIN_BLOCK_ROWS, min(BLOCK_VALUES // max(d, 1), n // BLOCK_PARTS))
    return max(PIECE_BLOCKS * small, 16 * d)


def column_ranges(X: RowReader, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
    """Minimum and maximum of some columns over each atom, two arrays of shape (n_atoms, n_columns)."""
    low, high = np.empty((2, len(atoms), len(columns)), dtype=X.dtype)
    for a, rows in enumerate(atoms):
        blocks = row_blocks(rows, max(MIN_BLOCK_ROWS, BLOCK_VALUES // max(len(columns), 1)))
        ends = [
            (part.min(axis=0), part.max(axis=0)) for part in (X.take(block)[:, columns] for block in blocks)
        ]
        low[a], high[a] = np.min([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0)
    return low, high
