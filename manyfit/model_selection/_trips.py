"""How often the rows of folds cross between host and device: in fits, and in the scores of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from manyfit._compat import num_samples
from manyfit.arrays import numpy_dtype
from manyfit.estimators._readable import kind_of
from manyfit.folds import as_matrix, is_foreign
from manyfit.folds._atoms import as_rows, contiguous
from manyfit.model_selection._job import Job
from manyfit.model_selection._move import ASKED, REFIT, Moves
from manyfit.model_selection._responses import Asked


@dataclass(frozen=True)
class Rows:
    """What one step hands to the next.

    Attributes
    ----------
    name : str
        What it is called.
    key : object
        Equal where it is the same for several settings.
    columns : int or None
        None where only a fit tells.
    itemsize : int
        Bytes of a number.
    at : {"device", "both", "host", "sparse"}
        "both": a step on the host made it, and where fits share what they bring home it is known there, too.
        "host", "sparse": the device holds nothing of the kind, so that what follows works on the host.
    again : bool
        Whether a training score makes that of the training rows anew.
    cut : bool
        Whether it is columns that are cut from another array, anew each time that somebody reads them.
    reader : object
        Equal for those who are handed the same cut.
    """

    name: str
    key: Any
    columns: int | None
    itemsize: int
    at: str = "device"
    again: bool = False
    cut: bool = False
    reader: Any = None

    @property
    def stays(self) -> bool:
        """Whether it lies on the host only, and whoever is handed it works there."""
        return self.at in ("host", "sparse")

    def nbytes(self, n: int) -> int | None:
        """Bytes of `n` rows; None where only a fit tells."""
        return None if self.columns is None else n * self.columns * self.itemsize

    def some(self, name: str, key: Any, columns: int | None) -> Rows:
        """Some of its columns, where it lies."""
        at = "device" if self.at == "both" else self.at  # nobody knows what is cut there on the host, too
        return replace(self, name=name, key=key, columns=columns, at=at, cut=True, reader=None)


class Trip(NamedTuple):
    """Arrays that cross for one reason: how often, how many, with how many rows in all."""

    often: str
    arrays: int
    rows: int
    asked: bool  # whether a scorer of the user's is taken to ask for it


class Trips:
    """How often rows cross for some settings, all of which share fits of steps, or none.

    Parameters
    ----------
    job : Job
        The search.
    moves : Moves
        Takes what crosses.
    """

    def __init__(self, job: Job, moves: Moves) -> None:
        self._moves, self._k, n = moves, job.splits.n_splits, num_samples(job.X)
        self.n_all = n
        splits = [tuple(as_rows(index, n) for index in split) for split in job.splits]
        self.n_train, self.n_test = (sum(map(len, part)) for part in zip(*splits, strict=True))
        self.apart = [rows for split in splits for rows in split if not together(rows)]
        self.asked, self.with_train = Asked(job.options.scorer), job.options.return_train_score
        self.begin(shared=False)

    def begin(self, shared: bool, refit: bool = False) -> None:
        """Begin with other settings: nothing of theirs is known yet."""
        self.shared, self.refit, self._known = shared, refit, set[Any]()
        self.begin_setting()

    def begin_setting(self) -> None:
        """Begin with another setting, whose scores bring home anew what is not shared."""
        self._scored = set[Any]()

    def is_new(self, *key: Any) -> bool:
        """Whether nobody has made, or brought, this before; where nothing is shared it is always new."""
        new = not self.shared or key not in self._known
        self._known.add(key)
        return new

    @property
    def roles(self) -> list[tuple[str, int]]:
        """Names of the rows that are scored, and how many there are in all folds."""
        return [("test", self.n_test), ("training", self.n_train)][: 1 + self.with_train]

    def add(
        self, what: str, target: str, arrays: int, nbytes: float | None, why: str, fit: bool = False
    ) -> None:
        """Name arrays; `fit`: each fit has its own, even where steps are shared."""
        often = REFIT if self.refit else "once a fit" if fit or not self.shared else "once a fold"
        self._moves.add(what, target, often, arrays, nbytes, why)

    def fitted(self, what: str, target: str, size: float | None, why: str, fit: bool = True) -> None:
        """Name something of which a fit takes `size` bytes for each training row."""
        n, arrays = (self.n_all, 1) if self.refit else (self.n_train, self._k)
        self.add(what, target, arrays, None if size is None else size * n, why, fit)

    def sums(self, size: int | None, why: str, fit: bool = True) -> None:
        """Name sums over the rows of a fit, of so many bytes."""
        arrays = 1 if self.refit else self._k
        self.add("moments", "host", arrays, None if size is None else arrays * size, why, fit)

    def scored(self, what: str, target: str, size: float | None, why: str, fit: bool = True) -> None:
        """Name something of which scores take `size` bytes for each row."""
        if self.refit:
            return  # which nobody scores
        for role, n in self.roles:
            self.add(f"{what} of {role} rows", target, self._k, None if size is None else size * n, why, fit)

    # Rows between steps

    def home(self, rows: Rows, who: str, why: str) -> None:
        """Rows that somebody reads on the host, unless they are known there."""
        key = ("in", rows.key, rows.reader)
        if self.shared and (rows.at == "both" or key in self._scored):
            return
        name = f"{rows.name} for {who}"
        self._scored.add(key)
        self._cross(rows, name, "host", why, key, kept=rows.key == () and not rows.cut)

    def there(self, rows: Rows, why: str) -> None:
        """Rows that somebody makes on the host, and that go on from the device."""
        self._cross(rows, rows.name, "device", why, ("out", rows.key), kept=False)

    def _cross(self, rows: Rows, what: str, target: str, why: str, key: Any, kept: bool) -> None:
        for trip in self._trips(rows, self.is_new(*key), kept):
            text = f"{why}; {ASKED}" if trip.asked else why
            self._moves.add(what, target, trip.often, trip.arrays, rows.nbytes(trip.rows), text)

    def _trips(self, rows: Rows, new: bool, kept: bool) -> Iterator[Trip]:
        """Training rows cross at the fit, and scored rows at each question, if nobody has kept them.

        `kept`: rows that were brought home once are known there, whoever reads them.
        """
        asked, train, test = self.asked, self.n_train, self.n_test
        if self.refit:
            yield Trip(REFIT, 1, self.n_all, False)
        elif not self.shared:
            yield self._each_fit(asked.responses - asked.users, 1, False)
            yield self._each_fit(asked.users, 0, True)
        elif not asked.users:
            yield Trip(
                "once a fold",
                new * self._k * (2 + rows.again),
                new * (train * (1 + rows.again) + test),
                False,
            )
        else:  # who reads the fitted estimator has the steps apply themselves, to copies that it may change
            known = kept and asked.responses > asked.users
            yield Trip("once a fold", new * self._k * (1 + known), new * (train + known * test), False)
            yield self._each_fit(0 if kept else asked.responses - asked.users, 0, False)
            yield self._each_fit(asked.users, 0, True)

    def _each_fit(self, often: int, fits: int, asked: bool) -> Trip:
        train = fits + self.with_train * often
        return Trip(
            "once a fit", self._k * (train + often), self.n_train * train + self.n_test * often, asked
        )


def start(job: Job) -> Rows:
    """X, as the first step is handed it."""
    X = rows_there(job)
    return Rows("X", (), int(X.shape[1]), numpy_dtype(X).itemsize)


def rows_there(job: Job) -> Any:
    """X of a job, where it is of numbers or bools.

    Raises
    ------
    Unsupported
        If it is anything else, see `as_matrix`.
    """
    X = job.X
    known = is_foreign(X) and X.ndim == 2 and kind_of(X) in "biuf"
    return X if known else as_matrix(X)


def together(rows: Any) -> bool:
    """Whether rows are neighbours, in order: a view has them."""
    return isinstance(contiguous(rows), slice) and bool((np.diff(rows) == 1).all())
