"""Where rounds of a search keep fitted ensembles: in this process, or in a folder for several."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Ensemble(NamedTuple):
    """The size of a fitted ensemble, and the attributes that its fit has set."""

    size: int
    fitted: dict[str, Any]


# Of a fit whose ensemble is not kept.
LOST = Ensemble(0, {})


class EnsembleStore(Protocol):
    """Keeps the ensembles of the last round of a search, and of this one, by the names of their fits."""

    def take(self, name: str) -> Ensemble | None:
        """The ensemble of the last round that has a name; of size 0 if it is lost, None if no fit had it."""

    def keep(self, name: str, ensemble: Ensemble, n_bytes: int) -> None:
        """Keep an ensemble of about so many bytes for the next round, if there is space."""

    def next_round(self) -> None:
        """Forget the ensembles of the round before the last one."""


class ProcessStore(EnsembleStore):
    """Ensembles in the memory of this process; those of a round take at most `memory` bytes."""

    def __init__(self, memory: int) -> None:
        self._memory, self._bytes = memory, 0
        self._last: dict[str, Ensemble] = {}
        self._now: dict[str, Ensemble] = {}

    def take(self, name: str) -> Ensemble | None:
        return self._last.pop(name, None)

    def keep(self, name: str, ensemble: Ensemble, n_bytes: int) -> None:
        if self._bytes + n_bytes > self._memory:
            self._now.setdefault(name, LOST)
            return
        self._bytes += n_bytes
        # A list of members grows in place.
        fitted = {name: list(one) if isinstance(one, list) else one for name, one in ensemble.fitted.items()}
        self._now[name] = Ensemble(ensemble.size, fitted)

    def next_round(self) -> None:
        self._last, self._now, self._bytes = self._now, {}, 0


class FolderStore(EnsembleStore):
    """Ensembles in files for all processes of this machine; a round takes at most `memory` bytes.

    The process that makes it deletes the files: use it in a ``with`` block.
    """

    def __init__(self, memory: int) -> None:
        self._memory, self._round = memory, 0
        self._folder = Path(tempfile.mkdtemp(prefix="manyfit-"))
        self._make_folder()

    def __enter__(self) -> FolderStore:
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _of_round(self, number: int) -> Path:
        return self._folder / str(number)

    def _make_folder(self) -> None:
        with suppress(OSError):  # without space, say: then nothing is kept
            self._of_round(self._round).mkdir(parents=True, exist_ok=True)

    def take(self, name: str) -> Ensemble | None:
        folder = self._of_round(self._round - 1)
        try:
            return Ensemble(*pickle.loads((folder / name).read_bytes()))
        except Exception:  # missing, or cut off: the fit is made from the start
            return None if folder.exists() and not (folder / name).exists() else LOST

    def keep(self, name: str, ensemble: Ensemble, n_bytes: int) -> None:
        folder = self._of_round(self._round)
        # No disk space, or an estimator that cannot be pickled: the next round makes the fit from the start.
        with suppress(Exception):
            if _bytes_in(folder) + n_bytes > self._memory:
                (folder / name).touch()  # see `take`
                return
            descriptor, path = tempfile.mkstemp(dir=folder)
            with open(descriptor, "wb") as file:
                pickle.dump(tuple(ensemble), file, pickle.HIGHEST_PROTOCOL)
            os.replace(path, folder / name)

    def next_round(self) -> None:
        shutil.rmtree(self._of_round(self._round - 1), ignore_errors=True)
        self._round += 1
        self._make_folder()


def _bytes_in(folder: Path) -> int:
    n_bytes = 0
    for file in os.scandir(folder):
        with suppress(FileNotFoundError):  # another process has just renamed it
            n_bytes += file.stat().st_size
    return n_bytes
