"""The executor that runs work items on the workers of a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from sklearn import get_config

from manyfit._compat import deliver_message
from manyfit.cluster.inspection.gpu_workers import GPU
from manyfit.cluster.inspection.versions import require_versions
from manyfit.cluster.pool.run import count_slots, run_on_cluster
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.families import continued_fits
from manyfit.introspection.composites import last_step, params_of
from manyfit.introspection.gpu_support import has_gpu_params, is_gpu_object
from manyfit.model_selection.checkpoint._search_identity import draws
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._plan import Plan
from manyfit.model_selection.planning.places._data_location import falls_back_to_host
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running._executors import Executor, count_continued
from manyfit.model_selection.running.cluster._remote_callbacks import RemoteCallbacks
from manyfit.model_selection.running.cluster._rounds import ClusterStore
from manyfit.model_selection.running.cluster._worker_items import Common, run_item
from manyfit.model_selection.strategies._individual_fits import INDIVIDUAL_FITS
from manyfit.model_selection.strategies._strategy import Strategy, WorkItem


class DaskExecutor(Executor):
    """Runs items on the workers of ``job.client``.

    The moments of all folds are one item, so that results do not depend on the number of workers. A group of
    iterating fits is one item, too; a longer one is cut by settings, and where within its tolerance an answer
    ends may depend on the parts.
    """

    on_cluster = True

    def __init__(self, job: Job, plan: Plan, sink: ResultSink) -> None:
        self.job, self.sink = job, sink
        options = replace(job.options, verbose=0)  # the process of the search prints these lines
        bare = replace(job, options=options, client=None, n_jobs=1)
        callbacks = RemoteCallbacks()
        if job.contexts is None:
            bare = replace(bare, search=None)
        else:
            callbacks = RemoteCallbacks.from_search(job.search)
        fits = continued_fits()
        self._rounds = fits.store if fits is not None and isinstance(fits.store, ClusterStore) else None
        rounds = None if fits is None or self._rounds is None else (self._rounds.on_worker(), fits.round)
        self._common = Common(
            bare, get_config(), list(warnings.filters), callbacks, plan.order, not plan.by_sklearn, rounds
        )
        # Else an equal search at the same time would have the same tasks: the same draws, or callbacks that
        # hear nothing.
        self._salt = uuid4().hex if job.contexts is not None or draws(job) else ""
        self._takes_gpu = _gpu_needs(job)
        self._versions: list[Mapping[str, str]] = []  # other ones than ours, which were compared

    def n_slots(self, strategy: Strategy, candidates: Sequence[int]) -> int:
        return count_slots(self.job.client, self._needs(candidates))

    def map(self, items: Sequence[WorkItem]) -> Iterator[tuple[WorkItem, TaskResult]]:
        if any(not item.strategy.shares_fits for item in items):
            falls_back_to_host(self.job)  # warns or raises in this process, as workers do not
        again: list[WorkItem] = []
        for item, part in self._results(items) if items else ():
            if isinstance(part, WorkerLost):
                part, more = item.strategy.after_loss(item, self.job, part)
                again += more
            else:
                for address, message in part.messages:
                    deliver_message(address, message)
                count_continued(part)
                if self._rounds is not None:
                    self._rounds.note(self.job, part)
                self._require_versions(part)
            self.sink.take(part, individual=not item.strategy.shares_fits)
            yield item, part
        if again:
            yield from self.map(again)

    def _require_versions(self, part: TaskResult) -> None:
        """Refuse what a worker of other versions computed before it said which they are."""
        if part.versions is not None and part.versions not in self._versions:
            require_versions(part.versions, "A worker", self.job.client)
            self._versions.append(part.versions)

    def _needs(self, candidates: Sequence[int]) -> Mapping[str, float]:
        return {GPU: 1} if self._takes_gpu(candidates) else {}

    def _results(self, items: Sequence[WorkItem]) -> Iterator[tuple[WorkItem, Any]]:
        job = self.job
        params = [*job.options.fit_params.values(), *job.options.score_params.values()]
        estimator = type(last_step(job.estimator)).__name__
        return run_on_cluster(
            job.client,
            run_item,
            items,
            self._common,
            name=lambda item: f"{item.strategy.kind.replace(' ', '_')}-{estimator}",
            fuse=lambda item: item.strategy == INDIVIDUAL_FITS,
            needs=lambda item: self._needs(item.candidates),
            owners=[job.X, job.y, *params],
            salt=self._salt,
            inputs=self._inputs,
        )

    def _inputs(self, item: WorkItem, tries: int) -> Sequence[Any]:
        """Futures of the models that the fits of an item go on from."""
        return () if self._rounds is None else self._rounds.inputs(self.job, item, tries)


def _gpu_needs(job: Job) -> Callable[[Sequence[int]], bool]:
    """A function that says whether the fits of some candidates need a GPU, as far as parameters tell it.

    For other estimators, as one that hides a network of torch, the user says it around the search:
    ``with dask.annotate(resources={"GPU": 1})``.
    """
    options = job.options
    data = [job.X, job.y, *options.fit_params.values(), *options.score_params.values()]
    if any(is_gpu_object(value) for value in data):
        return lambda candidates: True
    params = params_of(job.estimator)
    own = is_gpu_object(job.estimator)
    found = [own or has_gpu_params(_replaced(params, candidate)) for candidate in job.candidates]
    return lambda candidates: any(found[c] for c in candidates)


def _replaced(params: Mapping[str, Any], candidate: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a setting, without those of an estimator that it replaces."""
    gone = tuple(f"{name}__" for name in candidate)
    return {**{name: value for name, value in params.items() if not name.startswith(gone)}, **candidate}
