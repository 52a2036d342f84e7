"""Sums over rows that lie outside memory: those of the rows of each read, merged in order."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from manyfit.folds.moments._host import sum_atoms
from manyfit.folds.moments._known_sums import KnownSums
from manyfit.folds.moments._mixed import sum_mixed_atoms
from manyfit.folds.moments._moments import Moments, SummedMoments, merged_moments
from manyfit.folds.moments._setwise_merge import SetwiseMerge
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.rows._chunk_reduction import ChunkReduction
from manyfit.folds.rows._mixed import MixedRows
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.rows.chunks._cuts import ordered
from manyfit.folds.rows.chunks._passes import ChunkPasses, Held
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows

# A sample of rows in memory takes at most this part of the limit.
SAMPLE_PARTS = 4


class ChunkSums(ChunkReduction, RowSource):
    """Base class of a `RowSource` whose rows are in memory one read at a time."""

    reads_some_rows = False  # chunks are read whole

    @cached_property
    def known_sums(self) -> KnownSums:
        """The moments of all rows that were summed so far."""
        return KnownSums()

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """Bytes of one row in memory."""

    @abstractmethod
    def rows_in_memory(self, rows: Rows) -> Held:
        """A copy of some rows."""

    @abstractmethod
    def origin(self, Y: Array | None = None) -> Array:
        """A point amid the rows of X, or of ``[X, Y]``, (p,) or (p + q,)."""

    @abstractmethod
    def require_finite(self, rows: slice, block: Held) -> None:
        """Raise ValueError, now and in each later read, for numbers that no fit could read."""

    # The methods of a `RowSource`

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        whole = _hold_all(atoms, self.shape[0])
        if len(atoms) == 1 and whole:
            known = self.known_sums.of(Y, weights)
            if known is not None:
                return [(known, 0)]
        origin = self.origin(Y)
        found = self.reduced(_MomentSums(origin, Y, weights, in_pieces), SetwiseMerge(_merge_moments), atoms)
        d = origin.size
        none = Moments(0.0, 0.0, origin, np.zeros(d), np.zeros((d, d))), 0
        summed = [none if one is None else one for one in found or [None] * len(atoms)]
        if whole:
            self.known_sums.add(Y, weights, summed)
        return summed

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        found = self.reduced(partial(_ranges, columns), SetwiseMerge(_merge_ends), atoms)
        low, high = np.empty((2, len(atoms), len(columns)), dtype=self.dtype)
        for a, ends in enumerate(found or ()):
            if ends is not None:
                low[a], high[a] = ends
        return low, high

    def passes(self, atoms: Sequence[Rows], origin: Array | None = None) -> Passes:
        return ChunkPasses(self, atoms, self.origin() if origin is None else origin)

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Array:
        rows, order = ordered(slice(0, self.shape[0]) if rows is None else rows)
        _, m, q = linear.coef.shape
        dtype = np.float32 if keeps_single and self.dtype == np.float32 else np.float64
        out = np.empty((m, n_rows(rows), q), dtype=dtype)
        self.source.count_predicted([rows])
        for done, part in self.pieces(partial(_predicted, linear, keeps_single), rows):
            where = slice(done, done + part.shape[1])
            out[:, where if order is None else order[where]] = part
        return out


@dataclass(frozen=True)
class _MomentSums:
    """The moments of each set in a read, None for a set without rows, each with the number of its rows."""

    is_kept: ClassVar[bool] = True  # by a `RangeStore`
    origin: Array
    Y: Array
    weights: Array | None
    in_pieces: bool

    def __call__(self, X: ChunkSums, rows: slice, block: Held, local: list[Rows]) -> list[Any]:
        used = [a for a, own in enumerate(local) if n_rows(own)]
        W = None if self.weights is None else self.weights[rows]
        parts = _sums_about(self.origin, block, self.Y[rows], [local[a] for a in used], W, self.in_pieces)
        p = X.shape[1]
        if not all(np.isfinite(np.diagonal(part.scatter)[:p]).all() for part, _ in parts):
            X.require_finite(rows, block)
        found: list[tuple[Moments, int] | None] = [None] * len(local)
        for a, (part, _) in zip(used, parts, strict=True):
            found[a] = part, n_rows(local[a])  # read once, though summed twice
        return found


def _merge_moments(one: tuple[Moments, int], other: tuple[Moments, int]) -> tuple[Moments, int]:
    return merged_moments([one[0], other[0]]), one[1] + other[1]


def _ranges(columns: Array, X: ChunkSums, rows: slice, block: Held, local: list[Rows]) -> list[Any]:
    """Minimum and maximum of some columns over each set in a read; None for a set without rows."""
    ends = iter(zip(*block.ranges([own for own in local if n_rows(own)], columns), strict=True))
    return [next(ends) if n_rows(own) else None for own in local]


def _merge_ends(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.minimum(one[0], other[0]), np.maximum(one[1], other[1])


def _predicted(linear: Linear, keeps_single: bool, block: Held, rows: Rows) -> Array:
    return block.predict(linear, rows, keeps_single)


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
