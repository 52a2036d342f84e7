"""What a function that runs on a worker may ask and say: whether to go on, and what is left."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PartialResult:
    """What a function returns that has done a part of its item.

    Attributes
    ----------
    result : object
        Of what is done.
    rest : object
        An item for what is left.
    """

    result: Any
    rest: Any


_thread = threading.local()


@dataclass(frozen=True)
class Task:
    """What a thread is at.

    Attributes
    ----------
    wanted : callable
        What `still_wanted` answers.
    alone : bool
        What `alone` answers.
    left : dict or None
        What `task_scratch` gives.
    """

    wanted: Callable[[], bool]
    alone: bool
    left: dict[str, Any] | None


@contextmanager
def at_task(task: Task) -> Iterator[None]:
    """Within it the functions of this module answer for this task, in this thread."""
    before = getattr(_thread, "task", None)
    _thread.task = task
    try:
        yield
    finally:
        _thread.task = before


def still_wanted() -> bool:
    """Whether anybody still waits for the task that this thread is at.

    Returns
    -------
    bool
        True where it is at none.
    """
    task: Task | None = getattr(_thread, "task", None)
    return task is None or task.wanted()


def alone() -> bool:
    """Whether the worker that this thread is of runs one task at a time.

    Returns
    -------
    bool
        True where it is at no task.
    """
    task: Task | None = getattr(_thread, "task", None)
    return task is None or task.alone


def task_scratch() -> dict[str, Any] | None:
    """What items of a task leave for those that follow in it.

    Returns
    -------
    dict or None
        Gone with the task. None where the task is one item, or this thread is at none.
    """
    task: Task | None = getattr(_thread, "task", None)
    return None if task is None else task.left
