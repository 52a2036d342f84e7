"""Batches of a call of Parallel that wait, and tasks that are under way."""

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from distributed import Future

from manyfit.cluster.pool.copies import Copies
from manyfit.cluster.pool.resource_queue import AHEAD_S, LEAST_TASK_S, TASK_S, TASKS_LEFT, TASKS_PER_SLOT
from manyfit.joblib_backend._batch_pickle import Packed
from manyfit.joblib_backend._batch_result import BatchResult
from manyfit.joblib_backend._workers import BackendWorkers, Needs, most_at_a_time


@dataclass(frozen=True, eq=False)
class Batch:
    """Calls that joblib hands out together.

    Attributes
    ----------
    packed : Packed
    callback : callable
        To be told what became of it.
    needs : tuple of (str, float)
        What it takes of its worker.
    label : str
        What the dashboard shows, and how many calls.
    n_calls : int
    """

    packed: Packed
    callback: Callable[[BatchResult], None]
    needs: Needs
    label: str
    n_calls: int


@dataclass(frozen=True, eq=False)
class Task:
    """Batches of the same needs that are one task of Dask's.

    Attributes
    ----------
    batches : tuple of Batch
    names : dict of str to str
        What Dask called their parts when it was handed out.
    tries : int
        How often it was handed out before.
    only : tuple of str
        Addresses of the only workers that it may run on, while others that were named begin no tasks.
    """

    batches: tuple[Batch, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    tries: int = 0
    only: tuple[str, ...] = ()

    @property
    def needs(self) -> Needs:
        """What it takes of its worker."""
        return self.batches[0].needs

    @property
    def label(self) -> str:
        """What the dashboard shows, as of joblib's backend for Dask."""
        return f"{self.batches[0].label}_{sum(batch.n_calls for batch in self.batches)}_calls"

    @property
    def parts(self) -> dict[str, Any]:
        """Their parts."""
        return {key: part for batch in self.batches for key, part in batch.packed.parts.items()}


class Queue:
    """What waits and what is under way, until it is closed. Nothing is waited for while its lock is held.

    Parameters
    ----------
    n_jobs : int
        How many tasks may run at a time, by joblib's counting.
    """

    def __init__(self, n_jobs: int) -> None:
        self.closed = False
        self._n_jobs = n_jobs
        self._seconds = 0.0  # of a batch
        self._lock = threading.Lock()
        self._waiting: defaultdict[Needs, deque[Batch]] = defaultdict(deque)
        self._again: deque[Task] = deque()
        self._running: dict[Future, Task] = {}
        self._copies = Copies()

    def add(self, batch: Batch) -> bool:
        """Have a batch wait; whether that is still possible."""
        with self._lock:
            if not self.closed:
                self._waiting[batch.needs].append(batch)
            return not self.closed

    def add_again(self, task: Task) -> bool:
        """Have a task wait that was handed out before; whether that is still possible."""
        with self._lock:
            if not self.closed:
                self._again.append(task)
            return not self.closed

    def next(self, there: BackendWorkers) -> Task | None:
        """A task that may run now."""
        with self._lock:
            if self._again:
                return self._again.popleft()
            for needs, waiting in self._waiting.items():
                slots = max(1, there.slots(needs))
                each = self._each_slot(needs)
                running = self._not_in(there.stuck.keys)
                alike = sum(task.needs == needs for task in running)
                if waiting and alike < each * slots and len(running) < self._most(slots, each):
                    n = self._together(len(waiting), slots)
                    return Task(tuple(waiting.popleft() for _ in range(n)))
        return None

    def _not_in(self, keys: frozenset[str]) -> list[Task]:
        """Tasks under way, but for those that are stuck."""
        running = self._running.items()
        return [task for future, task in running if not keys or str(future.key) not in keys]

    def stranded(self, there: BackendWorkers) -> list[tuple[Future, Task]]:
        """Tasks that may run on workers only which are there no more."""
        with self._lock:
            running = list(self._running.items())
        return [
            (one, task) for one, task in running if task.only and there.workers.keys().isdisjoint(task.only)
        ]

    def to_copy(self, there: BackendWorkers) -> list[tuple[Future, Task]]:
        """Stuck tasks that other workers, which have nothing else to do, may run as well."""
        keys, found = there.stuck.keys, list[tuple[Future, Task]]()
        with self._lock:
            if not keys or self._again or any(self._waiting.values()):
                return []
            busy = Counter(task.needs for task in self._not_in(keys))
            for future, task in self._running.items():
                idle = there.has_slot(task.needs) and busy[task.needs] < there.slots(task.needs)
                if idle and self._copies.all_in(future, keys):
                    busy[task.needs] += 1
                    tries = [self._running[one].tries for one in self._copies.others(future)]
                    found.append((future, replace(task, tries=max([task.tries, *tries]))))
        return found

    def _each_slot(self, needs: Needs) -> int:
        """How many tasks each slot has under way, so that none waits for the client.

        Long ones more, by which Dask sees whether a cluster should grow; but those that take resources wait
        at a worker, and die with it.
        """
        if needs or self._seconds < TASK_S:
            return TASKS_PER_SLOT
        return max(TASKS_PER_SLOT, int(AHEAD_S / self._seconds))

    def _most(self, slots: int, each: int) -> int:
        """How many tasks may be under way: no more run at a time than was asked for."""
        most = most_at_a_time(self._n_jobs, slots)
        if most < slots:
            return most
        return each * slots if self._n_jobs < 0 else max(TASKS_PER_SLOT * slots, min(each * slots, most))

    def _together(self, n_waiting: int, slots: int) -> int:
        """How many batches are one task, where they are short and wait: to send one takes milliseconds."""
        if not self._seconds:
            return 1
        n = min(int(TASK_S / self._seconds), n_waiting // (TASKS_LEFT * slots))
        return min(max(n, int(LEAST_TASK_S / self._seconds), 1), n_waiting)

    def took(self, seconds: float) -> None:
        """Learn how long a batch takes."""
        self._seconds = 0.8 * (self._seconds or seconds) + 0.2 * seconds

    def run(self, task: Task, submit: Callable[[], Future], like: Future | None = None) -> Future | None:
        """Submit a task, or another copy of one, unless all is over."""
        with self._lock:
            if self.closed or (like is not None and like not in self._running):
                return None
            future = submit()
            self._running[future] = task
            if like is not None:
                self._copies.add(future, like)
            return future

    @property
    def running(self) -> list[Future]:
        """Tasks under way."""
        with self._lock:
            return list(self._running)

    def pop(self, future: Future) -> tuple[Task | None, list[Future]]:
        """A task that was under way, if it still counts, and its copies."""
        with self._lock:
            task, copies = self._running.pop(future, None), self._copies.others(future)
            self._copies.drop(future)
        return task, copies

    def take_all(self) -> tuple[list[Future], list[Batch]]:
        """Everything, which then neither waits nor counts."""
        with self._lock:
            futures, tasks = list(self._running), [*self._running.values(), *self._again]
            # Copies of a task have the same batches.
            batches = list(dict.fromkeys(batch for task in tasks for batch in task.batches))
            batches += [batch for waiting in self._waiting.values() for batch in waiting]
            self._running, self._copies = {}, Copies()
            self._again.clear()
            self._waiting.clear()
        return futures, batches

    def close(self) -> bool:
        """Let nothing more in; whether that is new."""
        with self._lock:
            before, self.closed = self.closed, True
            return not before

    @property
    def needs(self) -> set[Needs]:
        """What those that wait or are under way take."""
        with self._lock:
            found = {task.needs for task in (*self._running.values(), *self._again)}
            return found | {needs for needs, waiting in self._waiting.items() if waiting}
