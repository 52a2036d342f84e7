"""Items of a run on the workers of a cluster: how many at a time, and what becomes of those that fail."""

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cloudpickle
from distributed import CancelledError, Client, Future, KilledWorker

from manyfit.cluster.pool.copies import Copies
from manyfit.cluster.pool.placement import Placement
from manyfit.cluster.pool.resource_queue import ResourceQueue, annotated
from manyfit.cluster.pool.results import Results
from manyfit.cluster.pool.worker_monitor import LOOK_S, SchedulerLost, WorkerMonitor
from manyfit.cluster.worker.content_pickle import Package
from manyfit.cluster.worker.errors import WorkerDied, WorkerLost
from manyfit.cluster.worker.run_items import TaskRun, run

# Workers that die with a task until its items run alone, and with one of these until it is given up. That is
# two while it is alone: the first may have died of the item before, which Dask gave to the next worker before
# it was taken back.
SUSPECT_DEATHS, MOST_DEATHS = 2, 4
# As often data are sent that did not arrive.
MOST_SENDS = 8
# A task is cancelled by others of the same name, or cannot have its data; as often it is tried again.
MOST_TRIES = 20


@dataclass(frozen=True)
class _Task:
    """Some items, and what has happened to them so far.

    Attributes
    ----------
    items : tuple
    lane : Lane
        Where they come from.
    package : str or None
        What Dask called the package when they were handed out.
    tries : int
        How often they were handed out before.
    deaths : int
        How many workers died with them before.
    suspect : bool
        Whether it is one item, which runs alone.
    worker : str or None
        Of a suspect: the only worker that it may run on.
    """

    items: tuple[Any, ...]
    lane: ResourceQueue
    package: str | None = None
    tries: int = 0
    deaths: int = 0
    suspect: bool = False
    worker: str | None = None


