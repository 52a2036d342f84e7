"""Reductions over rows outside memory: parts of each read, merged as a fixed tree, here or on workers."""

import operator
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

from manyfit.exceptions import Unsupported
from manyfit.folds._blas_threads import single_blas_thread
from manyfit.folds.rows.chunks._cuts import first_row, rows_before
from manyfit.folds.splits._atoms import Rows

# Consecutive reads that are added one after the other; beyond, sums are merged in pairs. A task of a cluster
# has at least so many: 256 MiB, unless memory is short.
GROUP_READS = 8

Work = Callable[[Any, slice, Any, list[Rows]], Any]
"""``work(X, rows, block, local)``: a part of a sum from the rows of a read, in memory, and those of each set
among them, numbered from the first of the read. X is a `ChunkReduction`. Workers have to be able to import
it."""

Node = tuple[int, int, Any]
"""The merge of ``2 ** level`` parts: the level, its number among those of the level, and what was merged."""


class MergeTree:
    """Merges parts 0 and 1, 2 and 3, and so on, and these in pairs again.

    ``merge(a, b)`` returns the merge of neighbours and may change `a`. If parts come in order, about
    ``log2(n)`` merges of them are in memory at a time.
    """

    def __init__(self, merge: Callable[[Any, Any], Any]) -> None:
        self.merge = merge
        self._waiting: dict[tuple[int, int], Any] = {}

    def add(self, level: int, number: int, part: Any) -> None:
        """Add a part (level 0), or a node of another tree of the same parts."""
        while (level, number ^ 1) in self._waiting:
            other = self._waiting.pop((level, number ^ 1))
            part = self.merge(other, part) if number & 1 else self.merge(part, other)
            level, number = level + 1, number >> 1
        self._waiting[level, number] = part

    def nodes(self) -> Iterator[Node]:
        """The nodes that wait for their neighbours, in the order of the parts."""
        for level, number in sorted(self._waiting, key=lambda node: node[1] << node[0]):
            yield level, number, self._waiting[level, number]

    def result(self) -> Any:
        """The merge of all parts; None if there are none."""
        total = None
        for j, (_, _, part) in enumerate(self.nodes()):
            total = part if j == 0 else self.merge(total, part)
        return total


@dataclass(frozen=True)
class ReadSums:
    """A sum over the reads of X that hold rows of some sets, which can be made in parts."""

    X: "ChunkReduction"
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


class KeptPass(Protocol):
    """The merged sums of a pass that outlast this process; `nodes` are those of a pass that was cut off."""

    nodes: Sequence[Node]

    def keep(self, nodes: Iterable[Node]) -> None:
        """Keep all nodes of the pass so far, in place of those before."""


class RangeStore(Protocol):
    """Where the merged sums of passes outlast this process."""

    def begin(self, X: Any, work: Work, sets: Sequence[Rows] | None) -> KeptPass | None:
        """A pass over X; None if its sums are not kept."""


class Workers(Protocol):
    """Workers of a cluster that read chunks and sum them."""

    @property
    def n_slots(self) -> int:
        """Tasks that run at a time."""

    def run(self, sums: ReadSums, tasks: Sequence[range]) -> Iterator[tuple[list[Node], int]]:
        """`ReadSums.nodes` of the groups of reads of each task, in any order."""

    def tasks(self, n_groups: int, group_bytes: int) -> list[range]:
        """The groups of reads of each task of a pass, each of about so many bytes."""


