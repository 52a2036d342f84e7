"""Items that ask the same of their worker: how they become tasks, and which workers have slots for them."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dask.base import get_annotations

from manyfit.cluster.inspection.scheduler_info import Workers

# Tasks on a slot: one that runs, and one that waits for it, so that no slot waits for the client.
TASKS_PER_SLOT = 2
# Items are put together to tasks of about this long: each takes some 6 ms of the client and the scheduler,
# which are at work beside the workers, and 2 ms of its worker.
TASK_S = 0.4
# So many tasks are left to a slot at least while there are items, so that all end at about the same time.
TASKS_LEFT = 3
# But no task is made much shorter than what it costs to send it.
LEAST_TASK_S = 0.03
# Of items this long, so much work is handed out to each slot: Dask lets a cluster grow that has more of it
# than it can soon do. Another search waits behind it as long at most.
LONG_S, AHEAD_S = 0.1, 10.0
# What a chunk said of how long items take counts so much less with each later one: soon little of the
# first, in which modules were imported.
FADE = 0.75


class ChunkSizer:
    """Hands out items in chunks that take about as long as a task should.

    Parameters
    ----------
    items : sequence
        In the order in which they are handed out.
    fuse : callable
        Whether an item may be in a chunk with others; else it is one of its own.
    """

    def __init__(self, items: Sequence[Any], fuse: Callable[[Any], bool]) -> None:
        self._items = deque(items)
        self._fuse = fuse
        self._seconds = self._done = 0.0

    def __bool__(self) -> bool:
        return bool(self._items)

    def took(self, items: Sequence[Any], seconds: float) -> None:
        """Learn how long items take; later ones count more."""
        if items and self._fuse(items[0]):
            self._seconds, self._done = FADE * self._seconds + seconds, FADE * self._done + len(items)

    def take(self, n_slots: int) -> tuple[Any, ...]:
        """The next items, for one of so many slots; one where nothing is known of how long they take."""
        size = 1
        if self._done:
            each = max(self._seconds / self._done, 1e-6)
            size = min(int(TASK_S / each), len(self._items) // (TASKS_LEFT * max(1, n_slots)))
            size = max(size, int(LEAST_TASK_S / each))
        taken = [self._items.popleft()]
        while len(taken) < size and self._items and self._fuse(taken[0]) and self._fuse(self._items[0]):
            taken.append(self._items.popleft())
        return tuple(taken)

    @property
    def seconds(self) -> float:
        """How long a task of long items takes; 0 where nothing is known, or they are short."""
        each = self._seconds / self._done if self._done else 0.0
        return max(each, TASK_S) if each >= LONG_S else 0.0

    def put_back(self, items: Sequence[Any]) -> None:
        """Hand these out first."""
        self._items.extendleft(reversed(items))


class ResourceQueue:
    """Items that take the same of their worker.

    Parameters
    ----------
    items : sequence
        In the order in which they are handed out.
    fuse : callable
        As in `ChunkSizer`.
    resources : mapping of str to float
        What a task takes of its worker, as ``{"GPU": 1}``.

    Attributes
    ----------
    chunks : Chunks
        What is left.
    running : int
        Tasks that are under way.
    stuck : int
        Of these, tasks on workers that begin none.
    suspects : deque
        Tasks that run one by one, after all others.
    workers : frozenset of str
        Those that tasks may go to, as of the last look.
    able : frozenset of str
        Of these, workers that begin tasks; all if none does.
    slots : int
        Tasks that these run at a time.
    receiver : str or None
        One of these that can be sent data.
    keeps_away : bool
        Whether other workers of the cluster are not to be given tasks.
    """

    def __init__(
        self, items: Sequence[Any], fuse: Callable[[Any], bool], resources: Mapping[str, float]
    ) -> None:
        self.chunks = ChunkSizer(items, fuse)
        self.resources = dict(resources)
        self.running = self.stuck = 0
        self.suspects: deque[Any] = deque()
        self.workers: frozenset[str] = frozenset()
        self.able: frozenset[str] = frozenset()
        self.slots = 0
        self.receiver: str | None = None
        self.keeps_away = False

    @property
    def open(self) -> bool:
        """Whether another task may go out; one may even where no worker is there yet."""
        each = TASKS_PER_SLOT
        if not self.resources and self.chunks.seconds:
            # Tasks that take resources do not wait in the scheduler, but at a worker, and die with it.
            each = max(each, int(AHEAD_S / self.chunks.seconds))
        return bool(self.chunks) and self.running - self.stuck < each * max(1, self.slots)

    @property
    def waits(self) -> bool:
        """Whether it has anything to do for a worker."""
        return bool(self.chunks or self.running or self.suspects)

    @property
    def idles(self) -> bool:
        """Whether workers that begin tasks have slots for which there is nothing new to do."""
        return self.able < self.workers and not self.chunks and self.running - self.stuck < self.slots

    def look(self, workers: Workers, stuck: frozenset[str] = frozenset()) -> None:
        """Count the slots of these workers, of which some begin no tasks."""
        slots = {address: slots_of(info, self.resources) for address, info in workers.items()}
        self.workers = frozenset(address for address, n in slots.items() if n)
        self.able = self.workers - stuck or self.workers
        self.keeps_away = self.able < self.workers
        self.slots = sum(slots[one] for one in self.able)
        # A paused one takes nothing.
        running = [one for one in sorted(self.able) if workers[one]["status"] == "running"]
        self.receiver = max(running, key=lambda one: memory_left(workers[one]), default=None)


def memory_left(worker: Mapping[str, Any]) -> float:
    """Bytes that a worker has left, as it last said."""
    return float(worker["memory_limit"] or "inf") - float(worker["metrics"].get("memory", 0))


def annotated() -> Mapping[str, float]:
    """The resources that `dask.annotate` asks for here, as for any other work on Dask."""
    resources = get_annotations().get("resources") or {}
    # Dask would look for a worker that declares what nothing is taken of.
    return {name: n for name, n in resources.items() if n}


def slots_of(worker: Mapping[str, Any], resources: Mapping[str, float]) -> int:
    """How many tasks that take these resources a worker runs at a time."""
    has = worker["resources"]
    return int(min([worker["nthreads"], *(has.get(name, 0) // n for name, n in resources.items() if n)]))


def look(lanes: Iterable[ResourceQueue], workers: Workers, stuck: frozenset[str] = frozenset()) -> None:
    """See which workers each lane has; `stuck` are those that begin no tasks.

    While there are tasks that take resources, others keep away from the workers that have these, if they
    can: on a cluster of both, a long fit on the host would hold the slot of a device.
    """
    needy = [lane for lane in lanes if lane.resources]
    for lane in needy:
        lane.look(workers, stuck)
    wanted = {address for lane in needy if lane.waits for address in lane.workers}
    others = {address: info for address, info in workers.items() if address not in wanted}
    for lane in lanes:
        if not lane.resources:
            lane.look(others or workers, stuck)
            lane.keeps_away |= bool(wanted and others)
