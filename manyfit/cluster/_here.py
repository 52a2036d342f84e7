"""What a function that runs on a worker may ask, and say: whether to go on, and what is left to do."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Partly:
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


@contextmanager
def at_task(wanted: Callable[[], bool], alone: bool) -> Iterator[None]:
    """Within it `wanted` and `alone` answer so, in this thread."""
    before = getattr(_thread, "task", None)
    _thread.task = wanted, alone
    try:
        yield
    finally:
        _thread.task = before


def wanted() -> bool:
    """Whether anybody still waits for the task that this thread is at.

    Returns
    -------
    bool
        True where it is at none.
    """
    task = getattr(_thread, "task", None)
    return task is None or bool(task[0]())


def alone() -> bool:
    """Whether the worker that this thread is of runs one task at a time.

    Returns
    -------
    bool
        True where it is at no task.
    """
    task = getattr(_thread, "task", None)
    return task is None or bool(task[1])
