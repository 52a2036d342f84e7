"""One call of joblib.Parallel on a cluster."""

import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from dask.utils import funcname
from distributed import CancelledError, Client

from manyfit._compat import dispatch_more, fail_parallel
from manyfit.cluster import WorkerDied
from manyfit.cluster.inspection.gpu_workers import GPU
from manyfit.cluster.pool.resource_queue import TASKS_PER_SLOT, Resources
from manyfit.cluster.pool.task_pool import TaskPool
from manyfit.cluster.pool.tasks import Call, Task, TaskOutcome
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.cluster.worker.task_context import make_wanted_check, worker_of_thread
from manyfit.introspection.gpu_support import needs_gpu
from manyfit.joblib_backend._batch_pickle import BatchPacker, Calls, PackedBatch
from manyfit.joblib_backend._batch_result import BatchResult, read_result
from manyfit.joblib_backend._options import Options
from manyfit.joblib_backend._run_batches import BatchTask, run_batches
from manyfit.joblib_backend._shared_arguments import SharedArguments


@dataclass(frozen=True, eq=False)
class Batch:
    """Function calls that joblib dispatches together."""

    packed: PackedBatch
    callback: Callable[[BatchResult], None]
    resources: Resources
    label: str  # for the dashboard
    n_calls: int


class ParallelCall:
    """Runs the batches of one call of Parallel on a pool of tasks.

    A thread of its own calls joblib back, which then reads the caller's generator of tasks.
    """

    def __init__(self, client: Client, options: Options) -> None:
        self._options = options
        self._packer, self._arguments = BatchPacker(options.apart_bytes), SharedArguments(client)
        self._pool = TaskPool(client, self, options)
        self._queue = self._pool.queue_for(options.resources)
        self._pool.check_workers()
        self._arguments.limit(self._pool.monitor.memory)
        self._most_slots = self._queue.slots
        worker = worker_of_thread()
        # The task that makes this call, if one does, may be cancelled.
        self._is_wanted = (lambda: True) if worker is None else make_wanted_check(worker)
        self._batches: set[Batch] = set()  # without a result
        self._refused: deque[tuple[Any, BatchResult]] = deque()  # batches that could not be sent
        threading.Thread(target=self._serve, name="manyfit-joblib", daemon=True).start()

    # ------------------------------------------------------------------------------- in any thread

    def submit(self, calls: Calls, nested: Any, callback: Callable[[BatchResult], None]) -> None:
        """Run a batch. Large arguments are sent now, since the caller may change them afterwards."""
        try:
            batch = self._make_batch(calls, nested, callback)
            queue = self._pool.queue_for(batch.resources)
            self._arguments.hold(batch.packed)
            try:
                self._arguments.send(batch.packed.parts, lambda: self._pool.monitor.receiver(queue))
            except BaseException:
                self._arguments.release(batch.packed)
                raise
        except Exception as error:
            self._refused.append((callback, BatchResult(error=error)))
            self._pool.wake()
        else:
            self._batches.add(batch)
            if not self._pool.add(queue, batch):
                self._release([batch])

    def _make_batch(self, calls: Calls, nested: Any, callback: Any) -> Batch:
        label = _label(calls)
        try:
            packed = self._packer.pack(calls, nested)
        except Exception as error:
            raise pickle.PicklingError(
                f"Could not pickle the task to send to the workers, {label}: {error!r}"
            ) from error
        resources = self._options.resources
        if not resources and self._pool.monitor.declares(GPU):
            values = (v for function, args, kwargs in calls for v in (function, *args, *kwargs.values()))
            resources = ((GPU, 1.0),) if any(map(needs_gpu, values)) else ()
        return Batch(packed, callback, resources, label, len(calls))

    def close(self) -> None:
        """Cancel unfinished batches, and release all arguments."""
        if not self._pool.stop():
            return  # another thread closed it
        self._release(list(self._batches))
        self._arguments.end()

    def _take(self, batch: Batch) -> bool:
        """Take a batch from those without a result; return False if another thread has."""
        try:
            self._batches.remove(batch)
        except KeyError:
            return False
        return True

    def _release(self, batches: Iterable[Batch]) -> None:
        """Release the arguments of batches that will have no result."""
        for batch in batches:
            if self._take(batch):
                self._arguments.release(batch.packed)

    # ------------------------------------------------------------------------------- for the pool

    def label(self, task: Task) -> str:
        """Name a task as joblib's own backend for Dask does."""
        return f"{task.items[0].label}_{sum(batch.n_calls for batch in task.items)}_calls"

    def make_call(self, task: Task) -> Call:
        """Make the call for some batches; their parts were sent before."""
        options, parts = self._options, self._arguments.locate(_parts(task))
        batches = [batch.packed.whole or batch.packed.pickled for batch in task.items]
        work = BatchTask(batches, parts, options.copied, options.threads, options.device)
        key = f"{self.label(task)}-{uuid4().hex}"
        return Call(run_batches, (pickle.dumps(work),), key, sent=parts, priority=options.priority)

    def resend(self, task: Task, missing: Sequence[str]) -> None:
        """Send the parts of batches that are on no worker."""
        receiver = self._pool.monitor.receiver
        self._arguments.send_again(_parts(task), task.sent, missing, lambda: receiver(task.queue))

    # ------------------------------------------------------------------------------- in the call's thread

    def _serve(self) -> None:
        pool = self._pool
        while not pool.closed:
            try:
                pool.hand_out()
                for task, result in pool.next_results():
                    self._read(task, result)
                while self._refused and not pool.closed:
                    callback, refusal = self._refused.popleft()
                    callback(refusal)
                self._arguments.limit(pool.monitor.memory)
            except Exception as error:
                self._fail(pool.explain(error))
            if pool.is_waiting and not self._is_wanted():
                self._fail(CancelledError("The task that waits for this call of Parallel was cancelled."))

    def _read(self, task: Task, result: TaskOutcome) -> None:
        if isinstance(result, WorkerLost):
            died = WorkerDied(
                f"Workers died each time that they ran {self.label(task)}: it ran out of memory, so that "
                "Dask ended it, or crashed in native code. The log of the last one may say."
            )
            died.__cause__ = result.error.__cause__  # Dask's error, which names that worker
            result = died
        if isinstance(result, Exception):
            self._end_all(task.items, result)
            return
        for batch, pickled in zip(task.items, result.results, strict=False):
            self._end(batch, read_result(pickled))
        # Later batches did not run: one failed, which has ended the call.
        self._release(task.items[result.n :])

    def _end_all(self, batches: Iterable[Batch], error: Exception) -> None:
        for batch in batches:
            self._end(batch, BatchResult(error=error))

    def _end(self, batch: Batch, result: BatchResult) -> None:
        if not self._take(batch):
            return  # the call is closed
        try:
            batch.callback(result)  # which may submit the next batch, of the same parts
            dispatch_more(batch.callback, self._count_new_tasks())
        except BaseException as error:  # of the caller's generator; joblib itself handles most
            fail_parallel(batch.callback, BatchResult(error=error))
        finally:
            self._arguments.release(batch.packed)

    def _count_new_tasks(self) -> int:
        """Count the tasks to dispatch in addition, because the cluster has grown during the call."""
        before, now = self._most_slots, self._queue.slots
        self._most_slots = max(before, now)
        return TASKS_PER_SLOT * (self._most_slots - before) if self._options.n_jobs < 0 else 0

    def _fail(self, error: Exception) -> None:
        """End all batches with an error of the cluster."""
        self._pool.clear()
        self._end_all(list(self._batches), error)


def _parts(task: Task) -> dict[str, Any]:
    return {key: part for batch in task.items for key, part in batch.packed.parts.items()}


def _label(calls: Calls) -> str:
    mixed = "mixed_" if len({id(_unwrapped(function)) for function, _, _ in calls}) > 1 else ""
    name = "".join(c if c.isalnum() else "_" for c in funcname(_unwrapped(calls[0][0])))
    return f"{mixed}batch_of_{name}"


def _unwrapped(function: Any) -> Any:
    return getattr(function, "__wrapped__", function)  # scikit-learn wraps each anew
