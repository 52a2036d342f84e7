"""How a cluster stands while a run waits for it: which workers are there, died, or begin no tasks."""

import time
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from manyfit.cluster.inspection.scheduler_info import workers_of
from manyfit.cluster.inspection.versions import Versions
from manyfit.cluster.pool._worker_deaths import Deaths
from manyfit.cluster.pool.held_workers import Stuck, tell
from manyfit.cluster.pool.resource_queue import ResourceQueue, look
from manyfit.cluster.worker.errors import WorkerDied

if TYPE_CHECKING:
    from distributed import Future

# How often it is looked who is there while nothing comes, and at least.
LOOK_S, LOOK_AT_LEAST_S = 0.5, 2.0
# Without any worker for this long, the user is told.
NO_WORKER_S = 10.0
# The same after workers died of the run is an error: nothing started others.
NO_WORKER_LEFT_S = 120.0
# With all workers paused for this long, it is an error.
PAUSED_S = 30.0
# A worker that joins during a run is fresh for so long. The nanny of one that dies at once may give up.
FRESH_S = 5.0


class SchedulerLost(ConnectionError):
    """The connection to the scheduler broke in the middle of a run."""


class WorkerMonitor:
    """What is known of the workers of some lanes, as of the last look.

    Parameters
    ----------
    client : distributed.Client
    lanes : sequence of Lane
        Which are told their workers at each look.

    Attributes
    ----------
    address : str
        Of the scheduler.
    stuck : Stuck
        Which workers begin no tasks.
    workers : frozenset of str
        All of the cluster's.
    looked : float
        When that was.
    """

    def __init__(self, client: Any, lanes: Sequence[ResourceQueue]) -> None:
        self._client, self._lanes = client, lanes
        self.address = str(getattr(client.scheduler, "address", "an unknown address"))
        self.stuck = Stuck(client)
        self.workers: frozenset[str] = frozenset()
        self.looked = 0.0
        self._versions = Versions(client)
        self._deaths: Deaths | None = None
        self._somebody_died = self._any_died = False
        self._came: dict[str, float] = {}
        self._without_since: float | None = None
        self._paused_since: float | None = None
        self._told: set[str] = set()

    @property
    def is_old(self) -> bool:
        """Whether it is time for another look, whatever comes."""
        return time.monotonic() - self.looked > LOOK_AT_LEAST_S

    def somebody_died(self) -> bool:
        """Whether a worker did since this was asked last."""
        somebody, self._somebody_died = self._somebody_died, False
        return somebody

    def deaths_of(self, key: Any) -> int:
        """Workers that died with a task."""
        return self._deaths.of(key) if self._deaths else 0

    def seasoned(self, lane: ResourceQueue) -> str | None:
        """The worker of a lane that has been there longest, if it is not fresh."""
        oldest = min(sorted(lane.able), key=lambda one: self._came.get(one, self.looked), default=None)
        return oldest if oldest in self._came and self.looked - self._came[oldest] > FRESH_S else None

    def look(self, futures: "Iterable[Future]" = (), quiet_s: float = 0.0) -> None:
        """See which workers are there, died, or begin no tasks.

        Parameters
        ----------
        futures : iterable of Future
            Tasks that are under way.
        quiet_s : float
            Seconds for which none has ended.

        Raises
        ------
        SchedulerLost
            If the scheduler is away.
        MemoryError
            If all workers have been paused for long.
        WorkerDied
            If workers died, and there has been none for long.
        RuntimeError
            If a worker has other versions than this process.
        """
        if self._client.status != "running":
            raise self.gone()
        workers = workers_of(self._client)
        self.stuck.look(workers, futures, quiet_s)
        look(self._lanes, workers, self.stuck.workers)
        first, self.looked, self.workers = not self.looked, time.monotonic(), frozenset(workers)
        self._came = {one: self._came.get(one, -float("inf") if first else self.looked) for one in workers}
        if self._deaths is None:
            self._deaths = Deaths(self._client)
        died = self._deaths.look(workers)
        self._somebody_died |= died
        self._any_died |= died
        self._versions.require(self._of_lanes, wait=first)
        self._warn_of_no_worker()
        self._warn_of_stuck_workers()
        self._require_one_not_paused()

    @property
    def _of_lanes(self) -> frozenset[str]:
        return frozenset[str]().union(*(lane.workers for lane in self._lanes))

    def require_versions(self) -> None:
        """Raise if a worker has other versions; one that has not said them is asked again, and waited for."""
        self._versions.require(self._of_lanes, wait=True, again=True)

    def gone(self) -> SchedulerLost:
        """The error to raise if the scheduler is away."""
        return SchedulerLost(
            f"The scheduler at {self.address} went away in the middle of the search "
            f"(the client is {self._client.status!r}). Connect a new client, and start again."
        )

    def _require_one_not_paused(self) -> None:
        """Tasks go to no worker that is paused, and a pause ends only when memory is given back."""
        waiting = [lane for lane in self._lanes if lane.waits and lane.workers]
        if not waiting or any(lane.receiver for lane in waiting):
            self._paused_since = None
            return
        if self._paused_since is None:
            self._paused_since = self.looked
        if self.looked - self._paused_since > PAUSED_S:
            n = len(waiting[0].workers)
            raise MemoryError(
                f"All {n} workers at {self.address} that the search may use have been paused for "
                f"{PAUSED_S:g} s: they are short of memory. Let go of what they hold, or give them more."
            )

    def _warn_of_no_worker(self) -> None:
        waiting = [lane for lane in self._lanes if lane.waits and not lane.workers]
        if not waiting:
            self._without_since = None
            return
        if self._without_since is None:
            self._without_since = self.looked
        seconds = self.looked - self._without_since
        if seconds > NO_WORKER_S and "" not in self._told:
            self._told.add("")
            needs = " and ".join(f"{n:g} of {name}" for name, n in waiting[0].resources.items())
            what = f"a worker that declares the resources {needs}" if needs else "a worker"
            _warn(
                f"The search waits for {what} at {self.address}, where there is none. Start one, or "
                "interrupt."
            )
        if self._any_died and seconds > NO_WORKER_LEFT_S and not self.workers:
            raise WorkerDied(
                f"Workers at {self.address} died of tasks of the search, and there has been none for "
                f"{seconds:.0f} s: nothing starts others. They ran out of memory, or crashed in native code: "
                "their logs may say. Start workers with a nanny, which starts another process."
            )

    def _warn_of_stuck_workers(self) -> None:
        reasons = {one: why for one, why in self.stuck.reasons().items() if one not in self._told}
        if reasons:
            self._told.update(reasons)
            tell(_warn, "The search", self.address, reasons)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
