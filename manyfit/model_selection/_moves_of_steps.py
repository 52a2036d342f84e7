"""Moves at the boundaries of the steps of pipelines that are fitted to rows of each split, on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin, is_classifier

from manyfit._compat import num_samples
from manyfit._twins import twin_of
from manyfit.arrays import Place, numpy_dtype
from manyfit.cluster import is_drop_in, steps_of
from manyfit.estimators import family_of
from manyfit.estimators._routes import why_at_home
from manyfit.folds import Unsupported, as_matrix, is_foreign
from manyfit.folds._atoms import as_rows, contiguous
from manyfit.metrics import SharedScoring
from manyfit.model_selection._job import Job
from manyfit.model_selection._move import (
    APART,
    BACK,
    COUNTED,
    FITTED,
    HOME,
    REFIT,
    SAMPLED,
    SCORED,
    SUMMED,
    Moves,
)
from manyfit.model_selection._plan import Group
from manyfit.model_selection._responses import Asked, stay_there
from manyfit.model_selection._settings import Settings
from manyfit.model_selection._widths import n_columns


@dataclass
class _Rows:
    """What one step hands to the next: how it is called and known, and how large it is."""

    name: str
    key: Any
    columns: int | None
    itemsize: int
    at_home: bool = False  # a step on the host has made it

    def nbytes(self, n: int) -> int | None:
        return None if self.columns is None else n * self.columns * self.itemsize


class MovesOfSteps:
    """Names the moves of settings that are fitted fold by fold, sharing steps, or fit by fit.

    Parameters
    ----------
    job : Job
        The search.
    place : Place
        Where X lies, or will lie.
    settings : Settings
        Those of the job.
    moves : Moves
        Takes what is found.
    y_home : callable
        Says that y is brought to the host.
    """

    def __init__(
        self,
        job: Job,
        place: Place,
        settings: Settings,
        moves: Moves,
        y_home: Callable[[], None],
    ) -> None:
        self._job, self._place, self._settings = job, place, settings
        self._moves, self._y_home = moves, y_home
        self._k, n = job.splits.n_splits, num_samples(job.X)
        splits = [tuple(as_rows(index, n) for index in split) for split in job.splits]
        self._n_train, self._n_test = (sum(map(len, part)) for part in zip(*splits, strict=True))
        self._apart = [rows for split in splits for rows in split if not together(rows)]
        self._X, self._y = rows_there(job), job.y if is_foreign(job.y) else np.asarray(job.y)
        self._size = 4 if numpy_dtype(self._X) == np.float32 else 8  # of a number behind a step
        self._y_size = 0 if job.y is None else _size_of(self._y)
        self._asked = Asked(job.options.scorer)
        self._with_train = job.options.return_train_score
        self._known: set[Any] = set()
        self._shared = False

    def name(self, groups: Sequence[Group]) -> None:
        """Name the moves of some groups, none of which moments or iterations serve as a whole."""
        families = [group for group in groups if group.kind == "family"]
        rest = [group for group in groups if group.kind != "family"]
        for some in (families, rest):
            self._known = set()  # what families keep of a fold is gone when the rest begins
            self._shared = any(group.kind != "one by one" for group in some)
            if self._shared:  # else they are cut by scikit-learn's own function
                sent = 8 * sum(map(len, self._apart))
                self._add("row numbers", "device", len(self._apart), sent, APART)
            for group in some:
                for c in group.candidates[:1] if group.kind == "family" else group.candidates:
                    self._setting(c, group)

    def _add(
        self, what: str, target: str, times: int, nbytes: float | None, why: str, fit: bool = False
    ) -> None:
        often = "once a fit" if fit or not self._shared else "once a fold"
        self._moves.add(what, target, often, times, nbytes, why)

    def _setting(self, c: int, group: Group) -> None:
        model = self._settings.model(c)
        if model is None or not (is_drop_in(model) or group.kind == "family"):
            return  # scikit-learn's dispatch, and others, move by rules of their own
        self._y_home()
        *steps, last = steps_of(model)
        rows = _Rows("X", (), int(self._X.shape[1]), numpy_dtype(self._X).itemsize)
        for j, step in enumerate(steps):
            rows = self._step(step, rows, self._settings.prefix_key(c, j))
        if group.kind == "family":
            self._family(group, rows)
        else:
            self._last(last, rows)

    def refit(self) -> None:
        """Name the moves of a fit to all rows, which shares nothing: of the first setting, for the best."""
        self._shared = False
        model = self._settings.model(0)
        if model is None or not is_drop_in(model):
            return
        *steps, last = steps_of(model)
        n, p = num_samples(self._job.X), int(self._X.shape[1])
        rows = _Rows("X", (), p, numpy_dtype(self._X).itemsize)
        for step in (*steps, last):
            who = type(step).__name__
            why = why_at_home(step, self._place, 1 if step is not last else self._n_targets)
            if why is not None:
                self._once(f"{rows.name} for {who}", "host", rows.nbytes(n), why)
                if is_foreign(self._job.y):
                    self._once("y", "host", n * self._y_size, f"{who} is handed it")
            out = _Rows(f"output of {who}", (), n_columns(step, rows.columns), self._size)
            if why is not None and step is not last:
                self._once(out.name, "device", out.nbytes(n), BACK)
            rows = out
        if why is None:
            self._refit_last(last, n)

    def _refit_last(self, last: Any, n: int) -> None:
        labels = is_classifier(last)
        if not is_foreign(self._job.y):
            size, what = (8, "y as numbers") if labels else (self._y_size, "y")
            self._once(what, "device", n * size, FITTED)
        family = family_of(twin_of(type(last)))
        if family is not None and family.needs == "passes":
            self._once("y as numbers", "host", n * (8 if labels else self._y_size), COUNTED)

    def _once(self, what: str, target: str, nbytes: float | None, why: str) -> None:
        self._moves.add(what, target, REFIT, 1, nbytes, why)

    # Steps

    def _step(self, step: Any, rows: _Rows, key: Any) -> _Rows:
        """What a step hands on; on the host its input and its output cross."""
        who, why = type(step).__name__, why_at_home(step, self._place) if is_drop_in(step) else None
        out = _Rows(f"output of {who}", key, n_columns(step, rows.columns), self._size, why is not None)
        if why is None:
            return out
        self._to_host(rows, who, why)
        if self._is_new(("out", key)):
            own = getattr(twin_of(type(step)), "fit_transform", None) is not TransformerMixin.fit_transform
            again = self._with_train and (own or not self._shared)
            self._cross(out, out.name, "device", BACK, again)
        return out

    def _to_host(self, rows: _Rows, who: str, why: str) -> None:
        if self._shared and (rows.at_home or not self._is_new(("in", rows.key))):
            return  # a copy of it is there
        self._cross(rows, f"{rows.name} for {who}", "host", why, self._with_train and not self._shared)

    def _cross(self, rows: _Rows, what: str, target: str, why: str, again: bool) -> None:
        """Training rows cross at the fit, test rows at each question, training rows again where asked for."""
        often = 1 if self._shared else self._asked.responses
        train, test = 1 + again * often, often
        size = rows.nbytes(self._n_train * train + self._n_test * test)
        self._add(what, target, self._k * (train + test), size, why)

    def _is_new(self, key: Any) -> bool:
        new = not self._shared or key not in self._known
        self._known.add(key)
        return new

    # The last step

    def _last(self, last: Any, rows: _Rows) -> None:
        who, why = type(last).__name__, why_at_home(last, self._place, self._n_targets)
        if why is not None:
            self._to_host(rows, who, why)
            for method in self._asked.values_of(last):
                self._scored(f"{method} of {who}", "device", 8 * self._columns(last, method), SCORED)
        else:
            self._targets(last)
        for _ in self._asked.readers_of(last, own=why is None):
            self._scored("y", "device", self._y_size, SCORED)

    def _scored(self, what: str, target: str, size: int, why: str) -> None:
        for role, n in (("test", self._n_test), ("training", self._n_train))[: 1 + self._with_train]:
            self._add(f"{what} of {role} rows", target, self._k, size * n, why, fit=True)

    def _targets(self, last: Any) -> None:
        """What a last step that stays there is fitted to, and its labels."""
        labels = is_classifier(last)
        size, what = (8, "y as numbers") if labels else (self._y_size, "y of training rows")
        self._add(what, "device", self._k, size * self._n_train, FITTED, fit=True)
        if any(name.endswith("sample_weight") for name in self._job.options.fit_params):
            self._add("weights", "device", self._k, 8 * self._n_train, FITTED, fit=True)
        family = family_of(twin_of(type(last)))
        if family is not None and family.needs == "passes":
            self._add("y as numbers", "host", self._k, size * self._n_train, COUNTED, fit=True)
        if labels and self._asked.labels:
            self._scored("labels", "host", 8, "they go where labels of y are")

    @property
    def _n_targets(self) -> int:
        return int(self._y.shape[1]) if getattr(self._y, "ndim", 1) == 2 else 1

    def _columns(self, last: Any, method: str) -> int:
        """Columns of what a method answers."""
        if not is_classifier(last):
            return self._n_targets
        n = len(np.unique(self._job.brought(self._y)))  # which was brought, for a classifier's splits
        return 1 if method == "decision_function" and n == 2 else n

    # Families

    def _family(self, group: Group, rows: _Rows) -> None:
        """A family on the rows behind the steps of each fold: sums come home, y goes there."""
        assert group.family is not None
        options, train = self._job.options, ("training", self._n_train)
        roles = [("test", self._n_test), train][: 1 + self._with_train]
        if group.family.needs == "moments":
            d = None if rows.columns is None else rows.columns + self._n_targets
            size = None if d is None else 8 * (2 * d + (d + 1) ** 2) * self._k
            for role, n in (train, *roles):
                self._add(f"y of {role} rows", "device", self._k, self._y_size * n, SUMMED)
                self._add("moments", "host", self._k, size, "fits of small matrices are the host's")
        else:
            self._moves.add("numbers and y of sampled rows", "device", "once a fold", None, None, SAMPLED)
        with suppress(Unsupported):
            scoring = SharedScoring(options.scorer, options.score_params, group.prototype)
            if scoring.reads_moments:
                return
            for role, n in roles:
                if stay_there(scoring, self._n_targets):
                    self._add(f"y of {role} rows", "device", self._k, self._y_size * n, SCORED)
                else:
                    labels = is_classifier(group.prototype)
                    size = None if labels else 8 * n * self._n_targets * len(group.candidates)
                    self._add(f"predictions of {role} rows", "host", self._k, size, HOME)


def rows_there(job: Job) -> Any:
    """X of a job, where it is of numbers; on a device that has no float64, too.

    Raises
    ------
    Unsupported
        If it is anything else, see `as_matrix`.
    """
    X = job.X
    known = is_foreign(X) and X.ndim == 2 and str(X.dtype).rpartition(".")[2] in ("float32", "float64")
    return X if known else as_matrix(X)


def together(rows: Any) -> bool:
    """Whether rows are neighbours, in order: a view has them."""
    return isinstance(contiguous(rows), slice) and bool((np.diff(rows) == 1).all())


def _size_of(y: Any) -> int:
    """Bytes of a row of y; texts go to a device as numbers."""
    if not is_foreign(y) and y.dtype.kind not in "biufc":
        return 8
    return int(numpy_dtype(y).itemsize * (y.shape[1] if y.ndim == 2 else 1))
