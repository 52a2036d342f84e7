"""The two strategies for fits made one by one: with the steps before the last one shared, and without.

`individual_items` cuts the groups of both. All its items are of one of them: if any steps are shared, of
`SHARED_STEPS`.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from manyfit.cluster.worker.errors import WorkerLost
from manyfit.cluster.worker.task_context import still_wanted
from manyfit.families import continued_fits
from manyfit.folds import Unsupported
from manyfit.introspection.composites import build_setting
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.planning._pieces import cut_into_pieces
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.sharing._fit_and_score import evaluate, fit_with_sklearn, has_failed, trial
from manyfit.model_selection.sharing._fit_process import FitData, FitRequest
from manyfit.model_selection.sharing._fold_store import FoldStore
from manyfit.model_selection.sharing._timed_fits import FitProcessDied, FitTooLong, fit_within
from manyfit.model_selection.sharing.nested import NestedRequests
from manyfit.model_selection.strategies._strategy import Batch, RunContext, Schedule, Strategy, WorkItem

# Fits that share steps are handed back after so long, and so many times as long as the first of them took.
HAND_BACK_S, HAND_BACK = 2.0, 10.0


class TimeLimit:
    """Ends a piece of fits on a worker that takes long, or that nobody wants any more."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._first: float | None = None

    def is_over(self) -> bool:
        seconds = time.perf_counter() - self._start
        if self._first is None:
            self._first = seconds  # with all of its steps, which whoever goes on has to fit again
        return seconds > max(HAND_BACK_S, HAND_BACK * self._first) or not still_wanted()


@dataclass(frozen=True)
class SharedSteps(Strategy):
    """Steps before the last one are fitted once for the settings that have them in common."""

    kind = "shared steps"
    title = "steps before the last one shared"
    shares_steps = True

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        names: dict[str, None] = {}
        for spec in batch.specs:
            if isinstance(spec, PipelineSpec):
                names.update(dict.fromkeys(facts.done_once(spec)))
        return replace(_group(self, batch, facts.job), once=tuple(names))

    def run(self, item: WorkItem, context: RunContext) -> TaskResult:
        if context.keeps_folds:
            return _fit_in_order(item, context)
        return _fit_piece(item, context, evaluate)

    def after_loss(self, item: WorkItem, job: Job, lost: WorkerLost) -> tuple[TaskResult, list[WorkItem]]:
        """See `Strategy`. Each pair is tried by itself, to find the one that workers die of."""
        return TaskResult(), [WorkItem(INDIVIDUAL_FITS, (pair,)) for pair in item.pairs]


@dataclass(frozen=True)
class IndividualFits(Strategy):
    """Every setting is fitted by itself on each split."""

    kind = "one by one"
    title = "one by one"

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        return replace(_group(self, batch, facts.job), estimator=type(facts.job.estimator).__name__)

    def run(self, item: WorkItem, context: RunContext) -> TaskResult:
        job = context.fitted
        if job.contexts is not None:
            ((c, i),) = item.pairs
            own = job.contexts[c * job.splits.n_splits + i]
            fit = partial(fit_with_sklearn, caller=job.search, callback_ctx=own)
            return _fit_piece(item, context, fit)
        if context.keeps_folds:
            return _fit_in_order(item, context)
        folds = context.rows_of_task
        reads_alone = folds is None and continued_fits() is None
        return _fit_piece(item, context, fit_with_sklearn if reads_alone else evaluate, folds)

    def after_loss(self, item: WorkItem, job: Job, lost: WorkerLost) -> tuple[TaskResult, list[WorkItem]]:
        """See `Strategy`. The fit failed; on another cluster it may not."""
        results = {}
        for c, i in item.pairs:
            fit = f"it fitted {dict(job.candidates[c])} on split {i}"
            error = type(lost.error)(f"The worker died each time that {fit}. {lost.error}")
            results[c, i] = _result_of_failure(job, (c, i), error)
        return TaskResult(results, lasting=False), []


SHARED_STEPS, INDIVIDUAL_FITS = SharedSteps(), IndividualFits()


def _group(strategy: Strategy, batch: Batch, job: Job) -> Group:
    n = len(batch.candidates) * job.splits.n_splits
    title = batch.spec.title if isinstance(batch.specs[0], PipelineSpec) else type(job.estimator).__name__
    return Group(strategy, batch.candidates, title, n, n, reason=batch.reason)


def individual_items(pairs: Sequence[Pair], schedule: Schedule) -> list[WorkItem]:
    """Items for pairs that are fitted one by one, in scikit-learn's order where that can be seen.

    In the process of the search all are one item, on folds that are cut once.
    """
    job, plan = schedule.job, schedule.plan
    pairs = [pair for pair in pairs if not schedule.sink.restore([pair], individual=True)]
    if not pairs:
        return []
    strategy = INDIVIDUAL_FITS if plan.order is None else SHARED_STEPS
    if job.by_split:
        pairs = sorted(pairs, key=lambda pair: pair[::-1])
    if schedule.in_process and not plan.by_sklearn:
        return [WorkItem(strategy, tuple(pairs))]
    n_slots = schedule.n_slots(sorted({c for c, _ in pairs}))
    pieces = cut_into_pieces(pairs, plan.order, n_slots)
    return [WorkItem(strategy, tuple((c, i) for c in cs)) for i, cs in pieces]


