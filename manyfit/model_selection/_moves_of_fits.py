"""Moves of settings that are fitted to rows of each split, on a device, and of the refit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit._twins import twin_of
from manyfit.arrays import Place, numpy_dtype
from manyfit.cluster._local import workers
from manyfit.cluster._takes_gpu import is_drop_in, steps_of
from manyfit.estimators import family_of
from manyfit.estimators._objective import are_small
from manyfit.estimators._own import fitter_of
from manyfit.estimators._routes import why_at_home
from manyfit.folds import Unsupported, distinct_labels, is_foreign
from manyfit.metrics import SharedScoring
from manyfit.model_selection._job import Job
from manyfit.model_selection._move import (
    APART,
    ASKED,
    CHECKED,
    COUNTED,
    FITTED,
    HOME,
    SAMPLED,
    SCORED,
    SMALL,
    SUMMED,
    Moves,
)
from manyfit.model_selection._moves_of_steps import MovesOfSteps
from manyfit.model_selection._plan import Group
from manyfit.model_selection._responses import stay_there
from manyfit.model_selection._settings import Settings
from manyfit.model_selection._trips import Rows, Trips, rows_there, start


class MovesOfFits:
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
        self, job: Job, place: Place, settings: Settings, moves: Moves, y_home: Callable[[], None]
    ) -> None:
        self._job, self._place, self._settings = job, place, settings
        self._moves, self._y_home = moves, y_home
        self._trips = Trips(job, moves)
        self._y = job.y if is_foreign(job.y) else np.asarray(job.y)
        self._y_size = 0 if job.y is None else _size_of(self._y)
        self._size = 4 if numpy_dtype(rows_there(job)) == np.float32 else 8  # of a number behind a step

    def name(self, groups: Sequence[Group]) -> None:
        """Name the moves of some groups, none of which moments or iterations serve as a whole."""
        # Several workers begin with the families, and what these keep of a fold is gone when the rest begins.
        first = ("family",) if workers(self._job.n_jobs) > 1 else ("family", "steps")
        begun = [group for group in groups if group.kind in first]
        for some in (begun, [group for group in groups if group.kind not in first]):
            self._trips.begin(shared=any(group.kind != "one by one" for group in some))
            if self._trips.shared:  # else they are cut by scikit-learn's own function
                apart = self._trips.apart
                self._trips.add("row numbers", "device", len(apart), 8 * sum(map(len, apart)), APART)
            for group in some:
                for c in group.candidates[:1] if group.kind == "family" else group.candidates:
                    self._setting(c, group)

    def _setting(self, c: int, group: Group) -> None:
        model = self._settings.model(c)
        if model is None or not (is_drop_in(model) or group.kind == "family"):
            return  # scikit-learn's dispatch, and others, move by rules of their own
        self._y_home()
        self._trips.begin_setting()
        *steps, last = steps_of(model)
        rows, walk = start(self._job), MovesOfSteps(self._trips, self._place, self._size)
        for j, step in enumerate(steps):
            rows = walk.step(step, rows, self._settings.prefix_key(c, j))
        if group.kind == "family":
            self._family(group, rows)
        else:
            self._last(last, rows)

    def refit(self) -> None:
        """Name the moves of a fit to all rows, which shares nothing: of the first setting, for the best."""
        model = self._settings.model(0)
        if model is None or not is_drop_in(model):
            return
        self._trips.begin(shared=False, refit=True)
        *steps, last = steps_of(model)
        rows, walk = start(self._job), MovesOfSteps(self._trips, self._place, self._size)
        for step in steps:
            rows = walk.step(step, rows, ())
        at_home = self._last(last, rows)
        if is_foreign(self._job.y):  # which each who works on the host brings there
            for who in [*walk.readers, *([type(last).__name__] if at_home else [])]:
                self._trips.fitted("y", "host", self._y_size, f"{who} is handed it")

    # The last step

    def _last(self, last: Any, rows: Rows) -> bool:
        """Name what the last step moves; whether it works on the host."""
        if rows.stays:
            return True  # and so does whatever it says
        who, why = type(last).__name__, why_at_home(last, self._place, self._n_targets)
        trips, asked = self._trips, self._trips.asked
        if why is not None:
            trips.home(rows, who, why)
            for method in asked.values_of(last):
                trips.scored(f"{method} of {who}", "device", 8 * self._columns(last, method), SCORED)
            for _ in range(0 if is_classifier(last) else asked.users):
                size = 8 * self._columns(last, "predict")
                trips.scored(f"predict of {who}", "device", size, f"it is handed it where X lies; {ASKED}")
        else:
            self._targets(last, rows)
        readers = asked.readers_of(last, own=why is None)
        for _ in readers:
            trips.scored("y", "device", self._y_size, SCORED)
        self._weights(last, len(readers), at_home=why is not None)
        return why is not None

    def _weights(self, last: Any, n_readers: int, at_home: bool) -> None:
        """Weights of the fit, and of scores, of which so many are made on the device."""
        trips, options = self._trips, self._job.options
        for one in options.fit_weights:
            there, size = is_foreign(one), _size_of(one if is_foreign(one) else np.asarray(one))
            own = not at_home and _is_ours(last)
            if there and (own or at_home):
                trips.fitted("weights", "host", size, CHECKED if own else FITTED)
            if own or not (there or at_home):
                trips.fitted("weights", "device", 8 if own else size, FITTED)
        score = options.score_weights
        if score is not None:
            there = is_foreign(score)
            for _ in range(trips.asked.readers - n_readers if there else n_readers):
                size = _size_of(score if there else np.asarray(score))
                trips.scored("weights", "host" if there else "device", size, HOME if there else SCORED)

    def _targets(self, last: Any, rows: Rows) -> None:
        """What a last step that stays there is fitted to, what it sums, and its labels."""
        labels, trips = is_classifier(last), self._trips
        family = family_of(twin_of(type(last))) if _is_ours(last) else None
        if family is not None and family.needs == "passes":
            if trips.refit and is_foreign(self._job.y):
                trips.fitted("y", "host", self._y_size, COUNTED)
            for what, size in targets_of_iterations(self._job, last).items():
                trips.fitted(what, "device", size, FITTED)
        elif not (trips.refit and is_foreign(self._job.y)):  # which lies there
            size, what = (8, "y as numbers") if labels else (self._y_size, "y of training rows")
            trips.fitted("y" if trips.refit and not labels else what, "device", size, FITTED)
        if family is not None and family.needs == "moments":
            trips.sums(self._sums(rows), SMALL)
        if labels and trips.asked.labels:
            trips.scored("labels", "host", 8, "they go where labels of y are")

    def _sums(self, rows: Rows) -> int | None:
        """Bytes of the moments of X and y: of a point amid the data, an offset, and products with a count."""
        d = None if rows.columns is None else rows.columns + self._n_targets
        return None if d is None else 8 * (2 * d + (d + 1) ** 2)

    @property
    def _n_targets(self) -> int:
        return int(self._y.shape[1]) if getattr(self._y, "ndim", 1) == 2 else 1

    def _columns(self, last: Any, method: str) -> int:
        """Columns of what a method answers."""
        if not is_classifier(last):
            return self._n_targets
        n = len(distinct_labels(self._job.brought(self._y)))  # which was brought, for a classifier's splits
        return 1 if method == "decision_function" and n == 2 else n

    # Families

    def _family(self, group: Group, rows: Rows) -> None:
        """A family on the rows behind the steps of each fold: sums come home, y goes there."""
        assert group.family is not None
        if rows.stays:
            return
        trips = self._trips
        if group.family.needs == "moments":
            trips.fitted("y of training rows", "device", self._y_size, SUMMED, fit=False)
            trips.sums(self._sums(rows), SMALL, fit=False)
            trips.scored("y", "device", self._y_size, SUMMED, fit=False)
            for _ in trips.roles:
                trips.sums(self._sums(rows), SMALL, fit=False)
        else:
            self._moves.add("numbers and y of sampled rows", "device", "once a fold", None, None, SAMPLED)
        with suppress(Unsupported):
            options = self._job.options
            scoring = SharedScoring(options.scorer, options.score_params, group.prototype)
            if scoring.reads_moments:
                return
            if stay_there(scoring, self._n_targets):
                trips.scored("y", "device", self._y_size, SCORED, fit=False)
            else:
                labels = is_classifier(group.prototype)
                size = None if labels else 8 * self._n_targets * len(group.candidates)
                trips.scored("predictions", "host", size, HOME, fit=False)


def _is_ours(last: Any) -> bool:
    """Whether a fit of ours serves an estimator, as far as its parameters tell."""
    fitter = fitter_of(twin_of(type(last)))
    if fitter is None:
        return False
    try:
        fitter.check(last)
    except Unsupported:
        return False
    return True


def targets_of_iterations(job: Job, last: Any) -> dict[str, int]:
    """What iterations are told of y: bytes of each row, a small integer for each output or a number."""
    y = np.asarray(job.brought(job.y))
    if not is_classifier(last):
        return {"y as numbers": 1 if are_small(y) else 8}
    n = len(distinct_labels(y))
    found = {"y as numbers": n if n > 2 else 1}
    return found if getattr(last, "class_weight", None) is None else {**found, "classes of rows": 8}


def _size_of(y: Any) -> int:
    """Bytes of a row of y; texts go to a device as numbers."""
    if not is_foreign(y) and y.dtype.kind not in "biufc":
        return 8
    return int(numpy_dtype(y).itemsize * (y.shape[1] if y.ndim == 2 else 1))
