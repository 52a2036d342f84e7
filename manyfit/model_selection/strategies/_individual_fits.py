"""The one-by-one path: fits through joblib, with the steps before the last one shared."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyfit.cluster.worker.task_context import still_wanted
from manyfit.model_selection.job._job import Job, Options, Pair, Result
from manyfit.model_selection.job._joblib_tasks import joblib_workers, run_tasks
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs
from manyfit.model_selection.planning._pieces import cut_into_pieces
from manyfit.model_selection.planning._plan import Plan
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.sharing._fit_and_score import evaluate, fit_with_sklearn
from manyfit.model_selection.sharing._fit_on_copies import fit_on_copies
from manyfit.model_selection.sharing._fold_store import FoldStore

# Fits that share steps are handed back after so long, and so many times as long as the first of them took.
HAND_BACK_S, HAND_BACK = 2.0, 10.0


class Enough:
    """When a piece of fits that share steps hands the rest back: others may have time, or nobody wants it."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._first: float | None = None

    def said(self) -> bool:
        """Whether to stop after this fit."""
        seconds = time.perf_counter() - self._start
        if self._first is None:
            self._first = seconds  # with all of its steps, which whoever goes on has to fit again
        return seconds > max(HAND_BACK_S, HAND_BACK * self._first) or not still_wanted()


@dataclass(frozen=True)
class _Task:
    """Some candidates on one split, fitted by one worker one after the other; sent to that worker."""

    estimator: Any
    settings: Sequence[tuple[int, Any]]
    i: int
    split: tuple[Any, Any]
    sizes: tuple[int, int]
    options: Options
    share_steps: bool


def fit_piece(
    job: Job, i: int, candidates: Sequence[int], share_steps: bool, enough: Callable[[], bool]
) -> tuple[TaskResult, Sequence[int]]:
    """Fit and score candidates on one split, one after the other, until it is enough; and what is left."""
    if job.contexts is not None:
        return _in_context(job, i, candidates[0]), candidates[1:]
    task = _task(job, candidates, i, {i: job.splits.indices(i)}, share_steps)
    outcome = _run(task, job.X, job.y, job.rowwise, enough)
    return outcome, candidates[len(outcome.results) :]


def fit_on(folds: FoldStore, job: Job, pair: Pair) -> TaskResult:
    """Fit and score one candidate on a fold that others are fitted on, too."""
    start = time.perf_counter()
    c, i = pair
    progress = progress_of(c, i, (len(job.candidates), job.splits.n_splits))
    result = fit_on_copies(job.estimator, job.candidates[c], i, folds, progress)
    return TaskResult({pair: result}, seconds=time.perf_counter() - start)


def folds_to_share(job: Job) -> FoldStore | None:
    """Folds for fits that share no step; None where each is better off with rows of its own."""
    if len(job.candidates) == 1:
        return None  # no fold is asked for twice
    if job.contexts is not None or not all(one is None or type(one) is np.ndarray for one in (job.X, job.y)):
        return None  # callbacks see scikit-learn's own function
    return FoldStore(job.X, job.y, job.splits, job.options, share_steps=False, in_turn=False)


