"""Some rows of an X in chunks, which are read for each prediction, or kept if memory allows."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from manyfit.folds.rows._host import HostRows
from manyfit.folds.rows._source import Linear
from manyfit.folds.rows.chunks._cuts import first_row, rows_before
from manyfit.folds.rows.chunks._passes import Held
from manyfit.folds.rows.chunks._sums import SAMPLE_PARTS, ChunkSums
from manyfit.folds.splits._atoms import Array, Rows, as_rows, contiguous
from manyfit.folds.splits._row_index import n_rows


class SomeRows(HostRows):
    """Rows of an X in chunks, as the test rows of a fold: predictions do not need them all in memory.

    They are kept for further predictions, in the blocks that were read, if they take at most a quarter of
    the memory limit and no workers read them.

    Attributes
    ----------
    is_sorted : bool
        Whether the rows are in the order of X.
    """

    def __init__(self, X: ChunkSums, index: Array) -> None:
        found = as_rows(index, X.shape[0])
        self._order = None if (np.diff(found) >= 0).all() else np.argsort(found, kind="stable")
        found = found if self._order is None else found[self._order]
        self.X, self._rows = X, contiguous(found)
        self.shape, self.dtype = (n_rows(self._rows), X.shape[1]), X.dtype
        self._kept: list[Held] | None = None
        self.is_sorted = self._order is None

    def take(self, rows: Any) -> Array:
        """Some of the rows, in memory."""
        own = np.arange(self._rows.start, self._rows.stop) if isinstance(self._rows, slice) else self._rows
        if self._order is not None:
            own = own[np.argsort(self._order)]
        return np.asarray(self.X.take(own[rows]))

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Array:
        if rows is not None:
            return super().predict(linear, rows, keeps_single)
        if self._keeps_rows:
            out = np.concatenate([one.predict(linear, None, keeps_single) for one in self._parts()], axis=1)
        else:
            out = self.X.predict(linear, self._rows, keeps_single)
        return self._as_given(out, 1)

    def mapped(self, function: Callable[[Array], tuple[Array, ...]], axis: int = 0) -> tuple[Array, ...]:
        """What a function of some rows returns for all, joined along an axis, by workers if they read X."""
        if self._keeps_rows:
            found = [function(_rows_of(one, slice(None))) for one in self._parts()]
        else:
            self.X.source.count_predicted([self._rows])
            parts = sorted(self.X.pieces(partial(_mapped, function), self._rows), key=itemgetter(0))
            found = [part for _, part in parts]
        return tuple(self._as_given(np.concatenate(one, axis), axis) for one in zip(*found, strict=True))

    def summed(self, function: Callable[[Array, Array], Array], beside: Array) -> Array:
        """The sum of a function of some rows and their part of an array, over all rows; one pass."""
        beside = beside if self._order is None else beside[self._order]
        return np.asarray(self.X.reduced(_Summed(function, self._rows, beside), operator.add, [self._rows]))

    def in_turn(self) -> Iterator[tuple[slice, Array]]:
        """Some rows at a time in the order of X, with their places among all, in this process."""
        done = 0
        for _, block, (local,) in self.X.held([self._rows]):
            stop = done + n_rows(local)
            yield slice(done, stop), np.asarray(block.take(local))
            done = stop

    @property
    def _keeps_rows(self) -> bool:
        source = self.X.source
        return source.workers is None and self.shape[0] * self.X.row_bytes <= source.memory // SAMPLE_PARTS

    def _as_given(self, out: Array, axis: int) -> Array:
        """What was found for the rows in the order of X, in their own order."""
        return out if self._order is None else np.take(out, np.argsort(self._order), axis)

    def _parts(self) -> list[Held]:
        if self._kept is None:
            self.X.source.count_predicted([self._rows])
            self._kept = [block.some(local) for _, block, (local,) in self.X.held([self._rows])]
        return self._kept


def _rows_of(block: Held, rows: Any) -> Any:
    """Some rows of a read, as an array or a CSR matrix."""
    found = block.take(rows)
    return found if hasattr(found, "tocsr") else np.asarray(found)


def _mapped(function: Callable[[Array], tuple[Array, ...]], block: Held, rows: Rows) -> tuple[Array, ...]:
    return function(_rows_of(block, rows))


@dataclass(frozen=True)
class _Summed:
    """What a function makes of some rows of a read, and of the part of an array that belongs to them."""

    function: Callable[[Array, Array], Array]
    rows: Rows
    beside: Array

    def __call__(self, X: ChunkSums, rows: slice, block: Held, local: list[Rows]) -> Array:
        (own,) = local
        start = rows_before(self.rows, rows.start + first_row(own))
        return self.function(np.asarray(block.take(own)), self.beside[start : start + n_rows(own)])