class Dispatcher:
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
        self._copies, self._results = Copies(), Results(client)
        self._last = time.monotonic()  # when a task ended
        self._lanes: list[ResourceQueue] = []
        self._standing: WorkerMonitor
        self._names: dict[str, str] = {}

    def results(self, items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Pairs of an item and its result, as they come; of an item that kills workers, `WorkerLost`.

        Whoever stops reading cancels what is not done; tasks that run stop at the next place where they can.

        Raises
        ------
        Exception
            The first that the function raises.
        ConnectionError
            If the scheduler goes away.
        """
        self._lanes = self._sorted(items)
        self._standing = WorkerMonitor(self.client, self._lanes)
        try:
            self._standing.look()
            while True:
                self._hand_out()
                if not any(lane.waits for lane in self._lanes):
                    return
                yield from self._next()
        except _Raised as raised:
            raise raised.error from raised.error.__cause__
        except SchedulerLost:
            raise
        except Exception as error:
            if self.client.status == "running" and not isinstance(error, OSError | CancelledError):
                raise
            raise self._standing.gone() from error
        finally:
            self._stop()

    def _sorted(self, items: Sequence[Any]) -> list[ResourceQueue]:
        asked = annotated()
        by_needs: dict[tuple[tuple[str, float], ...], list[Any]] = {}
        for item in items:
            by_needs.setdefault(tuple(sorted({**self._needs(item), **asked}.items())), []).append(item)
        return [ResourceQueue(alike, self._fuse, dict(needs)) for needs, alike in by_needs.items()]

    def _hand_out(self) -> None:
        self._count_stuck()
        for lane in self._lanes:
            while lane.open:
                self._submit(_Task(lane.chunks.take(lane.slots), lane))
        suspicious = next((lane for lane in self._lanes if lane.suspects), None)
        if self._running or suspicious is None:
            return
        # One by one, with nothing beside it that it could take along, and where Dask can give it to no other
        # worker. A nanny may give up on a worker that dies while it starts.
        worker = self._standing.seasoned(suspicious)
        if worker is not None:
            self._submit(replace(suspicious.suspects.popleft(), worker=worker))

    def _submit(self, task: _Task, like: Future | None = None) -> None:
        lane = task.lane
        self._send()
        task = replace(task, package=self._package_name)
        pickled = cloudpickle.dumps((self._function, task.items))
        workers = [task.worker] if task.worker else sorted(lane.able) if lane.keeps_away else None
        future = self.client.submit(
            run,
            pickled,
            self.package.key,
            task.package,
            key=f"{self._name(task.items[0])}-{_digest(self.package, pickled, task)}",
            resources=lane.resources or None,
            workers=workers,
            allow_other_workers=workers is not None and task.worker is None,
            pure=False,
        )
        lane.running += 1
        self._running[future] = task
        if like is not None:
            self._copies.add(future, like)
        self._results.watch(future)

    @property
    def _package_name(self) -> str | None:
        """What Dask calls the package now; None where it is not sent."""
        return self._names.get(self.package.key)

    def _send(self) -> None:
        """Send the package, if it is not there and there is a worker for it."""
        before: str | None = None
        for tries in range(MOST_SENDS):
            worker = next((lane.receiver for lane in self._lanes if lane.receiver), None)
            if self._names or worker is None or worker == before:
                return  # a task will miss it, and it is sent then
            failed: list[Exception] = []
            try:
                self._names = self.placement.send(self.package, worker, partial(self._wait, worker, failed))
            except MemoryError:
                raise
            except Exception as error:
                if error in failed:
                    raise
                if tries == MOST_SENDS - 1:
                    raise RuntimeError(
                        f"The search could not send its data to the cluster at {self._standing.address}, at "
                        f"last to {worker}. Its log may say why."
                    ) from error
                time.sleep(LOOK_S)  # it went away meanwhile, which the scheduler notices soon
                self._look()
                before = worker if worker in self._standing.stuck.silent else None

    def _wait(self, worker: str, failed: list[Exception]) -> None:
        """See who is there while data wait for room on a worker; `failed` gets the error to end with."""
        if self._standing.is_old:
            try:
                self._look()
            except Exception as error:
                failed.append(error)
                raise
            if not any(worker in lane.able for lane in self._lanes):
                raise ConnectionError(f"The worker {worker} begins no tasks, and others do.")

    def _look(self) -> None:
        self._standing.look(self._running, time.monotonic() - self._last)

    def _next(self) -> Iterator[tuple[Any, Any]]:
        """What the next task that ends came to, if one does before long."""
        arrived = self._results.get(timeout=LOOK_S)
        if arrived is None or self._standing.is_old:
            self._look()
            self._unstick()
            self._take_back()
        if self._standing.somebody_died():
            yield from self._blame()
        if arrived is None or arrived[0] not in self._running:
            return
        self._last = time.monotonic()
        future, came = arrived
        task, status, copies = self._running[future], future.status, self._copies.others(future)
        self._let_go(future)
        failed = isinstance(came, Exception) and status == "error"
        if isinstance(came, TaskRun) and not came.missing:
            self._cancel(copies)
            yield from self._took(task, came)
        elif isinstance(came, KilledWorker):
            self._cancel(copies)
            yield from self._killed(task)
        elif failed:
            self._standing.require_versions()  # of another one the error says little
            raise _Raised(came)
        else:  # it lacks its data, was cancelled by another search of the same tasks, or is lost
            self._look()
            deaths = task.deaths + self._standing.deaths_of(future.key)
            task = replace(task, tries=task.tries + 1, deaths=deaths)
            yield from self._again(task, came.missing if isinstance(came, TaskRun) else (), copies)

    def _took(self, task: _Task, ran: TaskRun) -> Iterator[tuple[Any, Any]]:
        results, rest = cloudpickle.loads(ran.results)
        done = task.items[: ran.n]
        task.lane.chunks.took(done, ran.seconds)
        task.lane.chunks.put_back([*rest, *task.items[ran.n :]])
        yield from zip(done, results, strict=True)

    def _killed(self, task: _Task) -> Iterator[tuple[Any, Any]]:
        """Workers died of a task or of one beside it: items run alone, and who kills then is given up."""
        if task.suspect:
            yield task.items[0], WorkerLost(_died())
            return
        deaths = max(task.deaths, SUSPECT_DEATHS)
        alone = [_Task((item,), task.lane, deaths=deaths, suspect=True) for item in task.items]
        task.lane.suspects.extend(alone)

    def _blame(self) -> Iterator[tuple[Any, Any]]:
        """After a worker died: take back what may be to blame, before Dask gives it to the next."""
        for future, task in list(self._running.items()):
            now = replace(task, deaths=task.deaths + self._standing.deaths_of(future.key))
            if future in self._running and now.deaths > task.deaths and _is_to_blame(now):
                self._cancel([future, *self._copies.others(future)])
                yield from self._killed(now)

    def _take_back(self) -> None:
        """Take back suspects whose worker is there no more: they may run on no other."""
        workers = self._standing.workers
        for future, task in list(self._running.items()):
            if future not in self._running or task.worker is None or task.worker in workers:
                continue
            deaths = task.deaths + self._standing.deaths_of(future.key)
            now = replace(task, deaths=deaths, tries=task.tries + 1)
            if _is_to_blame(now):
                continue
            copies = self._copies.others(future)
            others = {one: self._running[one] for one in copies if self._running[one].worker in workers}
            if others:  # they are at it still
                self._running.update({one: replace(of, deaths=deaths) for one, of in others.items()})
                self._cancel([future])
            else:
                self._cancel([future, *copies])
                task.lane.suspects.append(now)

    def _let_go(self, future: Future) -> None:
        self._running.pop(future).lane.running -= 1
        self._copies.drop(future)
        future.release()  # whatever still refers to it would have Dask keep its result

    def _cancel(self, futures: Sequence[Future]) -> None:
        if futures:
            self.client.cancel(list(futures), force=True)
        for future in futures:
            self._results.give_up(future)
            self._let_go(future)

    def _count_stuck(self) -> None:
        keys = self._standing.stuck.keys
        for lane in self._lanes:
            lane.stuck = 0
        for future, task in self._running.items() if keys else ():
            task.lane.stuck += str(future.key) in keys

    def _unstick(self) -> None:
        """Hand out once more what sits on workers that do not get to it, where others have nothing to do."""
        stuck = self._standing.stuck
        self._count_stuck()
        for future, task in list(self._running.items()) if stuck.keys else ():
            if not task.lane.idles or not self._copies.all_in(future, stuck.keys):
                continue
            worker = self._standing.seasoned(task.lane) if task.suspect else None
            if task.suspect and worker is None:
                continue
            copies = [future, *self._copies.others(future)]
            tries = max(self._running[one].tries for one in copies if one in self._running)
            self._submit(replace(task, tries=tries + 1, worker=worker), like=future)
            for one in copies:
                if str(one.key) in stuck.lost:
                    self._results.give_up(one)

    def _again(
        self, task: _Task, missing: Sequence[str], copies: Sequence[Future]
    ) -> Iterator[tuple[Any, Any]]:
        """Hand a task out once more, with what it could not have."""
        if _is_to_blame(task):
            self._cancel(copies)
            yield from self._killed(task)
            return
        if task.tries >= MOST_TRIES:
            raise RuntimeError(
                f"The task {self._name(task.items[0])} was lost or cancelled {task.tries} times: the cluster "
                f"at {self._standing.address} does not keep its workers. Their logs may say why."
            )
        if missing and self._names and task.package == self._package_name:
            self.placement.forget({key: self._names[key] for key in missing})
            self._names = {}
        if any(str(one.key) not in self._standing.stuck.keys for one in copies):
            return  # another worker is at it
        if task.suspect:
            self._cancel(copies)  # or one of them would answer it, too, when its worker goes on
            task.lane.suspects.appendleft(replace(task, worker=None))
        else:
            self._submit(task, like=copies[0] if copies else None)

    def _stop(self) -> None:
        running, self._running = list(self._running), {}
        if running and self.client.status == "running":
            with contextlib.suppress(OSError, CancelledError):  # it goes away now
                self.client.cancel(running)
        for future in running:
            with contextlib.suppress(Exception):  # the client is closed, and its loop with it
                self._results.give_up(future)
            future.release()


class _Raised(Exception):
    """Carries what the function raised, to be told from what the cluster raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _is_to_blame(task: _Task) -> bool:
    return task.deaths >= (MOST_DEATHS if task.suspect else SUSPECT_DEATHS)


def _digest(package: Package, pickled: bytes, task: _Task) -> str:
    """The same for the same items of the same package, so that equal searches share their tasks."""
    digest = hashlib.sha1(package.key.encode() + pickled, usedforsecurity=False).hexdigest()[:16]
    # Another name for another try: Dask remembers what became of the first.
    again = f"{'suspect' if task.suspect else ''}{task.tries or ''}"
    return f"{digest}-{again}" if again else digest


def _died() -> WorkerDied:
    return WorkerDied(
        "It ran out of memory, so that Dask ended it, or crashed in native code: its log may say."
    )
