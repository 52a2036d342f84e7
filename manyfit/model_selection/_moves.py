"""Which moves between host and device a search will make, from what is known before its fits.

Named are arrays with a value for each row of X, or of a split, and sums of moments and gradients. What is as
small as coefficients or scores is not, nor what scikit-learn moves inside of its array API dispatch, nor what
workers of a cluster move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit._compat import num_samples
from manyfit._config import get_config
from manyfit.arrays import container_place
from manyfit.folds import SplitData, as_matrix, is_foreign
from manyfit.folds._atoms import as_rows
from manyfit.metrics import SharedScoring
from manyfit.model_selection._job import Job
from manyfit.model_selection._lend import bytes_of
from manyfit.model_selection._move import (
    APART,
    CHECKED,
    FITTED,
    HOME,
    READ,
    REFIT,
    SAMPLED,
    SCORED,
    SMALL,
    SUMMED,
    Move,
    Moves,
)
from manyfit.model_selection._moves_of_fits import MovesOfFits, targets_of_iterations
from manyfit.model_selection._moves_to_workers import name_moves_to_workers
from manyfit.model_selection._plan import Group
from manyfit.model_selection._responses import stay_there
from manyfit.model_selection._settings import Settings
from manyfit.model_selection._trips import together
from manyfit.model_selection._where import goes_there, place_of_work, unable
from manyfit.model_selection._worth import outputs_of


def moves_of(
    job: Job,
    groups: Sequence[Group],
    settings: Settings,
    data: SplitData | None,
    rows: SplitData | None,
) -> tuple[Move, ...]:
    """The moves of a plan; none where all of it is on the host.

    Parameters
    ----------
    job : Job
        The search, its data sent already, or not yet.
    groups : sequence of Group
        Of the plan.
    settings : Settings
        Those of the job.
    data, rows : SplitData or None
        What moments, and what iterations, read.
    """
    place = place_of_work(job) if job.client is None else container_place(job.X)
    named = _Named(job)
    if job.client is not None:
        name_moves_to_workers(job, named.moves)
        if place is not None and not place.home:  # the refit is made in this process
            named.refit(MovesOfFits(job, place, settings, named.moves, named.y_home))
        return named.moves.found
    if place is None or place.home or not named.of_all():
        return named.moves.found
    moments = [group for group in groups if group.kind == "moments"]
    if moments and data is not None:
        named.moments(moments, data)
    for group in groups:
        if group.kind == "passes" and rows is not None:
            named.passes(group, rows)
    rest = [group for group in groups if group.kind not in ("moments", "passes")]
    fits = MovesOfFits(job, place, settings, named.moves, named.y_home)
    if rest and not named.at_home():
        fits.name(rest)
    named.refit(fits)
    return named.moves.found


class _Named:
    """Names the moves of what is shared, and of what goes as a whole."""

    def __init__(self, job: Job) -> None:
        self.job, self.moves = job, Moves()
        self._n, self._k = num_samples(job.X), job.splits.n_splits
        self._y_is_home = not is_foreign(job.y)
        self._summed: set[Any] = set()

    def y_home(self) -> None:
        """y of a device, which comes to the host once, whoever asks first."""
        if not self._y_is_home:
            self._y_is_home = True
            self.moves.add("y", "host", "once a search", 1, bytes_of(self.job.y), READ)

    def of_all(self) -> bool:
        """Name X, where it is sent or fetched, and y of a classifier; whether there is more to name."""
        job = self.job
        if get_config()["device"] == "cpu":
            for what, one in (("X", job.X), ("y", job.y)):
                if is_foreign(one):
                    self.moves.add(what, "host", "once a search", 1, bytes_of(one), "device='cpu' is set")
            return False
        sent = job.home is not None or goes_there(job.X)
        if sent:
            X = as_matrix(job.X if job.home is None else job.home[0])
            self.moves.add("X", "device", "once a search", 1, X.nbytes, "device='cuda' is set")
        there = sent or is_foreign(job.X)
        if is_classifier(job.estimator) or not there:
            self.y_home()
        return there

    def at_home(self, refit: bool = False) -> bool:
        """Name what comes to the host for all that is fitted there, once; whether it is."""
        job, who = self.job, unable(self.job, cut=not refit)
        if who and job.home is None and is_foreign(job.X) and "X" not in self._summed:
            self._summed.add("X")
            why, often = f"{' and '.join(who)} cannot be fitted there", REFIT if refit else "once a search"
            self.moves.add("X", "host", often, 1, bytes_of(job.X), why)
            self.y_home()
            self._weights_home(READ)
        return bool(who)

    def refit(self, fits: MovesOfFits) -> None:
        """Name what the refit moves, if there is one."""
        if getattr(self.job.search, "refit", False) and not self.at_home(refit=True):
            fits.refit()

    # Shared groups

    def moments(self, groups: Sequence[Group], data: SplitData) -> None:
        """Sums over rows come home, together; predictions of all groups are scored together."""
        weights = {id(one): one for one in (data.weights.fit, data.weights.score)}
        self._weights_home()
        self._sums(data, len({id(None), *weights}))
        y = self.job.y
        nbytes = bytes_of(y) if is_foreign(y) else np.asarray(y).nbytes
        if not is_foreign(y):
            self._once("y", nbytes)
        for one in weights.values():
            if one is not None:
                self._once("weights", one.nbytes)
        self._scored(groups, data, nbytes / self._n)

    def _scored(self, groups: Sequence[Group], data: SplitData, size: float) -> None:
        """y goes where predictions are, or these come where scorers are; `size`: bytes of a row of y."""
        options, prototype = self.job.options, groups[0].prototype
        scoring = SharedScoring(options.scorer, options.score_params, prototype)  # which the planner has made
        if scoring.reads_moments and groups[0].kind == "moments":
            return
        self.y_home()
        n_settings = sum(len(group.candidates) for group in groups)
        of_all = None if is_classifier(prototype) else 8 * n_settings * data.n_targets
        for j, role in ((1, "test"), (0, "training"))[: 1 + options.return_train_score]:
            index = [as_rows(split[j], self._n) for split in self.job.splits]
            n = sum(map(len, index))
            apart = max((8 * len(rows) for rows in index if not together(rows)), default=0)
            self.moves.add("row numbers", "device", "once a fold", None, apart, APART)
            if stay_there(scoring, data.n_targets):
                self.moves.add(f"y of {role} rows", "device", "once a fold", self._k, size * n, SCORED)
                if data.weights.score is not None:
                    self.moves.add(f"weights of {role} rows", "device", "once a fold", self._k, 8 * n, SCORED)
            else:
                nbytes = None if of_all is None else of_all * n
                self.moves.add(f"predictions of {role} rows", "host", "once a fold", self._k, nbytes, HOME)

    def _weights_home(self, why: str = CHECKED) -> None:
        """Weights of a device, which come to the host once."""
        options = self.job.options
        given = [*options.fit_weights, options.score_weights]
        for one in {id(one): one for one in given if is_foreign(one)}.values():
            if id(one) not in self._summed:
                self._summed.add(id(one))
                self.moves.add("weights", "host", "once a search", 1, bytes_of(one), why)

    def _sums(self, data: SplitData, n_sets: int) -> None:
        if "sums" in self._summed:
            return
        self._summed.add("sums")
        d, atoms = data.X.shape[1] + data.n_targets, self.job.splits.atom_groups
        nbytes = sum(8 * (d * (len(one.rows) + 1) + (d + 1) ** 2 * len(one.rows)) for one in atoms)
        self.moves.add("moments", "host", "once a search", n_sets * len(atoms), n_sets * nbytes, SMALL)
        if not all(isinstance(rows, slice) for one in atoms for rows in one.rows):
            self.moves.add("row numbers", "device", "once a search", None, 8 * self._n, APART)

    def _once(self, what: str, nbytes: int) -> None:
        """Something of the host that is summed beside X."""
        if what in self._summed:
            return
        self._summed.add(what)
        self.moves.add(what, "device", "once a search", 1, nbytes, SUMMED)

    def passes(self, group: Group, rows: SplitData) -> None:
        """Coefficients go there and gradients come back, with every pass; predictions stay."""
        self.y_home()
        self._weights_home()
        weighted = rows.weights.fit is not None
        sizes = targets_of_iterations(self.job, group.prototype) | ({"weights": 8} if weighted else {})
        for what, size in sizes.items():
            self.moves.add(what, "device", "once a search", 1, size * self._n, FITTED)
        if group.steps:
            self._sums(rows, 1 + weighted)
            self._once("y as numbers", 8 * self._n)
            if weighted:
                self._once("weights", 8 * self._n)
        columns = self._k * len(group.candidates) * outputs_of(group, rows)
        nbytes, why = 8 * columns * (rows.X.shape[1] + 1), "steps are taken on the host"
        self.moves.add("coefficients", "device", "once a pass", None, nbytes, why)
        self.moves.add("gradients", "host", "once a pass", None, nbytes, why)
        self.moves.add("numbers and y of sampled rows", "device", "once a search", None, None, SAMPLED)
        self._scored([group], rows, 8)
