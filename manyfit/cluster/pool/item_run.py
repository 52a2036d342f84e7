"""Run of a function over the items of a search, on a pool of tasks."""

import hashlib
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import cloudpickle
from distributed import Client

from manyfit.cluster.pool.placement import Placement
from manyfit.cluster.pool.resource_queue import ResourceQueue, Resources, annotated_resources
from manyfit.cluster.pool.task_pool import TaskPool
from manyfit.cluster.pool.tasks import Call, Task, TaskOutcome
from manyfit.cluster.pool.worker_monitor import CHECK_S
from manyfit.cluster.worker.content_pickle import Package, PartNames
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.cluster.worker.run_items import ItemTask, TaskRun, run_items

# Data that did not arrive are sent this often.
MOST_SENDS = 8


@dataclass(eq=False)
class ItemRun:
    """Calls ``function(item, common)`` for the items of a search.

    Equal runs of one client share their tasks.
    """

    client: Client
    placement: Placement
    function: Callable[[Any, Any], Any]
    package: Package  # of `common`
    name: Callable[[Any], str]  # labels the task of an item
    fuse: Callable[[Any], bool]  # whether an item may share a task
    needs: Callable[[Any], Mapping[str, float]]  # resources that an item takes of its worker
    inputs: Callable[
        [Any, int], Sequence[Any]
    ]  # futures that an item reads, also by the number of tries before
    _pool: TaskPool = field(init=False)
    _failed: bool = field(init=False, default=False)  # whether the function has raised

    def results(self, items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each item with its result as it comes; the result is a `WorkerLost` if workers die with it.

        Raises the first error of the function. When the reader stops, tasks are cancelled, and those that run
        stop where they check whether they are wanted.
        """
        self._pool = pool = TaskPool(self.client, self, queues=self._sort(items))
        try:
            pool.check_workers()
            while True:
                pool.hand_out()
                if not pool.is_waiting:
                    return
                for task, result in pool.next_results():
                    yield from self._read(task, result)
        except Exception as error:
            explained = error if self._failed else pool.explain(error)
            if explained is error:
                raise
            raise explained from error
        finally:
            pool.stop()

    def _sort(self, items: Sequence[Any]) -> list[ResourceQueue]:
        """Make a queue for the items of each set of resources."""
        annotated = annotated_resources()
        by_needs: dict[Resources, list[Any]] = {}
        for item in items:
            by_needs.setdefault(tuple(sorted({**self.needs(item), **annotated}.items())), []).append(item)
        return [ResourceQueue(needs, alike, self.fuse) for needs, alike in by_needs.items()]

    def _read(self, task: Task, result: TaskOutcome) -> Iterator[tuple[Any, Any]]:
        if isinstance(result, TaskRun):
            results, rest = cloudpickle.loads(result.results)
            task.queue.chunks.put_back([*rest, *task.items[result.n :]])
            yield from zip(task.items[: result.n], results, strict=True)
        elif isinstance(result, WorkerLost):
            yield task.items[0], result
        else:
            self._failed = True
            raise result

    # ------------------------------------------------------------------------------- for the pool

    def label(self, task: Task) -> str:
        """Name a task."""
        return self.name(task.items[0])

    def make_call(self, task: Task) -> Call:
        """Make the call for a task, and send what no worker has of the package."""
        parts = self._send()
        pickled = cloudpickle.dumps((self.function, task.items))
        key = f"{self.label(task)}-{_digest(self.package, pickled, task)}"
        work = ItemTask(pickled, len(task.items), self.package.key, parts)
        inputs = [one for item in task.items for one in self.inputs(item, task.tries)]
        return Call(run_items, (pickle.dumps(work), *([inputs] if inputs else [])), key, sent=parts)

    def resend(self, task: Task, missing: Sequence[str]) -> None:
        """Note parts of the package that are lost; the next call sends them."""
        self.placement.forget({key: task.sent[key][0] for key in missing})

    # ------------------------------------------------------------------------------- the package

    def _send(self) -> PartNames:
        """Send the package, if a worker can take what the cluster lacks of it; return its parts."""
        pool, failed_on = self._pool, None
        for tries in range(MOST_SENDS):
            parts = self.placement.locate(self.package.parts)
            receivers = map(pool.monitor.receiver, pool.queues)
            worker = next((one for one in receivers if one), None)
            if all(name for name, _ in parts.values()) or worker is None or worker == failed_on:
                break  # a task will miss what is not sent, and it is sent then
            fatal: list[Exception] = []
            try:
                meanwhile = partial(self._check_receiver, worker, fatal)
                self.placement.send(self.package.parts, worker, self.package.key, meanwhile)
            except MemoryError:
                raise
            except Exception as error:
                if error in fatal:
                    raise
                if tries == MOST_SENDS - 1:
                    raise RuntimeError(
                        f"The search could not send its data to the cluster at {pool.monitor.address}, at "
                        f"last to {worker}. Its log may say why."
                    ) from error
                time.sleep(CHECK_S)  # the worker went away, which the scheduler notices soon
                pool.check_workers()
                failed_on = worker if worker in pool.monitor.held.silent else None
        return parts

    def _check_receiver(self, worker: str, fatal: list[Exception]) -> None:
        """Check the workers while data wait for memory on one; `fatal` collects errors that end the run."""
        if self._pool.monitor.is_old:
            try:
                self._pool.check_workers()
            except Exception as error:
                fatal.append(error)
                raise
            if not any(worker in queue.able for queue in self._pool.queues):
                raise ConnectionError(f"The worker {worker} begins no tasks, and others do.")


def _digest(package: Package, pickled: bytes, task: Task) -> str:
    """Digest the items and the package, so that equal searches share their tasks."""
    digest = hashlib.sha1(package.key.encode() + pickled, usedforsecurity=False).hexdigest()[:16]
    # Another try has another name: Dask remembers the result of the first.
    again = f"{'suspect' if task.suspect else ''}{task.tries or ''}"
    return f"{digest}-{again}" if again else digest
