"""Merged sums over ranges of an X in chunks, from which a search goes on whose pass was cut off."""

from __future__ import annotations

import io
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from manyfit.folds import ChunkRows, KeptPass, Moments, Node, RangeStore, Rows
from manyfit.introspection.stable_digest import Digester, Unkeyable
from manyfit.model_selection.checkpoint._database import connect, transaction
from manyfit.model_selection.checkpoint._file import LONGEST_WAIT_S, PATIENCE_S, WRITING_SHARE, Checkpoint

_TABLE = (
    "CREATE TABLE IF NOT EXISTS ranges (pass TEXT, level INTEGER, number INTEGER, part BLOB NOT NULL, "
    "crc INTEGER NOT NULL, PRIMARY KEY (pass, level, number))"
)


class RangeFile(RangeStore):
    """The ranges of all passes of a search, in the file of its checkpoint.

    The file has been compared with the search, its X included. A pass is known by its work, its sets of rows
    and the borders of its reads. A file that cannot be written costs what would have been kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, X: ChunkRows, work: Any, sets: Sequence[Rows] | None) -> StoredPass | None:
        """See `RangeStore`."""
        if not getattr(work, "is_kept", False):
            return None
        rows = None if sets is None else [_plain(one) for one in sets]
        try:
            name = Digester()((type(work).__qualname__, vars(work), rows, list(X.borders)))
            return StoredPass(self._path, name)
        except (Unkeyable, sqlite3.Error, OSError):
            return None

    def end(self) -> None:
        """Delete all ranges of a search that has its results."""
        with suppress(sqlite3.Error, OSError), closing(connect(self._path, PATIENCE_S)) as file:
            file.execute("DROP TABLE IF EXISTS ranges")


class StoredPass(KeptPass):
    """The ranges of one pass; `nodes` are those in the file when it was opened."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._cost, self._last = 0.0, time.perf_counter()
        with closing(connect(path, PATIENCE_S)) as file:
            file.execute(_TABLE)
            query = "SELECT level, number, part, crc FROM ranges WHERE pass = ? ORDER BY level DESC, number"
            found = [row[:3] for row in file.execute(query, (name,)) if zlib.crc32(row[2]) == row[3]]
        self._written = {(level, number) for level, number, _ in found}
        self.nodes = [(level, number, _decoded(part)) for level, number, part in _widest(found)]

    def keep(self, nodes: Iterable[Node]) -> None:
        """See `KeptPass`; nodes are written if it is time."""
        start = time.perf_counter()
        if start - self._last < max(LONGEST_WAIT_S, self._cost / WRITING_SHARE):
            return
        held = {(level, number): part for level, number, part in nodes}
        ended = [(self._name, *key) for key in self._written - held.keys()]
        parts = [(*key, _encoded(held[key])) for key in held.keys() - self._written]
        rows = [(self._name, *key, part, zlib.crc32(part)) for *key, part in parts]
        with suppress(sqlite3.Error, OSError), closing(connect(self._path, PATIENCE_S)) as file:
            with transaction(file):
                file.executemany("INSERT OR REPLACE INTO ranges VALUES (?, ?, ?, ?, ?)", rows)
                file.executemany("DELETE FROM ranges WHERE pass = ? AND level = ? AND number = ?", ended)
            self._written = {*held}
        self._last = time.perf_counter()
        self._cost = self._last - start


def _widest(found: Iterable[tuple[int, int, bytes]]) -> Iterable[tuple[int, int, bytes]]:
    """Nodes, the widest first, without those within others, which another process may have written."""
    kept = set[tuple[int, int]]()
    for level, number, part in found:
        if not any((above, number >> (above - level)) in kept for above in range(level + 1, 64)):
            kept.add((level, number))
            yield level, number, part


def _plain(rows: Rows) -> Any:
    return (rows.start, rows.stop) if isinstance(rows, slice) else rows


def _encoded(part: Any) -> bytes:
    """A part as an archive of NumPy's: its arrays, and JSON that says where they are. Nothing is pickled."""
    arrays: dict[str, Any] = {}

    def walk(one: Any) -> Any:
        if isinstance(one, np.ndarray):
            arrays[f"a{len(arrays)}"] = one
            return {"array": f"a{len(arrays) - 1}"}
        if isinstance(one, Moments):
            return {"moments": [walk(value) for value in vars(one).values()]}
        if isinstance(one, tuple | list):
            return {type(one).__name__: [walk(value) for value in one]}
        return one if one is None else int(one) if isinstance(one, int | np.integer) else float(one)

    text, out = json.dumps(walk(part)), io.BytesIO()
    np.savez(out, text=np.frombuffer(text.encode(), np.uint8), **arrays)
    return out.getvalue()


def _decoded(data: bytes) -> Any:
    found = np.load(io.BytesIO(data), allow_pickle=False)

    def walk(one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        ((kind, value),) = one.items()
        if kind == "array":
            return found[value]
        values = [walk(own) for own in value]
        return Moments(*values) if kind == "moments" else tuple(values) if kind == "tuple" else values

    return walk(json.loads(found["text"].tobytes().decode()))


@contextmanager
def keep_ranges(X: Any, checkpoint: Checkpoint) -> Iterator[None]:
    """Within it, sums of passes over an X in files go to a checkpoint; then the search has its results."""
    if not isinstance(X, ChunkRows) or X.file_identity() is None:
        yield
        return
    ranges = RangeFile(checkpoint.path)
    X.range_store = ranges
    try:
        yield
    finally:
        X.range_store = None
    ranges.end()
