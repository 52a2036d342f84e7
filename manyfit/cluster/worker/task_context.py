"""Context of the task that a worker thread runs: whether it is still wanted, and what its items share."""

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
    """Answers to the functions of this module in one thread."""

    is_wanted: Callable[[], bool]
    runs_alone: bool  # whether the worker runs one task at a time
    scratch: dict[str, Any] | None  # what items leave for later items of the task; None for a single item
    inputs: Sequence[Any] = ()  # what Dask's futures among the arguments of the task hold


class _Thread(threading.local):
    context = TaskContext(lambda: True, True, None)  # outside of tasks


_thread = _Thread()


@contextmanager
def use_task_context(context: TaskContext) -> Iterator[None]:
    """Have the functions of this module answer by this context, in this thread."""
    before, _thread.context = _thread.context, context
    try:
        yield
    finally:
        _thread.context = before


def still_wanted() -> bool:
    """Whether anybody waits for the task of this thread; True outside of tasks."""
    return _thread.context.is_wanted()


def make_wanted_check(worker: "Worker") -> Callable[[], bool]:
    """Return a check whether anybody waits for the task that this thread runs now, for use in any thread."""
    task = worker.state.tasks.get(worker.get_current_task())
    return lambda: task is None or task.state != "cancelled"


def worker_address() -> str | None:
    """Address of the worker of this thread; None outside of workers."""
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return None


def worker_runs_one_task() -> bool:
    """Whether the worker of this thread runs one task at a time; True outside of tasks."""
    return _thread.context.runs_alone


def task_scratch() -> dict[str, Any] | None:
    """Return what items leave for later items of a task; None for single items and outside of tasks."""
    return _thread.context.scratch


def task_inputs() -> Sequence[Any]:
    """Return the results of the futures that the task of this thread reads."""
    return _thread.context.inputs
