"""Moments of rows of numbers beside one-hot columns: sums of numbers, sums by category, and cross tables."""

from collections.abc import Sequence

import numpy as np

from manyfit.folds._blas_threads import map_threads
from manyfit.folds._mixed_matrix import MixedMatrix, OneHot, cross_table
from manyfit.folds.moments._host import MIN_THREADED_VALUES, evenly_spread, median_row
from manyfit.folds.moments._moments import Moments, SummedMoments, moments_about
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows


def mixed_middle(X: MixedMatrix) -> Array:
    """The medians of the numbers of some rows, (p,); 0 for one-hot columns."""
    out = np.zeros(X.shape[1])
    if X.shape[0]:
        out[X.places] = median_row(X.numbers[evenly_spread(X.shape[0])])
    return out


def sum_mixed_atoms(
    X: MixedMatrix,
    Y: Array,
    atoms: Sequence[Rows],
    weights: Array | None,
    *,
    in_pieces: bool = True,
    origin: Array | None = None,
) -> SummedMoments:
    """The moments of ``[X, Y]`` over each atom; `in_pieces`: threads sum the atoms.

    Means are relative to `origin`, a point amid the rows by default, which is 0 for one-hot columns.
    """
    places = np.append(X.places, X.shape[1] + np.arange(Y.shape[1]))
    numbers = MixedMatrix(np.concatenate([X.numbers, Y], axis=1), places, X.blocks)
    origin = mixed_middle(numbers) if origin is None else origin

    def task(rows: Rows) -> tuple[Moments, int]:
        return _summed(numbers, origin, rows, weights)

    threaded = in_pieces and sum(map(n_rows, atoms)) * numbers.places.size >= MIN_THREADED_VALUES
    return map_threads(task, atoms) if threaded else [task(rows) for rows in atoms]


def _summed(X: MixedMatrix, origin: Array, rows: Rows, weights: Array | None) -> tuple[Moments, int]:
    own = X.take(rows)
    weight = None if weights is None else np.asarray(weights[rows], dtype=np.float64)
    return moments_about(
        mixed_middle(own), lambda point: _sums_about(point, own, weight), origin, n_rows(rows)
    )


def _sums_about(shift: Array, X: MixedMatrix, weights: Array | None) -> Array:
    """``Z' W Z`` with ``Z = [X - shift, 1]``, see `manyfit.folds.moments._host`.

    One-hot columns are not shifted, in `shift` neither, but by one if most rows have it: such a column is
    then minus the sum of the others of its block, of which nothing is subtracted.
    """
    for block in X.blocks:
        shift[block.columns] = 0.0
    d = X.shape[1]
    numbers = np.ones((X.shape[0], X.places.size + 1))
    np.subtract(X.numbers, shift[X.places], out=numbers[:, :-1])
    weighted = numbers if weights is None else numbers * weights[:, None]
    places = np.append(X.places, d)
    sums = np.zeros((d + 1, d + 1))
    with np.errstate(invalid="ignore", over="ignore"):
        sums[np.ix_(places, places)] = weighted.T @ numbers
        for j, block in enumerate(X.blocks):
            own = block.columns
            by_number = np.stack([np.bincount(block.codes, one, block.width) for one in weighted.T])
            sums[places, own], sums[own, places] = by_number, by_number.T
            sums[own, own] = np.diag(by_number[-1])
            for other in X.blocks[:j]:
                table = cross_table(block, other, weights)
                sums[own, other.columns], sums[other.columns, own] = table, table.T
        for block in X.blocks:
            _shift_most_frequent(sums, block, shift)
    return sums


def _shift_most_frequent(sums: Array, block: OneHot, shift: Array) -> None:
    """Sums about one for the column of a block that more than half of the rows have, in place."""
    counts = sums[-1, block.columns]
    most = int(counts.argmax())
    if 2.0 * counts[most] > sums[-1, -1]:
        shift[block.start + most] = 1.0
        others = np.delete(np.arange(block.start, block.start + block.width), most)
        sums[block.start + most] = -sums[others].sum(axis=0)
        sums[:, block.start + most] = -sums[:, others].sum(axis=1)


def mixed_ranges(X: MixedMatrix, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
    """Minimum and maximum of some columns over each atom, two arrays of shape (n_atoms, n_columns)."""
    low, high = np.empty((2, len(atoms), len(columns)))
    ends = np.empty((2, X.shape[1]))
    for a, rows in enumerate(atoms):
        own = X.take(rows)
        ends[:, X.places] = own.numbers.min(axis=0), own.numbers.max(axis=0)
        for block in own.blocks:
            counts = np.bincount(block.codes, minlength=block.width)
            ends[:, block.columns] = counts == len(block.codes), counts > 0
        low[a], high[a] = ends[:, columns]
    return low, high
