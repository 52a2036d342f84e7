"""Rows of an array wherever it lies, and pieces of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, is_array, to_device_of
from manyfit.folds.splits._atoms import Rows, as_rows, contiguous

Array = Any


def take_rows(A: Array, rows: Any) -> Array:
    """Some rows of an array, there.

    Parameters
    ----------
    A : array or sparse matrix of shape (n, ...)
        On the host or on a device.
    rows : slice, or ndarray of int or bool
        On the host.

    Returns
    -------
    array
        A view where rows are a slice; else a copy, and of a device the indices are uploaded.
    """
    if isinstance(A, np.ndarray) or not is_array(A):
        return A[rows]
    if isinstance(rows, slice):
        return A[rows, ...]
    index = as_rows(rows, A.shape[0])  # the array API knows no indices from the end
    together = contiguous(index)
    if isinstance(together, slice) and (np.diff(index) == 1).all():
        return A[together, ...]
    return array_namespace(A).take(A, to_device_of(index, A, label="indices"), axis=0)


def row_blocks(rows: Rows, size: int) -> Iterator[Rows]:
    """Cut rows into pieces.

    Parameters
    ----------
    rows : slice or ndarray of int
        A slice has ends and no step.
    size : int
        Most rows of a piece.

    Yields
    ------
    slice or ndarray of int
        In order.
    """
    if isinstance(rows, slice):
        for start in range(rows.start, rows.stop, size):
            yield slice(start, min(start + size, rows.stop))
    else:
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def n_rows(rows: Rows) -> int:
    """How many rows these are.

    Parameters
    ----------
    rows : slice or ndarray of int
        A slice has ends and no step.

    Returns
    -------
    int
        Their number.
    """
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)
