"""Sets of rows, cut at the borders of the chunks that hold them."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from manyfit.folds.splits._atoms import Rows
from manyfit.folds.splits._row_index import n_rows

# Bytes of the rows that are read at a time.
READ_BYTES = 2**25
# Reads that fit into the memory limit: one is worked on while the next is read.
MOST_READS = 16


def regular_borders(n: int, row_bytes: int, chunk_rows: int, memory: int) -> list[int]:
    """The borders of reads of whole chunks of `chunk_rows` rows each, from 0 to `n`.

    Raises MemoryError if one chunk takes more than half of `memory`.
    """
    require_read(min(chunk_rows, n) * row_bytes, memory)
    wanted = max(1, min(READ_BYTES, memory // MOST_READS) // row_bytes)
    size = max(1, wanted // chunk_rows) * chunk_rows
    return [*range(0, n, size), n]


def joined_borders(sizes: Sequence[int], row_bytes: int, memory: int) -> list[int]:
    """The borders of reads of whole chunks of so many rows; neighbours that are small are read together."""
    require_read(max(sizes, default=0) * row_bytes, memory)
    most, borders, stop = most_rows(row_bytes, memory), [0], 0
    for size in sizes:
        if stop > borders[-1] and stop + size - borders[-1] > most:
            borders.append(stop)
        stop += size
    return [*borders, stop] if stop > borders[-1] else borders


def most_rows(row_bytes: int, memory: int) -> float:
    """Rows of a read of several chunks, at most."""
    return min(READ_BYTES, memory // MOST_READS) / max(row_bytes, 1)


def require_read(nbytes: int, memory: int) -> None:
    """Raise MemoryError if a chunk is too large to be read."""
    if 2 * nbytes > memory:
        raise MemoryError(
            f"A chunk of rows of X, with all columns, takes {nbytes:,} bytes. Two are in memory at a time, "
            f"and memory_limit is {memory:,} bytes. Read X in chunks of fewer rows, or set "
            f"memory_limit={2 * nbytes} or more."
        )


def file_stamp(path: str | os.PathLike[str], name: str = "") -> tuple[str, int, int, int]:
    """A file's name without folders, size, time of its last change in nanoseconds, and number on its disk."""
    found = os.stat(path)
    return name or os.path.basename(path), found.st_size, found.st_mtime_ns, found.st_ino


def chunk_and_rows(k: int, starts: NDArray[Any]) -> str:
    """A chunk and its rows, for messages; `starts` are the first rows of all chunks, and the last's end."""
    start, stop = starts[k], starts[k + 1]
    return f"Chunk {k} (rows {start} to {stop - 1})" if stop > start else f"Chunk {k} (before row {start})"


class RowCuts:
    """Some sets of rows, each sorted, which are cut at the borders of reads."""

    def __init__(self, sets: Sequence[Rows]) -> None:
        self._sets = [ordered(rows)[0] for rows in sets]

    def within(self, start: int, stop: int) -> list[Rows]:
        """The rows of each set from `start` to `stop`, numbered from `start`."""
        return [_cut(rows, start, stop) for rows in self._sets]

    def reads(self, borders: Sequence[int], some: range | None = None) -> Iterator[tuple[slice, list[Rows]]]:
        """The reads that hold rows of any set, each with those rows; `some` are those to look at."""
        borders = borders if some is None else borders[some.start : some.stop + 1]
        for start, stop in pairwise(borders):
            local = self.within(start, stop)
            if any(n_rows(rows) for rows in local):
                yield slice(start, stop), local


def shifted(rows: Rows, start: int) -> Rows:
    """Rows that were numbered from `start`, numbered from 0."""
    return slice(rows.start + start, rows.stop + start) if isinstance(rows, slice) else rows + start


def first_row(rows: Rows) -> int:
    """The first of some sorted rows."""
    return rows.start if isinstance(rows, slice) else int(rows[0])


def rows_before(rows: Rows, row: int) -> int:
    """How many of some sorted rows come before a row."""
    return row - rows.start if isinstance(rows, slice) else int(np.searchsorted(rows, row))


def ordered(rows: Rows) -> tuple[Rows, NDArray[Any] | None]:
    """The rows in order, and their positions before, None if they were in order."""
    if isinstance(rows, slice) or (np.diff(rows) >= 0).all():
        return rows, None
    order = np.argsort(rows, kind="stable")
    return rows[order], order


def _cut(rows: Rows, start: int, stop: int) -> Rows:
    if isinstance(rows, slice):
        low, high = max(rows.start, start), min(rows.stop, stop)
        return slice(low - start, max(high, low) - start) if high > low else slice(0, 0)
    low, high = np.searchsorted(rows, (start, stop))
    return rows[low:high] - start


def in_blocks(parts: Iterable[Any], size: int) -> Iterator[Any]:
    """Parts of some rows, one after the other, cut anew into blocks of `size` rows."""
    kept: Any = None
    for part in parts:
        kept = part if kept is None else join_parts([kept, part])
        while len(kept) >= size:
            yield rows_of(kept, slice(0, size))
            kept = rows_of(kept, slice(size, len(kept)))
    if kept is not None and len(kept):
        yield kept


def rows_of(part: Any, rows: Rows) -> Any:
    """Some rows of an array, or of a frame of pandas or polars."""
    return part.iloc[rows] if hasattr(part, "iloc") else part[rows]


def join_parts(parts: Sequence[Any]) -> Any:
    """Frames of pandas or polars, arrays, or sparse matrices, as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if hasattr(parts[0], "tocsr"):
        return vstack(parts, format="csr")
    library = sys.modules[type(parts[0]).__module__.partition(".")[0]]
    if hasattr(parts[0], "iloc"):
        return library.concat(list(parts), ignore_index=True)
    return library.concat(list(parts))
