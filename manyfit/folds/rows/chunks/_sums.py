"""Sums over rows that lie outside memory: those of the rows of each read, merged in order."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.folds._blas_threads import single_blas_thread
from manyfit.folds._row_index import n_rows
from manyfit.folds.moments._host import sum_atoms
from manyfit.folds.moments._known_sums import KnownSums
from manyfit.folds.moments._mixed import sum_mixed_atoms
from manyfit.folds.moments._moments import Moments, SummedMoments, merged_moments
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.rows._host import NumPyRows
from manyfit.folds.rows._mixed import MixedRows
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.rows.chunks._cuts import ordered
from manyfit.folds.rows.chunks._passes import ChunkPasses
from manyfit.folds.splits._atoms import Rows

Array = NDArray[Any]
Held = NumPyRows | MixedRows

# A sample of rows in memory takes at most this part of the limit.
SAMPLE_PARTS = 4


class ChunkSums(RowSource):
    """Base class of rows that are in memory one read at a time.

    A pass reads each chunk once, in order, and gives all atoms their rows of it, also of shuffled folds.
    Sums of chunks are merged in the order of the rows, so that results do not depend on workers or threads.
    """

    reads_some_rows = False  # chunks are read whole

    @cached_property
    def known_sums(self) -> KnownSums:
        """The moments of all rows that were summed so far."""
        return KnownSums()

    @abstractmethod
    def held(self, sets: Sequence[Rows] | None = None) -> Iterator[tuple[slice, Held, list[Rows]]]:
        """The reads that hold rows of some sets, of one set of all rows by default.

        Each read comes with its rows in memory, and those of each set, numbered from its first row.
        """

    @abstractmethod
    def rows_in_memory(self, rows: Rows) -> Held:
        """A copy of some rows."""

    @abstractmethod
    def origin(self, Y: Array | None = None) -> Array:
        """A point amid the rows of X, or of ``[X, Y]``, (p,) or (p + q,)."""

    @abstractmethod
    def require_finite(self, rows: slice, block: Held) -> None:
        """Raise ValueError, now and in each later read, for numbers that no fit could read."""

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        if len(atoms) == 1 and _hold_all(atoms, self.shape[0]):
            known = self.known_sums.of(Y, weights)
            if known is not None:
                return [(known, 0)]
        origin, p = self.origin(Y), self.shape[1]
        found: list[tuple[Moments, int] | None] = [None] * len(atoms)
        with single_blas_thread():  # the threads of all chunks are the same
            for rows, block, local in self.held(atoms):
                used = [a for a, own in enumerate(local) if n_rows(own)]
                W = None if weights is None else weights[rows]
                parts = _sums_about(origin, block, Y[rows], [local[a] for a in used], W, in_pieces)
                if not all(np.isfinite(np.diagonal(part.scatter)[:p]).all() for part, _ in parts):
                    self.require_finite(rows, block)
                for a, (part, _) in zip(used, parts, strict=True):
                    found[a] = _merged(found[a], (part, n_rows(local[a])))  # read once, though summed twice
        d = origin.size
        none = Moments(0.0, 0.0, origin, np.zeros(d), np.zeros((d, d))), 0
        summed = [none if one is None else one for one in found]
        if _hold_all(atoms, self.shape[0]):
            self.known_sums.add(Y, weights, summed)
        return summed

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        low, high = np.empty((2, len(atoms), len(columns)), dtype=self.dtype)
        seen = np.zeros(len(atoms), dtype=bool)
        for _, block, local in self.held(atoms):
            used = [a for a, own in enumerate(local) if n_rows(own)]
            least, most = block.ranges([local[a] for a in used], columns)
            for a, below, above in zip(used, least, most, strict=True):
                low[a] = np.minimum(low[a], below) if seen[a] else below
                high[a] = np.maximum(high[a], above) if seen[a] else above
                seen[a] = True
        return low, high

    def passes(self, atoms: Sequence[Rows], origin: Array | None = None) -> Passes:
        return ChunkPasses(self, atoms, self.origin() if origin is None else origin)

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Array:
        rows, order = ordered(slice(0, self.shape[0]) if rows is None else rows)
        _, m, q = linear.coef.shape
        dtype = np.float32 if keeps_single and self.dtype == np.float32 else np.float64
        out, done = np.empty((m, n_rows(rows), q), dtype=dtype), 0
        for _, block, (local,) in self.held([rows]):
            stop = done + n_rows(local)
            where = slice(done, stop) if order is None else order[done:stop]
            out[:, where] = block.predict(linear, local, keeps_single)
            done = stop
        return out


def _sums_about(
    origin: Array, X: Held, Y: Array, atoms: Sequence[Rows], weights: Array | None, in_pieces: bool
) -> SummedMoments:
    if isinstance(X, MixedRows):
        return sum_mixed_atoms(X.mixed, Y, atoms, weights, in_pieces=in_pieces, origin=origin)
    return sum_atoms(X, Y, atoms, weights, in_pieces=in_pieces, origin=origin)


def _hold_all(atoms: Sequence[Rows], n: int) -> bool:
    """Whether sets of rows hold each row once."""
    if sum(map(n_rows, atoms)) != n:
        return False
    held = np.zeros(n, dtype=bool)
    for rows in atoms:
        held[rows] = True
    return bool(held.all())


def _merged(before: tuple[Moments, int] | None, part: tuple[Moments, int]) -> tuple[Moments, int]:
    return part if before is None else (merged_moments([before[0], part[0]]), before[1] + part[1])
