"""The SQLite database of a checkpoint: its layout, reading, writing, and checks of what is in it."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from manyfit.model_selection.checkpoint._result_json import decoded
from manyfit.model_selection.checkpoint._search_identity import Identity
from manyfit.model_selection.job._job import Pair, Result

# "mnyf" in the header marks the file as a checkpoint; the other number is the version of its layout.
APPLICATION_ID = 0x6D6E7966
LAYOUT = 5

_TABLES = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {LAYOUT}",
    # `before`: settings of earlier rounds of the search; 0 for all of a search without rounds.
    "CREATE TABLE parts (before INTEGER, name TEXT, digest TEXT NOT NULL, text TEXT NOT NULL, "
    "PRIMARY KEY (before, name))",
    "CREATE TABLE results (before INTEGER, setting TEXT, split INTEGER, alone INTEGER NOT NULL, "
    "result TEXT NOT NULL, versions TEXT NOT NULL, crc INTEGER NOT NULL, "
    "PRIMARY KEY (before, setting, split))",
)
# Values of the column `alone`: from shared work, fitted one by one, and shared where scikit-learn is to fit.
_SHARED, _INDIVIDUAL, _DOUBTED = 0, 1, -1
# Another process may be behind: its shared results replace neither individual fits nor marks of doubt.
_WRITE = (
    "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (before, setting, split) DO UPDATE SET "
    "alone = excluded.alone, result = excluded.result, versions = excluded.versions, crc = excluded.crc "
    f"WHERE excluded.alone = {_INDIVIDUAL} OR results.alone = {_SHARED} "
    "OR results.versions != excluded.versions"
)


class StoredResult(NamedTuple):
    """A result in the file, and whether it was fitted one by one (`individual`).

    `versions`: of the worker that computed it, by package; None if they are the file's. `doubted`: a shared
    result that scikit-learn is to replace.
    """

    result: Result
    individual: bool
    versions: Mapping[str, str] | None = None
    doubted: bool = False


class UnwrittenResult(NamedTuple):
    """A result as text, as it will be written."""

    text: str
    individual: bool
    versions: str


def require_usable_path(path: Path, given: str) -> None:
    """Raise an error that says what is wrong with a path at which no file can be made."""
    if not given:
        raise ValueError("checkpoint='' names no file. Give the path of a file, or None.")
    if path.is_dir():
        raise ValueError(f"checkpoint={given!r} is a folder. Give the path of a file in it.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"checkpoint={given!r} lies in a folder that does not exist. Make the folder "
            f"{str(path.parent)!r} first."
        )


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """Open the file, or make it. `timeout`: seconds to wait for a lock of another process."""
    # Reading the file other than by SQLite would drop the locks of other connections in this process.
    mode = "rw" if path.exists() and path.stat().st_size else "rwc"
    try:
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", timeout=timeout, isolation_level=None, uri=True
        )
    except sqlite3.OperationalError as error:
        raise OSError(f"checkpoint={str(path)!r} cannot be opened: {error}.") from error


@contextmanager
def transaction(file: sqlite3.Connection) -> Iterator[None]:
    """A transaction, rolled back if the block raises."""
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise


def open_results(file: sqlite3.Connection, path: Path, identity: Identity) -> dict[Pair, StoredResult]:
    """The results in the file, which may be new; raise an error if it is another search's, or damaged."""
    try:
        if _is_empty(file) and _make_tables(file, identity):
            return {}
        _require_checkpoint(file, path)
        if not identity.before:  # once, and not in each round of a search
            _require_whole(file, path)
        _require_same_search(file, path, identity)
        return _read(file, path, identity)
    except sqlite3.OperationalError as error:
        # A lock, a full disk, or a read-only folder: the file itself is sound.
        if str(error).startswith("no such"):  # one of our tables or columns
            raise _damaged(path, error) from error
        raise OSError(f"checkpoint={str(path)!r} cannot be opened or written: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise _damaged(path, error) from error


def write_results(
    file: sqlite3.Connection, identity: Identity, results: Mapping[Pair, UnwrittenResult]
) -> None:
    """Write results of a round in one transaction, over those of the same pairs."""
    before, rows = identity.before, []
    for (c, i), one in results.items():
        name = identity.name_of(c)
        rows.append(
            (before, name, i, int(one.individual), one.text, one.versions, _crc(before, name, i, *one))
        )
    with transaction(file):
        file.executemany(_WRITE, rows)


def mark_doubted(file: sqlite3.Connection, identity: Identity, pairs: Iterable[Pair]) -> None:
    """Mark those shared results of `pairs` of a round that the file has."""
    where = "WHERE before = ? AND setting = ? AND split = ? AND alone = ?"
    with transaction(file):
        for c, i in pairs:
            name = identity.name_of(c)
            key = identity.before, name, i, _SHARED
            row = file.execute(f"SELECT result, versions FROM results {where}", key).fetchone()
            if row is not None:
                text, versions = row
                new = _DOUBTED, _crc(identity.before, name, i, text, _DOUBTED, versions)
                file.execute(f"UPDATE results SET alone = ?, crc = ? {where}", (*new, *key))


def _make_tables(file: sqlite3.Connection, identity: Identity) -> bool:
    """Make the tables, unless another process has made them meanwhile."""
    with transaction(file):
        if not _is_empty(file):
            return False
        for statement in _TABLES:
            file.execute(statement)
        _add_parts(file, identity)
    return True


def _add_parts(file: sqlite3.Connection, identity: Identity) -> None:
    """Write the parts of a round, unless another process has."""
    rows = [(identity.before, name, digest, identity.texts[name]) for name, digest in identity.parts.items()]
    file.executemany("INSERT OR IGNORE INTO parts VALUES (?, ?, ?, ?)", rows)


def _value(file: sqlite3.Connection, query: str) -> Any:
    return file.execute(query).fetchone()[0]


def _is_empty(file: sqlite3.Connection) -> bool:
    tables = _value(file, "SELECT count(*) FROM sqlite_master")
    return not tables and not _value(file, "PRAGMA application_id")


def _require_checkpoint(file: sqlite3.Connection, path: Path) -> None:
    if _value(file, "PRAGMA application_id") != APPLICATION_ID:
        raise ValueError(
            f"checkpoint={str(path)!r} is a database of another program. It was not changed. Give another "
            "path."
        )
    layout = _value(file, "PRAGMA user_version")
    if layout != LAYOUT:
        raise ValueError(
            f"checkpoint={str(path)!r} has layout {layout} of another version of manyfit; this version "
            f"writes layout {LAYOUT}. It was not changed. Give another path, or use the version that wrote "
            "it."
        )


def _require_whole(file: sqlite3.Connection, path: Path) -> None:
    said = [row[0] for row in file.execute("PRAGMA integrity_check(3)")]
    if said != ["ok"]:
        raise _damaged(path, " ".join(" ".join(said).split()))


def _damaged(path: Path, why: Any) -> ValueError:
    return ValueError(
        f"checkpoint={str(path)!r} is not a checkpoint, or is damaged ({why}). It was not changed. Give "
        "another path, or restore a copy of it."
    )


def _require_same_search(file: sqlite3.Connection, path: Path, identity: Identity) -> None:
    query, key = "SELECT name, digest, text FROM parts WHERE before = ?", (identity.before,)
    parts = file.execute(query, key).fetchall()
    if identity.before and not parts:  # the first time that the search comes to this round
        with transaction(file):
            _add_parts(file, identity)
        parts = file.execute(query, key).fetchall()
    stored = {name: (digest, text) for name, digest, text in parts}
    different = [
        f"- {name}: {_difference(stored.get(name, ('', 'missing'))[1], identity, name)}"
        for name in dict.fromkeys((*identity.parts, *stored))
        if name not in stored or stored[name][0] != identity.parts.get(name)
    ]
    if different:
        raise ValueError(
            f"checkpoint={str(path)!r} belongs to another search. It was not changed. Differences:\n"
            + "\n".join(different)
            + "\nGive another path, or run the search that it belongs to."
        )


def _difference(stored: str, identity: Identity, name: str) -> str:
    own, note = identity.texts.get(name, "missing"), identity.notes.get(name)
    if stored != own:
        return f"{stored} in the file, {own} here" + (f". {note}" if note else "")
    return f"{own}. {note}" if note else f"{own or 'it'}, with different content"


def _crc(before: int, name: str, i: int, text: str, individual: int, versions: str) -> int:
    return zlib.crc32(f"{before} {name} {i} {int(individual)} {text} {versions}".encode())


def _read(file: sqlite3.Connection, path: Path, identity: Identity) -> dict[Pair, StoredResult]:
    """The results of the settings of this search."""
    stored, before, place_of = {}, identity.before, identity.places()
    columns = "setting, split, alone, result, versions, crc"
    rows = file.execute(f"SELECT {columns} FROM results WHERE before = ?", (before,))
    for name, i, individual, text, made_by, crc in rows:
        try:
            if _crc(before, name, i, text, individual, made_by) != crc:
                raise ValueError("another checksum")
            if (c := place_of(name)) is None:
                continue
            versions = json.loads(made_by) if made_by else None
            stored[c, i] = StoredResult(
                decoded(text), individual == _INDIVIDUAL, versions, doubted=individual == _DOUBTED
            )
        except (ValueError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise _damaged(path, f"the result of setting {name} on split {i}: {error}") from error
    return stored
