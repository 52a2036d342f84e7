"""Moments of rows on a device: the device sums them, and one transfer copies the sums to the host.

Only the sums cross, which are small. The host derives moments from them by the same code for every library.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, block_size, device, float_dtype, to_device_of, to_host_together
from manyfit.folds.moments._host import evenly_spread
from manyfit.folds.moments._moments import SummedMoments, moments_from_sums
from manyfit.folds.splits._atoms import Rows
from manyfit.folds.splits._row_index import n_rows, row_blocks, take_rows

Array = Any

# Values in one block of rows: 32 MiB of float64, a few times in memory. Less would not fill a GPU.
# Blocks of a large X have up to four times as many, at most this part of it: fewer calls are started.
BLOCK_VALUES = 2**22
MOST_VALUES, BLOCK_PARTS = 2**24, 16


def sum_device_atoms(X: Array, Y: Array, atoms: Sequence[Rows], weights: Array | None) -> SummedMoments:
    """The moments of ``[X, Y]`` over each atom; arrays lie on one device.

    One transfer, and another if means lie far from the medians of some rows.
    """
    device_sums, every = _DeviceSums(X, Y, weights), slice(0, X.shape[0])
    shifts = device_sums.middles([every, *atoms])
    (origin, *own), sums = to_host_together(shifts, device_sums.about(shifts[1:, :], atoms), label="moments")
    found = [
        (*moments_from_sums(of_atom, shift, origin, n_rows(rows)), n_rows(rows))
        for of_atom, shift, rows in zip(sums, own, atoms, strict=True)
    ]
    again = [a for a, (_, far, _) in enumerate(found) if far]
    if again:
        means = np.stack([found[a][0].mean for a in again])
        moved = to_device_of(means, X, label="middles of columns")
        (sums,) = to_host_together(device_sums.about(moved, [atoms[a] for a in again]), label="moments")
        for a, mean, of_atom in zip(again, means, sums, strict=True):
            n = n_rows(atoms[a])
            found[a] = (*moments_from_sums(of_atom, mean, origin, n), 2 * n)
    return [(moments, read) for moments, _, read in found]


class _DeviceSums:
    """Sums of squares over rows of ``[X, Y]`` on their device, in float64, a block of rows at a time."""

    def __init__(self, X: Array, Y: Array, weights: Array | None) -> None:
        self._X, self._Y, self._weights = X, Y, weights
        self._xp, self._place = array_namespace(X), device(X)
        self._dtype = float_dtype(X)

    def middles(self, sets: Sequence[Rows]) -> Array:
        """A point amid each set of rows, (n_sets, p + q), on the device: medians of some of the rows."""
        return self._xp.concat(
            [
                self._medians(n, list(some))
                for n, some in groupby(sets, lambda rows: evenly_spread(n_rows(rows)).size)
            ]
        )

    def _medians(self, n: int, sets: Sequence[Rows]) -> Array:
        """Medians of `n` rows of each set, an odd number, or zeros for none."""
        xp, p = self._xp, self._X.shape[1]
        d = p + self._Y.shape[1]
        if n == 0:
            return xp.zeros((len(sets), d), dtype=self._dtype, device=self._place)
        sample = xp.empty((len(sets), d, n), dtype=self._dtype, device=self._place)
        for a, rows in enumerate(sets):
            step = max(1, (n_rows(rows) - 1) // max(n - 1, 1))
            some = slice(rows.start, rows.stop, step) if isinstance(rows, slice) else rows[::step]
            for A, start, stop in ((self._X, 0, p), (self._Y, p, d)):
                sample[a, start:stop, :] = xp.matrix_transpose(self._float(take_rows(A, some)[:n, :]))
        median = xp.sort(sample, axis=2)[:, :, n // 2]
        return xp.where(xp.isfinite(median), median, xp.zeros_like(median))

    def about(self, shifts: Array, sets: Sequence[Rows]) -> Array:
        """``Z' W Z`` of each set, ``Z = [X, Y, 1]`` less a shift of its own; (n_sets, d + 1, d + 1)."""
        return self._xp.stack([self._sum(shifts[a, :], rows) for a, rows in enumerate(sets)])

    def _sum(self, shift: Array, rows: Rows) -> Array:
        xp, d = self._xp, shift.shape[0]
        total = xp.zeros((d + 1, d + 1), dtype=self._dtype, device=self._place)
        values = max(BLOCK_VALUES, min(MOST_VALUES, self._X.shape[0] * (d + 1) // BLOCK_PARTS))
        for block in row_blocks(rows, max(1, block_size(values) // (d + 1))):
            total = total + self._gram(shift, block)
        return total

    def _gram(self, shift: Array, block: Rows) -> Array:
        Z = self._centred(shift, block)
        return self._xp.matrix_transpose(Z) @ Z

    def _centred(self, shift: Array, block: Rows) -> Array:
        xp, p, d = self._xp, self._X.shape[1], shift.shape[0]
        # Written part by part: joining finished parts would copy each of them once more.
        Z = xp.empty((n_rows(block), d + 1), dtype=self._dtype, device=self._place)
        for A, start, stop in ((self._X, 0, p), (self._Y, p, d)):
            part = take_rows(A, block)
            # The subtraction converts float32 in the same call.
            part = part if xp.isdtype(part.dtype, "real floating") else self._float(part)
            Z[:, start:stop] = part - shift[start:stop]
        Z[:, d] = 1.0
        return Z if self._weights is None else Z * xp.sqrt(take_rows(self._weights, block))[:, None]

    def _float(self, A: Array) -> Array:
        return self._xp.astype(A, self._dtype, copy=False)


def device_column_ranges(
    X: Array, sets: Sequence[Rows], columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Minimum and maximum of some columns over each set of rows: two (n_sets, n_columns), one transfer."""
    xp = array_namespace(X)
    index = to_device_of(columns, X, label="indices")
    ends = [_range(X, rows, index) for rows in sets]
    both = (xp.stack([low for low, _ in ends]), xp.stack([high for _, high in ends]))
    low, high = to_host_together(*both, label="ranges of columns")
    return low, high


def _range(X: Array, rows: Rows, columns: Array) -> tuple[Array, Array]:
    xp = array_namespace(X)
    parts = [(xp.min(B, axis=0), xp.max(B, axis=0)) for B in _blocks(X, rows, columns)]
    low, high = (xp.stack(ends) for ends in zip(*parts, strict=True))
    return xp.min(low, axis=0), xp.max(high, axis=0)


def _blocks(X: Array, rows: Rows, columns: Array) -> Iterator[Array]:
    xp = array_namespace(X)
    for block in row_blocks(rows, max(1, block_size(BLOCK_VALUES) // max(columns.shape[0], 1))):
        part = xp.take(take_rows(X, block), columns, axis=1)
        yield xp.astype(part, xp.uint8) if xp.isdtype(part.dtype, "bool") else part
