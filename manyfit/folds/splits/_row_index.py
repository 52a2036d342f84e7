"""Rows of an array of any library, and blocks of them."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from manyfit.arrays import array_namespace, is_array, to_device_of
from manyfit.folds.splits._atoms import Rows, as_rows, contiguous

Array = Any


class RowReader(Protocol):
    """A matrix in host memory, or read into it a block of rows at a time."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def take(self, rows: Any) -> Array:
        """Some rows as an array of shape (n_rows, p); see `RowSource.take`."""


def take_rows(A: Array, rows: Any) -> Array:
    """Some rows of an array or sparse matrix, on its device; a view if `rows` is a slice, else a copy."""
    if isinstance(A, np.ndarray) or not is_array(A):
        return A[rows]
    if isinstance(rows, slice):
        return A[rows, ...]
    index = contiguous(as_rows(rows, A.shape[0]))  # the array API does not count indices from the end
    if isinstance(index, slice):
        return A[index, ...]
    return array_namespace(A).take(A, to_device_of(index, A, label="indices"), axis=0)


def take_last(A: Array, index: Any) -> Array:
    """Entries along the last axis of an array; `index` is a slice, or an array where `A` lies."""
    if isinstance(index, slice) or isinstance(A, np.ndarray):
        return A[..., index]
    return array_namespace(A).take(A, index, axis=-1)


def view_rows(A: Any, rows: Any) -> Any:
    """Some rows of a `RowSource` for a reader: a read-only view of neighbours in order, else a copy."""
    index = np.asarray(rows)
    if index.dtype.kind in "iu" and index.size and index[0] >= 0:
        rows = contiguous(index.astype(np.intp, copy=False))  # differences of a small type overflow
    found = A.take(rows)
    if isinstance(found, np.ndarray):
        found = found.view()
        found.flags.writeable = False
    return found


def row_blocks(rows: Rows, size: int) -> Iterator[Rows]:
    """Cut rows, a slice without a step or an index, into pieces of at most `size` rows, in order."""
    if isinstance(rows, slice):
        for start in range(rows.start, rows.stop, size):
            yield slice(start, min(start + size, rows.stop))
    else:
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def n_rows(rows: Rows) -> int:
    """Number of rows of a slice without a step, or of an index."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)
