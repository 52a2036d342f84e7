"""Context of the task that a worker thread runs: whether it is still wanted, and what its items share."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Worker


@dataclass(frozen=True)
class PartialResult:
    """Result of a part of an item, and an item for the rest."""

    result: Any
    rest: Any


@dataclass(frozen=True)
class TaskContext:
    """What a thread knows of the task that it runs."""

    is_wanted: Callable[[], bool]
    runs_alone: bool  # whether the worker runs one task at a time
    scratch: dict[str, Any] | None  # what items leave for later items of the task; None for a single item
    inputs: Sequence[Any] = ()  # the results of the futures that the task reads


class _Thread(threading.local):
    # No context variable: when a task secedes, Dask starts the next one in a copy of its context.
    context = TaskContext(lambda: True, True, None)  # outside of tasks


_thread = _Thread()


def task_context() -> TaskContext:
    """Return the context of the task of this thread; outside of tasks, one that allows everything."""
    return _thread.context


@contextmanager
def use_task_context(context: TaskContext) -> Iterator[None]:
    """Have `task_context` return this context, in this thread, inside a ``with`` block."""
    before, _thread.context = _thread.context, context
    try:
        yield
    finally:
        _thread.context = before


def still_wanted() -> bool:
    """Whether anybody waits for the task of this thread; True outside of tasks."""
    return task_context().is_wanted()


def make_wanted_check(worker: "Worker") -> Callable[[], bool]:
    """Return a check whether anybody waits for the task that this thread runs now, for use in any thread."""
    task = worker.state.tasks.get(worker.get_current_task())
    return lambda: task is None or task.state != "cancelled"


def worker_of_thread() -> "Worker | None":
    """Return the worker that runs a task in this thread; None outside of tasks."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None
