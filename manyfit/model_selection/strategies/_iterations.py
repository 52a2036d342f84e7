"""Runs the groups of iterating families: all splits at once, seen through the affine steps before them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from manyfit.arrays import label_transfers, retry_in_smaller_blocks, to_host_together
from manyfit.estimators import Answers, affine_step_of
from manyfit.folds import FoldedMatrix, PassData, TransformedMoments, finite_middle
from manyfit.metrics import SharedScoring
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.planning._convergence import stops_as_sklearn
from manyfit.model_selection.planning._pipeline_spec import StepSpec
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._doubts import Doubts, without
from manyfit.model_selection.strategies._moments import why_not
from manyfit.model_selection.strategies._score_answers import PendingScores, begin_scores


def run_iterations(job: Job, groups: Sequence[Group], data: FoldedMatrix, arrivals: ResultSink) -> TaskResult:
    """Answer all settings of `groups` on all folds, one group after the other."""
    outcome = TaskResult()
    start = time.perf_counter()
    for group in groups:
        # Where in its tolerance an answer ends may depend on the others of its group: all are restored, or
        # none.
        if arrivals.restore(job.pairs(group.candidates)):
            continue
        try:
            _answer(job, group, data, outcome, arrivals)
        except Exception as error:
            # Whatever fails here is fitted one by one by scikit-learn, which raises what the user should see.
            done = {pair for pair in outcome.results if pair[0] in set(group.candidates)}
            rest = set(job.pairs(group.candidates)) - done
            outcome.alone.update(dict.fromkeys(rest, why_not(error)))
    outcome.seconds = time.perf_counter() - start
    return outcome


def _answer(job: Job, group: Group, data: FoldedMatrix, outcome: TaskResult, arrivals: ResultSink) -> None:
    assert group.family is not None
    scoring = SharedScoring(job.options.scorer, job.options.score_params, group.prototype)
    start = time.perf_counter()
    seen = _pass_data(job, group.steps, data)
    n, k = len(group.candidates), data.n_splits
    waiting = []
    fitted = retry_in_smaller_blocks(
        lambda: _fitted(group, seen), lambda: f"the iterations of {group.estimator}"
    )
    for i, answers in enumerate(fitted):
        taken = time.perf_counter() - start
        if i == 0:  # it is then that all are fitted
            of_all, taken = taken / (n * k), 0.0
        fit_time = of_all + taken / n
        start = time.perf_counter()
        begun, doubts = retry_in_smaller_blocks(
            partial(_begun, job, scoring, answers, n, data, i), lambda: f"the scores of {n} settings"
        )
        spent = time.perf_counter() - start
        split = _Split(group.candidates, i, answers, begun, doubts, seen.sklearn_stops, fit_time, spent)
        if begun.there or doubts.there:
            waiting.append(split)
        else:
            arrivals.add(split.finish([], [], outcome), alone=False)
        start = time.perf_counter()
    # What lies on a device comes home together.
    pending = [one for split in waiting for one in (*split.begun.there, *split.doubts.there)]
    home = iter(to_host_together(*pending, label="scores"))
    for split in waiting:
        scores = [next(home) for _ in split.begun.there]
        shifted = [next(home) for _ in split.doubts.there]
        arrivals.add(split.finish(scores, shifted, outcome), alone=False)


def _fitted(group: Group, seen: PassData) -> Iterator[Answers]:
    """The answers on each split: all are fitted when this returns."""
    assert group.family is not None
    answers = iter(group.family.fit_many(group.prototype, group.settings, seen))
    with label_transfers("iterations"):
        return chain([next(answers)], answers)


def _begun(
    job: Job, scoring: SharedScoring, answers: Answers, n: int, data: FoldedMatrix, i: int
) -> tuple[PendingScores, Doubts]:
    """The scores of a split and their doubts, as far as nothing waits for a device."""
    begun = begin_scores(scoring, answers, n, data, i, job.options)
    return begun, Doubts(scoring, answers, n, data, i, job.options)


@dataclass(frozen=True)
class _Split:
    """The answers on one split, whose scores are begun; `seconds` is what that took."""

    candidates: tuple[int, ...]
    i: int
    answers: Answers
    begun: PendingScores
    doubts: Doubts
    sklearn_stops: bool
    fit_time: float
    seconds: float

    def finish(self, scores: Sequence[Any], doubts: Sequence[Any], outcome: TaskResult) -> dict[Pair, Result]:
        """Note all scores, given what was begun on a device; on the host."""
        start, n = time.perf_counter(), len(self.candidates)
        scored = self.begun.finish(scores)
        found = self.doubts.finish(doubts, scored)
        left = self.doubts.too_open(found, scored) if self.sklearn_stops else {}
        outcome.note_iterations(self.candidates, self.i, self.answers, without(found, left))
        times = (self.fit_time, (self.seconds + time.perf_counter() - start) / n)
        return scored.keep(outcome, self.candidates, self.i, times, left)


def _pass_data(job: Job, steps: Sequence[StepSpec], data: FoldedMatrix) -> PassData:
    origin = finite_middle(data.X)
    groups = data.splits.atom_groups
    views: list[TransformedMoments | None] = [None] * data.n_splits
    if steps:
        views = [_behind(steps, data.view(i)) for i in range(data.n_splits)]
    return PassData(
        data.X, data.y, groups, data.weights.fit, views, job.options.memory_limit, origin=origin,
        sklearn_stops=stops_as_sklearn(job),
    )  # fmt: skip


def _behind(steps: Sequence[StepSpec], view: TransformedMoments) -> TransformedMoments:
    for step in steps:
        affine = affine_step_of(step.cls)
        assert affine is not None
        view = affine.apply(step.build(), view)
    return view
