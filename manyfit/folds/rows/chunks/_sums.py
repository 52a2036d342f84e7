"""Sums over rows that lie outside memory: those of the rows of each read, merged in order."""

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from manyfit.folds._blas_threads import single_blas_thread
from manyfit.folds._row_index import n_rows
from manyfit.folds.moments._host import sum_atoms
from manyfit.folds.moments._known_sums import KnownSums
from manyfit.folds.moments._mixed import sum_mixed_atoms
from manyfit.folds.moments._moments import Moments, SummedMoments, merged_moments
from manyfit.folds.moments._setwise_merge import SetwiseMerge
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.rows._host import NumPyRows
from manyfit.folds.rows._merge_tree import MergeTree, Node
from manyfit.folds.rows._mixed import MixedRows
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.rows.chunks._cuts import first_row, ordered, rows_before
from manyfit.folds.rows.chunks._passes import ChunkPasses
from manyfit.folds.splits._atoms import Rows

Array = NDArray[Any]
Held = NumPyRows | MixedRows

# A sample of rows in memory takes at most this part of the limit.
SAMPLE_PARTS = 4


# Consecutive reads that are added one after the other; beyond, sums are merged in pairs. A task of a cluster
# has at least so many: 256 MiB, unless memory is short.
GROUP_READS = 8

Work = Callable[[Any, slice, Held, list[Rows]], Any]
"""``work(X, rows, block, local)``: a part of a sum from the rows of a read, in memory, and those of each set
among them, numbered from the first of the read. X is a `ChunkSums`. Workers have to be able to import it."""


@dataclass(frozen=True)
class ReadSums:
    """A sum over the reads of X that hold rows of some sets, which can be made in parts."""

    X: "ChunkSums"
    work: Work
    merge: Callable[[Any, Any], Any]
    sets: Sequence[Rows] | None

    def inputs(self, groups: range) -> list[Any]:
        """What Dask has of the rows of some groups on its workers, see `ChunkRows.inputs`."""
        return self.X.source.inputs(_reads_of(groups))

    def nodes(self, groups: range, inputs: Sequence[Any] = ()) -> tuple[list[Node], int]:
        """The nodes of the tree over some groups of reads, and the bytes that were read for them."""
        X, tree = self.X.for_thread(), MergeTree(self.merge)
        X.source.take_inputs(inputs, _reads_of(groups))
        with single_blas_thread():
            for node in X.group_sums(self.work, self.merge, self.sets, groups):
                tree.add(*node)
        return list(tree.nodes()), X.source.bytes_read


class Workers(Protocol):
    """Workers of a cluster that read chunks and sum them."""

    def run(self, sums: ReadSums, n_groups: int) -> Iterator[tuple[list[Node], int]]:
        """`ReadSums.nodes` of all groups of reads, in any order."""

    def tasks(self, n_groups: int) -> list[range]:
        """The groups of reads of each task of a pass."""


class ChunkSums(RowSource):
    """Base class of rows that are in memory one read at a time.

    A pass reads each chunk once, in order, and gives all atoms their rows of it, also of shuffled folds.
    Sums of reads are merged as a fixed tree, in the order of the rows, so that results do not depend on
    workers or threads.

    Attributes
    ----------
    workers : Workers or None
        Who reads and sums the chunks, if not this process.
    """

    reads_some_rows = False  # chunks are read whole
    workers: Workers | None = None

    @cached_property
    def known_sums(self) -> KnownSums:
        """The moments of all rows that were summed so far."""
        return KnownSums()

    @property
    @abstractmethod
    def source(self) -> Any:
        """The `ChunkRows` that are read."""

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """Bytes of one row in memory."""

    @abstractmethod
    def held(
        self, sets: Sequence[Rows] | None = None, reads: range | None = None
    ) -> Iterator[tuple[slice, Held, list[Rows]]]:
        """The reads that hold rows of some sets, of one set of all rows by default.

        Each read comes with its rows in memory, and those of each set, numbered from its first row. `reads`
        are the numbers of those that are looked at, all by default.
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

    # Sums

    def reduced(
        self, work: Work, merge: Callable[[Any, Any], Any], sets: Sequence[Rows] | None = None
    ) -> Any:
        """What `work` makes of all reads that hold rows of some sets, merged; None if there is none."""
        tree = MergeTree(merge)
        with single_blas_thread():  # the threads of all chunks are the same
            for node in self.nodes(work, merge, sets):
                tree.add(*node)
        return tree.result()

    def nodes(
        self, work: Work, merge: Callable[[Any, Any], Any], sets: Sequence[Rows] | None
    ) -> Iterator[Node]:
        """The sums of groups of reads, or nodes of a tree of them: in order, if no workers make them."""
        source = self.source
        if source.workers is None or not source.lets_workers_read():
            yield from self.group_sums(work, merge, sets)
            return
        try:
            for nodes, nbytes in source.workers.run(ReadSums(self, work, merge, sets), source.n_groups):
                source.bytes_read += nbytes
                yield from nodes
        except Exception as error:
            source.failure = error
            raise

    def group_sums(
        self,
        work: Work,
        merge: Callable[[Any, Any], Any],
        sets: Sequence[Rows] | None,
        groups: range | None = None,
    ) -> Iterator[Node]:
        """The sums of the reads of each group, of all groups by default, in order."""
        reads = None if groups is None else _reads_of(groups)
        group, total = -1, None
        for rows, block, local in self.held(sets, reads):
            own = self.source.number_of(rows) // GROUP_READS
            part = work(self, rows, block, local)
            if own == group:
                total = merge(total, part)
                continue
            if group >= 0:
                yield 0, group, total
            group, total = own, part
        if group >= 0:
            yield 0, group, total

    def for_thread(self) -> Self:
        """A copy with counts of its own, for one thread of a worker."""
        other = self.copied()
        other.source.bytes_read = 0
        return other

    def copied(self) -> Self:
        """A copy that shares files and sums, which pickles leave out."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("workers", "known_sums")}

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
        found = self.reduced(_Ranges(columns), SetwiseMerge(_merge_ends), atoms)
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
        for _, _, parts in self.nodes(_Predictions(linear, keeps_single), operator.add, [rows]):
            for start, part in parts:
                done = rows_before(rows, start)
                where = slice(done, done + part.shape[1])
                out[:, where if order is None else order[where]] = part
        return out


@dataclass(frozen=True)
class _MomentSums:
    """The moments of each set in a read, None for a set without rows, each with the number of its rows."""

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


@dataclass(frozen=True)
class _Ranges:
    """Minimum and maximum of some columns over each set in a read; None for a set without rows."""

    columns: Array

    def __call__(self, X: ChunkSums, rows: slice, block: Held, local: list[Rows]) -> list[Any]:
        used = [a for a, own in enumerate(local) if n_rows(own)]
        ends = iter(zip(*block.ranges([local[a] for a in used], self.columns), strict=True))
        return [next(ends) if n_rows(own) else None for own in local]


def _merge_ends(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.minimum(one[0], other[0]), np.maximum(one[1], other[1])


@dataclass(frozen=True)
class _Predictions:
    """The first of some rows in a read, and their predictions."""

    linear: Linear
    keeps_single: bool

    def __call__(self, X: ChunkSums, rows: slice, block: Held, local: list[Rows]) -> list[tuple[int, Array]]:
        (own,) = local
        return [(rows.start + first_row(own), block.predict(self.linear, own, self.keeps_single))]


def _reads_of(groups: range) -> range:
    return range(groups.start * GROUP_READS, groups.stop * GROUP_READS)


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
