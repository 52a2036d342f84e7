"""Matrices of pairs of rows, tile by tile, so that the memory beside the result is bounded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import isqrt
from typing import Any

import array_api_extra as xpx
import numpy as np

from manyfit.arrays import array_namespace, device
from manyfit.metrics.kernels._kernel import DEVICE_BYTES

Array = Any

# Bytes of a tile and its temporary arrays on the host: enough for a fast matrix product.
HOST_BYTES = 2**25


@dataclass(frozen=True)
class Measure:
    """A distance or kernel of pairs of rows.

    ``tile(xp, x, y)`` of rows (a, d) and (b, d) is a new array (a, b) that orders pairs as the measure does;
    ``finish(xp, values)`` makes the measure of it. `wide`: a tile needs an array (a, b, d). `itself`: the
    measure of a row and itself, where rounding would differ; with `nan_stays` it may be NaN.
    """

    tile: Callable[[Any, Array, Array], Array]
    finish: Callable[[Any, Array], Array] | None = None
    wide: bool = False
    itself: float | None = None
    nan_stays: bool = False

    def __call__(
        self, X: Array, Y: Array, rows: slice, columns: slice, *, same: bool, finished: bool = True
    ) -> Array:
        """The measure of some rows of X and Y, or its order if not `finished`; `same` says that X is Y."""
        xp = array_namespace(X)
        with np.errstate(all="ignore"):
            values = self.tile(xp, X[rows, :], Y[columns, :])
            if finished and self.finish is not None:
                values = self.finish(xp, values)
        if same and self.itself is not None and rows.start < columns.stop and columns.start < rows.stop:
            i, j = (xp.arange(part.start, part.stop, device=device(X)) for part in (rows, columns))
            itself = xp.full((), self.itself, dtype=values.dtype, device=device(X))
            at = i[:, None] == j[None, :]
            values = xp.where(at & ~xp.isnan(values) if self.nan_stays else at, itself, values)
        return values


def memory_budget(like: Array, max_bytes: int | None = None) -> int:
    """Bytes for temporary arrays on the device of an array."""
    if max_bytes is not None:
        return max_bytes
    return HOST_BYTES if isinstance(like, np.ndarray) else DEVICE_BYTES


def slices(n: int, size: int) -> Iterator[slice]:
    """Slices of n rows, of so many each, or of one."""
    size = max(1, size)
    return (slice(i, min(i + size, n)) for i in range(0, n, size))


def tile_slices(
    measure: Measure, X: Array, Y: Array, max_bytes: int | None = None
) -> Iterator[tuple[slice, slice]]:
    """Slices of rows of X and of Y whose tiles fit in `max_bytes`, or single pairs."""
    n_x, n_y = X.shape[0], Y.shape[0]
    # A tile has at most 8 bytes a number, and about two temporary arrays of its size.
    pairs = max(1, memory_budget(X, max_bytes) // (24 * (X.shape[1] if measure.wide else 1)))
    b = min(n_y, max(isqrt(pairs), pairs // max(n_x, 1), 1))
    a = max(1, pairs // b)
    yield from product(slices(n_x, a), slices(n_y, b))


def pair_matrix(
    measure: Measure,
    X: Array,
    Y: Array,
    *,
    same: bool,
    dtype: Any = None,
    max_bytes: int | None = None,
    rows: slice | None = None,
) -> Array:
    """The measure of all pairs, (n_x, n_y), or of some rows of X with all of Y; by default in X's dtype.

    `max_bytes` limits the memory beside the result; `same` says that X is Y.
    """
    xp, first = array_namespace(X), 0 if rows is None else rows.start
    chosen = X if rows is None else X[rows, :]
    dtype = X.dtype if dtype is None else dtype
    out = None
    for i, j in tile_slices(measure, chosen, Y, max_bytes):
        at = slice(first + i.start, first + i.stop)
        values = xp.astype(measure(X, Y, at, j, same=same), dtype, copy=False)
        if values.shape == (chosen.shape[0], Y.shape[0]):
            return values
        if out is None:
            out = xp.empty((chosen.shape[0], Y.shape[0]), dtype=dtype, device=device(X))
        out = xpx.at(out)[i, j].set(values)
    return out


def nearest_rows(
    measure: Measure, X: Array, Y: Array, *, same: bool, max_bytes: int | None = None
) -> tuple[Array, Array]:
    """For each row of X the first nearest row of Y, and their measure in the dtype of X, each (n_x,)."""
    xp = array_namespace(X)
    found: list[tuple[Array, Array]] = []
    for i, j in tile_slices(measure, X, Y, max_bytes):
        values = measure(X, Y, i, j, same=same, finished=False)
        place, best = xp.argmin(values, axis=1) + j.start, xp.min(values, axis=1)
        if j.start:
            place_before, best_before = found.pop()
            # The first NaN counts as the nearest, as in numpy.argmin.
            closer = (best < best_before) | (xp.isnan(best) & ~xp.isnan(best_before))
            place, best = xp.where(closer, place, place_before), xp.where(closer, best, best_before)
        found.append((place, best))
    places, least = (xp.concat(list(parts)) for parts in zip(*found, strict=True))
    with np.errstate(all="ignore"):
        least = least if measure.finish is None else measure.finish(xp, least)
    return places, xp.astype(least, X.dtype, copy=False)
