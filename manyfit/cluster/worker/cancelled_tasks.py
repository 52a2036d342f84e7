"""On a worker: functions that it runs, and those of them that nobody waits for any more.

A thread cannot be stopped from outside. A fit that nobody wants holds its thread until it ends, and one that
never ends holds it for ever: after a while the process ends instead, if a nanny starts another.
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

# A function that nobody wants has so long to end by itself.
GRACE_S = 10.0
# How often it is looked for such functions.
LOOK_S = 0.5
# Before its process ends, a worker takes leave of the scheduler, which so long may take.
LEAVE_S = 2.0


@dataclass(eq=False)
class _Run:
    """A function that runs."""

    key: Any
    wanted: Callable[[], bool]
    unwanted_s: float | None = None

    def look(self, passed: float) -> None:
        """Note for how long nobody has wanted it, some seconds after the last look."""
        if self.wanted():
            self.unwanted_s = None
        else:
            self.unwanted_s = 0.0 if self.unwanted_s is None else self.unwanted_s + passed


@dataclass(frozen=True)
class Report:
    """What a worker says of its tasks.

    Attributes
    ----------
    waiting : tuple of str
        Keys of tasks that it has not begun.
    unwanted : dict of str to float
        Keys of tasks that it is at and nobody wants, and for how many seconds nobody has.
    held : bool
        Whether these take all of its threads.
    ends : bool
        Whether its process ends, and starts anew, if they do not end by themselves.
    """

    waiting: tuple[str, ...]
    unwanted: dict[str, float]
    held: bool
    ends: bool


class Runs:
    """The functions that a worker runs for searches and calls of Parallel.

    Parameters
    ----------
    worker : Worker
    """

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker
        self._runs: set[_Run] = set()
        self._lock = threading.Lock()
        self._ending = False
        self._looked = time.monotonic()

    @contextmanager
    def running(self, wanted: Callable[[], bool]) -> Iterator[None]:
        """Within it this thread runs the function of its task."""
        run = _Run(self._worker.get_current_task(), wanted)
        with self._lock:
            self._runs.add(run)
        try:
            yield
        finally:
            with self._lock:
                self._runs.discard(run)

    def start(self) -> None:
        """Look at the functions from now on; called in the worker's event loop."""
        from tornado.ioloop import PeriodicCallback

        callback = PeriodicCallback(self.look, LOOK_S * 1000)
        self._worker.periodic_callbacks["manyfit-unwanted"] = callback
        callback.start()

    def _unwanted(self) -> dict[Any, float]:
        with self._lock:
            return {run.key: run.unwanted_s for run in self._runs if run.unwanted_s is not None}

    async def look(self) -> None:
        """End the process if all that it is at is unwanted, and has been for long."""
        # A process that was stopped itself has had no time to end them.
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, 2 * LOOK_S), now
        with self._lock:
            for run in self._runs:
                run.look(passed)
        unwanted = self._unwanted()
        if not unwanted or self._ending or not self._may_end():
            return
        state = self._worker.state
        others = {task.key for task in (*state.executing, *state.long_running)} - unwanted.keys()
        if others or min(unwanted.values()) < GRACE_S:
            return
        self._ending = True
        # Otherwise the tasks that wait here would count as having died with it.
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
        """Whether a nanny starts another process, and no data but those of searches go with this one."""
        worker = self._worker
        own = bool(worker.nanny) and not worker.address.startswith("inproc://")
        return own and holds_no_other(worker)

    def report(self) -> Report:
        """What there is to say now."""
        unwanted, state = self._unwanted(), self._worker.state
        waiting = [str(key) for key, task in state.tasks.items() if task.state in ("ready", "constrained")]
        held = len(unwanted) >= state.nthreads
        return Report(
            tuple(waiting), {str(k): seconds for k, seconds in unwanted.items()}, held, self._may_end()
        )


def holds_no_other(worker: "Worker") -> bool:
    """Whether a worker holds nothing but data of searches: no results, no actors, which have no copies."""
    return not worker.state.actors and all(str(name).startswith("manyfit-") for name in worker.data)


_runs: "weakref.WeakKeyDictionary[Worker, Runs]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def runs_of(worker: "Worker") -> Runs:
    """What a worker runs; it is looked at from the first call on."""
    with _lock:
        if worker not in _runs:
            _runs[worker] = Runs(worker)
            worker.loop.add_callback(_runs[worker].start)
        return _runs[worker]


async def report(dask_worker: "Worker") -> Report:
    """What this worker says of its tasks."""
    return runs_of(dask_worker).report()
