"""State of a cluster during a run: which workers exist, died, or begin no tasks."""

import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from manyfit.cluster.inspection.scheduler_info import SchedulerLost, Workers, ask_scheduler, get_workers
from manyfit.cluster.inspection.versions import Versions
from manyfit.cluster.pool.held_workers import HeldWorkers, describe_held_workers
from manyfit.cluster.pool.options import PoolOptions, WorkerNames
from manyfit.cluster.pool.resource_queue import ResourceQueue, Resources, assign_workers, describe_resources
from manyfit.cluster.worker.errors import WorkerDied

if TYPE_CHECKING:
    from distributed import Future

# Seconds between two checks of the workers: while no task ends, and at most.
CHECK_S, CHECK_AT_LEAST_S = 0.5, 2.0
# Seconds without any worker after which a search warns.
NO_WORKER_S = 10.0
# Seconds without any worker that are an error if workers died before: nothing starts others.
NO_WORKER_LEFT_S = 120.0
# Seconds with all workers paused that are an error.
PAUSED_S = 30.0
# Seconds for which a worker that joins during a run is fresh. The nanny of one that dies at once may give up.
FRESH_S = 5.0


class WorkerDeaths:
    """Counts, for each task, the workers that died while they had it, from the construction on.

    A worker has the tasks that it runs and one or two that wait, so that a death proves nothing of one task.
    Retired workers, as of a cluster that shrinks, do not count as dead.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._workers: frozenset[str] = frozenset()
        self._until = max((moment for moment, _ in self._events()), default=0.0)
        self._counts: Counter[str] = Counter()

    def count(self, key: str) -> int:
        """Return the number of workers that died while they had this task."""
        return self._counts[key]

    def update(self, workers: Iterable[str]) -> bool:
        """Count the deaths since the last call, if the workers changed; return whether there were any."""
        current = frozenset(workers)
        if current == self._workers:
            return False
        self._workers = current
        died = False
        for moment, event in self._events():
            if moment <= self._until:
                continue
            self._until = moment
            if event.get("action") == "remove-worker" and not event.get("expected"):
                self._counts.update(str(key) for key in event["processing-tasks"])
                died = True
        return died

    def _events(self) -> list[tuple[float, dict[str, Any]]]:
        events = ask_scheduler(self._client, self._client.scheduler.events, topic="all")
        return [(moment, event) for moment, event in events if isinstance(event, dict)]


class WorkerMonitor:
    """Workers of a cluster, as of the last update, and their assignment to the queues of a pool."""

    def __init__(self, client: Any, queues: Sequence[ResourceQueue], options: PoolOptions) -> None:
        self._client, self._queues, self._options = client, queues, options
        self.address = str(getattr(client.scheduler, "address", "an unknown address"))
        self.held = HeldWorkers(client)
        self.workers: Workers = {}
        self._updated = 0.0
        self._versions = Versions(client)
        self._deaths: WorkerDeaths | None = None
        self._new_death = self._any_death = False
        self._joined: dict[str, float] = {}
        self._without_since: float | None = None
        self._paused_since: float | None = None
        self._warned: set[str] = set()

    @property
    def is_old(self) -> bool:
        """Whether it is time for another update."""
        return time.monotonic() - self._updated > CHECK_AT_LEAST_S

    def take_new_death(self) -> bool:
        """Return whether a worker died since the last call."""
        died, self._new_death = self._new_death, False
        return died

    def count_deaths(self, key: Any) -> int:
        """Count the workers that died while they had a task."""
        return self._deaths.count(key) if self._deaths else 0

    def settled_worker(self, queue: ResourceQueue) -> str | None:
        """Return the worker of a queue that joined first, unless it is fresh."""
        oldest = min(sorted(queue.able), key=lambda one: self._joined.get(one, self._updated), default=None)
        fresh = oldest not in self._joined or self._updated - self._joined[oldest] <= FRESH_S
        return None if fresh else oldest

    def receiver(self, queue: ResourceQueue) -> str | None:
        """Return the worker of a queue to send data to: the one with the most memory left that answers."""
        silent = self.held.silent
        return next((one for one in queue.receivers if one not in silent), next(iter(queue.receivers), None))

    @property
    def memory(self) -> float:
        """Sum of the workers' memory limits in bytes; 0 if one has none."""
        limits = [float(info["memory_limit"] or 0) for info in self.workers.values()]
        return sum(limits) if all(limits) else 0.0

    def declares(self, resource: str) -> bool:
        """Whether any worker has a resource."""
        return any(info["resources"].get(resource) for info in self.workers.values())

    def assign(self) -> None:
        """Assign the workers to the queues."""
        assign_workers(self._queues, self.workers, self.held.workers, self._options.reserves)

    def update(self, futures: "Iterable[Future]" = (), quiet_s: float = 0.0) -> None:
        """Find out which workers exist, died, or begin no tasks. `futures` are the tasks on the cluster, and
        none has ended for `quiet_s` seconds.

        Raises the error that ends a run: a lost scheduler, no worker or only paused ones for long, a worker
        with other versions.
        """
        if self._client.status != "running":
            raise self.scheduler_lost()
        try:
            everyone = get_workers(self._client)
        except SchedulerLost:
            raise
        except OSError as error:  # the connection broke, which the client may not have noticed yet
            raise self.scheduler_lost() from error
        self.workers = select_workers(everyone, self._options.worker_names)
        self.held.update(self.workers, futures, quiet_s)
        self.assign()
        first, now = not self._updated, time.monotonic()
        self._updated = now
        self._joined = {one: self._joined.get(one, -float("inf") if first else now) for one in self.workers}
        if self._options.isolates:
            self._deaths = self._deaths or WorkerDeaths(self._client)
            died = self._deaths.update(everyone)
            self._new_death |= died
            self._any_death |= died
        self._versions.require(self._assigned, lenient=not self._options.strict_versions)
        self._require_worker()
        self._warn_of_held_workers()
        self._require_unpaused_worker()

    @property
    def _assigned(self) -> frozenset[str]:
        return frozenset[str]().union(*(queue.workers for queue in self._queues))

    def require_versions(self) -> None:
        """Raise if a worker has other versions; wait for those that have not answered."""
        if self._options.strict_versions:
            self._versions.require(self._assigned, again=True)

    def scheduler_lost(self) -> SchedulerLost:
        """Make the error of a run whose scheduler is gone."""
        return SchedulerLost(
            f"The scheduler at {self.address} went away in the middle of the {self._options.subject} "
            f"(the client is {self._client.status!r}). Connect a new client, and start again."
        )

    def _require_unpaused_worker(self) -> None:
        """Paused workers take no tasks, and a pause ends only when memory is freed."""
        waiting = [queue for queue in self._queues if queue.is_waiting and queue.workers]
        if not waiting or any(queue.receivers for queue in waiting):
            self._paused_since = None
            return
        if self._paused_since is None:
            self._paused_since = self._updated
        if self._updated - self._paused_since > PAUSED_S:
            n = len(waiting[0].workers)
            raise MemoryError(
                f"All {n} workers at {self.address} that the {self._options.subject} may use have been "
                f"paused for {PAUSED_S:g} s: they are short of memory. Free some, or give them more."
            )

    def _require_worker(self) -> None:
        lacking = [queue for queue in self._queues if queue.is_waiting and not queue.workers]
        if not lacking:
            self._without_since = None
            return
        if self._without_since is None:
            self._without_since = self._updated
        seconds, timeout = self._updated - self._without_since, self._options.no_worker_timeout
        resources = lacking[0].resources
        if timeout is not None:
            if seconds > timeout:
                raise no_worker_error(self.address, resources, self._options.worker_names, timeout)
            return
        subject = self._options.subject
        if seconds > NO_WORKER_S and "" not in self._warned:
            self._warned.add("")
            which = describe_resources(resources)
            _warn(f"The {subject} waits for a worker{which} at {self.address}. Start one, or interrupt.")
        if self._any_death and seconds > NO_WORKER_LEFT_S and not self.workers:
            raise WorkerDied(
                f"Workers at {self.address} died of tasks of the {subject}, and there has been none for "
                f"{seconds:.0f} s: nothing starts others. They ran out of memory, or crashed in native code: "
                "their logs may say. Start workers with a nanny, which starts another process."
            )

    def _warn_of_held_workers(self) -> None:
        reasons = {one: why for one, why in self.held.reasons().items() if one not in self._warned}
        if reasons:
            self._warned.update(reasons)
            _warn(f"The {self._options.subject} at {self.address} {describe_held_workers(reasons)}")


def select_workers(workers: Workers, names: WorkerNames) -> Workers:
    """Return the workers with one of these names or addresses."""
    if names is None:
        return workers
    return {one: info for one, info in workers.items() if one in names or info["name"] in names}


def no_worker_error(address: str, resources: Resources, names: WorkerNames, timeout: float) -> Exception:
    """Make the error of a call of Parallel that has no worker."""
    which = describe_resources(resources)
    if names is not None:
        which += f" among workers={list(names)}"
    if not timeout:
        return RuntimeError(f"The call of Parallel has no active worker{which} at {address}.")
    return TimeoutError(
        f"The call of Parallel has no worker{which} after {timeout:g} seconds at {address}. Start one. If "
        "that takes longer, use parallel_config(backend='manyfit', wait_for_workers_timeout="
        f"{max(10.0, 2 * timeout):g})."
    )


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
