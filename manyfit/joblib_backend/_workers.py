"""Which workers there are for a call of Parallel, and the errors if there are none that can do anything."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from manyfit.cluster.inspection.scheduler_info import Workers, workers_of
from manyfit.cluster.pool.held_workers import Stuck
from manyfit.cluster.pool.resource_queue import memory_left, slots_of
from manyfit.cluster.pool.worker_monitor import PAUSED_S

if TYPE_CHECKING:
    from distributed import Future

# How often it is looked for a first worker.
WAIT_S = 0.1

Needs = tuple[tuple[str, float], ...]
"""What a task takes of its worker, as ``(("GPU", 1.0),)``."""
Names = tuple[str | int, ...] | None
"""Addresses or names of workers; None is all."""


class BackendWorkers:
    """The workers that a call of Parallel may use, as they were when it was last looked.

    Parameters
    ----------
    client : distributed.Client
    names : tuple of (str or int), or None
        Addresses or names of the only ones.
    patience : float
        Seconds without a worker until that is an error.
    """

    def __init__(self, client: Any, names: Names, patience: float) -> None:
        self._client, self._names, self._patience = client, names, patience
        self._without_since: float | None = None
        self._paused_since: float | None = None
        self._slots: dict[Needs, int] = {}
        self.workers: Workers = {}
        self.able: Workers = {}
        self.stuck = Stuck(client)
        self.looked = 0.0
        self.look()

    def look(
        self, needs: Iterable[Needs] = (), futures: "Iterable[Future]" = (), quiet_s: float = 0.0
    ) -> None:
        """See which workers are there, and which of them begin tasks.

        Parameters
        ----------
        needs : iterable of tuples
            Of the tasks that wait or run.
        futures : iterable of Future
            Tasks that are under way.
        quiet_s : float
            Seconds for which none has ended.

        Raises
        ------
        TimeoutError
            If there was no worker for one of them for too long.
        MemoryError
            If all workers were paused for too long.
        """
        workers = workers_of(self._client)
        asked = self._names
        self.workers = {
            address: info
            for address, info in workers.items()
            if asked is None or address in asked or info["name"] in asked
        }
        self.stuck.look(self.workers, futures, quiet_s)
        able = {one: info for one, info in self.workers.items() if one not in self.stuck.workers}
        self.able = able or self.workers
        self._slots = {}
        self.looked = now = time.monotonic()
        needs = set(needs)
        lacking = [one for one in needs if not _slots(self.workers, one)]
        self._without_since = (self._without_since or now) if lacking else None
        if self._without_since is not None and now - self._without_since > self._patience:
            raise self._no_worker(lacking[0])
        paused = bool(self.workers) and all(info["status"] == "paused" for info in self.workers.values())
        self._paused_since = (self._paused_since or now) if needs and paused else None
        if self._paused_since is not None and now - self._paused_since > PAUSED_S:
            raise MemoryError(
                f"All {len(self.workers)} workers that the call of Parallel may use have been paused for "
                f"{PAUSED_S:g} s: they are short of memory. Let go of what they hold, or give them more."
            )

    def wait(self, needs: Needs) -> None:
        """Return as soon as there is a worker that has what tasks need.

        Raises
        ------
        TimeoutError, RuntimeError
            If none comes.
        """
        if self.slots(needs):
            return
        # A cluster that grows by demand needs to see some.
        probe = self._client.submit(_probe, resources=dict(needs) or None, pure=False)
        try:
            until = time.monotonic() + self._patience
            while time.monotonic() < until:
                self.look()
                if self.slots(needs):
                    return
                time.sleep(WAIT_S)
            raise self._no_worker(needs)
        finally:
            probe.cancel()
            probe.release()

    def slots(self, needs: Needs) -> int:
        """Tasks of these needs that run at a time."""
        if needs not in self._slots:
            self._slots[needs] = _slots(self.able, needs) or _slots(self.workers, needs)
        return self._slots[needs]

    def has_slot(self, needs: Needs) -> bool:
        """Whether a worker that begins tasks has what tasks need."""
        return _slots(self.able, needs) > 0

    @property
    def memory(self) -> float:
        """Bytes of all workers' limits; 0 is none."""
        limits = [float(info["memory_limit"] or 0) for info in self.workers.values()]
        return sum(limits) if all(limits) else 0.0

    def declares(self, resource: str) -> bool:
        """Whether any worker has a resource."""
        return any(info["resources"].get(resource) for info in self.workers.values())

    @property
    def receiver(self) -> str | None:
        """The one that data are sent to: with the most memory left, of those that take any."""
        silent = self.stuck.silent
        running = {one: info for one, info in self.able.items() if info["status"] == "running"}
        able = {one: info for one, info in running.items() if one not in silent} or running
        return max(able, key=lambda address: memory_left(able[address]), default=None)

    def _no_worker(self, needs: Needs) -> Exception:
        """The error that there is no worker."""
        what = " and ".join(f"{n:g} of {name}" for name, n in needs)
        which = f" that declares the resources {what}" if needs else ""
        if self._names is not None:
            which += f" among workers={list(self._names)}"
        at, patience = self._client.scheduler.address, self._patience
        if not patience:
            return RuntimeError(f"ManyfitBackend has no active worker{which} at {at}.")
        return TimeoutError(
            f"ManyfitBackend has no worker{which} after {patience:g} seconds at {at}. Start one; if that "
            "takes longer: parallel_config(backend='manyfit', wait_for_workers_timeout="
            f"{max(10.0, 2 * patience):g})."
        )


def most_at_a_time(n_jobs: int, slots: int) -> int:
    """How many tasks may run at a time on so many slots, by joblib's counting."""
    return n_jobs if n_jobs > 0 else max(1, slots + 1 + n_jobs)


def _slots(workers: Workers, needs: Needs) -> int:
    return sum(slots_of(info, dict(needs)) for info in workers.values())


def _probe() -> None:
    pass