class ChunkReduction(ABC):
    """Base class of rows that are in memory one read at a time.

    A pass reads each chunk once, in order, and gives all sets of rows, also those of shuffled folds, their
    rows of it. What is made of each read is merged as a fixed tree, in the order of the rows, so that results
    do not depend on workers or threads.

    Attributes
    ----------
    workers : Workers or None
        Who reads and sums the chunks, if not this process.
    range_store : RangeStore or None
        What keeps merged sums of a pass that may be cut off.
    """

    workers: Workers | None = None
    range_store: RangeStore | None = None

    @property
    @abstractmethod
    def source(self) -> Any:
        """The `ChunkRows` that are read."""

    @abstractmethod
    def held(
        self, sets: Sequence[Rows] | None = None, reads: range | None = None
    ) -> Iterator[tuple[slice, Any, list[Rows]]]:
        """The reads that hold rows of some sets, of one set of all rows by default.

        Each read comes with its rows in memory, and those of each set, numbered from its first row. `reads`
        are the numbers of those that are looked at, all by default.
        """

    def reduced(
        self,
        work: Work,
        merge: Callable[[Any, Any], Any],
        sets: Sequence[Rows] | None = None,
        n_threads: int = 1,
    ) -> Any:
        """What `work` makes of all reads that hold rows of some sets, merged; None if there is none.

        In this process so many threads work on a read each.
        """
        tree, left = MergeTree(merge), None
        kept = None if self.range_store is None else self.range_store.begin(self, work, sets)
        if kept is not None and kept.nodes:
            left = _groups_left(kept.nodes, self.source.n_groups)
            for node in kept.nodes:
                tree.add(*node)
        with single_blas_thread():  # the threads of all chunks are the same
            for node in self.nodes(work, merge, sets, n_threads, left):
                tree.add(*node)
                if kept is not None:
                    kept.keep(tree.nodes())
        return tree.result()

    def nodes(
        self,
        work: Work,
        merge: Callable[[Any, Any], Any],
        sets: Sequence[Rows] | None,
        n_threads: int = 1,
        left: Sequence[range] | None = None,
    ) -> Iterator[Node]:
        """The sums of groups of reads, or nodes of a tree of them: in order, if no workers make them.

        `left` are the groups that are summed, all by default.
        """
        source = self.source
        if source.workers is None or not source.lets_workers_read():
            for groups in [None] if left is None else left:
                yield from self.group_sums(work, merge, sets, groups, n_threads)
            return
        tasks = source.workers.tasks(source.n_groups, source.group_bytes)
        if left is not None:
            tasks = [part for task in tasks for groups in left if (part := _common(task, groups))]
        try:
            for nodes, nbytes in source.workers.run(ReadSums(self, work, merge, sets), tasks):
                source.bytes_read += nbytes
                yield from nodes
        except Unsupported:  # X was read
            raise
        except Exception as error:
            source.failure = error
            raise

    def pieces(self, function: Callable[[Any, Rows], Any], rows: Rows) -> Iterator[tuple[int, Any]]:
        """What ``function(block, local)`` makes of the rows of each read that are among some sorted rows.

        Each comes with the place of its first row among them. Workers give them in any order.
        """
        for _, _, parts in self.nodes(partial(_piece_of_read, function), operator.add, [rows]):
            for start, part in parts:
                yield rows_before(rows, start), part

    def group_sums(
        self,
        work: Work,
        merge: Callable[[Any, Any], Any],
        sets: Sequence[Rows] | None,
        groups: range | None = None,
        n_threads: int = 1,
    ) -> Iterator[Node]:
        """The sums of the reads of each group, of all groups by default, in order."""
        reads, group, total = None if groups is None else _reads_of(groups), -1, None
        for read, part in self._each_read(work, sets, reads, n_threads):
            own = read // GROUP_READS
            if own == group:
                total = merge(total, part)
                continue
            if group >= 0:
                yield 0, group, total
            group, total = own, part
        if group >= 0:
            yield 0, group, total

    def _each_read(
        self, work: Work, sets: Sequence[Rows] | None, reads: range | None, n_threads: int
    ) -> Iterator[tuple[int, Any]]:
        """What `work` makes of each read, with the number of the read, in order."""
        if n_threads == 1:
            for rows, block, local in self.held(sets, reads):
                number = self.source.number_of(rows)
                yield number, work(self, rows, block, local)
            return
        waiting: deque[tuple[int, Future[Any]]] = deque()
        with ThreadPoolExecutor(n_threads) as pool:
            try:
                for rows, block, local in self.held(sets, reads):
                    number = self.source.number_of(rows)
                    waiting.append((number, pool.submit(work, self, rows, block, local)))
                    if len(waiting) > n_threads:
                        number, future = waiting.popleft()
                        yield number, future.result()
                while waiting:
                    number, future = waiting.popleft()
                    yield number, future.result()
            finally:
                for _, future in waiting:
                    future.cancel()

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
        own = {"workers", "known_sums", "range_store"}  # of this process
        return {name: value for name, value in vars(self).items() if name not in own}


def _piece_of_read(
    function: Callable[[Any, Rows], Any], X: Any, rows: slice, block: Any, local: list[Rows]
) -> list[tuple[int, Any]]:
    """The first of some rows in a read, and what a function makes of those of the read."""
    (own,) = local
    return [(rows.start + first_row(own), function(block, own))]


def _groups_left(nodes: Sequence[Node], n_groups: int) -> list[range]:
    """The groups that no node holds, of `n_groups`, in ranges."""
    left, start = list[range](), 0
    for first, last in sorted((number << level, (number + 1) << level) for level, number, _ in nodes):
        left += [range(start, first)] if first > start else []
        start = last
    return [*left, range(start, n_groups)] if start < n_groups else left


def _common(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


def _reads_of(groups: range) -> range:
    return range(groups.start * GROUP_READS, groups.stop * GROUP_READS)
