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
    task_scratch,
    worker_runs_one_task,
)
from manyfit.folds import check_blas_threads
from manyfit.model_selection.checkpoint._search_identity import versions
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running._remote_callbacks import RemoteCallbacks
from manyfit.model_selection.strategies._strategy import RunContext, WorkItem


@dataclass(frozen=True)
class Common:
    """What all items of a search have in common.

    Attributes
    ----------
    job : Job
    config : mapping
        scikit-learn's configuration where the search was started.
    filters : sequence of tuple
        Which warnings are shown there, and which are errors.
    callbacks : Callbacks
        Of the search.
    order : sequence or None
        For each candidate a key that is equal where steps are shared.
    versions : mapping of str to str
        Of the packages that results depend on, where the search was started.
    """

    job: Job
    config: Mapping[str, Any]
    filters: Sequence[Any]
    callbacks: RemoteCallbacks = field(default_factory=RemoteCallbacks)
    order: Sequence[Any] | None = None
    versions: Mapping[str, str] = field(default_factory=versions)


def run_item(item: WorkItem, common: Common) -> TaskResult | PartialResult:
    """Answer or fit one item on a worker, under the settings of the process that asks for it.

    An estimator's own `n_jobs` is threads there, as within tasks of joblib's other backends: a worker may
    start no processes, and joblib would warn of each fit.
    """
    here = versions()
    if here != common.versions:
        _refuse_versions(here, common.versions)
    told = config(host_fallback=common.job.options.host_fallback)
    with parallel_config(backend="threading"), told, common.callbacks.collect() as messages:
        done = _run_under(item, common)
    outcome = done.result if isinstance(done, PartialResult) else done
    outcome.messages = messages
    if here != common.versions:
        outcome.versions = here
    return done


def _refuse_versions(here: Mapping[str, str], asked: Mapping[str, str]) -> None:
    """Raise if this worker has other versions than who asks: what it computed would not be taken."""
    there, theirs = ({name.lower(): one for name, one in of.items()} for of in (here, asked))
    wrong, _ = version_differences(there, theirs)
    if wrong:
        raise versions_error(wrong, "A worker")


def _run_under(item: WorkItem, common: Common) -> TaskResult | PartialResult:
    # Filters belong to the process: tasks that run at the same time must not change them for each other.
    if common.filters == list(warnings.filters) or not worker_runs_one_task():
        with config_context(**common.config):
            return _run_item(item, common)
    task, args, kwargs = delayed(_run_item)(item, common)
    return cast(
        TaskResult | PartialResult,
        task.with_config_and_warning_filters(common.config, common.filters)(*args, **kwargs),
    )


def _run_item(item: WorkItem, common: Common) -> TaskResult | PartialResult:
    context = _context(common)
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
    """What items of one task have in common: settings are read, and short fits' rows are cut, once a task."""
    scratch = task_scratch()
    if scratch is None:  # the item is the only one
        return _make_context(common, many_items=False)
    if "context" not in scratch:
        scratch["context"] = _make_context(common, many_items=True)
    return cast(RunContext, scratch["context"])


def _make_context(common: Common, many_items: bool) -> RunContext:
    sink = _WorkerSink(common.job, bar=Progress(0, 0))  # the search has a bar of its own
    return RunContext(common.job, common.order, sink, returns_early=True, many_items=many_items)


def _stop_if_unwanted() -> None:
    if not still_wanted():
        raise InterruptedError("the search was cancelled")


class _WorkerSink(ResultSink):
    """Keeps nothing, since results return with their item; stops shared work that nobody wants any more."""

    def add(self, results: Mapping[Pair, Result], *, individual: bool, **how: Any) -> None:
        if not individual:
            _stop_if_unwanted()
