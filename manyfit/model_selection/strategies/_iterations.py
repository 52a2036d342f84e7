"""Iterations shared by all settings and splits, which see X through the affine steps before them."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from manyfit.arrays import label_transfers, retry_in_smaller_blocks, to_host_together
from manyfit.families import Answers, Iterations, View, apply_step, map_behind, require_valid_answers
from manyfit.folds import (
    NO_NOTES,
    FoldedMatrix,
    PassData,
    TransformedMoments,
    finite_middle,
    is_row_source,
    only_splits,
)
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._cost_checks import (
    convergence_note,
    require_cheaper,
    require_gradient_stop,
    stops_as_sklearn,
)
from manyfit.model_selection.planning._parameter_checks import check_affine_step, check_sparse_step
from manyfit.model_selection.planning._pipeline_spec import StepSpec
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._doubts import PendingAnswers
from manyfit.model_selection.strategies._strategy import Batch, DataStrategy, RunContext, Schedule, WorkItem

# A long group is cut into parts of at least so many nanoseconds, as its family expects. Its coarse problems,
# and a pass or two, are made for each part anew.
PART_OPERATIONS = 2.5e8
BY_ITSELF = "each split by itself, behind its own fits of the steps"


@dataclass(frozen=True)
class IterationStrategy(DataStrategy):
    """Affine steps and a family that iterates: every pass over X serves all settings and splits."""

    kind = "shared iterations"
    title = "shared iterations: every pass over X serves all settings and splits"
    last_step_place = (
        "device",
        "passes over X are made where it lies; the solver's steps are taken on the host",
    )

    def matches(self, batch: Batch) -> bool:
        reads = batch.family is not None and isinstance(batch.family.reads, Iterations)
        return reads and (batch.is_affine or batch.is_sparse)

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        group, job = self.group_of(batch, facts)[0], facts.job
        if batch.is_sparse:
            facts.checks.require(batch.spec, check_sparse_step, False)
        else:
            facts.checks.require(batch.spec, check_affine_step)
        data = facts.data.for_iterations(group.prototype, batch.spec.steps)
        alone = BY_ITSELF if batch.is_sparse and facts.data.passes_to_fit(batch.spec.steps) else ""
        shape, family = facts.data.shape(data, group.prototype), batch.family
        assert family is not None
        checked = stops_as_sklearn(job)
        if checked:
            require_gradient_stop(family, group.prototype, shape)
        # On a device the number of iterations decides, which is the same for one fit and for all.
        if facts.on_device or facts.must_share:
            operations = family.cost(group.prototype, group.settings, shape).shared
        else:
            operations = require_cheaper(group, shape, job).shared
        tried = checked and hasattr(group.prototype, "max_iter")  # else no fit stops short of its tolerance
        return replace(
            group,
            reason="; ".join(filter(None, [convergence_note(group.prototype, checked), alone])),
            operations=operations,
            fits_undecided=group.fits_requested if tried else 0,
            decided_by="a trial of scikit-learn's solver" if tried else "",
        )

    def work_items(self, groups: Sequence[Group], schedule: Schedule) -> list[WorkItem]:
        """See `Strategy`.

        Where in its tolerance an answer ends may depend on the others of its part: a part is restored whole,
        or not at all.
        """
        job, items = schedule.job, list[WorkItem]()
        for group in groups:
            if schedule.sink.restore(job.pairs(group.candidates)):
                continue
            for part in cut_group(group, schedule.n_slots(group.candidates), len(groups)):
                pairs = job.pairs(part)
                if not schedule.sink.restore(pairs):
                    items.append(WorkItem(self, tuple(pairs), (group.only(part),)))
        return items

    def answer(self, groups: Sequence[Group], context: RunContext, outcome: TaskResult) -> None:
        (group,) = groups
        scoring = context.scoring_of(group)  # whose weights the data have
        data = context.data.for_iterations(group.prototype, group.steps)
        together, steps = [list(range(data.n_splits))], group.steps
        is_sparse = bool(steps) and context.data.has_sparse_chunks
        passes = context.data.passes_to_fit(steps) if is_sparse else 0
        if passes:
            together = [[i] for i in range(data.n_splits)]
        elif is_classifier(group.prototype):  # scikit-learn drops classes that a training part lacks
            together = data.splits_by_classes()
        for splits in together:
            try:
                seen = context.data.behind(steps, data, splits[0]) if is_sparse else data
                outcome.rows_read += passes * context.job.splits.n_samples
                _answer_splits(group, scoring, context, outcome, seen, () if is_sparse else steps, splits)
            except Exception as error:
                if len(together) == 1:
                    raise
                outcome.leave([(c, i) for c in group.candidates for i in splits], error)


ITERATIONS = IterationStrategy()


def cut_group(group: Group, n_slots: int, n_groups: int) -> list[tuple[int, ...]]:
    """The settings of a group, in parts for several workers if it is long.

    They are cut by settings and not by splits: splits share Hessians, and passes over few columns are no
    quicker.
    """
    n = min(-(-n_slots // n_groups), int(group.operations / PART_OPERATIONS), len(group.candidates))
    return [tuple(int(c) for c in part) for part in np.array_split(group.candidates, max(1, n))]


def _answer_splits(
    group: Group,
    scoring: SharedScoring,
    context: RunContext,
    outcome: TaskResult,
    data: FoldedMatrix,
    steps: Sequence[StepSpec],
    splits: Sequence[int],
) -> None:
    """Answer and score all settings of a group on some splits, whose steps are seen through moments."""
    job = context.job
    assert group.family is not None
    start = time.perf_counter()
    seen, splits, left = _pass_data(job, group.prototype, steps, data, splits)
    for i, error in left.items():
        outcome.leave([(c, i) for c in group.candidates], error)
    n, k = len(group.candidates), len(splits)
    waiting: list[tuple[PendingAnswers, int, float]] = []
    fitted = retry_in_smaller_blocks(
        lambda: _fit_all(group, seen), lambda: f"the iterations of {group.estimator}"
    )

    def finish(pending: PendingAnswers, on_host: Iterable[Any], i: int, fit_time: float) -> None:
        left_to_sklearn = seen.sklearn_stops and seen.sklearn_reads
        results = pending.finish(on_host, outcome, i, fit_time, left_to_sklearn)
        context.add(results, individual=False)

    for i, view, answers in zip(splits, seen.views, fitted, strict=True):
        elapsed = time.perf_counter() - start
        if i == splits[0]:  # all splits are fitted with the first
            mean_fit_time, elapsed = elapsed / (n * k), 0.0
        fit_time = mean_fit_time + elapsed / n
        require_valid_answers(
            group.family, answers, n, data.X.shape[1], data.n_targets, partial(data.fold, i)
        )
        pending = retry_in_smaller_blocks(
            partial(
                PendingAnswers,
                scoring,
                answers,
                group.candidates,
                data,
                i,
                job.options,
                NO_NOTES if view is None else view.notes,
            ),
            lambda: f"the scores of {n} settings",
        )
        if pending.device_scores:
            waiting.append((pending, i, fit_time))
        else:
            finish(pending, [], i, fit_time)
        start = time.perf_counter()
    # Scores of all splits are fetched from a device together.
    arrays = [one for pending, *_ in waiting for one in pending.device_scores]
    on_host = iter(to_host_together(*arrays, label="scores"))
    for pending, i, fit_time in waiting:
        finish(pending, on_host, i, fit_time)


def _fit_all(group: Group, seen: PassData) -> Iterator[Answers]:
    """The answers on each split: all are fitted when this returns."""
    assert group.family is not None
    answers = iter(group.family.fit_many(group.prototype, group.settings, seen))
    with label_transfers("iterations"):
        return chain([next(answers)], answers)


def _pass_data(
    job: Job, estimator: Any, steps: Sequence[StepSpec], data: FoldedMatrix, splits: Sequence[int]
) -> tuple[PassData, Sequence[int], dict[int, Exception]]:
    """The data of the splits whose steps are seen through, the numbers of these, and why others are not."""
    origin, left = finite_middle(data.X), dict[int, Exception]()
    views: list[TransformedMoments | None] = [None] * data.n_splits
    if steps:
        for i in splits:
            try:
                views[i] = _map_behind(steps, data.start(i))
            except Exception as error:
                left[i] = error
    splits = [i for i in splits if i not in left]
    if not splits:
        raise next(iter(left.values()))
    groups = data.splits.atom_groups
    if len(splits) < data.n_splits:
        groups, views = only_splits(groups, splits), [views[i] for i in splits]
    y = data.trained_labels(splits) if is_classifier(estimator) else data.y
    found = PassData(
        data.X, y, groups, data.weights.fit, views, job.options.memory_limit, origin=origin,
        sklearn_stops=stops_as_sklearn(job), sklearn_reads=not is_row_source(job.X),
    )  # fmt: skip
    return found, splits, left


def _map_behind(steps: Sequence[StepSpec], view: View) -> TransformedMoments:
    for step in steps:
        view = apply_step(step.build(), view)
    return map_behind(view)
