"""Run the items of a task on a worker, one after the other."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle
from distributed import Worker, WorkerPlugin, get_worker

from manyfit.cluster.worker.cancelled_tasks import get_running_tasks
from manyfit.cluster.worker.errors import end_if_device_is_lost
from manyfit.cluster.worker.fetch import fetch_package, get_store, load_with_note
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


def run_items(pickled: bytes, key: str, name: str | None) -> TaskRun:
    """Run a function on items, until that takes too long or nobody waits for it.

    `pickled` holds the function and the items, which the scheduler is not to unpickle. `key` is that of the
    package that is the function's second argument, and `name` is what Dask calls it.
    """
    worker = get_worker()
    is_wanted = make_wanted_check(worker)
    with get_store(worker).using(key, is_wanted), get_running_tasks(worker).running(is_wanted):
        return _run(worker, pickled, key, name)


def _run(worker: Worker, pickled: bytes, key: str, name: str | None) -> TaskRun:
    start = time.perf_counter()
    common, missing = fetch_package(worker, key, name)
    if missing:
        return TaskRun(missing=missing)
    function: Callable[[Any, Any], Any]
    function, items = load_with_note(worker, lambda: cloudpickle.loads(pickled))
    results: list[Any] = []
    rest: tuple[Any, ...] = ()
    scratch: dict[str, Any] | None = {} if len(items) > 1 else None
    with use_task_context(TaskContext(make_wanted_check(worker), worker.state.nthreads == 1, scratch)):
        for item in items:
            try:
                result = function(item, common)
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
