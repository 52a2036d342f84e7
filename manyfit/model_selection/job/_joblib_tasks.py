"""Runs tasks in this process or through joblib, by the user's ``n_jobs`` and joblib context."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

R = TypeVar("R")


def joblib_workers(n_jobs: int | None) -> int:
    """How many tasks run at a time under the user's ``n_jobs`` and joblib context."""
    return int(effective_n_jobs(n_jobs))


def run_tasks(
    task: Callable[..., R], arguments: Sequence[tuple[Any, ...]], n_jobs: int | None, pre_dispatch: Any
) -> Iterator[R]:
    """Run ``task(*a)`` for each of `arguments`, and yield the results in order as they come.

    One worker, or one task, runs without joblib; others go through scikit-learn's ``Parallel``, which sends
    its configuration and the warning filters. A reader that stops ends the other tasks.
    """
    if joblib_workers(n_jobs) == 1 or len(arguments) <= 1:
        yield from (task(*a) for a in arguments)
        return
    results = _parallel(n_jobs, pre_dispatch)(delayed(task)(*a) for a in arguments)
    try:
        yield from results
    finally:
        # A reader that stops (an error, KeyboardInterrupt) ends the tasks.
        if hasattr(results, "close"):
            results.close()


def _parallel(n_jobs: int | None, pre_dispatch: Any) -> Parallel:
    try:
        return Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch, return_as="generator")
    except ValueError:
        # Not every joblib backend streams its results.
        return Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch)
