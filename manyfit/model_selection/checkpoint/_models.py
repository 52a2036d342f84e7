"""The checkpoint of a search that trains models further: scores of its rounds, and the models themselves."""

from __future__ import annotations

import os
import pickle
import sqlite3
import time
import warnings
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from manyfit.model_selection.checkpoint._database import connect, transaction
from manyfit.model_selection.checkpoint._file import LONGEST_WAIT_S, PATIENCE_S, WRITING_SHARE, Checkpoint
from manyfit.model_selection.checkpoint._search_identity import Identity
from manyfit.model_selection.job._job import Pair, Result

_TABLE = (
    "CREATE TABLE IF NOT EXISTS models (name TEXT, split INTEGER, calls INTEGER NOT NULL, "
    "model BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (name, split))"
)


class Trained(NamedTuple):
    """A model, and how many calls of ``partial_fit`` it has made."""

    model: Any
    calls: int


class ModelCheckpoint(Checkpoint):
    """The checkpoint of one round of a search, with the models that the round trains.

    `targets`: for each candidate the name of its model and the calls it has made after the round.
    `read_model` gets the model from a result. The file has pickles, which run code when they are read.
    `lost`: the classes of models that cannot be pickled and were warned of; it takes new ones.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: Identity,
        workers: int,
        targets: Sequence[tuple[str, int]],
        read_model: Callable[[Result], Any],
        lost: set[str],
    ) -> None:
        super().__init__(path, identity, workers)  # which compares the search before anything is unpickled
        self._targets, self._read_model, self._lost = targets, read_model, lost
        self._pickles: dict[Pair, tuple[int, bytes]] = {}
        try:
            self._file.execute(_TABLE)
        except sqlite3.Error as error:
            self._file.close()
            raise OSError(f"checkpoint={str(self.path)!r} cannot be written: {error}.") from error

    def add(
        self, results: Mapping[Pair, Result], individual: bool, versions: Mapping[str, str] | None = None
    ) -> None:
        """See `Checkpoint`. A model that cannot be pickled is not kept, and a warning says so."""
        for pair, result in results.items():
            if result["fit_error"] is None:
                self._pickle(pair, Trained(self._read_model(result), self._targets[pair[0]][1]))
        plain = {
            pair: {name: value for name, value in one.items() if name != "estimator"}
            for pair, one in results.items()
        }
        super().add(plain, individual, versions)

    def keep(self, models: Mapping[Pair, Trained]) -> None:
        """Keep models that are trained further before they are scored, and write them if it is time."""
        for pair, one in models.items():
            self._pickle(pair, one)
        if time.perf_counter() - self._last >= min(self._cost / WRITING_SHARE, LONGEST_WAIT_S):
            self.write()

    def _pickle(self, pair: Pair, trained: Trained) -> None:
        try:
            self._pickles[pair] = trained.calls, pickle.dumps(trained.model)
        except Exception as error:
            self._pickles.pop(pair, None)
            name = type(trained.model).__name__
            if name not in self._lost:
                self._lost.add(name)
                warnings.warn(
                    f"checkpoint={str(self.path)!r} gets no models of {name}, only their scores: they cannot "
                    f"be pickled ({type(error).__name__}: {error}). A search that continues from it trains "
                    "them again from their first call. Give them parameters that pickle accepts: functions "
                    "of a module in place of lambdas, and no open files or locks.",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def write(self) -> None:
        """See `Checkpoint`. A model that was scored is written after its scores."""
        start = time.perf_counter()
        super().write()
        if not self._pickles or self._unwritten:
            return
        rows = [
            (self._targets[c][0], i, calls, model, zlib.crc32(model))
            for (c, i), (calls, model) in self._pickles.items()
        ]
        try:
            with transaction(self._file):
                self._file.executemany("INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?, ?)", rows)
            self._pickles.clear()
        except sqlite3.Error as error:
            self._warn(error, "continues and tries again; models of the last round are not in the file yet")
        self._last = time.perf_counter()
        self._cost = self._last - start

    def load(self, name: str, split: int, most: int) -> Trained | None:
        """A model of the file that has made at most so many calls; None if it cannot be read."""
        return _load(self._file, name, split, most)

    def keep_models(self, names: Collection[str]) -> None:
        """Delete all other models."""
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
