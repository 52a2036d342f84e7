"""What a worker does before it runs out of memory: it lets go of what it keeps, or says that it cannot."""

import gc
import os
import time
from dataclasses import dataclass
from typing import Any

from dask.utils import format_bytes
from distributed import Status, Worker
from tornado.ioloop import PeriodicCallback

from manyfit.cluster.worker._store import Store
from manyfit.cluster.worker.cancelled_tasks import GRACE_S, holds_no_other

# How often a worker looks at its memory.
LOOK_S = 0.5
# A worker that is paused for so long, runs nothing and keeps nothing has lost its memory: its process ends.
LOST_S = 3.0
# What no search has used for this long goes: its client may have ended without a word.
STORED_S = 600.0
# So long room is waited for that nobody uses: memory comes back late ...
LONGEST_WAIT_S = 5.0
# ... that cancelled tasks have, whose process may start again ...
UNWANTED_WAIT_S = 2 * GRACE_S
# ... and that tasks of other searches use.
LATER_S = 600.0


@dataclass(frozen=True)
class MemoryRoom:
    """What a worker says of data that are to come to it.

    Attributes
    ----------
    fits : bool
    later : bool
        Whether it may fit when tasks of other searches have ended.
    unwanted : bool
        Whether it may fit when tasks have ended that were cancelled.
    used, usable, limit : int
        Bytes: in use without them, those from which on Dask pauses the worker, and its memory limit.
    """

    fits: bool
    later: bool = False
    unwanted: bool = False
    used: int = 0
    usable: int = 0
    limit: int = 0

    def __str__(self) -> str:
        used, usable, limit = map(format_bytes, (self.used, self.usable, self.limit))
        held = ", some of it for tasks of other searches" if self.later else ""
        held = ", some of it for a task that was cancelled and has not ended" if self.unwanted else held
        return f"uses {used} without them{held}, and Dask pauses it at {usable} (memory limit: {limit})"


class Patience:
    """For how long a task or a search waits for room on a worker."""

    def __init__(self) -> None:
        self._start = self._used = self._held = time.monotonic()

    def ends(self, room: MemoryRoom) -> bool:
        """Whether it has waited long enough, after another answer of the worker."""
        now = time.monotonic()
        if room.later:
            self._used = now
        if room.later or room.unwanted:
            self._held = now
        late = now - self._start > LATER_S
        return late or now - self._used > UNWANTED_WAIT_S or now - self._held > LONGEST_WAIT_S


class MemoryGuard:
    """Sees to it that a worker's store leaves memory to its tasks.

    Parameters
    ----------
    worker : distributed.Worker
    store : Store
    """

    def __init__(self, worker: Worker, store: Store) -> None:
        self._worker, self._store = worker, store
        self._lost_since: float | None = None
        manager = worker.memory_manager
        # In the client's own process the memory is not the worker's alone.
        own = not worker.address.startswith("inproc://")
        self.limit = int(manager.memory_limit or 0) if own else 0
        # From there on Dask starts no tasks; where that is switched off its nanny ends the process.
        self._usable = int(self.limit * (manager.memory_pause_fraction or 0.9))
        self._high = int(self.limit * (manager.memory_spill_fraction or 0.7))

    def start(self) -> None:
        """Look at the memory from now on; called in the worker's event loop."""
        callback = PeriodicCallback(self.look, LOOK_S * 1000)
        self._worker.periodic_callbacks["manyfit-memory"] = callback
        callback.start()

    def make_room(self, nbytes: int, key: str = "") -> MemoryRoom:
        """Let go of what no running task uses, as far as it takes until so many bytes for a package fit.

        Called in the worker's event loop, where Dask looks after its own data.
        """
        if not self.limit:
            return MemoryRoom(True)
        while not (fits := self._used() + nbytes <= self._usable) and (
            self._store.drop_oldest() or self._spill()
        ):
            gc.collect()
        uses = self._store.used_beside(key)
        return MemoryRoom(fits, True in uses, False in uses, self._used(), self._usable, self.limit)

    def _spill(self) -> bool:
        """Have Dask write something of its own to disk; whether it did."""
        data: Any = self._worker.data
        return bool(getattr(data, "fast", None)) and data.evict() != -1

    def look(self) -> None:
        """Let go of what is not used any more, and of more where memory is short."""
        self._store.drop_unused(STORED_S)
        if not self.limit:
            return
        paused = self._worker.status == Status.paused
        if paused or self._used() > self._high:
            # One at a time: its memory may be Dask's, too, which then writes it to disk.
            self._store.drop_oldest()
        self._end_if_lost(paused)

    def _end_if_lost(self, paused: bool) -> None:
        worker = self._worker
        # Somebody else's results would go with the process.
        ours = holds_no_other(worker)
        if not (paused and ours and worker.nanny) or worker.state.executing_count or self._store.keys():
            self._lost_since = None
            return
        if self._lost_since is None:
            self._lost_since = time.monotonic()
        if time.monotonic() - self._lost_since > LOST_S:
            os._exit(1)  # the nanny starts another

    def _used(self) -> int:
        return int(self._worker.monitor.get_process_memory())
