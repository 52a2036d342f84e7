"""Executors of this machine: the process of the search, and joblib's workers."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from typing import Any, Protocol

from manyfit._compat import (
    check_method_params,
    fit_and_score_call,
    joblib_is_local,
    joblib_starts_processes,
)
from manyfit.arrays import is_xp_array
from manyfit.families import ContinuedFits, continued_fits, continuing
from manyfit.introspection.composites import fails_with_its_parts
from manyfit.introspection.object_state import SCALARS
from manyfit.model_selection.job._job import Job, Pair
from manyfit.model_selection.job._joblib_tasks import joblib_workers, run_tasks, run_tasks_unordered
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running._bundles import Bundles, training_rows
from manyfit.model_selection.running._sklearn_fits import MOST_BYTES, FitInputs, InputFile, make_fits
from manyfit.model_selection.sharing._fit_and_score import arguments_of_fit, arguments_of_fits, has_failed
from manyfit.model_selection.sharing._fold_store import data_bytes
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers, strangers_among_scorers
from manyfit.model_selection.strategies._individual_fits import INDIVIDUAL_FITS, progress_of
from manyfit.model_selection.strategies._strategy import RunContext, Strategy, WorkItem

Results = Generator[tuple[WorkItem, TaskResult], None, None]


class Executor(Protocol):
    """Runs work items, and sees to it that their results reach the sink of the search.

    `in_process` says whether items run one after the other in the process of the search, and `on_cluster`
    whether all kinds of them run at the same time on the workers of a cluster.
    """

    in_process: bool = False
    on_cluster: bool = False

    def n_slots(self, strategy: Strategy, candidates: Sequence[int]) -> int:
        """Items of a strategy that run at a time."""

    def map(self, items: Sequence[WorkItem]) -> Iterator[tuple[WorkItem, TaskResult]]:
        """Run items; yields each with its result, as they come."""


class ProcessExecutor(Executor):
    """Runs items one after the other; each result reaches the sink when it is made."""

    in_process = True

    def __init__(self, context: RunContext) -> None:
        self._context = context

    def n_slots(self, strategy: Strategy, candidates: Sequence[int]) -> int:
        return 1

    def map(self, items: Sequence[WorkItem]) -> Iterator[tuple[WorkItem, TaskResult]]:
        for item in items:
            yield item, item.strategy.run(item, self._context)


class JoblibExecutor(Executor):
    """Runs items through joblib, but in the process of the search those that take all cores."""

    def __init__(self, context: RunContext, sink: ResultSink) -> None:
        self._process, self._context, self._sink = ProcessExecutor(context), context, sink

    def n_slots(self, strategy: Strategy, candidates: Sequence[int]) -> int:
        return 1 if strategy.takes_all_cores else joblib_workers(self._context.job.n_jobs)

    def map(self, items: Sequence[WorkItem]) -> Iterator[tuple[WorkItem, TaskResult]]:
        yield from self._process.map([item for item in items if item.strategy.takes_all_cores])
        items = [item for item in items if not item.strategy.takes_all_cores]
        individual = len(items) > 1 and all(item.strategy == INDIVIDUAL_FITS for item in items)
        parts = self._send_fits(items) if individual and self._may_be_plain() else self._send(items)
        with closing(parts):
            for item, part in parts:
                self._sink.take(part, individual=not item.strategy.shares_fits)
                count_continued(part)
                yield item, part

    def _send(self, items: Sequence[WorkItem]) -> Results:
        """Run items, each with its part of the context."""
        job = self._context.job
        if job.rowwise is not None:
            # By this process: none of joblib's sees the rows of all splits.
            sharing = [item for item in items if item.strategy.shares_steps]
            first = [[group.candidates[0] for group in item.groups] or item.candidates for item in sharing]
            for c in sorted({*chain.from_iterable(first)}):  # settings of a group have their steps in common
                job.rowwise.prepare_setting(job.estimator, job.candidates[c])
        n_workers = joblib_workers(job.n_jobs) if joblib_is_local() else 1  # a cluster's lie elsewhere
        fits, threads = continued_fits(), spare_threads(len(items), n_workers)

        def arguments(item: WorkItem, n_threads: int) -> tuple[Any, ...]:
            part = self._context.for_item(item)
            part.n_threads = n_threads
            return item, part, None if fits is None else fits.part()

        # Each is made when its item is sent: only some are held at a time.
        parts = run_tasks(_run_item, map(arguments, items, threads), job.n_jobs, job.pre_dispatch)
        yield from zip(items, parts, strict=True)

    def _send_fits(self, items: Sequence[WorkItem]) -> Results:
        """Make individual fits by scikit-learn's own function, in bundles of this process's choice.

        Lines that fits print, and the first error that is raised, show the order: then it is scikit-learn's.
        """
        job, pairs = self._context.fitted, [pair for item in items for pair in item.pairs]
        shown = job.options.verbose > 1 or job.options.error_score == "raise"
        alone = not _copies_params(job)
        in_order = shown or alone
        bundles = Bundles(pairs, joblib_workers(job.n_jobs), training_rows(job.splits), in_order=in_order)
        sent: list[Sequence[Pair]] = []
        checks_once, checked = _checks_once(job), set[int]()
        batch_size: Any = "auto" if shown and not alone else 1
        with _source(_inputs(job, checks_once), in_file=checks_once and not alone) as source:
            arguments = (_arguments(job, source, bundle, sent, checked) for bundle in bundles)
            for number, results, seconds in run_tasks_unordered(
                make_fits, arguments, job.n_jobs, job.pre_dispatch, batch_size
            ):
                part = TaskResult(dict(zip(sent[number], results, strict=True)), seconds=seconds)
                bundles.note(part.results)
                if checks_once:
                    error_score = job.options.error_score
                    done = part.results.items()
                    checked.update(c for (c, _), one in done if not has_failed(one, error_score))
                yield WorkItem(INDIVIDUAL_FITS, tuple(sent[number])), part

    def _may_be_plain(self) -> bool:
        """Whether fits read host data and nothing else: no callback, stopping, recording or earlier fit."""
        job = self._context.fitted
        options = job.options
        own = (options.early_stopping, options.fit_timeout, options.recording)
        if any(one is not None for one in own) or job.by_sklearnex or continued_fits() is not None:
            return False
        params = (*job.options.fit_params.values(), *job.options.score_params.values())
        return job.contexts is None and not any(map(is_xp_array, (job.X, job.y, *params)))


def spare_threads(n_items: int, n_workers: int) -> list[int]:
    """Threads of each item: those that are no whole round of the workers divide the idle ones."""
    n_left = n_items % n_workers
    return [1] * (n_items - n_left) + [n_workers // n_left] * n_left if n_left else [1] * n_items


def _checks_once(job: Job) -> bool:
    """Whether a fit that succeeds with its scores has accepted all parameters: its own and the scorers'."""
    parts = [job.estimator, *(value for params in job.candidates for value in params.values())]
    strange = any_of(strangers(parts)) or any_of(strangers_among_scorers(job.options.scorer))
    return not strange and all(map(fails_with_its_parts, parts))


