"""Rows in parts, which are read whole, and whose lengths may be unknown before the first pass."""

import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from manyfit.folds.rows.chunks._cuts import (
    RowCuts,
    chunk_and_rows,
    join_parts,
    joined_borders,
    most_rows,
    require_read,
    rows_of,
)
from manyfit.folds.rows.chunks._rows import ChunkRows, Load, with_retries
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows


class PartRows(ChunkRows):
    """Base class of rows in parts: the chunks of a Dask collection, row groups of a file, blocks of a user.

    The first pass over all parts counts their rows, if nobody knows them; a later pass that finds other
    lengths raises a ValueError. A subclass defines `read_part`.

    Parameters
    ----------
    kind : str
        The class of X, for messages.
    p : int
        Number of columns.
    dtype : dtype
        See `ChunkRows`.
    n_parts : int
        Number of parts.
    lengths : sequence of int or None
        Their rows.
    memory : int
        See `ChunkRows`.
    """

    def __init__(
        self,
        kind: str,
        p: int,
        dtype: np.dtype[Any],
        n_parts: int,
        lengths: Sequence[int] | None,
        memory: int,
    ) -> None:
        self._n: int | None = None
        self._n_parts, self._lengths = n_parts, None if lengths is None else list(lengths)
        self._counts = lengths is None
        self._first: tuple[int, Any] | None = None  # the first part with rows, and its number
        self._counting: tuple[int, Any] | None = None  # a part, and its first row
        self._reading: int | None = None  # the part that is being read, or could not be
        super().__init__(kind, (-1, p), dtype, [], memory)
        self.identity = (kind, id(self))
        if lengths is not None:
            self._finish_count()

    @abstractmethod
    def read_part(self, k: int, columns: Sequence[int] | None = None) -> Any:
        """The rows of a part, with all columns or some; an array or a frame."""

    def select(self, part: Any, columns: Sequence[int]) -> Any:
        """Some columns of a part."""
        return part[:, columns]

    # Lengths

    def start_anew(self) -> None:
        if self.failure is not None and self._counts:
            self._n = self._lengths = self._first = None
        super().start_anew()

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Numbers of rows and columns; a pass counts the rows unless `expect` has said how many."""
        if self._n is None:
            self.count()
        assert self._n is not None
        return self._n, self.n_columns

    @shape.setter
    def shape(self, given: tuple[int, int]) -> None:
        """The number of columns is known from the start."""

    @property
    def is_counted(self) -> bool:
        """Whether the lengths of the parts are known."""
        return self._lengths is not None

    @property
    def n_reads(self) -> int:
        return len(self.borders) - 1 if self.is_counted else self._n_parts

    def expect(self, n: int) -> None:
        """Take the number of rows from y, unless they were counted; the first pass checks it."""
        if not self.is_counted:
            self._n = n

    def known_rows(self) -> int:
        first = self._first_part() if self._lengths is None else None
        return next(n for n in self._lengths or () if n) if first is None else int(first.shape[0])

    def _first_part(self) -> Any:
        """The first part with rows, or the last one, kept until the rows are counted."""
        if self._first is None:
            for k in range(self._n_parts):
                self._first = k, self._counted_part(k, 0)
                if self._first[1].shape[0]:
                    break
        assert self._first is not None
        return self._first[1]

    def _finish_count(self) -> None:
        assert self._lengths is not None
        total = sum(self._lengths)
        if self._n is not None and self._n != total:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: [{total}, {self._n}]. X, a "
                f"{self.kind}, has {total} rows in {self._n_parts} chunks, and y has {self._n}."
            )
        if not total or not self.n_columns:
            what = "sample(s)" if not total else "feature(s)"
            raise ValueError(
                f"Found array with 0 {what} (shape=({total}, {self.n_columns})): X, a {self.kind}, is empty."
            )
        self._n, self._first = total, None
        self.borders = joined_borders(self._lengths, self.row_bytes, self.memory)
        self.starts = np.cumsum([0, *self._lengths])

    # Reads

    def count(self) -> None:
        if not self.is_counted:
            for _ in self._count([], self.load_frame):
                pass

    def take(self, rows: Any) -> Array:
        self.count()
        return super().take(rows)

    def look(self, rows: Array) -> Array:
        if self.is_counted:
            return super().look(rows)
        return self.load(0, self.known_rows())[rows]  # of the first part

    def read(self, start: int, stop: int, columns: Sequence[int] | None = None) -> Any:
        if self._lengths is None:  # the part that is being counted, or the first
            before, part = self._counting or (0, self._first_part())
            part = part if columns is None else self.select(part, columns)
            return rows_of(part, slice(start - before, stop - before))
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        last = int(np.searchsorted(self.starts, stop, side="left"))
        parts = []
        for k in range(first, last):
            self._reading = k
            part = self.read_part(k, columns)
            n = part.shape[0]
            if n != self._lengths[k]:
                raise ValueError(
                    f"Chunk {k} of X has {n} rows, and had {self._lengths[k]} when they were counted."
                )
            low, high = max(start - self.starts[k], 0), min(stop - self.starts[k], n)
            if high > low:
                parts.append(part if high - low == n else rows_of(part, slice(int(low), int(high))))
        self._reading = None
        return join_parts(parts)

    def where(self, start: int, stop: int | None) -> str:
        rows = super().where(start, stop)
        if self._lengths is None or stop is None:
            return rows
        if self._reading is not None:
            return chunk_and_rows(self._reading, self.starts)
        first, last = np.searchsorted(self.starts, (start, stop - 1), side="right") - 1
        chunks = f"Chunk {first}" if first == last else f"Chunks {first} to {last}"
        return f"{chunks} ({rows[0].lower()}{rows[1:]})"

    def lets_workers_read(self) -> bool:
        return self.is_counted

    def number_of(self, rows: slice) -> int:
        return super().number_of(rows) if self.is_counted else self._n_counted

    def in_turn(
        self, sets: Sequence[Rows] | None, load: Load, reads: range | None = None
    ) -> Iterator[tuple[slice, Any, list[Rows]]]:
        if self.is_counted:
            yield from super().in_turn(sets, load, reads)
        else:
            yield from self._count([slice(0, sys.maxsize)] if sets is None else sets, load)

    def _count(self, sets: Sequence[Rows], load: Load) -> Iterator[tuple[slice, Any, list[Rows]]]:
        """`in_turn` over all parts, whose rows are counted; the reads are those of later passes.

        Reads that hold no row of a set are loaded, too.
        """
        cuts, lengths, held, start, stop = RowCuts(sets), list[int](), list[Any](), 0, 0
        most, self._n_counted = most_rows(self.row_bytes, self.memory), 0
        try:
            with ThreadPoolExecutor(1) as reader:
                ahead = reader.submit(self._counted_part, 0, 0)
                for k in range(self._n_parts + 1):
                    part = ahead.result() if k < self._n_parts else None
                    size = 0 if part is None else part.shape[0]
                    if held and (part is None or stop + size - start > most):
                        self._counting = start, join_parts(held)
                        loaded, local = load(start, stop), cuts.within(start, stop)
                        if any(n_rows(rows) for rows in local):
                            yield slice(start, stop), loaded, local
                        self._n_counted += 1
                        start, held = stop, []
                    if part is None:
                        break
                    self._require_expected(stop + size)
                    if k + 1 < self._n_parts:
                        ahead = reader.submit(self._counted_part, k + 1, stop + size)
                    lengths.append(size)
                    held += [part] if size else []
                    stop += size
        finally:
            self._counting = None
        self.take_lengths(lengths)

    def take_lengths(self, lengths: Sequence[int]) -> None:
        """Note the rows of all parts, which were counted."""
        self._lengths = list(lengths)
        try:
            self._finish_count()
        except Exception as error:
            raise self._fail(error) from None

    def _require_expected(self, stop: int) -> None:
        """Raise ValueError if X has more rows than y."""
        if self._n is not None and stop > self._n:
            raise self._fail(
                ValueError(
                    f"Found input variables with inconsistent numbers of samples: X, a {self.kind}, has "
                    f"{stop} rows or more, and y has {self._n}."
                )
            )

    def _counted_part(self, k: int, start: int) -> Any:
        if self.failure is not None:
            raise self.failure
        try:
            first = self._first
            part = first[1] if first and first[0] == k else with_retries(lambda: self.read_part(k))
            require_read(part.shape[0] * self.row_bytes, self.memory)
        except Exception as error:
            error.add_note(f"Chunk {k}, from row {start} on, of X, a {self.kind}, could not be read.")
            raise self._fail(error) from None
        return part

    def _fail(self, error: Exception) -> Exception:
        self.failure = error
        return error
