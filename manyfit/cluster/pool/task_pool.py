"""Pool of Dask tasks: how many run at a time, and what happens to those that fail, are lost or held up."""

import contextlib
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from distributed import CancelledError, Client, Future, KilledWorker

from manyfit.cluster.inspection.scheduler_info import SchedulerLost
from manyfit.cluster.pool.options import PoolOptions
from manyfit.cluster.pool.resource_queue import TASKS_PER_SLOT, ResourceQueue, Resources
from manyfit.cluster.pool.results import Results
from manyfit.cluster.pool.tasks import SUSPECT_DEATHS, Task, TaskMaker, TaskOutcome
from manyfit.cluster.pool.worker_monitor import CHECK_S, WorkerMonitor
from manyfit.cluster.worker.errors import WorkerDied, WorkerLost
from manyfit.cluster.worker.run_items import TaskRun

# Seconds that a cancellation waits for the scheduler.
CANCEL_S = 5.0


class TaskPool:
    """Runs items of a search or of a call of Parallel as tasks on a cluster.

    One thread calls `hand_out` and `next_results` in turn until `is_waiting` is False, or the pool is closed.
    `add` and `stop` may be called in any thread. Nothing blocks while the lock is held.
    """

    def __init__(
        self,
        client: Client,
        maker: TaskMaker,
        options: PoolOptions | None = None,
        queues: Sequence[ResourceQueue] = (),
    ) -> None:
        self._client, self._options = client, options or PoolOptions()
        # Weak: in a cycle with its maker, the data of a search would wait for the garbage collector.
        self._maker: TaskMaker = weakref.proxy(maker)
        self.queues = list(queues)
        self.monitor = WorkerMonitor(client, self.queues, self._options)
        self.closed = False
        self._lock = threading.Lock()
        self._running: dict[Future, Task] = {}  # copies of a task have its very items
        self._results = Results(client)
        self._last_end = time.monotonic()

    # ------------------------------------------------------------------------------- in any thread

    def queue_for(self, resources: Resources) -> ResourceQueue:
        """Return the queue of items that need these resources."""
        with self._lock:
            for queue in self.queues:
                if queue.resources == resources:
                    return queue
            queue = ResourceQueue(resources, long_s=self._options.long_s)
            self.queues.append(queue)
            self.monitor.assign()
            return queue

    def add(self, queue: ResourceQueue, item: Any) -> bool:
        """Add an item to a queue; return whether the pool was still open."""
        with self._lock:
            is_open = not self.closed
            if is_open:
                queue.chunks.add(item)
        self._results.wake()
        return is_open

    def wake(self) -> None:
        """Have `next_results` return at once."""
        self._results.wake()

    def stop(self) -> bool:
        """Close the pool, and cancel all tasks; return whether it was open."""
        with self._lock:
            was_open, self.closed = not self.closed, True
        if was_open:
            self.clear()
        return was_open

    def clear(self) -> None:
        """Drop all items, and cancel their tasks."""
        with self._lock:
            futures, self._running = list(self._running), {}
            for queue in self.queues:
                queue.clear()
        self._results.wake()
        # Without force: another search may have the same task.
        self._cancel_futures(futures, force=False)

    @property
    def is_waiting(self) -> bool:
        """Whether any item has no result yet."""
        return any(queue.is_waiting for queue in self.queues)

    def explain(self, error: Exception) -> Exception:
        """Return the error to raise for one that is no item's: a lost scheduler shows in many ways."""
        if self._client.status == "running" or isinstance(error, SchedulerLost):
            return error
        lost = self.monitor.scheduler_lost()
        lost.__cause__ = error
        return lost

    # ------------------------------------------------------------------------------- hand out

    def hand_out(self) -> None:
        """Send as many tasks to the cluster as its slots can use."""
        self._count_stuck()
        while (task := self._next_task()) is not None:
            self._submit(task)

    def _next_task(self) -> Task | None:
        with self._lock:
            for queue in self.queues:
                if queue.has_room and sum(one.active for one in self.queues) < self._most_tasks(queue):
                    return Task(queue.chunks.take(queue.slots), queue)
        suspicious = next((queue for queue in self.queues if queue.suspects), None)
        if self._running or suspicious is None:
            return None
        # Suspects run one by one, so that nothing else dies with them, and on one worker, so that Dask gives
        # them to no other. It is not fresh: a nanny may give up on a worker that dies at its start.
        worker = self.monitor.settled_worker(suspicious)
        return replace(suspicious.suspects.popleft(), only=(worker,)) if worker else None

    def _most_tasks(self, queue: ResourceQueue) -> float:
        """Tasks of all queues that `n_jobs` allows on the cluster when this queue hands out one."""
        slots, n_jobs = max(1, queue.slots), self._options.n_jobs
        if n_jobs is None:
            return float("inf")
        at_a_time = n_jobs if n_jobs > 0 else max(1, slots + 1 + n_jobs)
        if at_a_time < slots:
            return at_a_time
        most = queue.tasks_per_slot * slots
        return most if n_jobs < 0 else max(TASKS_PER_SLOT * slots, min(most, at_a_time))

    def _submit(self, task: Task, like: Future | None = None) -> None:
        """Send a task to the cluster; `like` is a running task that it copies."""
        call = self._maker.make_call(task)
        only, workers, others = self._workers_for(task)
        task, resources = replace(task, sent=call.sent, only=only), dict(task.queue.resources)
        with self._lock:
            if self.closed or (like is not None and like not in self._running):
                return  # another thread stopped the pool
            future = self._client.submit(
                call.function,
                *call.arguments,
                key=call.key,
                resources=resources or None,
                workers=workers,
                allow_other_workers=others,
                priority=call.priority,
                pure=False,
            )
            self._running[future] = task
            task.queue.running += 1
        self._results.watch(future)

    def _workers_for(self, task: Task) -> tuple[tuple[str, ...], list[str | int] | None, bool]:
        """Return `Task.only`, the workers that Dask is given, and whether Dask may choose others."""
        if task.suspect:
            return task.only, [*task.only], False
        able, names = sorted(task.queue.able), self._options.worker_names
        if names is not None:
            only = tuple(able) if self.monitor.held.workers else ()
            return only, [*only] or [*names], False
        return (), [*able] if task.queue.keeps_away else None, task.queue.keeps_away

    # ------------------------------------------------------------------------------- results

    def next_results(self) -> Iterator[tuple[Task, TaskOutcome]]:
        """Yield the tasks that ended, with their results; wait for one for a short time."""
        arrived = self._results.get(timeout=CHECK_S)
        if (arrived is None or self.monitor.is_old) and self.is_waiting:
            self.check_workers()
            self._copy_stuck()
            self._take_back()
        if self.monitor.take_new_death():
            yield from self._blame()
        if arrived is not None and arrived[0] is not None:
            yield from self._receive(*arrived)

    def check_workers(self) -> None:
        """Update the workers; raises the error that ends a run."""
        self.monitor.update(list(self._running), time.monotonic() - self._last_end)

    def _receive(self, future: Future, result: Any) -> Iterator[tuple[Task, TaskOutcome]]:
        task = self._forget(future)
        if task is None:
            return  # cancelled meanwhile
        copies = list(self._copies_of(task))
        self._last_end, status = time.monotonic(), future.status
        future.release()  # any reference to it would have Dask keep its result
        if isinstance(result, TaskRun) and not result.missing:
            self._cancel(copies)
            task.queue.chunks.record(task.items[: result.n], result.seconds)
            yield task, result
        elif isinstance(result, KilledWorker):
            self._cancel(copies)
            yield from self._lose(task, result)
        elif isinstance(result, Exception) and status == "error":
            self._cancel(copies)
            self.monitor.require_versions()  # with other versions, the error says little
            yield task, result
        else:  # it lacks data, was cancelled by others, or is lost
            self.check_workers()
            deaths = task.deaths + self.monitor.count_deaths(future.key)
            missing = result.missing if isinstance(result, TaskRun) else ()
            yield from self._retry(replace(task, tries=task.tries + 1, deaths=deaths), missing, copies)

    def _forget(self, future: Future) -> Task | None:
        """Remove a task from those that run."""
        with self._lock:
            task = self._running.pop(future, None)
            if task is not None:
                task.queue.running -= 1
            return task

    def _copies_of(self, task: Task) -> dict[Future, Task]:
        """Return those of a task and its copies that run."""
        return {one: other for one, other in list(self._running.items()) if other.items is task.items}

    def _lose(self, task: Task, cause: Exception | None = None) -> Iterator[tuple[Task, TaskOutcome]]:
        """Workers died with a task, or with one beside it: its items run alone, or are given up."""
        if task.suspect or not self._options.isolates:
            yield task, WorkerLost(_died(cause))
        else:
            deaths = max(task.deaths, SUSPECT_DEATHS)
            alone = (Task((item,), task.queue, deaths=deaths, suspect=True) for item in task.items)
            task.queue.suspects.extend(alone)

    def _retry(
        self, task: Task, missing: Sequence[str], copies: Sequence[Future]
    ) -> Iterator[tuple[Task, TaskOutcome]]:
        """Send a task again, with the data that it could not get, unless a copy of it runs."""
        if self._options.isolates and task.is_to_blame:
            self._cancel(copies)
            yield from self._lose(task)
            return
        if task.tries >= self._options.most_tries:
            raise RuntimeError(
                f"The task {self._maker.label(task)} was lost or cancelled {task.tries} times: the cluster "
                f"at {self.monitor.address} does not keep its workers. Their logs may say why."
            )
        self._maker.resend(task, missing)
        if any(str(one.key) not in self.monitor.held.keys for one in copies):
            return  # another worker runs it
        if task.suspect:
            self._cancel(copies)  # a copy would give a second result when its worker goes on
            task.queue.suspects.appendleft(replace(task, only=()))
        else:
            self._submit(task, like=copies[0] if copies else None)

    # ------------------------------------------------------------------------------- deaths

    def _blame(self) -> Iterator[tuple[Task, TaskOutcome]]:
        """After a worker died, take back tasks that may be to blame, before Dask gives them to others."""
        for future, task in list(self._running.items()):
            now = replace(task, deaths=task.deaths + self.monitor.count_deaths(future.key))
            if future in self._running and now.deaths > task.deaths and now.is_to_blame:
                self._cancel(self._copies_of(task))
                yield from self._lose(now)

    def _take_back(self) -> None:
        """Take back tasks that may only run on workers that are gone."""
        for future, task in list(self._running.items()):
            if future not in self._running or not self._is_stranded(task):
                continue
            deaths = task.deaths + self.monitor.count_deaths(future.key)
            now = replace(task, deaths=deaths, tries=task.tries + 1)
            if self._options.isolates and now.is_to_blame:
                continue  # `_blame` takes it back
            copies = self._copies_of(task)
            others = {one: copy for one, copy in copies.items() if not self._is_stranded(copy)}
            if others:  # they still run
                self._running.update({one: replace(copy, deaths=deaths) for one, copy in others.items()})
                self._cancel([future])
                continue
            self._cancel(copies)
            if task.suspect:
                task.queue.suspects.append(now)
            else:
                self._submit(now)

    def _is_stranded(self, task: Task) -> bool:
        return bool(task.only) and not any(one in self.monitor.workers for one in task.only)

    # ------------------------------------------------------------------------------- held workers

    def _count_stuck(self) -> None:
        keys = self.monitor.held.keys
        for queue in self.queues:
            queue.stuck = 0
        for future, task in list(self._running.items()) if keys else ():
            task.queue.stuck += str(future.key) in keys

    def _copy_stuck(self) -> None:
        """Send tasks again that wait on workers that begin none, if other workers have nothing else to do."""
        held = self.monitor.held
        self._count_stuck()
        for future, task in list(self._running.items()) if held.keys else ():
            copies = self._copies_of(task)
            if not task.queue.has_idle_slots or not all(str(one.key) in held.keys for one in copies):
                continue
            worker = self.monitor.settled_worker(task.queue) if task.suspect else None
            if task.suspect and worker is None:
                continue
            tries = 1 + max(copy.tries for copy in (task, *copies.values()))
            self._submit(replace(task, tries=tries, only=(worker,) if worker else ()), like=future)
            for one in copies:
                if str(one.key) in held.lost:
                    self._results.give_up(one)

    # ------------------------------------------------------------------------------- cancellation

    def _cancel(self, futures: Iterable[Future]) -> None:
        """Cancel tasks that run."""
        futures = list(futures)
        for one in futures:
            self._forget(one)
        self._cancel_futures(futures, force=True)

    def _cancel_futures(self, futures: Sequence[Future], force: bool) -> None:
        async def cancel() -> None:
            await self._client.cancel(list(futures), asynchronous=True, force=force)

        if futures and self._client.status == "running":
            with contextlib.suppress(OSError, CancelledError, RuntimeError):  # the cluster goes away now
                self._client.sync(cancel, callback_timeout=CANCEL_S)
        for future in futures:
            with contextlib.suppress(Exception):  # the client is closed, and its loop with it
                self._results.give_up(future)
            future.release()


def _died(cause: Exception | None) -> WorkerDied:
    died = WorkerDied(
        "It ran out of memory, so that Dask ended it, or crashed in native code: its log may say."
    )
    died.__cause__ = cause
    return died
