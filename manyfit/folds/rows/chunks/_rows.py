"""The base of rows that lie outside memory: every pass reads whole chunks, in order, one ahead."""

import math
import operator
import time
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from manyfit.folds.moments._host import SAMPLED_ROWS, evenly_spread, median_row
from manyfit.folds.passes._scan import Scan
from manyfit.folds.rows._chunk_reduction import GROUP_READS
from manyfit.folds.rows._csr import CsrRows
from manyfit.folds.rows._host import HostRows, NumPyRows
from manyfit.folds.rows._source import RowSource
from manyfit.folds.rows.chunks._cuts import RowCuts, in_blocks, join_parts, ordered, rows_of
from manyfit.folds.rows.chunks._passes import Held
from manyfit.folds.rows.chunks._sums import SAMPLE_PARTS, ChunkSums
from manyfit.folds.splits._atoms import Array, Rows, as_rows
from manyfit.folds.splits._row_index import n_rows

Load = Callable[[int, int], Any]

# Seconds after which rows are read again that could not be read.
RETRY_AFTER_S = (0.1, 1.0)


class ChunkRows(ChunkSums, HostRows):
    """Base class of rows that lie outside memory.

    A subclass defines `read`. Its methods are called from one thread at a time.

    Parameters
    ----------
    kind : str
        The class of X, for messages.
    shape : tuple of int
        Numbers of rows and columns.
    dtype : dtype
        float32, float64, integer or bool.
    borders : list of int
        Rows at which reads begin and end, from 0 to the number of rows.
    memory : int
        Bytes that samples of the rows may take, and reads.

    Attributes
    ----------
    identity : tuple
        Equal for the same data in this process.
    names : tuple of str
        The names of the columns, if X is a frame; else empty.
    recomputed : str
        Why each pass computes the rows anew, and how to avoid that; empty if it does not.
    read_by_sklearn : bool
        Whether scikit-learn can read X, too.
    in_files : bool
        Whether the rows lie in files, which any process may open.
    read_here : str
        The reason why the workers of a client do not read X; empty if they do, or there is no client.
    is_placed : bool
        Whether somebody has decided who reads X: the workers of a client, or this process.
    passes_predicted : float
        Passes that predictions took, as far as rows were read for them.
    bytes_read : int
        Bytes of the rows that were read so far, each as often as it was read.
    failure : Exception or None
        The error that ended the reading of X, until `start_anew`.
    times_anew : int
        How often a failed read made it forget what was read.
    """

    recomputed = ""
    read_by_sklearn = in_files = False
    read_here = ""
    is_placed = False
    names: tuple[str, ...] = ()

    def __init__(
        self, kind: str, shape: tuple[int, int], dtype: np.dtype[Any], borders: Sequence[int], memory: int
    ) -> None:
        self.kind, self.shape, self.dtype, self.n_columns = kind, shape, dtype, shape[1]
        self.borders, self.memory = borders, memory
        self.identity: tuple[Any, ...] = (kind, shape)
        self.bytes_read, self.passes_predicted = 0, 0.0
        self.failure: Exception | None = None
        self.times_anew = 0
        self._sample: tuple[Array, Array] | None = None

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """The rows from `start` to `stop`, in memory."""

    def file_identity(self) -> tuple[Any, ...] | None:
        """What tells the files that hold X from others and later ones, in any process; None if unknown."""
        return None

    def start_anew(self) -> None:
        """After a failed read: forget the error, and all that was read, which may have changed since."""
        if self.failure is not None:
            self.failure = self._sample = None
            self.times_anew += 1
            vars(self).pop("known_sums", None)

    @property
    def n_reads(self) -> int:
        """The reads of one pass."""
        return len(self.borders) - 1

    @property
    def most_rows_read(self) -> int:
        """The rows of the largest read; all rows while nobody knows it."""
        return max((stop - start for start, stop in pairwise(self.borders)), default=self.shape[0])

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.n_columns * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self.shape[0] * self.row_bytes

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError(
            f"X, a {self.kind} of shape {self.shape}, is read in chunks, and is needed here as one array in "
            "memory. Leave that work out, or load X first."
        )

    # The rows

    def load(self, start: int, stop: int) -> Array:
        """`read`, checked and counted; an error names the rows."""
        return self.checked(lambda: self.as_numbers(self.read(start, stop), stop - start), start, stop)

    def load_frame(self, start: int, stop: int) -> Any:
        """The rows as scikit-learn's estimators read them: an array, or a frame if X has names."""
        return self.load(start, stop)

    def load_columns(self, start: int, stop: int, columns: Sequence[int]) -> Any:
        """`load_frame` of some columns; no others are read, where they lie apart."""
        return self.load(start, stop)[:, columns]

    def as_numbers(self, block: Any, n: int) -> Array:
        """`n` rows that were read, as an array of the shape and dtype of X; raises ValueError for others."""
        block, p = np.asarray(block), self.n_columns
        if block.shape != (n, p):
            raise ValueError(f"X gave an array of shape {block.shape}, not {(n, p)}.")
        if not np.can_cast(block.dtype, self.dtype):
            raise ValueError(f"X gave numbers of dtype {block.dtype}, not {self.dtype}.")
        self.bytes_read += n * self.row_bytes
        return block.astype(self.dtype, copy=False)

    def checked(self, load: Callable[[], Any], start: int, stop: int | None) -> Any:
        """What `load` returns; its error names the rows, and is raised until `start_anew`."""
        if self.failure is not None:
            raise self.failure
        try:
            return with_retries(load)
        except Exception as error:
            error.add_note(f"{self.where(start, stop)} of X, a {self.kind}, could not be read.")
            self.failure = error
            raise

    def where(self, start: int, stop: int | None) -> str:
        """Some rows, for messages; None stands for an end that is not known."""
        return f"Rows {start} to {stop - 1}" if stop is not None else f"Rows from {start} on"

    def in_turn(
        self, sets: Sequence[Rows] | None, load: Load, reads: range | None = None
    ) -> Iterator[tuple[slice, Any, list[Rows]]]:
        """The reads that hold rows of some sets, with what `load` makes of them, and the rows of each set.

        The rows are numbered from the first of the read. The next read is made meanwhile. `reads` are the
        numbers of those that are looked at.
        """
        sets = [slice(0, self.borders[-1])] if sets is None else sets
        waiting: list[tuple[slice, Any, list[Rows]]] = []
        with ThreadPoolExecutor(1) as reader:
            for rows, local in RowCuts(sets).reads(self.borders, reads):
                waiting.append((rows, reader.submit(load, rows.start, rows.stop), local))
                if len(waiting) > 1:
                    yield _loaded(*waiting.pop(0))
            while waiting:
                yield _loaded(*waiting.pop())

    def chunks(
        self, sets: Sequence[Rows] | None = None, reads: range | None = None
    ) -> Iterator[tuple[slice, Array, list[Rows]]]:
        """The reads that hold rows of some sets, of one set of all rows by default, in memory."""
        return self.in_turn(sets, self.load, reads)

    def frames(self) -> Iterator[tuple[slice, Any]]:
        """All reads, as `load_frame` loads them."""
        for rows, frame, _ in self.in_turn(None, self.load_frame):
            yield rows, frame

    def held(
        self, sets: Sequence[Rows] | None = None, reads: range | None = None
    ) -> Iterator[tuple[slice, Held, list[Rows]]]:
        for rows, block, local in self.chunks(sets, reads):
            yield rows, NumPyRows(block), local

    def number_of(self, rows: slice) -> int:
        """The number of a read."""
        return bisect_right(self.borders, rows.start) - 1

    @property
    def source(self) -> "ChunkRows":
        return self

    @property
    def original(self) -> "ChunkRows":
        """The rows that these are made of, block by block; themselves if they are read as they are."""
        return self

    def count_predicted(self, sets: Sequence[Rows]) -> None:
        """Count the reads that hold rows of some sets, which are predicted."""
        n_read = sum(rows.stop - rows.start for rows, _ in RowCuts(sets).reads(self.borders))
        self.passes_predicted += n_read / max(self.shape[0], 1)

    # The workers of a cluster

    def why_not_on_workers(self) -> str:
        """The reason why the workers of a cluster cannot read the chunks; empty if they may."""
        return f"the process of the search reads a {self.kind}"

    def lets_workers_read(self) -> bool:
        """Whether workers can read the chunks by the numbers of the reads."""
        return True

    @property
    def n_groups(self) -> int:
        """The groups of reads of one pass."""
        return -(-self.n_reads // GROUP_READS)

    @property
    def group_bytes(self) -> int:
        """Bytes of a group of reads, about."""
        return self.nbytes // max(self.n_groups, 1)

    def task_bytes(self, groups: range) -> int:
        """Bytes of rows that a task of a worker holds: two reads, or all if workers keep them."""
        n_reads = len(groups) * GROUP_READS if self.kept_by_workers else 2
        largest = self.most_rows_read if len(self.borders) else 0
        return n_reads * largest * self.row_bytes

    @property
    def kept_by_workers(self) -> bool:
        """Whether workers keep the chunks, as data of Dask."""
        return False

    def inputs(self, reads: range) -> list[Any]:
        """Futures of the chunks of some reads, if workers hold them."""
        return []

    def take_inputs(self, inputs: Sequence[Any], reads: range) -> None:
        """On a worker: take the results of `inputs`."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "failure": None}

    def take(self, rows: Any) -> Array:
        """Some rows as an ndarray of shape (n_rows, p); see `RowSource`."""
        n, p = self.shape
        if isinstance(rows, slice):
            start, stop, step = rows.indices(n)
            rows = slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step)
        else:
            rows = as_rows(rows, n)
        rows, order = ordered(rows)
        if self.workers is not None and n_rows(rows) > SAMPLED_ROWS:
            out = np.empty((n_rows(rows), p), dtype=self.dtype)
            for done, part in self.pieces(_taken, rows):
                where = slice(done, done + len(part))
                out[where if order is None else order[where]] = part
            return out
        out, done = np.empty((n_rows(rows), p), dtype=self.dtype), 0
        for read, (local,) in RowCuts([rows]).reads(self.borders):
            stop = done + n_rows(local)
            if isinstance(local, slice):
                block = self.load(read.start + local.start, read.start + local.stop)
            else:
                first, last = int(local[0]), int(local[-1])
                block = self.load(read.start + first, read.start + last + 1)[local - first]
            out[done:stop] = block
            done = stop
        if order is None:
            return out
        taken = np.empty_like(out)
        taken[order] = out
        return taken

    def load_rows(self, rows: Array) -> Any:
        """Some rows, in order, as `load_frame` has them."""
        parts = self.in_turn([rows], self.load_frame)
        return join_parts([rows_of(frame, local) for _, frame, (local,) in parts])

    def blocks(self, rows: Rows, size: int) -> Iterator[tuple[Rows, Array]]:
        """Some rows as arrays of at most `size` rows; see `RowSource`. The borders of chunks do not show."""
        if not isinstance(rows, slice):
            yield from super().blocks(rows, size)
            return
        start = rows.start
        for block in in_blocks((block[local] for _, block, (local,) in self.chunks([rows])), size):
            yield slice(start, start + len(block)), block
            start += len(block)

    def rows_in_memory(self, rows: Rows) -> Held:
        """A copy of some rows."""
        return NumPyRows(self.take(rows))

    def sample(self, rows: Array) -> RowSource | None:
        """A copy in memory; None if it would take too much of that."""
        return None if len(rows) * self.row_bytes > self.memory // SAMPLE_PARTS else self.rows_in_memory(rows)

    # A first look

    def scan(self) -> Scan:
        # Integers and bools are finite.
        total = self.reduced(sum_finite, operator.add) if self.dtype.kind == "f" else 0.0
        return Scan(self.origin(), math.isfinite(total))

    def origin(self, Y: Array | None = None) -> Array:
        if self._sample is None:
            n = self.known_rows()
            index = evenly_spread(n) if n else np.zeros(1, dtype=np.intp)
            self._sample = index, self.look(index) if n else np.zeros((1, self.n_columns))
        index, sample = self._sample
        given = [sample] if Y is None else [sample, Y[index]]
        return median_row(np.concatenate(given, axis=1, dtype=np.float64))

    def count(self) -> None:
        """Count the rows of each chunk, if nobody knows them; takes a pass then."""

    def look(self, rows: Array) -> Array:
        """`take` of rows among `known_rows`."""
        return self.take(rows)

    def known_rows(self) -> int:
        """How many rows, from the first on, can be read without reading others."""
        return self.shape[0]

    def require_finite(self, rows: slice, block: Held) -> None:
        values = np.asarray(block.take(slice(None)))
        if self.read_by_sklearn or np.isfinite(values).all():
            return
        self.refuse_row(rows.start + int(np.argmin(np.isfinite(values).all(axis=1))))

    def refuse_row(self, row: int) -> NoReturn:
        """Raise ValueError, now and in each later read, for the first row that holds NaN or infinity."""
        self.failure = ValueError(
            f"Input X contains NaN or infinity, first in row {row} of {self.shape[0]}. X, a {self.kind}, "
            "is read in chunks, for estimators that accept neither."
        )
        raise self.failure


def _taken(block: Held, rows: Rows) -> Array:
    return np.array(block.take(rows))


def with_retries(load: Callable[[], Any]) -> Any:
    """What `load` returns; files and networks that fail are asked again."""
    for pause in RETRY_AFTER_S:
        try:
            return load()
        except FileNotFoundError:
            raise
        except OSError:
            time.sleep(pause)
    return load()


def sum_finite(X: Any, rows: slice, block: Held, local: list[Rows]) -> float:
    """The sum of all numbers of a read, or of all entries of a sparse one."""
    values = block.X.data if isinstance(block, CsrRows) else block.take(slice(None))
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(values.sum(dtype=np.float64))
    if not math.isfinite(total):
        X.require_finite(rows, block)
    return total


def _loaded(rows: slice, future: Any, local: list[Rows]) -> tuple[slice, Any, list[Rows]]:
    return rows, future.result(), local
