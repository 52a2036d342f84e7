"""Some rows of an X in chunks, which are read for each prediction, or kept if memory allows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.folds._row_index import n_rows
from manyfit.folds.rows._host import HostRows
from manyfit.folds.rows._source import Linear
from manyfit.folds.rows.chunks._sums import SAMPLE_PARTS, ChunkSums, Held
from manyfit.folds.splits._atoms import Rows, as_rows

Array = NDArray[Any]


class SomeRows(HostRows):
    """Rows of an X in chunks, as the test rows of a fold: predictions do not need them all in memory.

    They are kept for further predictions, in the blocks that were read, if they take at most a quarter of
    the memory limit and no workers read them.
    """

    def __init__(self, X: ChunkSums, index: Array) -> None:
        found = as_rows(index, X.shape[0])
        self._order = None if (np.diff(found) >= 0).all() else np.argsort(found, kind="stable")
        found = found if self._order is None else found[self._order]
        together = found.size > 0 and bool((np.diff(found) == 1).all())
        self.X = X
        self._rows: Rows = slice(int(found[0]), int(found[-1]) + 1) if together else found
        self.shape, self.dtype = (n_rows(self._rows), X.shape[1]), X.dtype
        self._kept: list[Held] | None = None

    def take(self, rows: Any) -> Array:
        """Some of the rows, in memory."""
        own = np.arange(self._rows.start, self._rows.stop) if isinstance(self._rows, slice) else self._rows
        if self._order is not None:
            own = own[np.argsort(self._order)]
        return np.asarray(self.X.take(own[rows]))

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Array:
        if rows is not None:
            return super().predict(linear, rows, keeps_single)
        source = self.X.source
        if source.workers is None and self.shape[0] * self.X.row_bytes <= source.memory // SAMPLE_PARTS:
            out = np.concatenate([one.predict(linear, None, keeps_single) for one in self._parts()], axis=1)
        else:
            out = self.X.predict(linear, self._rows, keeps_single)
        if self._order is None:
            return out
        given = np.empty_like(out)
        given[:, self._order] = out
        return given

    def _parts(self) -> list[Held]:
        if self._kept is None:
            self.X.source.count_predicted([self._rows])
            self._kept = [block.some(local) for _, block, (local,) in self.X.held([self._rows])]
        return self._kept
