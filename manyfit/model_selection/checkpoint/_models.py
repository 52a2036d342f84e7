"""The checkpoint of a search that trains models further: scores of its rounds, and the models themselves."""

from __future__ import annotations

import os
import pickle
import sqlite3
import time
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from manyfit.model_selection.checkpoint._database import connect, transaction
from manyfit.model_selection.checkpoint._file import PATIENCE_S, Checkpoint
from manyfit.model_selection.checkpoint._search_identity import Identity
from manyfit.model_selection.job._job import Pair, Result

# Share of the time of a search that pickling and writing its models may take.
MODELS_SHARE = 0.1
# Seconds that the first model is assumed to take.
_FIRST_GUESS_S = 0.001
_TABLE = (
    "CREATE TABLE IF NOT EXISTS models (name TEXT, split INTEGER, calls INTEGER NOT NULL, "
    "model BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (name, split))"
)


class Trained(NamedTuple):
    """A model, and how many calls of ``partial_fit`` it has made."""

    model: Any
    calls: int


class UnwrittenModels:
    """The models of a search that are newer than those in its file; each is there once, by name and split.

    They are written in rounds of a search as their time allows, and all when the search ends or is
    interrupted. A search that is killed trains again what its models have learned since.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._models: dict[tuple[str, int], Trained] = {}
        self._start, self._spent, self._each = time.perf_counter(), 0.0, _FIRST_GUESS_S
        self._lost: set[str] = set()  # classes of models that cannot be pickled

    def put(self, models: Mapping[tuple[str, int], Trained]) -> None:
        """Add models, which nobody trains in place before they are written."""
        self._models.update(models)

    @contextmanager
    def writing(self, models: Mapping[tuple[str, int], Trained]) -> Iterator[None]:
        """Have some models, too, for one attempt to write, after which somebody trains them in place."""
        others = self._models
        self._models = {**others, **models}
        try:
            yield
        finally:
            if self._models:  # the attempt failed
                self._models = others

    def drop_others(self, names: Collection[str]) -> None:
        self._models = {key: one for key, one in self._models.items() if key[0] in names}

    def is_due(self, others: Collection[tuple[str, int]] = ()) -> bool:
        """Whether the models, and some others, may be written within their share of the time."""
        n = len(self._models.keys() | {*others})
        seconds = self._spent + n * self._each
        return n > 0 and seconds <= MODELS_SHARE * (time.perf_counter() - self._start)

    def write(self, file: sqlite3.Connection) -> None:
        start, n = time.perf_counter(), len(self._models)
        try:
            with transaction(file):
                file.executemany("INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?, ?)", self._rows())
            self._models.clear()
        finally:
            seconds = time.perf_counter() - start
            self._spent += seconds
            self._each = seconds / max(n, 1)

    def write_rest(self) -> None:
        """Write all models at the end of a search; if that fails, warn."""
        if not self._models:
            return
        try:
            with closing(connect(Path(self._path), PATIENCE_S)) as file:
                self.write(file)
        except (OSError, sqlite3.Error) as error:
            warnings.warn(
                f"checkpoint={os.fspath(self._path)!r} cannot be written ({error}). A search that continues "
                "from it trains models of the last rounds again.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _rows(self) -> Iterator[tuple[str, int, int, bytes, int]]:
        for (name, split), (model, calls) in self._models.items():
            try:
                pickled = pickle.dumps(model)
            except Exception as error:
                self._warn(type(model).__name__, error)
                continue
            yield name, split, calls, pickled, zlib.crc32(pickled)

    def _warn(self, name: str, error: Exception) -> None:
        if name in self._lost:
            return
        self._lost.add(name)
        warnings.warn(
            f"checkpoint={os.fspath(self._path)!r} gets no models of {name}, only their scores: they cannot "
            f"be pickled ({type(error).__name__}: {error}). A search that continues from it trains them "
            "again from their first call. Give them parameters that pickle accepts: functions of a module in "
            "place of lambdas, and no open files or locks.",
            RuntimeWarning,
            stacklevel=2,
        )


class ModelCheckpoint(Checkpoint):
    """The checkpoint of one round of a search, with the models that the round trains.

    It writes scores as `Checkpoint` does, and models within a tenth of the time of the search.
    `targets`: for each candidate the name of its model and the calls it has made after the round.
    `read_model` gets the model from a result. The file has pickles, which run code when they are read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: Identity,
        workers: int,
        targets: Sequence[tuple[str, int]],
        read_model: Callable[[Result], Any],
        unwritten: UnwrittenModels,
    ) -> None:
        super().__init__(path, identity, workers)  # which compares the search before anything is unpickled
        self._targets, self._read_model, self._models = targets, read_model, unwritten
        try:
            self._file.execute(_TABLE)
        except sqlite3.Error as error:
            self._file.close()
            raise OSError(f"checkpoint={str(self.path)!r} cannot be written: {error}.") from error

    def add(
        self, results: Mapping[Pair, Result], individual: bool, versions: Mapping[str, str] | None = None
    ) -> None:
        """See `Checkpoint`. Models that cannot be pickled are not kept, and a warning says so."""
        for (c, i), result in results.items():
            if result["fit_error"] is None:
                name, calls = self._targets[c]
                self._models.put({(name, i): Trained(self._read_model(result), calls)})
        plain = {
            pair: {name: value for name, value in one.items() if name != "estimator"}
            for pair, one in results.items()
        }
        super().add(plain, individual, versions)
        if self._models.is_due():
            self._write_models()

    def keep(self, models: Mapping[Pair, Trained]) -> None:
        """Write models that are trained further before they are scored, if it is time."""
        named = {(self._targets[c][0], i): one for (c, i), one in models.items()}
        if self._models.is_due(named):
            with self._models.writing(named):
                self._write_models()

    def _write_models(self) -> None:
        """Write the scores, and then the models: the file has the scores of earlier rounds by then."""
        self.write()
        if self._unwritten:
            return
        try:
            self._models.write(self._file)
        except sqlite3.Error as error:
            self._warn(error, "continues and tries again; models of the last round are not in the file yet")

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """See `Checkpoint`. The next rounds may write the models, but for an interrupt."""
        if kind is not None:
            self._write_models()
        super().__exit__(kind, value, trace)

    def load(self, name: str, split: int, most: int) -> Trained | None:
        """A model of the file that has made at most so many calls; None if it cannot be read."""
        return _load(self._file, name, split, most)

    def keep_models(self, names: Collection[str]) -> None:
        self._models.drop_others(names)
        with suppress(sqlite3.Error), transaction(self._file):
            stored = {name for (name,) in self._file.execute("SELECT DISTINCT name FROM models")}
            ended = [(name,) for name in stored - {*names}]
            self._file.executemany("DELETE FROM models WHERE name = ?", ended)


def load_model(path: str | os.PathLike[str], name: str, split: int, most: int) -> Trained | None:
    """`ModelCheckpoint.load`, after the rounds; the file has been compared with the search."""
    with closing(connect(Path(path), PATIENCE_S)) as file:
        return _load(file, name, split, most)


def _load(file: sqlite3.Connection, name: str, split: int, most: int) -> Trained | None:
    query = "SELECT calls, model, crc FROM models WHERE name = ? AND split = ?"
    row = file.execute(query, (name, split)).fetchone()
    if row is None or row[0] > most or zlib.crc32(row[1]) != row[2]:
        return None
    try:
        return Trained(pickle.loads(row[1]), int(row[0]))
    except Exception:  # of a class that has changed; the model is trained again
        return None