def retained_store(context: RunContext, job: Job, candidates: Iterable[int]) -> FoldStore:
    """The folds of a job for fits of some settings that follow each other in this process."""
    order = context.order
    in_turn = order is not None and not context.by_candidate
    requests = nested_requests(job, candidates)
    return FoldStore(job.X, job.y, job.splits, job.options, order is not None, in_turn, job.rowwise, requests)


def nested_requests(job: Job, candidates: Iterable[int]) -> NestedRequests:
    """The transformers of some settings of a job, where one fit may serve several."""
    return NestedRequests(job.estimator, [job.candidates[c] for c in candidates])


def _fit_in_order(item: WorkItem, context: RunContext) -> TaskResult:
    """Fit in this process, on folds that are cut once."""
    order, job, kept, pairs = context.order, context.fitted, context.folds, item.pairs
    folds = retained_store(context, job, item.candidates) if kept is None else kept.with_options(job.options)
    # Rows that a single fit reads need no protection, and that of a frame costs more than cutting it again.
    cut_again = hasattr(job.X, "iloc") or len({i for _, i in pairs}) == len(pairs)
    fit = fit_with_sklearn if order is None and cut_again and continued_fits() is None else evaluate
    if order is not None and not context.by_candidate:
        # Fold by fold, and equal steps next to each other, so that little has to be kept.
        pairs = tuple(sorted(pairs, key=lambda pair: (pair[1], order[pair[0]], pair[0])))
    return _fit_pairs(replace(item, pairs=pairs), context, fit, folds)


def _fit_piece(
    item: WorkItem, context: RunContext, fit: Callable[..., Result], folds: FoldStore | None = None
) -> TaskResult:
    """Fit the pairs of one split, on rows of this item unless `folds` has them."""
    job = context.fitted
    if folds is None:
        requests = nested_requests(job, item.candidates)
        folds = FoldStore(
            job.X, job.y, job.splits, job.options, fit is evaluate, rowwise=job.rowwise, requests=requests
        )
    return _fit_pairs(item, context, fit, folds)


def _fit_pairs(
    item: WorkItem, context: RunContext, fit: Callable[..., Result], folds: FoldStore
) -> TaskResult:
    """Fit pairs one after the other, and hand each result on; on a worker until that takes long."""
    job, sink, limit, start = context.fitted, context.sink, TimeLimit(), time.perf_counter()
    outcome, before = TaskResult(), folds.work
    saved_before = 0 if sink is None else sink.steps_saved
    for c, i in item.pairs:
        result = fit_setting(job, c, i, folds, outcome, fit)
        outcome.results[c, i] = result
        if sink is not None and sink.shown:
            sink.steps_saved = saved_before + folds.work_since(before)["transformer_fits_saved"]
        context.add({(c, i): result}, individual=True)
        if context.returns_early and limit.is_over():
            break
    outcome.work.update(folds.work_since(before))
    outcome.seconds = time.perf_counter() - start
    left = item.pairs[len(outcome.results) :]
    outcome.unfinished = replace(item, pairs=left) if left else None
    return outcome


def fit_setting(
    job: Job, c: int, i: int, folds: FoldStore, outcome: TaskResult, fit: Callable[..., Result] = evaluate
) -> Result:
    """Fit and score a pair by `fit`, with the classes of scikit-learn-intelex if it fits the setting.

    If that fails, scikit-learn's classes repeat it.
    """
    progress = progress_of(job, c, i)
    if job.options.fit_timeout is not None:
        return _fit_within(job.options.fit_timeout, job, c, i, folds, progress)
    own = job.by_sklearnex.get(c)
    if own is not None:
        with suppress(Exception), trial(draws=False):
            result = fit(*own, i, folds, progress)
            if not has_failed(result, folds.options.error_score):
                outcome.work["engine_fits"] += 1
                return result
            raise Unsupported("it failed")
    return fit(job.estimator, job.candidates[c], i, folds, progress)


def _fit_within(seconds: float, job: Job, c: int, i: int, folds: FoldStore, progress: Any) -> Result:
    """Fit and score a pair in another process, which is ended if that takes too long."""
    params = job.candidates[c]
    request = FitRequest(fit_with_sklearn, job.estimator, params, i, folds.split(i), progress)
    try:
        result: Result = fit_within(seconds, FitData(job.X, job.y, job.options), request)
        return result
    except (FitTooLong, FitProcessDied) as why:
        error = type(why)(f"The fit of {dict(params)} on split {i} {why}")
    # Outside of the handler, so that scikit-learn's texts quote its own traceback only.
    return _result_of_failure(job, (c, i), error)


class RaisingEstimator(BaseEstimator):
    """An estimator whose fit raises an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __sklearn_clone__(self) -> "RaisingEstimator":
        """Itself: a copy of an error has no traceback, and many errors cannot be copied."""
        return self

    def fit(self, X: Any, y: Any = None, **params: Any) -> None:
        raise self.error


def progress_of(job: Job, c: int, i: int) -> Any:
    """The position of a fit among settings and splits, as scikit-learn's messages print it."""
    return (c, len(job.candidates)), (i, job.splits.n_splits)


def _result_of_failure(job: Job, pair: Pair, error: Exception) -> Result:
    """The outcome of a failed fit in scikit-learn: an error score, or the exception."""
    c, i = pair
    folds = FoldStore(job.X, job.y, job.splits, replace(job.options, fit_params={}), False)
    result = fit_with_sklearn(RaisingEstimator(error), {}, i, folds, progress_of(job, c, i))
    # As of any fit that fails: an estimator that is not fitted.
    if job.options.return_estimator:
        result["estimator"] = build_setting(job.estimator, job.candidates[c])
    return result
