"""Run the items of a task on a worker, one after the other."""

import pickle
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import cloudpickle
from distributed import Worker, WorkerPlugin, get_worker

from manyfit.cluster.worker.cancelled_tasks import get_running_tasks
from manyfit.cluster.worker.content_pickle import PartNames
from manyfit.cluster.worker.errors import end_if_device_is_lost
from manyfit.cluster.worker.fetch import fetch_parts, get_store, load_with_note
from manyfit.cluster.worker.task_context import (
    PartialResult,
    TaskContext,
    make_wanted_check,
    still_wanted,
    use_task_context,
)

# Seconds after which a task hands its remaining items back, for other tasks.
LONGEST_TASK_S = 2.0


@dataclass
class TaskRun:
    """Results of a task: of its first `n` items, unless parts of its data are missing.

    `run_items` pickles a list of results and a tuple, which holds the rest of the last item if it was handed
    back. It does so within the task, so that a result that cannot be pickled is an error of the task.
    """

    n: int = 0
    results: Any = b""
    seconds: float = 0.0
    missing: tuple[str, ...] = ()  # keys of parts that no worker has; nothing was run then


@dataclass(frozen=True)
class ItemTask:
    """Items that are one task, and the package that is the second argument of their function."""

    pickled: bytes  # the function and the items
    n_items: int
    package: str  # key of the package, which is one of the parts
    parts: PartNames  # parts of the package


@contextmanager
def running_task(
    worker: Worker,
    keys: Iterable[str],
    scratch: dict[str, Any] | None = None,
    inputs: Sequence[Any] = (),
) -> Iterator[None]:
    """Run a task of a worker in this thread; the worker keeps the parts of these keys meanwhile."""
    is_wanted = make_wanted_check(worker)
    context = TaskContext(is_wanted, worker.state.nthreads == 1, scratch, inputs)
    with (
        get_store(worker).using(keys, is_wanted),
        get_running_tasks(worker).running(is_wanted),
        use_task_context(context),
    ):
        yield


def run_items(pickled: bytes, inputs: Sequence[Any] = ()) -> TaskRun:
    """Run a function on items, until that takes too long or nobody waits for it.

    `pickled` is an `ItemTask`, which the scheduler is not to unpickle; `inputs` see `TaskContext`.
    """
    worker = get_worker()
    task: ItemTask = pickle.loads(pickled)
    with running_task(worker, [task.package], {} if task.n_items > 1 else None, inputs):
        start = time.perf_counter()
        found, missing = fetch_parts(worker, task.parts, task.package)
        if missing:
            return TaskRun(missing=missing)
        function, items = load_with_note(worker, lambda: cloudpickle.loads(task.pickled))
        results: list[Any] = []
        rest: tuple[Any, ...] = ()
        for item in items:
            try:
                result = function(item, found[task.package])
            except (SystemExit, KeyboardInterrupt) as error:  # these would end the process
                raise RuntimeError(f"A fit on the worker {worker.address} ended with {error!r}") from error
            except Exception as error:
                end_if_device_is_lost(f"{type(error).__name__}: {error}")
                raise
            if isinstance(result, PartialResult):
                result, rest = result.result, (result.rest,)
            results.append(result)
            if rest or time.perf_counter() - start > LONGEST_TASK_S or not still_wanted():
                break
        return TaskRun(len(results), cloudpickle.dumps((results, rest)), time.perf_counter() - start)


class IgnoreInterrupts(WorkerPlugin):  # type: ignore[misc]
    """Has worker processes ignore interrupts, which a terminal sends to all of its processes."""

    name = "manyfit-not-interrupted"

    def setup(self, worker: Worker) -> None:
        """Install a handler that does nothing; a program that a fit starts would inherit ``SIG_IGN``."""
        # Workers within the client's process run in another thread.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda *_: None)
