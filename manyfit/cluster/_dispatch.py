"""Items of a run on the workers of a cluster: how many at a time, and what becomes of those that fail."""

import contextlib
import hashlib
import queue
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import cloudpickle
from distributed import CancelledError, Client, Future, KilledWorker

from manyfit.cluster._died import Died, WorkerDied
from manyfit.cluster._package import Package
from manyfit.cluster._placement import Placement
from manyfit.cluster._worker import Ran, run

# Tasks on a slot: one that runs, and one that waits for it, so that no slot waits for the client.
TASKS_PER_SLOT = 2
# Items are put together to tasks of about this long: sending one takes some 2 ms, and a result 10.
TASK_S = 0.15
# So many tasks are left to a slot at least while there are items, so that all end at about the same time.
TASKS_LEFT = 3
# How often it is looked who is there while nothing comes, and at least.
LOOK_S, LOOK_AT_LEAST_S = 0.5, 2.0
# Without any worker for this long, the user is told.
NO_WORKER_S = 10.0
# Results are small. One that does not come in this time went away with its worker.
RESULT_S = 15.0
# A task is cancelled by others of the same name, or lost with its worker; as often it is tried again.
MOST_TRIES = 20
# A nanny whose worker dies again while it starts it gives up for ever; so long it is left in peace.
CALM_S = 1.0
# Workers that die of an item until it runs alone, and until it is given up.
SUSPECT_DEATHS, MOST_DEATHS = 2, 3


class _Raised(Exception):
    """Carries what the function raised, to be told from what the cluster raises."""

    def __init__(self, error: Any) -> None:
        self.error = error


@dataclass(frozen=True)
class _Task:
    """Some items, and what has happened to them so far.

    Attributes
    ----------
    items : tuple
    workers : frozenset of str
        Who was there when it was handed out.
    tries : int
        How often it was handed out before.
    deaths : int
        How often it came back while a worker was gone.
    suspect : bool
        Whether it runs alone.
    """

    items: tuple[Any, ...]
    workers: frozenset[str] = frozenset()
    tries: int = 0
    deaths: int = 0
    suspect: bool = False


