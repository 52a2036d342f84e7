"""A small file with the finished results of a search, from which another process can continue it."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

from manyfit.cluster.inspection.versions import process_versions, version_differences
from manyfit.model_selection.checkpoint._database import (
    StoredResult,
    UnwrittenResult,
    connect,
    mark_doubted,
    open_results,
    require_usable_path,
    write_results,
)
from manyfit.model_selection.checkpoint._result_json import NotStored, encoded
from manyfit.model_selection.checkpoint._search_identity import Identity
from manyfit.model_selection.job._job import Pair, Result

# Share of the time of a search that writing may take: results wait until their fits have taken so much longer
# than the last writing did.
WRITING_SHARE = 0.02
# Seconds after which they are written in any case.
LONGEST_WAIT_S = 1.0
# Seconds that the first writing is assumed to take.
FIRST_GUESS_S = 0.005
# Seconds to wait while another process writes.
PATIENCE_S = 60.0


class Checkpoint:
    """The finished results of one search; as a context manager, it writes the rest and closes the file.

    The file belongs to the search that `identity` describes, and may have results of other settings. Any
    number of threads and processes may run that search on it at once; each adds its results in transactions
    of SQLite. `workers`: fits that run at a time.
    `quiet`: no warnings of other versions. `stored`: its results when the file was opened. A process
    that is killed loses at most `LONGEST_WAIT_S` seconds of fits for each worker.
    """

    def __init__(
        self, path: str | os.PathLike[str], identity: Identity, workers: int = 1, quiet: bool = False
    ) -> None:
        self.path = Path(path)
        self._identity, self._workers = identity, max(1, workers)
        self._unwritten: dict[Pair, UnwrittenResult] = {}
        self._seconds = 0.0  # of fits that are not written yet
        self._has_warned = False
        require_usable_path(self.path, os.fspath(path))
        self._file = connect(self.path, PATIENCE_S)
        try:
            stored = open_results(self._file, self.path, identity)
            self.stored = _with_suitable_versions(stored, self.path, quiet)
        except BaseException:
            self._file.close()
            raise
        self._last = time.perf_counter()
        self._cost = FIRST_GUESS_S

    def add(
        self, results: Mapping[Pair, Result], individual: bool, versions: Mapping[str, str] | None = None
    ) -> None:
        """Add finished results, and write them if it is time.

        `individual`: they were fitted one by one. `versions`: of a worker's packages, if they are not this
        process's. Results with scores that are no numbers are not stored.
        """
        made_by = "" if versions is None else json.dumps(versions, ensure_ascii=True, sort_keys=True)
        for pair, result in results.items():
            try:
                self._unwritten[pair] = UnwrittenResult(encoded(result), individual, made_by)
            except NotStored:
                continue
            self._seconds += result["fit_time"] + result["score_time"]
        since = max(time.perf_counter() - self._last, self._seconds / self._workers)
        if self._unwritten and since >= min(self._cost / WRITING_SHARE, LONGEST_WAIT_S):
            self.write()

    def write(self) -> None:
        """Write all results; warn of the first failure, after which the next call tries again."""
        if not self._unwritten:
            return
        start, n = time.perf_counter(), len(self._unwritten)
        try:
            write_results(self._file, self._identity, self._unwritten)
            self._unwritten.clear()
        except sqlite3.Error as error:
            self._warn(error, f"continues and tries again; {n} finished fits are not in the file yet")
        self._seconds = 0.0
        self._last = time.perf_counter()
        self._cost = self._last - start

    @property
    def doubted(self) -> set[Pair]:
        """Stored pairs that scikit-learn was going to fit when a process was interrupted."""
        return {pair for pair, one in self.stored.items() if one.doubted}

    def reopened(self, doubted: Iterable[Pair]) -> Checkpoint | None:
        """Open the file again, and mark the pairs that scikit-learn is going to fit.

        None, with a warning, if it cannot be written: the search continues without it.
        """
        try:
            other = Checkpoint(self.path, self._identity, self._workers, quiet=True)
        except (OSError, ValueError) as error:
            self._warn(error, "continues without it")
            return None
        try:
            mark_doubted(other._file, self._identity, doubted)
        except sqlite3.Error as error:
            other._file.close()
            self._warn(error, "continues without it")
            return None
        return other

    def _warn(self, error: Exception, consequence: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"checkpoint={str(self.path)!r} cannot be written ({error}). The search {consequence}.",
                RuntimeWarning,
                stacklevel=3,
            )

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.write()
        finally:
            self._file.close()


def _with_suitable_versions(
    stored: dict[Pair, StoredResult], path: Path, quiet: bool
) -> dict[Pair, StoredResult]:
    """Results without those of other versions; a warning for these and for those of other patches."""
    refused: dict[str, bool] = {}
    for one in stored.values():
        if one.versions is not None and str(one.versions) not in refused:
            theirs = {name.lower(): version for name, version in one.versions.items()}
            wrong, other = version_differences(theirs, process_versions())
            refused[str(one.versions)] = bool(wrong)
            if quiet:
                continue
            consequence = "are computed again" if wrong else "are used"
            warnings.warn(
                f"checkpoint={str(path)!r} has scores that workers of other versions computed: "
                f"{'; '.join((wrong | other).values())}. They {consequence}.",
                RuntimeWarning,
                stacklevel=2,
            )
    return {pair: one for pair, one in stored.items() if not refused.get(str(one.versions), False)}
