"""Tasks that a worker runs although they were cancelled.

A thread cannot be stopped from outside. A cancelled fit holds its thread until it ends, and one that never
ends holds it for ever: after a while the process ends instead, if a nanny starts another.
"""

import asyncio
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Worker

# Seconds that a cancelled function has to end by itself.
GRACE_S = 10.0
# Seconds between two checks of a worker.
CHECK_S = 0.5
# Seconds that a worker may take to sign off from the scheduler before its process ends.
LEAVE_S = 2.0


@dataclass(eq=False)
class _Run:
    """A function that a thread runs."""

    key: Any
    is_wanted: Callable[[], bool]
    unwanted_s: float | None = None

    def update(self, passed: float) -> None:
        """Count the seconds since it was cancelled, `passed` seconds after the last check."""
        if self.is_wanted():
            self.unwanted_s = None
        else:
            self.unwanted_s = 0.0 if self.unwanted_s is None else self.unwanted_s + passed


@dataclass(frozen=True)
class TaskReport:
    """State of a worker's tasks."""

    waiting: tuple[str, ...]  # keys of tasks that it has not begun
    unwanted: dict[str, float]  # keys of cancelled tasks that still run, and the seconds since then
    held: bool  # whether these take all of its threads
    ends: bool  # whether its process starts anew if they do not end


class RunningTasks:
    """Functions that a worker runs for searches and calls of Parallel."""

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker
        self._runs: set[_Run] = set()
        self._lock = threading.Lock()
        self._ending = False
        self._checked = time.monotonic()

    @contextmanager
    def running(self, is_wanted: Callable[[], bool]) -> Iterator[None]:
        """Record the function that this thread runs."""
        run = _Run(self._worker.get_current_task(), is_wanted)
        with self._lock:
            self._runs.add(run)
        try:
            yield
        finally:
            with self._lock:
                self._runs.discard(run)

    def _unwanted(self) -> dict[Any, float]:
        with self._lock:
            return {run.key: run.unwanted_s for run in self._runs if run.unwanted_s is not None}

    async def check(self) -> None:
        """End the process if all that it runs was cancelled long ago."""
        # While the process itself was stopped, its functions had no time to end.
        now = time.monotonic()
        passed, self._checked = min(now - self._checked, 2 * CHECK_S), now
        with self._lock:
            for run in self._runs:
                run.update(passed)
        unwanted = self._unwanted()
        if not unwanted or self._ending or not self._may_end():
            return
        state = self._worker.state
        others = {task.key for task in (*state.executing, *state.long_running)} - unwanted.keys()
        if others or min(unwanted.values()) < GRACE_S:
            return
        self._ending = True
        # Otherwise the worker would count as dead for the tasks that wait on it.
        with contextlib.suppress(Exception):
            leaves = self._worker.scheduler.unregister(
                address=self._worker.address,
                expected=True,
                close=False,
                stimulus_id=f"manyfit-unwanted-{time.time()}",
            )
            await asyncio.wait_for(leaves, LEAVE_S)
        os._exit(1)

    def _may_end(self) -> bool:
        """Whether a nanny starts another process, and only data of searches are lost with this one."""
        worker = self._worker
        own = bool(worker.nanny) and not worker.address.startswith("inproc://")
        return own and holds_only_our_data(worker)

    def report(self) -> TaskReport:
        """Report the state now."""
        unwanted, state = self._unwanted(), self._worker.state
        waiting = [str(key) for key, task in state.tasks.items() if task.state in ("ready", "constrained")]
        held = len(unwanted) >= state.nthreads
        return TaskReport(
            tuple(waiting), {str(k): seconds for k, seconds in unwanted.items()}, held, self._may_end()
        )


def check_periodically(worker: "Worker", name: str, check: Callable[[], Any]) -> None:
    """Have the event loop of a worker call a function every `CHECK_S` seconds."""
    from tornado.ioloop import PeriodicCallback

    def start() -> None:
        worker.periodic_callbacks[name] = callback = PeriodicCallback(check, CHECK_S * 1000)
        callback.start()

    worker.loop.add_callback(start)


def holds_only_our_data(worker: "Worker") -> bool:
    """Whether a worker holds only data of searches: no results and no actors, which have no copies."""
    return not worker.state.actors and all(str(name).startswith("manyfit-") for name in worker.data)


_runs: "weakref.WeakKeyDictionary[Worker, RunningTasks]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def get_running_tasks(worker: "Worker") -> RunningTasks:
    """Return the functions that a worker runs; the first call starts the checks."""
    with _lock:
        if worker not in _runs:
            _runs[worker] = RunningTasks(worker)
            check_periodically(worker, "manyfit-unwanted", _runs[worker].check)
        return _runs[worker]


async def report_tasks(dask_worker: "Worker") -> TaskReport:
    """Report the state of this worker's tasks."""
    return get_running_tasks(dask_worker).report()
