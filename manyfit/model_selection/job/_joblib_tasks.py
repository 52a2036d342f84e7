"""Tasks in this process or through joblib, as the user's ``n_jobs`` and joblib context say."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed

R = TypeVar("R")


def joblib_workers(n_jobs: int | None) -> int:
    """How many tasks run at a time under the user's ``n_jobs`` and joblib context.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: None takes what the joblib context says, else 1; -1 takes every core.

    Returns
    -------
    int
        At least 1.
    """
    return int(effective_n_jobs(n_jobs))


def run_tasks(
    task: Callable[..., R], arguments: Sequence[tuple[Any, ...]], n_jobs: int | None, pre_dispatch: Any
) -> Iterator[R]:
    """Run ``task(*a)`` for each of `arguments`; results in order, as they come.

    With one worker, or one task, they run here, without joblib in between. Otherwise they go through
    scikit-learn's ``Parallel``, which carries its configuration and the warning filters along.

    Parameters
    ----------
    task : callable
        Its result and arguments are pickled where workers are processes; joblib maps large arrays into
        memory that they share.
    arguments : sequence of tuple
        Positional arguments of each task.
    n_jobs : int or None
        As in scikit-learn, see `joblib_workers`.
    pre_dispatch : int or str
        Tasks handed out ahead of the workers, as in `joblib.Parallel`.

    Yields
    ------
    object
        What each task returns, in the order of `arguments`. Whoever stops reading stops the other tasks.

    Raises
    ------
    Exception
        The first exception of a task, when its result is read.
    """
    if joblib_workers(n_jobs) == 1 or len(arguments) <= 1:
        yield from (task(*a) for a in arguments)
        return
    results = _parallel(n_jobs, pre_dispatch)(delayed(task)(*a) for a in arguments)
    try:
        yield from results
    finally:
        # Whoever stops reading (an error, KeyboardInterrupt) stops the tasks.
        if hasattr(results, "close"):
            results.close()


def _parallel(n_jobs: int | None, pre_dispatch: Any) -> Parallel:
    try:
        return Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch, return_as="generator")
    except ValueError:
        # Not every joblib backend streams its results.
        return Parallel(n_jobs=n_jobs, pre_dispatch=pre_dispatch)
