"""Runs tasks in this process or through joblib, by the user's ``n_jobs`` and joblib context."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from threading import Event
from typing import Any, Literal, TypeVar

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

R = TypeVar("R")

# Seconds. joblib says nothing when a task fails: the next result that is asked for raises the error.
LONGEST_WAIT = 0.1


def joblib_workers(n_jobs: int | None) -> int:
    """How many tasks run at a time under the user's ``n_jobs`` and joblib context."""
    return int(effective_n_jobs(n_jobs))


def run_tasks(
    task: Callable[..., R], arguments: Iterable[tuple[Any, ...]], n_jobs: int | None, pre_dispatch: Any
) -> Iterator[R]:
    """Run ``task(*a)`` for each of `arguments`, and yield the results in order as they come.

    One worker, or one task, runs without joblib; others go through scikit-learn's ``Parallel``, which sends
    its configuration and the warning filters. A reader that stops ends the other tasks.
    """
    rest = iter(arguments)
    first = list(islice(rest, 2))
    if joblib_workers(n_jobs) == 1 or len(first) < 2:
        yield from (task(*a) for a in chain(first, rest))
        return
    calls = (delayed(task)(*a) for a in chain(first, rest))
    yield from _ending_tasks(_parallel("generator", n_jobs, pre_dispatch)(calls))


def run_tasks_unordered(
    task: Callable[..., R],
    arguments: Iterable[tuple[Any, ...]],
    n_jobs: int | None,
    pre_dispatch: Any,
    batch_size: int | Literal["auto"] = "auto",
) -> Iterator[R]:
    """Run ``task(*a)`` for each of `arguments` through joblib, and yield the results as tasks end.

    joblib draws arguments when a worker is free, and sends so many of them together.
    """
    parallel = _parallel("generator_unordered", n_jobs, pre_dispatch, batch_size=batch_size)
    sent = _Drawn(arguments)
    results = parallel(delayed(task)(*a) for a in sent)
    for n_read, result in enumerate(_ending_tasks(results), 1):
        yield result
        # joblib looks for results every 10 ms, and a short search would end so much later.
        parallel.completed.clear()
        if n_read >= parallel.n_completed_tasks and not (sent.are_all and n_read == sent.n):
            parallel.completed.wait(LONGEST_WAIT)


class _PromptParallel(Parallel):  # type: ignore[misc]
    """scikit-learn's ``Parallel``, which says when a task is completed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.completed = Event()

    def print_progress(self) -> None:
        """joblib calls this when a task is completed and its result can be read."""
        super().print_progress()
        self.completed.set()


class _Drawn(Iterator[Any]):
    """An iterator that knows how many items were drawn, and whether they were all."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items, self.n, self.are_all = iter(items), 0, False

    def __next__(self) -> Any:
        try:
            item = next(self._items)
        except StopIteration:
            self.are_all = True
            raise
        self.n += 1
        return item


def _ending_tasks(results: Any) -> Iterator[Any]:
    """The results; a reader that stops (an error, KeyboardInterrupt) ends the tasks."""
    try:
        yield from results
    finally:
        if hasattr(results, "close"):
            results.close()


def _parallel(return_as: str, n_jobs: int | None, pre_dispatch: Any, **options: Any) -> _PromptParallel:
    try:
        return _PromptParallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch, return_as=return_as, **options)
    except ValueError:
        # Not every joblib backend streams its results.
        return _PromptParallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch)