def _run(
    task: _Task,
    X: Any,
    y: Any,
    rowwise: RowwiseOutputs | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> TaskResult:
    make = evaluate if task.share_steps else fit_with_sklearn  # with nothing to share, scikit-learn's own way
    folds = FoldStore(X, y, {task.i: task.split}, task.options, task.share_steps, rowwise=rowwise)
    start = time.perf_counter()
    results = {}
    for c, params in task.settings:
        results[c, task.i] = make(task.estimator, params, task.i, folds, progress_of(c, task.i, task.sizes))
        if enough():
            break
    return TaskResult(results, work=folds.work, seconds=time.perf_counter() - start)


def run_individually(
    job: Job, pairs: Sequence[Pair], plan: Plan, arrivals: ResultSink, folds: FoldStore | None = None
) -> TaskResult:
    """Fit and score `pairs`.

    Parameters
    ----------
    job : Job
        The search.
    pairs : sequence of (candidate, split)
        What to fit, candidate by candidate; it is fitted in scikit-learn's order where that can be seen.
    plan : Plan
        Says whether steps are shared and in which order (with several processes there is none).
    arrivals : Arrivals
        Takes finished results.
    folds : FoldStore, optional
        Folds whose steps are fitted in part, in this process.
    """
    if job.by_split:
        pairs = sorted(pairs, key=lambda pair: pair[::-1])
    if job.contexts is not None:
        return _with_callbacks(job, pairs, arrivals)
    if joblib_workers(job.n_jobs) == 1 and not plan.alone:
        return _here(job, pairs, plan, arrivals, folds)
    total = TaskResult()
    tasks = _tasks(job, pairs, plan.order)
    if job.rowwise is not None and plan.order is not None:
        for c in sorted({c for c, _ in pairs}):  # by this process: none of theirs sees all splits
            job.rowwise.prepare_setting(job.estimator, job.candidates[c])
    arguments = [(task, job.X, job.y, job.rowwise) for task in tasks]
    for part in run_tasks(_run, arguments, job.n_jobs, job.pre_dispatch):
        total.add(part)
        arrivals.steps_saved += part.work["transformer_fits_saved"]
        arrivals.add(part.results, alone=True)
    return total


def folds_here(job: Job, plan: Plan) -> FoldStore:
    """The folds of a job for fits in this process."""
    in_turn = plan.order is not None and not plan.by_candidate
    return FoldStore(job.X, job.y, job.splits, job.options, plan.order is not None, in_turn, job.rowwise)


def _here(
    job: Job, pairs: Sequence[Pair], plan: Plan, arrivals: ResultSink, folds: FoldStore | None
) -> TaskResult:
    """In this process, on folds that are cut once."""
    order = plan.order
    in_turn = order is not None and not plan.by_candidate
    folds = folds_here(job, plan) if folds is None else folds.with_options(job.options)
    before, sizes = folds.work, (len(job.candidates), job.splits.n_splits)
    total, start, saved_before = TaskResult(), time.perf_counter(), arrivals.steps_saved
    queue = list(pairs)
    # Rows that a single fit reads need no protection, and that of a frame costs more than cutting it again.
    once = len({i for _, i in queue}) == len(queue)
    fit = fit_with_sklearn if order is None and (once or hasattr(job.X, "iloc")) else evaluate
    if order is not None and in_turn:
        # Fold by fold, and equal steps next to each other, so that little has to be kept.
        queue.sort(key=lambda pair: (pair[1], order[pair[0]], pair[0]))
    for c, i in queue:
        progress = progress_of(c, i, sizes)
        total.results[c, i] = result = fit(job.estimator, job.candidates[c], i, folds, progress)
        if arrivals.shown:
            arrivals.steps_saved = saved_before + folds.work_since(before)["transformer_fits_saved"]
        arrivals.add({(c, i): result}, alone=True)
    total.work = folds.work_since(before)
    total.seconds = time.perf_counter() - start
    return total


def _with_callbacks(job: Job, pairs: Sequence[Pair], arrivals: ResultSink) -> TaskResult:
    """By scikit-learn's own function, each fit within its callback context."""
    assert job.contexts is not None
    start = time.perf_counter()
    k, sizes = job.splits.n_splits, (len(job.candidates), job.splits.n_splits)
    light, splits = replace(job, contexts=None), _drawn(job, pairs)
    arguments = [
        (light, c, i, splits[i], progress_of(c, i, sizes), job.contexts[c * k + i]) for c, i in pairs
    ]
    results = {}
    for pair, result in zip(pairs, run_tasks(_one, arguments, job.n_jobs, job.pre_dispatch), strict=True):
        results[pair] = result
        arrivals.add({pair: result}, alone=True)
    return TaskResult(results, seconds=time.perf_counter() - start)


def _in_context(job: Job, i: int, c: int) -> TaskResult:
    assert job.contexts is not None
    start, k = time.perf_counter(), job.splits.n_splits
    progress = progress_of(c, i, (len(job.candidates), k))
    result = _one(job, c, i, job.splits.indices(i), progress, job.contexts[c * k + i])
    return TaskResult({(c, i): result}, seconds=time.perf_counter() - start)


def _one(job: Job, c: int, i: int, split: Any, progress: Any, context: Any) -> Result:
    folds = FoldStore(job.X, job.y, {i: split}, job.options, False)
    return fit_with_sklearn(
        job.estimator, job.candidates[c], i, folds, progress, caller=job.search, callback_ctx=context
    )


def progress_of(c: int, i: int, sizes: tuple[int, int]) -> Any:
    """Where a fit stands among the settings and splits, as scikit-learn's messages say it."""
    return (c, sizes[0]), (i, sizes[1])


def _tasks(job: Job, pairs: Sequence[Pair], order: Sequence[Any] | None) -> list[_Task]:
    splits = _drawn(job, pairs)
    shared = order is not None
    return [
        _task(job, cs, i, splits, shared)
        for i, cs in cut_into_pieces(pairs, order, joblib_workers(job.n_jobs))
    ]


def _drawn(job: Job, pairs: Sequence[Pair]) -> dict[int, Any]:
    """The indices of the splits in question, once for all tasks."""
    return {i: job.splits.indices(i) for i in sorted({i for _, i in pairs})}


def _task(job: Job, cs: Sequence[int], i: int, splits: dict[int, Any], share_steps: bool) -> _Task:
    sizes = (len(job.candidates), job.splits.n_splits)
    settings = [(c, job.candidates[c]) for c in cs]
    return _Task(job.estimator, settings, i, splits[i], sizes, job.options, share_steps)
