"""Matrices of pairs of rows, tile by tile: what is in memory beside the result is bounded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import array_api_extra as xpx
import numpy as np

from manyfit.arrays import array_namespace, device
from manyfit.metrics.kernels._kernel import DEVICE_BYTES

Array = Any

# Bytes of a tile and what it is made of on the host: enough for a product to be quick.
HOST_BYTES = 2**25


@dataclass(frozen=True)
class Measure:
    """A distance or kernel of pairs of rows.

    Attributes
    ----------
    tile : callable
        ``tile(xp, x, y)`` of rows of shape (a, d) and (b, d) is a new array of shape (a, b): what orders
        pairs as the measure does.
    finish : callable, optional
        ``finish(xp, values)`` makes the measure of it.
    wide : bool
        Whether the tile holds an array of shape (a, b, d) on its way.
    itself : float, optional
        What a row has with itself, where rounding would say otherwise.
    nan_stays : bool
        Whether a row may have NaN with itself nonetheless.
    """

    tile: Callable[[Any, Array, Array], Array]
    finish: Callable[[Any, Array], Array] | None = None
    wide: bool = False
    itself: float | None = None
    nan_stays: bool = False

    def __call__(
        self, X: Array, Y: Array, rows: slice, columns: slice, *, same: bool, finished: bool = True
    ) -> Array:
        """The measure of some rows of X and some of Y, in the dtype in which it is computed.

        Parameters
        ----------
        X, Y : arrays of shape (n_x, d) and (n_y, d)
            Rows of one floating dtype.
        rows, columns : slice
            Of X and of Y.
        same : bool
            Whether row i of the one is row i of the other.
        finished : bool
            Whether not only the order counts.
        """
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


def budget(like: Array, max_bytes: int | None = None) -> int:
    """Bytes for what is made on the way, beside an array."""
    if max_bytes is not None:
        return max_bytes
    return HOST_BYTES if isinstance(like, np.ndarray) else DEVICE_BYTES


def tiles(
    measure: Measure, X: Array, Y: Array, max_bytes: int | None = None
) -> Iterator[tuple[slice, slice]]:
    """Slices of rows of X and of Y whose tiles fit in `max_bytes`, or single pairs."""
    n_x, n_y = X.shape[0], Y.shape[0]
    # Tiles are computed in at most 8 bytes a number, with about two more of the same size beside them.
    pairs = max(1, budget(X, max_bytes) // (24 * (X.shape[1] if measure.wide else 1)))
    b = min(n_y, max(isqrt(pairs), pairs // max(n_x, 1), 1))
    a = max(1, pairs // b)
    for i in range(0, n_x, a):
        for j in range(0, n_y, b):
            yield slice(i, min(i + a, n_x)), slice(j, min(j + b, n_y))


def matrix(
    measure: Measure,
    X: Array,
    Y: Array,
    *,
    same: bool,
    dtype: Any = None,
    max_bytes: int | None = None,
    rows: slice | None = None,
) -> Array:
    """The measure of all pairs, of shape (n_x, n_y), or of some rows of X with all of Y.

    Parameters
    ----------
    measure : Measure
        What is measured.
    X, Y : arrays of shape (n_x, d) and (n_y, d)
        Rows of one floating dtype.
    same : bool
        Whether X is Y.
    dtype : dtype, optional
        Of the result; by default that of X.
    max_bytes : int, optional
        Of memory beside the result.
    rows : slice, optional
        Of X.

    Returns
    -------
    array of shape (n_x, n_y)
        Where X lies.
    """
    xp, first = array_namespace(X), 0 if rows is None else rows.start
    of_rows = X if rows is None else X[rows, :]
    dtype = X.dtype if dtype is None else dtype
    out = None
    for i, j in tiles(measure, of_rows, Y, max_bytes):
        at = slice(first + i.start, first + i.stop)
        values = xp.astype(measure(X, Y, at, j, same=same), dtype, copy=False)
        if values.shape == (of_rows.shape[0], Y.shape[0]):
            return values
        if out is None:
            out = xp.empty((of_rows.shape[0], Y.shape[0]), dtype=dtype, device=device(X))
        out = xpx.at(out)[i, j].set(values)
    return out


def nearest(
    measure: Measure, X: Array, Y: Array, *, same: bool, max_bytes: int | None = None
) -> tuple[Array, Array]:
    """For each row of X the first of the nearest rows of Y, and how far it is.

    Returns
    -------
    places : array of shape (n_x,)
        In the default dtype of indices.
    values : array of shape (n_x,)
        In the dtype of X.
    """
    xp = array_namespace(X)
    found: list[tuple[Array, Array]] = []
    for i, j in tiles(measure, X, Y, max_bytes):
        values = measure(X, Y, i, j, same=same, finished=False)
        place, best = xp.argmin(values, axis=1) + j.start, xp.min(values, axis=1)
        if j.start:
            place_before, best_before = found.pop()
            # The first that is NaN counts as the nearest, as NumPy has it.
            closer = (best < best_before) | (xp.isnan(best) & ~xp.isnan(best_before))
            place, best = xp.where(closer, place, place_before), xp.where(closer, best, best_before)
        found.append((place, best))
    places, least = (xp.concat(list(parts)) for parts in zip(*found, strict=True))
    with np.errstate(all="ignore"):
        least = least if measure.finish is None else measure.finish(xp, least)
    return places, xp.astype(least, X.dtype, copy=False)
