"""The strategy for splits that leave out one row each: one fit of all rows answers all splits."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit.arrays import is_xp_array
from manyfit.families import Answers, LeavesRowsOut, Responses
from manyfit.folds import Array, Fold, FoldedMatrix, NumPyRows, Unsupported
from manyfit.metrics.scoring import ScoredTargets, SharedScoring
from manyfit.model_selection.job._job import Options
from manyfit.model_selection.job._predictions import Predicted
from manyfit.model_selection.planning._cost_checks import require_memory
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._left_out_rows import note_scores
from manyfit.model_selection.strategies._score_answers import (
    blocks_of_settings,
    may_record,
    score_on_host,
)
from manyfit.model_selection.strategies._strategy import Batch, DataStrategy, RunContext, Schedule, WorkItem


@dataclass(frozen=True)
class LeftOutStrategy(DataStrategy):
    """A family that leaves single rows out of a fit of all rows, without steps before it."""

    kind = "rows left out"
    title = "one fit of all rows answers the splits that leave one of them out"
    is_usual = False
    refuses_alone = True
    last_step_place = ("host", "it reads rows of the host")

    def matches(self, batch: Batch) -> bool:
        return isinstance(batch.family, LeavesRowsOut) and not batch.spec.steps

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        job, options = facts.job, facts.job.options
        sets = job.splits.test_sets
        if sets is None or (sets.sizes != 1).any():
            raise Unsupported("not every split leaves out one row")
        if is_xp_array(job.X):
            raise Unsupported("X lies on a device")
        if options.fit_params or options.score_params:
            raise Unsupported("fit or score parameters are cut by split")
        if options.return_train_score:
            raise Unsupported("training scores are asked for")
        group, _ = self.group_of(batch, facts)
        data = facts.data.for_iterations(group.prototype, ())
        if not isinstance(data.X, NumPyRows) or data.X.dtype != np.float64:
            raise Unsupported("X is no dense matrix of float64")
        n, width = data.X.shape[0], max(len(np.unique(data.y)) if is_classifier(group.prototype) else 1, 1)
        require_memory(
            8 * n * width * len(batch.candidates), options.memory_limit // 2, "predictions for all rows"
        )
        assert batch.family is not None
        cost = batch.family.cost(group.prototype, group.settings, facts.data.shape(data, group.prototype))
        return replace(group, fits_planned=cost.fits // n, fits_undecided=group.fits_requested)

    def work_items(self, groups: Sequence[Group], schedule: Schedule) -> list[WorkItem]:
        """See `Strategy`. The splits of a group are one item."""
        items = [WorkItem(self, tuple(schedule.job.pairs(group.candidates)), (group,)) for group in groups]
        return [item for item in items if not schedule.sink.restore(item.pairs)]

    def answer(self, groups: Sequence[Group], context: RunContext, outcome: TaskResult) -> None:
        start, options, (group,) = time.perf_counter(), context.job.options, groups
        scoring, family = context.scoring_of(group), group.family
        data = context.data.for_iterations(group.prototype, ())
        assert isinstance(family, LeavesRowsOut)
        rows = np.concatenate([data.splits.indices(i)[1] for i in range(data.n_splits)])
        X = data.X.take(slice(0, len(data.y)))
        answers = family.leave_rows_out(group.prototype, group.settings, X, data.y)
        for j, why in answers.refused.items():
            outcome.leave([(group.candidates[j], i) for i in range(data.n_splits)], why)
        shared = [j for j in range(len(group.candidates)) if j not in answers.refused]
        outcome.fits_made += answers.fits_made
        for block in blocks_of_settings(shared, len(data.y), answers, options.memory_limit // 8):
            scores = _Scores(scoring, answers.subset(block), data, rows, options)
            scores.keep([group.candidates[j] for j in block], time.perf_counter() - start, outcome)
            start = time.perf_counter()
        context.add(outcome.results, individual=False)


LEFT_OUT = LeftOutStrategy()


class _Scores:
    """Scores of some settings on all splits, of which split i tests ``rows[i]``."""

    def __init__(
        self, scoring: SharedScoring, answers: Answers, data: FoldedMatrix, rows: Array, options: Options
    ) -> None:
        self._scoring, self._answers, self._data, self._options = scoring, answers, data, options
        self._rows, self._responses = rows, answers.respond("test", data.fold(0))
        self._dtype = getattr(data.given, "dtype", None)

    def keep(self, candidates: Sequence[int], fit_seconds: float, outcome: TaskResult) -> None:
        """Note the scores of all splits, or why scikit-learn has to find them."""
        start, n = time.perf_counter(), len(candidates) * len(self._rows)
        table = self._known(len(candidates))
        done = np.isfinite(table).all(axis=(0, 1))
        times = fit_seconds / n, (time.perf_counter() - start) / n
        known = np.broadcast_to(done, table.shape[1:])
        note_scores(self._scoring, table, known, candidates, range(len(self._rows)), times, outcome)
        recording = self._options.recording
        if recording is not None and may_record(recording, self._responses):
            values = self._responses[recording.method]
            classes = None if recording.method == "predict" else self._answers.classes
            for i in np.flatnonzero(done).tolist():
                cell = slice(self._rows[i], self._rows[i] + 1)
                for j, c in enumerate(candidates):
                    outcome.results[c, i]["predicted"] = Predicted(values[j, cell], classes)
        for i in np.flatnonzero(~done).tolist():  # as any other split: scorers may warn, or fail
            alone = _OneRow(self._responses, self._rows[i], range(len(candidates)), self._answers.classes)
            score_on_host(
                self._scoring, alone, candidates, self._data, i, self._options, fit_seconds / n, outcome
            )

    def _known(self, n_settings: int) -> Array:
        """Scores (n_scorers, n_settings, n_splits); NaN where a scorer has to be called.

        A score of one row depends on its target and its response, so splits with one target are as many
        more settings.
        """
        scoring, y = self._scoring, self._data.y
        table = np.full((len(scoring.named), n_settings, len(self._rows)), np.nan)
        _, of = np.unique(y[self._rows], return_inverse=True)
        order = np.argsort(of, kind="stable")
        for splits in np.split(order, np.cumsum(np.bincount(of))[:-1]):
            rows = self._rows[splits]
            truth = ScoredTargets(y[rows[:1]], None, self._answers.classes, self._dtype)
            own = Responses(**{method: partial(self._of_rows, method, rows) for method in self._responses})
            known = scoring.from_responses(own, truth)
            for s, name in enumerate(scoring.named):
                if name in known:
                    table[s, :, splits] = np.asarray(known[name]).reshape(n_settings, len(rows)).T
        return table

    def _of_rows(self, method: str, rows: Array) -> Array:
        """Responses for some rows, each as if it were that of a setting for one row."""
        values = self._responses[method][:, rows]
        return values.reshape(-1, 1, *values.shape[2:])


@dataclass(frozen=True)
class _OneRow(Answers):
    """The answers of some settings for one row, cut from the responses for all rows."""

    responses: Mapping[str, Array]
    row: int
    settings: Sequence[int]
    classes: Array | None = None

    def subset(self, settings: Sequence[int]) -> "_OneRow":
        return replace(self, settings=[self.settings[j] for j in settings])

    def respond(self, role: Any, fold: Fold) -> Mapping[str, Array]:
        return Responses(**{method: partial(self._cut, method) for method in self.responses})

    def _cut(self, method: str) -> Array:
        return self.responses[method][list(self.settings), self.row : self.row + 1]
