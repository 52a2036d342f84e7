"""Items that need the same resources: how they become tasks, and which workers have slots for them."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from manyfit.cluster.inspection.scheduler_info import Workers

Resources = tuple[tuple[str, float], ...]
"""Resources that a task takes of its worker, as ``(("GPU", 1.0),)``."""

# Tasks per slot: one runs and one waits for it, so that no slot waits for the client.
TASKS_PER_SLOT = 2
# Items are joined to tasks of about this many seconds: each task costs some 6 ms of the client and the
# scheduler, which share the machine with the workers, and 2 ms of its worker.
TASK_S = 0.4
# While items wait, at least this many tasks are left for each slot, so that all slots end at about the same
# time.
TASKS_LEFT = 3
# No task is much shorter than it costs to send it.
LEAST_TASK_S = 0.03
# Where items of a search take LONG_S or more, each slot gets AHEAD_S seconds of work. Dask lets a cluster
# grow that has more work than it can soon do. Another search waits at most that long behind it.
LONG_S, AHEAD_S = 0.1, 10.0
# Earlier measurements of an item's duration lose weight by this factor with each chunk: the first chunk
# imports modules.
FADE = 0.75


class ChunkSizer:
    """Joins waiting items to chunks that take about as long as a task should.

    `fuse` says whether an item may share a chunk; other items are a chunk of their own. Items of `long_s`
    seconds or more are long.
    """

    def __init__(self, items: Iterable[Any], fuse: Callable[[Any], bool], long_s: float = LONG_S) -> None:
        self._items = deque(items)
        self._fuse, self._long_s = fuse, long_s
        self._seconds = self._done = 0.0

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, item: Any) -> None:
        """Add an item at the end."""
        self._items.append(item)

    def put_back(self, items: Sequence[Any]) -> None:
        """Add items at the front."""
        self._items.extendleft(reversed(items))

    def clear(self) -> None:
        """Remove all items."""
        self._items.clear()

    def record(self, items: Sequence[Any], seconds: float) -> None:
        """Record how long items took together."""
        if items and self._fuse(items[0]):
            self._seconds, self._done = FADE * self._seconds + seconds, FADE * self._done + len(items)

    def take(self, n_slots: int) -> tuple[Any, ...]:
        """Remove and return the next chunk; one item while their duration is unknown."""
        size = 1
        if self._done:
            each = max(self._seconds / self._done, 1e-6)
            size = min(int(TASK_S / each), len(self._items) // (TASKS_LEFT * max(1, n_slots)))
            size = max(size, int(LEAST_TASK_S / each))
        chunk = [self._items.popleft()]
        while len(chunk) < size and self._items and self._fuse(chunk[0]) and self._fuse(self._items[0]):
            chunk.append(self._items.popleft())
        return tuple(chunk)

    @property
    def seconds(self) -> float:
        """Duration of a task of long items; 0 if items are short, or their duration is unknown."""
        each = self._seconds / self._done if self._done else 0.0
        return max(each, TASK_S) if each >= self._long_s else 0.0


class ResourceQueue:
    """Waiting items that need the same resources, and the workers that can run them."""

    def __init__(
        self,
        resources: Resources = (),
        items: Iterable[Any] = (),
        fuse: Callable[[Any], bool] = lambda item: True,
        long_s: float = LONG_S,
    ) -> None:
        self.resources = resources
        self.chunks = ChunkSizer(items, fuse, long_s)
        self.suspects: deque[Any] = deque()  # tasks that run one by one, after all others
        self.running = 0  # tasks on the cluster
        self.stuck = 0  # tasks among these on workers that begin none
        # As of the last update of the workers:
        self.workers: frozenset[str] = frozenset()  # workers that have the resources
        self.able: frozenset[str] = frozenset()  # workers among these that begin tasks; all if none does
        self.slots = 0  # tasks that these run at a time
        self.receivers: tuple[str, ...] = ()  # workers among these that take data, most free memory first
        self.keeps_away = False  # whether other workers of the cluster are to get no tasks

    def clear(self) -> None:
        """Remove all items, and forget the tasks on the cluster."""
        self.chunks.clear()
        self.suspects.clear()
        self.running = self.stuck = 0

    @property
    def tasks_per_slot(self) -> int:
        """Tasks that the cluster may have at a time for each slot; more where items are long."""
        # Tasks with resources do not wait in the scheduler but at a worker, and are lost with it.
        if self.resources or not self.chunks.seconds:
            return TASKS_PER_SLOT
        return max(TASKS_PER_SLOT, int(AHEAD_S / self.chunks.seconds))

    @property
    def has_room(self) -> bool:
        """Whether another task may be handed out; one may even while there is no worker."""
        return bool(self.chunks) and self.active < self.tasks_per_slot * max(1, self.slots)

    @property
    def active(self) -> int:
        """Tasks on workers that begin tasks."""
        return self.running - self.stuck

    @property
    def is_waiting(self) -> bool:
        """Whether it has anything left for a worker to do."""
        return bool(self.chunks or self.running or self.suspects)

    @property
    def has_idle_slots(self) -> bool:
        """Whether some workers are held up, and others have slots without new work."""
        return self.able < self.workers and not self.chunks and self.active < self.slots

    def assign(self, workers: Workers, held: frozenset[str] = frozenset()) -> None:
        """Set the workers; `held` begin no tasks."""
        slots = {address: worker_slots(info, self.resources) for address, info in workers.items()}
        self.workers = frozenset(address for address, n in slots.items() if n)
        self.able = self.workers - held or self.workers
        self.keeps_away = self.able < self.workers
        self.slots = sum(slots[one] for one in self.able)
        running = [one for one in sorted(self.able) if workers[one]["status"] == "running"]
        self.receivers = tuple(sorted(running, key=lambda one: -memory_left(workers[one])))


def memory_left(worker: Mapping[str, Any]) -> float:
    """Bytes that a worker had left when it last reported."""
    return float(worker["memory_limit"] or "inf") - float(worker["metrics"].get("memory", 0))


def annotated_resources() -> Mapping[str, float]:
    """Return the resources that `dask.annotate` sets in the calling context."""
    from dask.base import get_annotations  # searches without a cluster work without Dask

    resources = get_annotations().get("resources") or {}
    # Dask would look for a worker that declares a resource even if a task takes nothing of it.
    return {name: n for name, n in resources.items() if n}


def worker_slots(worker: Mapping[str, Any], resources: Resources) -> int:
    """Count the tasks with these resources that a worker runs at a time."""
    has = worker["resources"]
    return int(min([worker["nthreads"], *(has.get(name, 0) // n for name, n in resources if n)]))


def describe_resources(resources: Resources) -> str:
    """Return a clause on the resources that a worker has to declare, for messages."""
    needs = " and ".join(f"{n:g} of {name}" for name, n in resources)
    return f" that declares the resources {needs}" if needs else ""


def assign_workers(
    queues: Iterable[ResourceQueue],
    workers: Workers,
    held: frozenset[str] = frozenset(),
    reserves: bool = True,
) -> None:
    """Set the workers of each queue; `held` begin no tasks.

    If `reserves`, tasks without resources avoid the workers that have the resources of others, if they can,
    while such tasks are left: a long fit on the host would hold the slot of a device.
    """
    queues = list(queues)
    needy = [queue for queue in queues if queue.resources]
    for queue in needy:
        queue.assign(workers, held)
    reserved = {one for queue in needy if reserves and queue.is_waiting for one in queue.workers}
    others = {address: info for address, info in workers.items() if address not in reserved}
    for queue in queues:
        if not queue.resources:
            queue.assign(others or workers, held)
            queue.keeps_away |= bool(reserved and others)
