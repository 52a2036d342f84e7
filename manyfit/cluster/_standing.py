"""How a cluster stands while a run waits for it: who is there, who died, and whether anybody can work."""

import time
import warnings
from collections.abc import Sequence
from typing import Any

from manyfit.cluster._deaths import Deaths
from manyfit.cluster._lane import Lane, look
from manyfit.cluster._scheduler import workers_of

# How often it is looked who is there while nothing comes, and at least.
LOOK_S, LOOK_AT_LEAST_S = 0.5, 2.0
# Without any worker for this long, the user is told.
NO_WORKER_S = 10.0
# With all workers paused for this long, it is an error.
PAUSED_S = 30.0


class SchedulerLost(ConnectionError):
    """The connection to the scheduler broke in the middle of a run."""


class Standing:
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
    paused : list of str
        Workers that take no tasks since they are short of memory.
    looked : float
        When that was.
    """

    def __init__(self, client: Any, lanes: Sequence[Lane]) -> None:
        self._client, self._lanes = client, lanes
        self.address = str(getattr(client.scheduler, "address", "an unknown address"))
        self.paused: list[str] = []
        self.looked = 0.0
        self._deaths: Deaths | None = None
        self._somebody_died = False
        self._without_since: float | None = None
        self._paused_since: float | None = None

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

    def look(self) -> None:
        """See who is there, and who died.

        Raises
        ------
        SchedulerLost
            If the scheduler is away.
        MemoryError
            If all workers have been paused for long.
        """
        if self._client.status != "running":
            raise self.gone()
        workers = workers_of(self._client)
        look(self._lanes, workers)
        self.looked = time.monotonic()
        self._warn_of_no_worker()
        self._require_one_not_paused()
        self.paused = [one for one, info in workers.items() if info["status"] == "paused"]
        if self._deaths is None:
            self._deaths = Deaths(self._client)
        self._somebody_died |= self._deaths.look(workers)

    def gone(self) -> SchedulerLost:
        """The error to raise if the scheduler is away."""
        return SchedulerLost(
            f"The scheduler at {self.address} went away in the middle of the search "
            f"(the client is {self._client.status!r}). Connect a new client, and start again."
        )

    def _require_one_not_paused(self) -> None:
        """Tasks go to no worker that is paused, and a pause ends only when memory is given back."""
        waiting = [lane for lane in self._lanes if (lane.chunks or lane.running) and lane.workers]
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
        waiting = [lane for lane in self._lanes if (lane.chunks or lane.running) and not lane.workers]
        if not waiting:
            self._without_since = None
            return
        if self._without_since is None:
            self._without_since = self.looked
        if self.looked - self._without_since > NO_WORKER_S:
            self._without_since = float("inf")  # once
            needs = " and ".join(f"{n:g} of {name}" for name, n in waiting[0].resources.items())
            what = f"a worker that declares the resources {needs}" if needs else "a worker"
            warnings.warn(
                f"The search waits for {what} at {self.address}, where there is none. Start one, or "
                "interrupt.",
                RuntimeWarning,
                stacklevel=2,
            )
