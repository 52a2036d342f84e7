"""Runs tasks in this process or through joblib, by the user's ``n_jobs`` and joblib context."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Literal, TypeVar

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

R = TypeVar("R")


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
    yield from _ending_tasks(parallel(delayed(task)(*a) for a in arguments))


def _ending_tasks(results: Any) -> Iterator[Any]:
    """The results; a reader that stops (an error, KeyboardInterrupt) ends the tasks."""
    try:
        yield from results
    finally:
        if hasattr(results, "close"):
            results.close()


def _parallel(return_as: str, n_jobs: int | None, pre_dispatch: Any, **options: Any) -> Parallel:
    try:
        return Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch, return_as=return_as, **options)
    except ValueError:
        # Not every joblib backend streams its results.
        return Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch)
