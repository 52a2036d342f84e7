"""The base of rows that lie outside memory: every pass reads whole chunks, in order, one ahead."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.folds._blas_threads import single_blas_thread
from manyfit.folds._row_index import n_rows
from manyfit.folds.moments._host import middle, sum_atoms
from manyfit.folds.moments._moments import Moments, SummedMoments, merged_moments
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.passes._scan import Scan
from manyfit.folds.rows._host import HostRows, NumPyRows
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.rows.chunks._cuts import RowCuts, ordered
from manyfit.folds.rows.chunks._passes import ChunkPasses
from manyfit.folds.splits._atoms import Rows, as_rows

Array = NDArray[Any]

# A sample of rows in memory takes at most this part of the limit.
SAMPLE_PARTS = 4


class ChunkRows(HostRows):
    """Base class of rows that lie outside memory.

    A pass reads each chunk once, in order, and gives all atoms their rows of it, also of shuffled folds.
    Sums of chunks are merged in the order of the rows, so that results do not depend on workers or threads.
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
    recomputed : str
        Why each pass computes the rows anew, and how to avoid that; empty if it does not.
    read_by_sklearn : bool
        Whether scikit-learn can read X, too.
    bytes_read : int
        Bytes of the rows that were read so far, each as often as it was read.
    failure : Exception or None
        The error that ended the reading of X.
    """

    recomputed = ""
    read_by_sklearn = False

    def __init__(
        self, kind: str, shape: tuple[int, int], dtype: np.dtype[Any], borders: Sequence[int], memory: int
    ) -> None:
        self.kind, self.shape, self.dtype = kind, shape, dtype
        self.borders, self.memory = borders, memory
        self.identity: tuple[Any, ...] = (kind, shape)
        self.bytes_read = 0
        self.failure: Exception | None = None

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """The rows from `start` to `stop`, in memory."""

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.shape[1] * self.dtype.itemsize

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
        if self.failure is not None:
            raise self.failure
        try:
            block = np.asarray(self.read(start, stop)).astype(self.dtype, copy=False)
            if block.shape != (stop - start, self.shape[1]):
                raise ValueError(
                    f"X gave an array of shape {block.shape}, not {(stop - start, self.shape[1])}."
                )
        except Exception as error:
            error.add_note(f"Rows {start} to {stop - 1} of X, a {self.kind}, could not be read.")
            self.failure = error
            raise
        self.bytes_read += block.nbytes
        return block

    def chunks(self, sets: Sequence[Rows] | None = None) -> Iterator[tuple[slice, Array, list[Rows]]]:
        """The reads that hold rows of some sets, of one set of all rows by default.

        Each read comes with its rows in memory, and those of each set, numbered from its first row. The next
        one is read meanwhile.
        """
        sets = [slice(0, self.shape[0])] if sets is None else sets
        waiting: list[tuple[slice, Any, list[Rows]]] = []
        with ThreadPoolExecutor(1) as reader:
            for rows, local in RowCuts(sets).reads(self.borders):
                waiting.append((rows, reader.submit(self.load, rows.start, rows.stop), local))
                if len(waiting) > 1:
                    yield _loaded(*waiting.pop(0))
            while waiting:
                yield _loaded(*waiting.pop())

    def take(self, rows: Any) -> Array:
        """Some rows as an ndarray of shape (n_rows, p); see `RowSource`."""
        n, p = self.shape
        if isinstance(rows, slice):
            start, stop, step = rows.indices(n)
            rows = slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step)
        else:
            rows = as_rows(rows, n)
        rows, order = ordered(rows)
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

    def blocks(self, rows: Rows, size: int) -> Iterator[tuple[Rows, Array]]:
        """Some rows as arrays of at most `size` rows; see `RowSource`. The borders of chunks do not show."""
        if not isinstance(rows, slice):
            yield from super().blocks(rows, size)
            return
        start, kept = rows.start, np.empty((0, self.shape[1]), dtype=self.dtype)
        for _, block, (local,) in self.chunks([rows]):
            kept = np.concatenate([kept, block[local]])
            while len(kept) >= size:
                yield slice(start, start + size), kept[:size]
                start, kept = start + size, kept[size:]
        if len(kept):
            yield slice(start, start + len(kept)), kept

    def sample(self, rows: Array) -> RowSource | None:
        """A copy in memory; None if it would take too much of that."""
        return None if len(rows) * self.row_bytes > self.memory // SAMPLE_PARTS else super().sample(rows)

    # Sums over rows

    def scan(self) -> Scan:
        total = 0.0
        if self.dtype.kind == "f":  # integers and bools are finite
            with np.errstate(over="ignore", invalid="ignore"):
                for rows, block, _ in self.chunks():
                    own = float(block.sum(dtype=np.float64))
                    if not math.isfinite(own):
                        self._require_finite(rows, block)
                    total += own
        return Scan(self.middle(), math.isfinite(total))

    def middle(self) -> Array:
        """A point amid the rows, (p,)."""
        return middle(self, np.empty((self.shape[0], 0)), slice(0, self.shape[0]))

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        origin, p = middle(self, Y, slice(0, self.shape[0])), self.shape[1]
        found: list[tuple[Moments, int] | None] = [None] * len(atoms)
        with single_blas_thread():  # the threads of all chunks are the same
            for rows, block, local in self.chunks(atoms):
                held = [a for a, own in enumerate(local) if n_rows(own)]
                W = None if weights is None else weights[rows]
                parts = sum_atoms(
                    NumPyRows(block), Y[rows], [local[a] for a in held], W, in_pieces=in_pieces, origin=origin
                )
                if not all(np.isfinite(np.diagonal(part.scatter)[:p]).all() for part, _ in parts):
                    self._require_finite(rows, block)
                for a, (part, _) in zip(held, parts, strict=True):
                    found[a] = _merged(found[a], (part, n_rows(local[a])))  # read once, though summed twice
        d = origin.size
        none = Moments(0.0, 0.0, origin, np.zeros(d), np.zeros((d, d))), 0
        return [none if one is None else one for one in found]

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        low, high = np.empty((2, len(atoms), len(columns)), dtype=self.dtype)
        seen = np.zeros(len(atoms), dtype=bool)
        for _, block, local in self.chunks(atoms):
            held = [a for a, own in enumerate(local) if n_rows(own)]
            least, most = NumPyRows(block).ranges([local[a] for a in held], columns)
            for a, below, above in zip(held, least, most, strict=True):
                low[a] = np.minimum(low[a], below) if seen[a] else below
                high[a] = np.maximum(high[a], above) if seen[a] else above
                seen[a] = True
        return low, high

    def passes(self, atoms: Sequence[Rows], origin: Array | None = None) -> Passes:
        return ChunkPasses(self, atoms, self.middle() if origin is None else origin)

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Array:
        rows, order = ordered(slice(0, self.shape[0]) if rows is None else rows)
        _, m, q = linear.coef.shape
        dtype = np.float32 if keeps_single and self.dtype == np.float32 else np.float64
        out, done = np.empty((m, n_rows(rows), q), dtype=dtype), 0
        for _, block, (local,) in self.chunks([rows]):
            stop = done + n_rows(local)
            where = slice(done, stop) if order is None else order[done:stop]
            out[:, where] = NumPyRows(block).predict(linear, local, keeps_single)
            done = stop
        return out

    def _require_finite(self, rows: slice, block: Array) -> None:
        """Raise ValueError, now and in each later read, for numbers that no fit could read."""
        if self.read_by_sklearn or np.isfinite(block).all():
            return
        first = rows.start + int(np.argmin(np.isfinite(block).all(axis=1)))
        self.failure = ValueError(
            f"Input X contains NaN or infinity, first in row {first} of {self.shape[0]}. X, a {self.kind}, "
            "is read in chunks, for estimators that accept neither."
        )
        raise self.failure


def _loaded(rows: slice, future: Any, local: list[Rows]) -> tuple[slice, Array, list[Rows]]:
    return rows, future.result(), local


def _merged(before: tuple[Moments, int] | None, part: tuple[Moments, int]) -> tuple[Moments, int]:
    return part if before is None else (merged_moments([before[0], part[0]]), before[1] + part[1])