def _copies_params(job: Job) -> bool:
    """Whether scikit-learn gives each fit its own part of all fit and score parameters.

    Fits get other ones as they are, and may change them, as `SGDClassifier` does with ``coef_init``.
    """
    params = [*job.options.fit_params.values(), *job.options.score_params.values()]
    held = [value for value in params if type(value) not in SCALARS]
    with suppress(Exception):
        cut = check_method_params(job.X, params=dict(enumerate(held)), indices=[0])
        return all(cut[n] is not value for n, value in enumerate(held))
    return False


def _inputs(job: Job, checks_once: bool) -> FitInputs:
    """What all fits have in common. If `checks_once`, targets may be checked once for several of them."""
    options, scorers = job.options, None
    if checks_once and len(job.candidates) > 1 and job.y is not None and not options.score_params:
        from manyfit.model_selection.sharing._plain_scores import split_scorers

        scorers = split_scorers(options.scorer, job.estimator)
    function, common = fit_and_score_call(arguments_of_fits(options))
    data = job.estimator, job.X, job.y
    return FitInputs(function, *data, common, scorers, options.host_fallback, options.fits_within)


@contextmanager
def _source(inputs: FitInputs, in_file: bool) -> Iterator[FitInputs | InputFile]:
    """Where workers find the inputs of fits: in a file while it is needed, or with each bundle."""
    in_file = in_file and joblib_starts_processes() and _may_be_small(inputs)
    file = InputFile.write(inputs) if in_file else None
    try:
        yield file or inputs
    finally:
        if file is not None:
            file.remove()


def _may_be_small(inputs: FitInputs) -> bool:
    """Whether the inputs are not known to be large; the sizes of items of lists are not."""
    params = (*inputs.common["fit_params"].values(), *inputs.common["score_params"].values())
    sizes = [data_bytes(one) for one in (inputs.X, inputs.y, *params) if one is not None]
    known = [size for size in sizes if size is not None]
    return len(known) == len(sizes) and sum(known) <= MOST_BYTES


def _arguments(
    job: Job,
    source: FitInputs | InputFile,
    bundle: Sequence[Pair],
    sent: list[Sequence[Pair]],
    checked: Collection[int],
) -> tuple[Any, ...]:
    """Arguments of `make_fits` for a bundle, which is added to those that were sent.

    `checked`: settings whose parameters a fit has checked.
    """
    splits = {i: job.splits.indices(i) for _, i in bundle}
    fits = [arguments_of_fit(job.candidates[c], splits[i], progress_of(job, c, i)) for c, i in bundle]
    sent.append(bundle)
    return len(sent) - 1, source, fits, [c in checked for c, _ in bundle]


def _run_item(item: WorkItem, context: RunContext, fits: ContinuedFits | None) -> TaskResult:
    if fits is None:
        return item.strategy.run(item, context)
    with continuing(fits):
        result = item.strategy.run(item, context)
    result.continued = fits.counts
    return result


def count_continued(part: TaskResult) -> None:
    """Count the fits of another process that went on from an earlier round."""
    if (fits := continued_fits()) is not None:
        fits.counts.add(part.continued)
