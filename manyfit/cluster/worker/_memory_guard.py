"""Memory of a worker: it drops what it keeps before it runs out, or says that it cannot."""

import gc
import os
import time
from dataclasses import dataclass
from typing import Any

from dask.utils import format_bytes
from distributed import Status, Worker

from manyfit.cluster.worker._store import Store
from manyfit.cluster.worker.cancelled_tasks import GRACE_S, holds_only_our_data

# A worker that is paused for so many seconds, runs nothing and keeps nothing leaks memory: its process ends.
LOST_S = 3.0
# Seconds after which unused data are dropped: their client may have ended without a word.
STORED_S = 600.0
# Seconds to wait for memory that nothing uses, which comes back late, ...
LONGEST_WAIT_S = 5.0
# ... that cancelled tasks use, whose process may start again, ...
UNWANTED_WAIT_S = 2 * GRACE_S
# ... and that tasks of other searches use.
LATER_S = 600.0


@dataclass(frozen=True)
class MemoryRoom:
    """Whether data that are to come to a worker fit into its memory."""

    fits: bool
    later: bool = False  # whether they may fit when tasks of other searches have ended
    unwanted: bool = False  # whether they may fit when cancelled tasks have ended
    used: int = 0  # bytes in use without them
    usable: int = 0  # bytes from which on Dask pauses the worker
    limit: int = 0  # memory limit of the worker

    def __str__(self) -> str:
        used, usable, limit = map(format_bytes, (self.used, self.usable, self.limit))
        held = ", some of it for tasks of other searches" if self.later else ""
        held = ", some of it for a task that was cancelled and has not ended" if self.unwanted else held
        return f"uses {used} without them{held}, and Dask pauses it at {usable} (memory limit: {limit})"


class RoomWait:
    """Waiting of a task or a search for memory on a worker."""

    def __init__(self) -> None:
        self._start = self._used = self._held = time.monotonic()

    def is_over(self, room: MemoryRoom) -> bool:
        """Whether to give up, after the worker's latest answer."""
        now = time.monotonic()
        if room.later:
            self._used = now
        if room.later or room.unwanted:
            self._held = now
        late = now - self._start > LATER_S
        return late or now - self._used > UNWANTED_WAIT_S or now - self._held > LONGEST_WAIT_S


class MemoryGuard:
    """Keeps memory of a worker free for its tasks, by dropping parts of its store."""

    def __init__(self, worker: Worker, store: Store) -> None:
        self._worker, self._store = worker, store
        self._lost_since: float | None = None
        manager = worker.memory_manager
        # The memory of the client's own process is not the worker's alone.
        own = not worker.address.startswith("inproc://")
        self.limit = int(manager.memory_limit or 0) if own else 0
        # Beyond this Dask starts no tasks or, if pausing is switched off, its nanny ends the process.
        self._usable = int(self.limit * (manager.memory_pause_fraction or 0.9))
        self._high = int(self.limit * (manager.memory_spill_fraction or 0.7))

    def make_room(self, nbytes: int, key: str = "") -> MemoryRoom:
        """Drop what no running task uses until so many bytes for a package fit.

        Called in the worker's event loop, where Dask manages its own data.
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
        """Have Dask write some of its own data to disk; return whether it did."""
        data: Any = self._worker.data
        return bool(getattr(data, "fast", None)) and data.evict() != -1

    def check(self) -> None:
        """Drop what is no longer used, and more if memory is short."""
        self._store.drop_unused(STORED_S)
        if not self.limit:
            return
        paused = self._worker.status == Status.paused
        if paused or self._used() > self._high:
            # One at a time: Dask may share its memory, and then writes it to disk.
            self._store.drop_oldest()
        self._end_if_lost(paused)

    def _end_if_lost(self, paused: bool) -> None:
        worker = self._worker
        # Results of others would go with the process.
        ours = holds_only_our_data(worker)
        if not (paused and ours and worker.nanny) or worker.state.executing_count or self._store.keys():
            self._lost_since = None
            return
        if self._lost_since is None:
            self._lost_since = time.monotonic()
        if time.monotonic() - self._lost_since > LOST_S:
            os._exit(1)  # the nanny starts another

    def _used(self) -> int:
        return int(self._worker.monitor.get_process_memory())
