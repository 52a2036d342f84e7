"""Runs work items on a worker of a cluster, under the settings of the process of the search."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from joblib import parallel_config
from sklearn import config_context
from sklearn.utils.parallel import delayed

from manyfit._config import config_context as config
from manyfit.cluster.inspection.versions import version_differences, versions_error
from manyfit.cluster.worker.errors import end_if_device_is_lost
from manyfit.cluster.worker.task_context import (
    PartialResult,
    still_wanted,
    task_context,
    worker_of_thread,
)
from manyfit.families import ContinuedFits, continued_fits, continuing
from manyfit.folds import check_blas_threads
from manyfit.model_selection.checkpoint._search_identity import versions
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running.cluster._remote_callbacks import RemoteCallbacks
from manyfit.model_selection.running.cluster._rounds import WorkerRounds, WorkerStore
from manyfit.model_selection.sharing._fit_overhead import keep_signatures
from manyfit.model_selection.strategies._strategy import RunContext, WorkItem


@dataclass(frozen=True)
class Common:
    """The parts that all items of a search have in common."""

    job: Job
    config: Mapping[str, Any]  # scikit-learn's configuration in the search's process
    filters: Sequence[Any]  # warning filters of the search's process
    callbacks: RemoteCallbacks = field(default_factory=RemoteCallbacks)
    order: Sequence[Any] | None = None  # for each candidate a key that is equal where steps are shared
    shares_rows: bool = False  # whether several fits may read the same rows
    # Where rounds go on: how ensembles are kept, and the number of the round.
    rounds: tuple[WorkerRounds, int] | None = None
    versions: Mapping[str, str] = field(default_factory=versions)  # of the packages in the search's process


def run_item(item: WorkItem, common: Common) -> TaskResult | PartialResult:
    """Answer or fit one item on a worker, under the settings of the search's process.

    An estimator's own `n_jobs` starts threads, as within tasks of joblib's other backends: a worker may start
    no processes.
    """
    own = versions()
    wrong, _ = version_differences(own, common.versions)  # of decisive packages
    if wrong:
        raise versions_error(wrong, "A worker")
    keep_signatures([common.job.estimator])
    fallback = config(host_fallback=common.job.options.host_fallback)
    with parallel_config(backend="threading"), fallback, common.callbacks.collect() as messages:
        done = _run_under(item, common)
    outcome = done.result if isinstance(done, PartialResult) else done
    worker = worker_of_thread()
    outcome.messages, outcome.worker = messages, None if worker is None else str(worker.address)
    if own != common.versions:
        outcome.versions = own
    return done


def _run_under(item: WorkItem, common: Common) -> TaskResult | PartialResult:
    # Filters belong to the process: tasks that run at the same time must not change them for each other.
    if common.filters == list(warnings.filters) or not task_context().runs_alone:
        with config_context(**common.config):
            return _run_item(item, common)
    task, args, kwargs = delayed(_run_item)(item, common)
    return cast(
        TaskResult | PartialResult,
        task.with_config_and_warning_filters(common.config, common.filters)(*args, **kwargs),
    )


def _run_item(item: WorkItem, common: Common) -> TaskResult | PartialResult:
    if common.rounds is None:
        return _run_in_context(item, _context(common))
    rounds, number = common.rounds
    store = WorkerStore(rounds)
    with continuing(ContinuedFits(store, number)) as fits:
        done = _run_in_context(item, _context(common))
    outcome = done.result if isinstance(done, PartialResult) else done
    store.assign(outcome.results)
    outcome.kept, outcome.continued = store.send(), fits.counts
    return done


def _run_in_context(item: WorkItem, context: RunContext) -> TaskResult | PartialResult:
    if item.strategy.shares_fits:
        with check_blas_threads(_stop_if_unwanted):
            outcome = item.strategy.run(item, context)
    else:
        outcome = item.strategy.run(item, context)
    for result in outcome.results.values():
        end_if_device_is_lost(result["fit_error"])
    rest, outcome.unfinished = outcome.unfinished, None
    return outcome if rest is None else PartialResult(outcome, rest)


def _context(common: Common) -> RunContext:
    """The context of all items of a task: settings are read, and rows of short fits are cut, once a task."""
    scratch = task_context().scratch
    held = {} if scratch is None else scratch  # None: the item is the only one
    if "context" not in held:
        sink = _WorkerSink(common.job, bar=Progress(0, 0))  # the search has a bar of its own
        shares_rows = common.shares_rows and scratch is not None
        held["context"] = RunContext(
            common.job, common.order, sink, returns_early=True, shares_rows=shares_rows
        )
    return cast(RunContext, held["context"])


def _stop_if_unwanted() -> None:
    if not still_wanted():
        raise InterruptedError("the search was cancelled")


class _WorkerSink(ResultSink):
    """Keeps nothing, since results return with their item; stops shared work of a cancelled search.

    It notes for which pairs the last fits kept their ensembles.
    """

    def add(self, results: Mapping[Pair, Result], *, individual: bool, **how: Any) -> None:
        if not individual:
            _stop_if_unwanted()
        fits = continued_fits()
        if fits is not None and isinstance(fits.store, WorkerStore):
            fits.store.assign(results.keys())
