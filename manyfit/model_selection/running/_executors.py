"""Executors of this machine: the process of the search, and joblib's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from manyfit.model_selection.job._joblib_tasks import joblib_workers, run_tasks
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._strategy import RunContext, Strategy, WorkItem


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
        """See `Executor`."""
        return 1

    def map(self, items: Sequence[WorkItem]) -> Iterator[tuple[WorkItem, TaskResult]]:
        """See `Executor`."""
        for item in items:
            yield item, item.strategy.run(item, self._context)


class JoblibExecutor(Executor):
    """Runs items through joblib, but in the process of the search those that take all cores."""

    def __init__(self, context: RunContext, sink: ResultSink) -> None:
        self._process, self._context, self._sink = ProcessExecutor(context), context, sink

    def n_slots(self, strategy: Strategy, candidates: Sequence[int]) -> int:
        """See `Executor`."""
        return 1 if strategy.takes_all_cores else joblib_workers(self._context.job.n_jobs)

    def map(self, items: Sequence[WorkItem]) -> Iterator[tuple[WorkItem, TaskResult]]:
        """See `Executor`."""
        yield from self._process.map([item for item in items if item.strategy.takes_all_cores])
        items = [item for item in items if not item.strategy.takes_all_cores]
        job = self._context.job
        if job.rowwise is not None:
            # By this process: none of joblib's sees the rows of all splits.
            for c in sorted({c for item in items for c in item.strategy.rowwise_candidates(item)}):
                job.rowwise.prepare_setting(job.estimator, job.candidates[c])
        parts = run_tasks(_run_item, _Arguments(items, self._context), job.n_jobs, job.pre_dispatch)
        for item, part in zip(items, parts, strict=True):
            self._sink.take(part, individual=not item.strategy.shares_fits)
            yield item, part


class _Arguments(Sequence[Any]):
    """An item and its part of the context, made when the item is sent: only some are held at a time."""

    def __init__(self, items: Sequence[WorkItem], context: RunContext) -> None:
        self._items, self._context = items, context

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, j: Any) -> Any:
        return self._items[j], self._context.for_item(self._items[j])


def _run_item(item: WorkItem, context: RunContext) -> TaskResult:
    return item.strategy.run(item, context)
