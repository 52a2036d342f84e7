"""Finished results of a search in one small file, where another process finds them."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from manyfit.cluster.inspection.versions import version_differences, versions_here
from manyfit.model_selection.checkpoint._result_json import NotStored, decoded, encoded
from manyfit.model_selection.checkpoint._search_identity import Identity
from manyfit.model_selection.job._job import Pair, Result

# "mnyf" in the header of the file says whose it is, the next number how it is laid out.
APPLICATION_ID = 0x6D6E7966
LAYOUT = 3
# Share of the time of a search that writing may take: results are written together when their fits took so
# much longer than the last writing did.
WRITING_SHARE = 0.02
# Seconds after which they are written in any case.
LONGEST_WAIT_S = 1.0
# Seconds that a writing takes, before there was one.
FIRST_GUESS_S = 0.005
# Seconds that another process may take to write.
PATIENCE_S = 60.0

_TABLES = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {LAYOUT}",
    "CREATE TABLE parts (name TEXT PRIMARY KEY, digest TEXT NOT NULL, text TEXT NOT NULL)",
    "CREATE TABLE results (candidate INTEGER, split INTEGER, alone INTEGER NOT NULL, result TEXT NOT NULL, "
    "versions TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (candidate, split))",
)
# Values of `alone`: answered by shared work, fitted one by one, and answered where scikit-learn is to fit.
_SHARED, _ALONE, _DOUBTED = 0, 1, -1
# Shared work of another process, which is not as far, replaces no fit that was made one by one after all, and
# no mark of one that is to be made.
_WRITE = (
    "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (candidate, split) DO UPDATE SET "
    "alone = excluded.alone, result = excluded.result, versions = excluded.versions, crc = excluded.crc "
    f"WHERE excluded.alone = {_ALONE} OR results.alone = {_SHARED} OR results.versions != excluded.versions"
)


class Kept(NamedTuple):
    """A result that was finished before, whether its fit was made one by one, and what computed it.

    The versions are those of a worker, by package; None where they are those that the file says. A result of
    shared work is `doubted` where scikit-learn is to make the fit after all.
    """

    result: Result
    alone: bool
    versions: Mapping[str, str] | None = None
    doubted: bool = False


class Checkpoint:
    """The finished results of one search; a context manager, which writes what is left and closes the file.

    A file belongs to the search that began it. Any number of threads and processes may run that search on the
    same file at once: each adds what it has finished, in transactions of SQLite.

    Parameters
    ----------
    path : str or path-like
        The file. It is made where there is none; its folder must be there.
    identity : Identity
        What the results depend on.
    workers : int, default=1
        Fits that are made at a time.
    quiet : bool, default=False
        Whether nothing is said of versions.

    Attributes
    ----------
    kept : dict of pair to Kept
        What the file held when it was opened.

    Raises
    ------
    FileNotFoundError
        If the folder is not there.
    ValueError
        If there is something else, a damaged file or one of another search; it is left as it is.

    Notes
    -----
    Results are written together, so that writing takes about `WRITING_SHARE` of the time, more where a
    writing takes long: what a killed process had finished and not written is `LONGEST_WAIT_S` of fits for
    each worker at most.
    """

    def __init__(
        self, path: str | os.PathLike[str], identity: Identity, workers: int = 1, quiet: bool = False
    ) -> None:
        self.path = Path(path)
        self._identity, self._workers = identity, max(1, workers)
        self._waiting: dict[Pair, tuple[str, bool, str]] = {}
        self._spent = 0.0
        self._told = False
        _require_place(self.path, os.fspath(path))
        self._file = _connect(self.path)
        try:
            self.kept = self._begin(identity, quiet)
        except BaseException:
            self._file.close()
            raise
        self._last = time.perf_counter()
        self._cost = FIRST_GUESS_S

    def _begin(self, identity: Identity, quiet: bool) -> dict[Pair, Kept]:
        try:
            if _is_empty(self._file) and self._made(identity):
                return {}
            _require_ours(self._file, self.path)
            _require_whole(self._file, self.path)
            _require_same(self._file, self.path, identity)
            return _of_these_versions(_read(self._file, self.path), self.path, quiet)
        except sqlite3.OperationalError as error:
            # Locked, a full disk, a folder that cannot be written to: nothing is wrong with what is there.
            if str(error).startswith("no such"):  # a table or column of ours
                raise _damaged(self.path, error) from error
            raise OSError(f"checkpoint={str(self.path)!r} cannot be opened or written: {error}.") from error
        except sqlite3.DatabaseError as error:
            raise _damaged(self.path, error) from error

    def _made(self, identity: Identity) -> bool:
        """Make the tables, unless another process has done so meanwhile."""
        with _transaction(self._file):
            if not _is_empty(self._file):
                return False
            for statement in _TABLES:
                self._file.execute(statement)
            rows = [(name, digest, identity.texts[name]) for name, digest in identity.parts.items()]
            self._file.executemany("INSERT INTO parts VALUES (?, ?, ?)", rows)
        return True

    def add(
        self, results: Mapping[Pair, Result], alone: bool, versions: Mapping[str, str] | None = None
    ) -> None:
        """Keep finished results, and write them if it is time.

        Parameters
        ----------
        results : mapping of pair to dict
            As scikit-learn's ``_fit_and_score`` gives them. One with a score that is no number of Python or
            NumPy is not kept.
        alone : bool
            Whether their fits were made one by one.
        versions : mapping of str to str, optional
            Of the packages that computed them, on a worker where they are not this process's.
        """
        made_by = "" if versions is None else json.dumps(versions, ensure_ascii=True, sort_keys=True)
        for pair, result in results.items():
            try:
                self._waiting[pair] = encoded(result), alone, made_by
            except NotStored:
                continue
            self._spent += result["fit_time"] + result["score_time"]
        since = max(time.perf_counter() - self._last, self._spent / self._workers)
        if self._waiting and since >= min(self._cost / WRITING_SHARE, LONGEST_WAIT_S):
            self.write()

    def write(self) -> None:
        """Write what is not written yet. A failure is warned of once, and tried again later."""
        if not self._waiting:
            return
        start = time.perf_counter()
        rows = [
            (c, i, int(alone), text, made_by, _crc(c, i, alone, text, made_by))
            for (c, i), (text, alone, made_by) in self._waiting.items()
        ]
        try:
            with _transaction(self._file):
                self._file.executemany(_WRITE, rows)
            self._waiting.clear()
        except sqlite3.Error as error:
            self._warn(error, f"goes on and tries again; {len(rows)} finished fits are not in the file yet")
        self._spent = 0.0
        self._last = time.perf_counter()
        self._cost = self._last - start

    @property
    def doubted(self) -> set[Pair]:
        """Pairs of `kept` that scikit-learn was to fit when a process was interrupted."""
        return {pair for pair, one in self.kept.items() if one.doubted}

    def reopened(self, doubted: Iterable[Pair]) -> Checkpoint | None:
        """Open the same file again, and note there that results of shared work are to be replaced.

        Parameters
        ----------
        doubted : iterable of pair
            Pairs that scikit-learn is to fit.

        Returns
        -------
        Checkpoint or None
            None, with a warning, where that cannot be written: the search goes on all the same.
        """
        try:
            other = Checkpoint(self.path, self._identity, self._workers, quiet=True)
        except (OSError, ValueError) as error:
            self._warn(error, "goes on without it")
            return None
        try:
            with _transaction(other._file):
                for pair in doubted:
                    _doubt(other._file, *pair)
        except sqlite3.Error as error:
            other._file.close()
            self._warn(error, "goes on without it")
            return None
        return other

    def _warn(self, error: Exception, what_is_done: str) -> None:
        if not self._told:
            self._told = True
            warnings.warn(
                f"checkpoint={str(self.path)!r} cannot be written ({error}). The search {what_is_done}.",
                RuntimeWarning,
                stacklevel=3,
            )

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.write()
        finally:
            self._file.close()


def _require_place(path: Path, given: str) -> None:
    if not given:
        raise ValueError("checkpoint='' names no file. Give the path of a file, or None.")
    if path.is_dir():
        raise ValueError(f"checkpoint={given!r} is a folder. Give the path of a file in it.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"checkpoint={given!r} lies in a folder that is not there. Make the folder {str(path.parent)!r} "
            "first."
        )


def _connect(path: Path) -> sqlite3.Connection:
    # Reading the file by other means than SQLite's would drop the locks of other connections in this process.
    mode = "rw" if path.exists() and path.stat().st_size else "rwc"
    try:
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", timeout=PATIENCE_S, isolation_level=None, uri=True
        )
    except sqlite3.OperationalError as error:
        raise OSError(f"checkpoint={str(path)!r} cannot be opened: {error}.") from error


@contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    file.execute("BEGIN IMMEDIATE")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        if file.in_transaction:
            file.execute("ROLLBACK")
        raise


def _value(file: sqlite3.Connection, question: str) -> Any:
    return file.execute(question).fetchone()[0]


def _is_empty(file: sqlite3.Connection) -> bool:
    tables = _value(file, "SELECT count(*) FROM sqlite_master")
    return not tables and not _value(file, "PRAGMA application_id")


def _require_ours(file: sqlite3.Connection, path: Path) -> None:
    if _value(file, "PRAGMA application_id") != APPLICATION_ID:
        raise ValueError(
            f"checkpoint={str(path)!r} is a database of something else, and was left as it is. Give another "
            "path."
        )
    layout = _value(file, "PRAGMA user_version")
    if layout != LAYOUT:
        raise ValueError(
            f"checkpoint={str(path)!r} has layout {layout} of another version of manyfit, and was left as it "
            f"is; this version writes layout {LAYOUT}. Give another path, or go on with the version that "
            "wrote it."
        )


def _require_whole(file: sqlite3.Connection, path: Path) -> None:
    said = [row[0] for row in file.execute("PRAGMA integrity_check(3)")]
    if said != ["ok"]:
        raise _damaged(path, " ".join(" ".join(said).split()))


def _damaged(path: Path, why: Any) -> ValueError:
    return ValueError(
        f"checkpoint={str(path)!r} is no checkpoint, or a damaged one ({why}), and was left as it is. Give "
        "another path, or put back a copy of it."
    )


def _require_same(file: sqlite3.Connection, path: Path, identity: Identity) -> None:
    there = {
        name: (digest, text) for name, digest, text in file.execute("SELECT name, digest, text FROM parts")
    }
    differ = [
        f"- {name}: {_both(there.get(name, ('', 'not there'))[1], identity.texts.get(name, 'not there'))}"
        for name in dict.fromkeys((*identity.parts, *there))
        if name not in there or there[name][0] != identity.parts.get(name)
    ]
    if differ:
        raise ValueError(
            f"checkpoint={str(path)!r} belongs to another search, and was left as it is. What differs:\n"
            + "\n".join(differ)
            + "\nGive another path, or run the search that it belongs to."
        )


def _both(there: str, here: str) -> str:
    return f"{there} in the file, {here} here" if there != here else f"{here or 'it'}, with another content"


def _doubt(file: sqlite3.Connection, c: int, i: int) -> None:
    """Mark a result, if it is there and of shared work."""
    where = "WHERE candidate = ? AND split = ? AND alone = ?"
    row = file.execute(f"SELECT result, versions FROM results {where}", (c, i, _SHARED)).fetchone()
    if row is not None:
        new = _DOUBTED, _crc(c, i, _DOUBTED, *row)
        file.execute(f"UPDATE results SET alone = ?, crc = ? {where}", (*new, c, i, _SHARED))


def _crc(c: int, i: int, alone: int, text: str, made_by: str) -> int:
    return zlib.crc32(f"{c} {i} {int(alone)} {text} {made_by}".encode())


def _read(file: sqlite3.Connection, path: Path) -> dict[Pair, Kept]:
    kept = {}
    rows = file.execute("SELECT candidate, split, alone, result, versions, crc FROM results")
    for c, i, alone, text, made_by, crc in rows:
        try:
            if _crc(c, i, alone, text, made_by) != crc:
                raise ValueError("another checksum")
            versions = json.loads(made_by) if made_by else None
            kept[c, i] = Kept(decoded(text), alone == _ALONE, versions, doubted=alone == _DOUBTED)
        except (ValueError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise _damaged(path, f"the result of setting {c} on split {i}: {error}") from error
    return kept


def _of_these_versions(kept: dict[Pair, Kept], path: Path, quiet: bool) -> dict[Pair, Kept]:
    """Results that this process could have computed as well, with a warning where a patch differs."""
    refused: dict[str, bool] = {}
    for one in kept.values():
        if one.versions is not None and str(one.versions) not in refused:
            there = {name.lower(): version for name, version in one.versions.items()}
            wrong, other = version_differences(there, versions_here())
            refused[str(one.versions)] = bool(wrong)
            if quiet:
                continue
            said = "are computed again" if wrong else "are taken over"
            warnings.warn(
                f"checkpoint={str(path)!r} has scores that workers of other versions computed: "
                f"{'; '.join((wrong | other).values())}. They {said}.",
                RuntimeWarning,
                stacklevel=2,
            )
    return {pair: one for pair, one in kept.items() if not refused.get(str(one.versions), False)}
