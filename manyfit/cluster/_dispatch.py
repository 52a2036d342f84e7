"""Items of a run on the workers of a cluster: how many at a time, and what becomes of those that fail."""

import contextlib
import hashlib
import queue
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import cloudpickle
from dask.base import get_annotations
from distributed import CancelledError, Client, Future, KilledWorker

from manyfit.cluster._died import Died, WorkerDied
from manyfit.cluster._lane import Lane, look
from manyfit.cluster._package import Package
from manyfit.cluster._placement import Placement
from manyfit.cluster._worker import Ran, run

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
    lane : Lane
        Where they come from.
    workers : frozenset of str
        Which it could go to when it was handed out.
    tries : int
        How often it was handed out before.
    deaths : int
        How often it came back while a worker was gone.
    suspect : bool
        Whether it runs alone.
    """

    items: tuple[Any, ...]
    lane: Lane
    workers: frozenset[str] = frozenset()
    tries: int = 0
    deaths: int = 0
    suspect: bool = False


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
    needs : callable
        What an item takes of its worker, as ``{"GPU": 1}``.
    """

    def __init__(
        self,
        client: Client,
        placement: Placement,
        function: Callable[[Any, Any], Any],
        package: Package,
        name: Callable[[Any], str],
        fuse: Callable[[Any], bool],
        needs: Callable[[Any], Mapping[str, float]],
    ) -> None:
        self.client, self.placement, self.package = client, placement, package
        self._function, self._name, self._fuse, self._needs = function, name, fuse, needs
        self._running: dict[Future, _Task] = {}
        self._arrived: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._suspects: deque[_Task] = deque()
        self._lanes: list[Lane] = []
        self._present: frozenset[str] = frozenset()
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
        self._lanes = self._sorted(items)
        try:
            self._look()
            self.placement.send(self.package, frozenset().union(*(lane.workers for lane in self._lanes)))
            while True:
                self._hand_out()
                if not self._running:
                    return
                yield from self._next()
        except _Raised as raised:
            raise raised.error from raised.error.__cause__
        except (OSError, CancelledError) as error:
            raise self._gone() from error
        finally:
            self._stop()

    def _sorted(self, items: Sequence[Any]) -> list[Lane]:
        # What the user asks for by `dask.annotate`, as for any other work on Dask.
        asked = get_annotations().get("resources") or {}
        by_needs: dict[tuple[tuple[str, float], ...], list[Any]] = {}
        for item in items:
            by_needs.setdefault(tuple(sorted({**self._needs(item), **asked}.items())), []).append(item)
        return [Lane(alike, self._fuse, dict(needs)) for needs, alike in by_needs.items()]

    def _hand_out(self) -> None:
        for lane in self._lanes:
            while lane.open:
                self._submit(_Task(lane.chunks.take(lane.slots), lane))
        if not self._running and self._suspects:
            # One by one, with nothing beside it that it could take along.
            self._submit(self._suspects.popleft())

    def _submit(self, task: _Task) -> None:
        lane = task.lane
        task = replace(task, workers=lane.workers)
        pickled = cloudpickle.dumps((self._function, task.items))
        future = self.client.submit(
            run,
            pickled,
            self.package.key,
            key=f"{self._name(task.items[0])}-{_digest(self.package, pickled, task)}",
            resources=lane.resources or None,
            workers=sorted(lane.workers) if lane.keeps_away else None,
            allow_other_workers=lane.keeps_away,
            pure=False,
        )
        lane.running += 1
        self._running[future] = task
        future.add_done_callback(self._arrived.put)

    def _next(self) -> Iterator[tuple[Any, Any]]:
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
        task.lane.running -= 1
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
        task.lane.chunks.took(done, ran.seconds)
        task.lane.chunks.put_back(rest)
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
        died = SUSPECT_DEATHS if killed else int(not task.workers <= self._present)
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
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        self._present = frozenset(workers)
        look(self._lanes, workers)
        self._looked = time.monotonic()
        self._warn_of_no_worker()

    def _gone(self) -> ConnectionError:
        return ConnectionError(
            f"The scheduler at {_address(self.client)} went away in the middle of the search "
            f"(the client is {self.client.status!r}). Connect a new client, and start again."
        )

    def _warn_of_no_worker(self) -> None:
        waiting = [lane for lane in self._lanes if (lane.chunks or lane.running) and not lane.workers]
        if not waiting:
            self._without_since = None
            return
        if self._without_since is None:
            self._without_since = self._looked
        if self._looked - self._without_since > NO_WORKER_S:
            self._without_since = float("inf")  # once
            needs = " and ".join(f"{n:g} of {name}" for name, n in waiting[0].resources.items())
            what = f"a worker that declares the resources {needs}" if needs else "a worker"
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