class Chunks:
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
            self._seconds, self._done = 0.9 * self._seconds + seconds, 0.9 * self._done + len(items)

    def take(self, n_slots: int) -> tuple[Any, ...]:
        """The next items, for one of some slots; one where nothing is known of how long they take."""
        size = 1
        if self._done:
            size = int(TASK_S * self._done / max(self._seconds, 1e-6))
            size = min(size, len(self._items) // (TASKS_LEFT * n_slots))
        taken = [self._items.popleft()]
        while len(taken) < size and self._items and self._fuse(taken[0]) and self._fuse(self._items[0]):
            taken.append(self._items.popleft())
        return tuple(taken)

    def put_back(self, items: Sequence[Any]) -> None:
        """Hand these out first."""
        self._items.extendleft(reversed(items))


class Dispatch:
    """A run of a function over items on a cluster.

    Parameters
    ----------
    client : Client
    placement : Placement
        Of that client.
    function : callable
        Called as ``function(item, common)`` on a worker, which can import it.
    package : Package
        Of `common`.
    name : callable
        What the dashboard calls the task of an item.
    fuse : callable
        Whether an item may be in a task with others.
    resources : dict or None
        What a task takes of its worker, as ``{"GPU": 1}``.
    """

    def __init__(
        self,
        client: Client,
        placement: Placement,
        function: Callable[[Any, Any], Any],
        package: Package,
        name: Callable[[Any], str],
        fuse: Callable[[Any], bool],
        resources: dict[str, float] | None = None,
    ) -> None:
        self.client, self.placement, self.package = client, placement, package
        self._function, self._name, self._fuse, self._resources = function, name, fuse, resources
        self._running: dict[Future, _Task] = {}
        self._arrived: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._suspects: deque[_Task] = deque()
        self._slots = 1
        self._workers: set[str] = set()
        self._looked = 0.0
        self._without_since: float | None = None

    def results(self, items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Pairs of an item and its result, as they come; of an item that kills workers, `Died`.

        Whoever stops reading cancels what is not done; tasks that run end after the item that they are at.

        Raises
        ------
        Exception
            The first that the function raises.
        ConnectionError
            If the scheduler goes away.
        """
        chunks = Chunks(items, self._fuse)
        try:
            self._look()
            self.placement.send(self.package, self._workers)
            while True:
                self._hand_out(chunks)
                if not self._running:
                    return
                yield from self._next(chunks)
        except _Raised as raised:
            raise raised.error from raised.error.__cause__
        except (OSError, CancelledError) as error:
            raise self._gone() from error
        finally:
            self._stop()

    def _hand_out(self, chunks: Chunks) -> None:
        while chunks and len(self._running) < TASKS_PER_SLOT * self._slots:
            self._submit(_Task(chunks.take(self._slots)))
        if not chunks and not self._running and self._suspects:
            # One by one, with nothing beside it that it could take along.
            self._submit(self._suspects.popleft())

    def _submit(self, task: _Task) -> None:
        task = replace(task, workers=frozenset(self._workers))
        pickled = cloudpickle.dumps((self._function, task.items))
        future = self.client.submit(
            run,
            pickled,
            self.package.key,
            key=f"{self._name(task.items[0])}-{_digest(self.package, pickled, task)}",
            resources=self._resources,
            pure=False,
        )
        self._running[future] = task
        future.add_done_callback(self._arrived.put)

    def _next(self, chunks: Chunks) -> Iterator[tuple[Any, Any]]:
        """What the next task that ends came to, if one does before long."""
        if time.monotonic() - self._looked > LOOK_AT_LEAST_S:
            self._look()
        try:
            future = self._arrived.get(timeout=LOOK_S)
        except queue.Empty:
            self._look()
            return
        task = self._running.pop(future, None)
        if task is None:
            return
        killed = future.status == "error"
        try:
            ran = self._ran(future)
            if ran is None:
                self.client.cancel([future])  # or it is computed again, and kept
        finally:
            future.release()  # the queue may hold it for longer, and Dask its result with it
        if ran is None or ran.missing:
            yield from self._again(task, None if ran is None else ran.worker, killed)
            return
        done, rest = task.items[: ran.n], task.items[ran.n :]
        chunks.took(done, ran.seconds)
        chunks.put_back(rest)
        yield from zip(done, cloudpickle.loads(ran.results), strict=True)

    def _ran(self, future: Future) -> Ran | None:
        """The result of a task that has ended, or None if that went away with its worker."""
        if future.status == "error":
            error = future.exception()
            if isinstance(error, KilledWorker):
                return None
            raise _Raised(error)
        until = time.monotonic() + RESULT_S
        while future.status == "finished" and time.monotonic() < until:
            # Not for long at a time: Dask waits for ever for what a worker took with it (OSError).
            with contextlib.suppress(CancelledError, KilledWorker, TimeoutError, OSError):
                return cast(Ran, future.result(timeout=LOOK_S))
        return None

    def _again(self, task: _Task, without: str | None, killed: bool) -> Iterator[tuple[Any, Any]]:
        """Hand a task out once more, to a worker that has what it needs."""
        self._look()
        # Dask gives a task up after several deaths.
        died = SUSPECT_DEATHS if killed else int(not task.workers <= self._workers)
        task = replace(task, tries=task.tries + 1, deaths=task.deaths + died)
        if task.suspect and task.deaths >= MOST_DEATHS:
            yield task.items[0], Died(_died(task.items[0]))
            return
        if task.tries > MOST_TRIES:
            raise RuntimeError(
                f"The task {self._name(task.items[0])} was lost or cancelled {task.tries} times: the cluster "
                f"at {_address(self.client)} does not keep its workers. Their logs may say why."
            )
        if without is not None:
            if task.deaths:
                time.sleep(CALM_S)
            self.placement.send(self.package, [without])
        if task.deaths >= SUSPECT_DEATHS and not task.suspect:
            self._suspects.extend(replace(task, items=(item,), suspect=True) for item in task.items)
        else:
            self._submit(task)

    def _look(self) -> None:
        """See who is there."""
        if self.client.status != "running":
            raise self._gone()
        wanted = next(iter(self._resources)) if self._resources else None
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        slots = {
            address: info["nthreads"] if wanted is None else int(info["resources"].get(wanted, 0))
            for address, info in workers.items()
        }
        self._workers = {address for address, n in slots.items() if n}
        self._slots = max(1, sum(slots.values()))
        self._looked = time.monotonic()
        self._warn_of_no_worker(wanted)

    def _gone(self) -> ConnectionError:
        return ConnectionError(
            f"The scheduler at {_address(self.client)} went away in the middle of the search "
            f"(the client is {self.client.status!r}). Connect a new client, and start again."
        )

    def _warn_of_no_worker(self, resource: str | None) -> None:
        if self._workers:
            self._without_since = None
            return
        if self._without_since is None:
            self._without_since = self._looked
        if self._looked - self._without_since > NO_WORKER_S:
            self._without_since = float("inf")  # once
            what = "a worker" if resource is None else f"a worker with the resource {resource!r}"
            warnings.warn(
                f"The search waits for {what} at {_address(self.client)}, where there is none. Start one, or "
                "interrupt.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _stop(self) -> None:
        running, self._running = list(self._running), {}
        if running and self.client.status == "running":
            self.client.cancel(running)
        for future in running:
            future.release()


def _digest(package: Package, pickled: bytes, task: _Task) -> str:
    """The same for the same items of the same package, so that equal searches share their tasks."""
    digest = hashlib.sha1(package.key.encode() + pickled, usedforsecurity=False).hexdigest()[:16]
    # Another name for another try: Dask remembers what became of the first.
    again = f"{'suspect' if task.suspect else ''}{task.tries or ''}"
    return f"{digest}-{again}" if again else digest


def _died(item: Any) -> WorkerDied:
    return WorkerDied(f"It ran out of memory, or crashed in native code: its log may say. ({item!r})")


def _address(client: Client) -> str:
    return str(getattr(client.scheduler, "address", "an unknown address"))
