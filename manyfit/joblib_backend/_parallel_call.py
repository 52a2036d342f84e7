"""One call of Parallel on a cluster: which batches run, and what becomes of those that fail."""

import contextlib
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from dask.utils import funcname
from distributed import CancelledError, Client, Future, KilledWorker, get_worker

from manyfit._compat import dispatch_more, fail_parallel
from manyfit.cluster import WorkerDied
from manyfit.cluster.inspection.gpu_workers import GPU
from manyfit.cluster.inspection.versions import Versions
from manyfit.cluster.pool.held_workers import tell
from manyfit.cluster.pool.resource_queue import TASKS_PER_SLOT
from manyfit.cluster.pool.results import Results
from manyfit.cluster.pool.worker_monitor import LOOK_AT_LEAST_S, LOOK_S, SchedulerLost
from manyfit.cluster.worker.run_items import wanted_on
from manyfit.joblib_backend._batch_pickle import Calls, Packer
from manyfit.joblib_backend._batch_queue import Batch, Queue, Task
from manyfit.joblib_backend._batch_result import BatchResult, read
from manyfit.joblib_backend._options import Options
from manyfit.joblib_backend._run_batches import Load, run
from manyfit.joblib_backend._shared_arguments import Parts, sizes_of
from manyfit.joblib_backend._workers import BackendWorkers, Needs

# A batch is cancelled by others, or cannot have its parts; as often it is tried again.
MOST_TRIES = 8
# Cancelling waits so long for the scheduler.
CANCEL_S = 5.0


class ParallelCall:
    """Runs the batches of one call of Parallel.

    Parameters
    ----------
    client : Client
        Connected.
    options : Options
        What was asked for.
    takes_gpu : callable
        Whether an argument has its call need a GPU.

    Notes
    -----
    A thread of its own calls joblib back, which then reads the caller's generator of tasks.
    """

    def __init__(self, client: Client, options: Options, takes_gpu: Callable[[Any], bool]) -> None:
        self._client, self._options, self._takes_gpu = client, options, takes_gpu
        self._address = str(getattr(client.scheduler, "address", "an unknown address"))
        self._packer, self._parts = Packer(options.apart_bytes), Parts(client)
        self._there = BackendWorkers(client, options.workers, options.patience)
        self._parts.limit(self._there.memory)
        self._most_slots = self._there.slots(options.needs)
        self._wanted = _wanted_here()
        self._queue, self._results = Queue(options.n_jobs), Results(client)
        self._last = time.monotonic()  # when a task ended
        self._told: set[str] = set()
        self._versions = Versions(client)
        self._versions.require(self._there.workers, wait=True, lenient=True)
        threading.Thread(target=self._serve, name="manyfit-joblib", daemon=True).start()

    # ------------------------------------------------------------------------------- in any thread

    def submit(self, calls: Calls, nested: Any, callback: Callable[[BatchResult], None]) -> None:
        """Have a batch run. What is large is sent now, since the caller may change it afterwards."""
        try:
            batch = self._batch(calls, nested, callback)
            self._parts.hold(batch.packed)
            try:
                self._parts.send(batch.packed.parts, self._there)
            except BaseException:
                self._parts.release(batch.packed)
                raise
        except Exception as error:
            self._results.put(callback, BatchResult(error=error))
        else:
            if not self._queue.add(batch):
                self._parts.release(batch.packed)
            self._results.put(None, None)

    def _batch(self, calls: Calls, nested: Any, callback: Any) -> Batch:
        label = _label(calls)
        try:
            packed = self._packer.pack(calls, nested)
        except Exception as error:
            raise pickle.PicklingError(
                f"Could not pickle the task to send to the workers, {label}: {error!r}"
            ) from error
        needs = self._options.needs
        if not needs and self._there.declares(GPU):
            values = (v for function, args, kwargs in calls for v in (function, *args, *kwargs.values()))
            needs = ((GPU, 1.0),) if any(map(self._takes_gpu, values)) else ()
        return Batch(packed, callback, needs, label, len(calls))

    def close(self) -> None:
        """Cancel what is not done, and let go of everything."""
        if not self._queue.close():
            return
        futures, batches = self._queue.take_all()
        self._results.put(None, None)  # the thread ends
        self._cancel(futures)
        for batch in batches:
            self._parts.release(batch.packed)
        self._parts.end()

    def _cancel(self, futures: Sequence[Future]) -> None:
        async def cancel() -> None:
            await self._client.cancel(futures, asynchronous=True, force=True)

        if futures and self._client.status == "running":
            with contextlib.suppress(OSError, CancelledError, RuntimeError):  # it goes away now
                self._client.sync(cancel, callback_timeout=CANCEL_S)
        for future in futures:
            with contextlib.suppress(Exception):  # the client is closed, and its loop with it
                self._results.give_up(future)
            future.release()

    # ------------------------------------------------------------------------------- in our thread

    def _serve(self) -> None:
        while not self._queue.closed:
            try:
                while (task := self._queue.next(self._there)) is not None:
                    self._hand_out(task)
                arrived = self._results.get(timeout=LOOK_S)
                source, came = arrived or (None, None)
                if arrived is None or time.monotonic() - self._there.looked > LOOK_AT_LEAST_S:
                    self._look()
                if came is not None:
                    self._took(source, came)
            except Exception as error:
                self._fail(error)

    def _hand_out(self, task: Task, like: Future | None = None) -> None:
        parts, options = task.parts, self._options
        only = tuple(sorted(self._there.able)) if self._there.stuck.workers else ()
        task = replace(task, names=self._parts.names(parts), only=only if options.workers is not None else ())
        batches = [batch.packed.whole or batch.packed.pickled for batch in task.batches]
        sizes = sizes_of(parts)
        load = pickle.dumps(Load(batches, task.names, sizes, options.copied, options.threads, options.device))

        workers = list(only or options.workers or ()) or None

        def submit() -> Future:
            return self._client.submit(
                run,
                load,
                key=f"{task.label}-{uuid4().hex}",
                resources=dict(task.needs) or None,
                workers=workers,
                allow_other_workers=workers is not None and options.workers is None,
                priority=options.priority,
                pure=False,
            )

        try:
            future = self._queue.run(task, submit, like)
        except Exception as error:  # the client was closed
            if like is None:
                self._end_all(task.batches, self._explained(error))
            return
        if future is not None:
            self._results.watch(future)
        elif like is None:
            self._release(task)

    def _took(self, source: Any, came: Any) -> None:
        if isinstance(came, BatchResult):  # of a batch that was not sent
            if not self._queue.closed:
                source(came)
            return
        task, copies = self._queue.pop(source)
        if task is None:
            return  # cancelled
        self._last, status = time.monotonic(), source.status
        source.release()  # whatever still refers to it would have Dask keep its outcome
        if isinstance(came, list | KilledWorker) or (isinstance(came, Exception) and status == "error"):
            for copy in copies:
                self._queue.pop(copy)
            self._cancel(copies)
        if isinstance(came, list):
            self._done(task, came)
        elif isinstance(came, KilledWorker):
            died = WorkerDied(
                f"Workers died each time that they ran {task.label}: it ran out of memory, so that Dask "
                "ended it, or crashed in native code. The log of the last one may say."
            )
            died.__cause__ = came
            self._end_all(task.batches, died)
        elif isinstance(came, Exception) and status == "error":
            self._end_all(task.batches, came)
        else:  # it lacked something, was cancelled by others, or is lost
            self._try_again(task, came if isinstance(came, tuple) else (), copies)

    def _done(self, task: Task, came: list[bytes]) -> None:
        for batch, outcome in zip(task.batches, map(read, came), strict=False):
            if outcome.seconds:
                self._queue.took(outcome.seconds)
            self._end(batch, outcome)
        # Others were not run since one failed, which has ended the call.
        for batch in task.batches[len(came) :]:
            self._parts.release(batch.packed)

    def _try_again(self, task: Task, missing: Sequence[str], copies: Sequence[Future]) -> None:
        try:
            self._look(also=task.needs)
            if task.tries >= MOST_TRIES:
                raise RuntimeError(
                    f"{task.label} was lost or cancelled {task.tries} times: the cluster at {self._address} "
                    "does not keep its workers. Their logs may say why."
                )
            self._parts.send_again(task.parts, task.names, missing, self._there)
        except Exception as error:
            if not copies:
                self._end_all(task.batches, error)
            raise
        if not copies:
            self._put_back(replace(task, tries=task.tries + 1))

    def _put_back(self, task: Task) -> None:
        if not self._queue.add_again(task):
            self._release(task)

    def _release(self, task: Task) -> None:
        for batch in task.batches:
            self._parts.release(batch.packed)

    def _end_all(self, batches: Sequence[Batch], error: Exception) -> None:
        for batch in batches:
            self._end(batch, BatchResult(error=error))

    def _end(self, batch: Batch, outcome: BatchResult) -> None:
        try:
            if not self._queue.closed:
                batch.callback(outcome)  # which may submit the next one, of the same parts
                dispatch_more(batch.callback, self._grown())
        except BaseException as error:  # of the caller's generator; joblib itself handles most
            fail_parallel(batch.callback, BatchResult(error=error))
        finally:
            self._parts.release(batch.packed)

    def _grown(self) -> int:
        """How many more tasks are to be under way, since there are more slots than so far in this call."""
        before, now = self._most_slots, self._there.slots(self._options.needs)
        self._most_slots = max(before, now)
        return TASKS_PER_SLOT * (self._most_slots - before) if self._options.n_jobs < 0 else 0

    def _fail(self, error: Exception) -> None:
        """End all batches with an error that is none of theirs."""
        error = self._explained(error)
        futures, batches = self._queue.take_all()
        self._cancel(futures)
        self._end_all(batches, error)

    def _explained(self, error: Exception) -> Exception:
        if self._client.status == "running" or isinstance(error, SchedulerLost):
            return error
        lost = self._lost()
        lost.__cause__ = error
        return lost

    # ------------------------------------------------------------------------------- who is there

    def _look(self, also: Needs | None = None) -> None:
        needs = self._queue.needs | ({also} if also is not None else set())
        if not needs:
            return
        if self._client.status != "running":
            raise self._lost()
        if not self._wanted():
            raise CancelledError("The task that waits for this call of Parallel was cancelled.")
        self._there.look(needs, self._queue.running, time.monotonic() - self._last)
        self._parts.limit(self._there.memory)
        self._versions.require(self._there.workers, lenient=True)
        reasons = {one: why for one, why in self._there.stuck.reasons().items() if one not in self._told}
        if reasons:
            self._told.update(reasons)
            tell(_warn, "A call of Parallel", self._address, reasons)
        self._take_back()
        self._unstick()

    def _take_back(self) -> None:
        """Take back tasks that may run on workers only which are there no more."""
        for future, task in self._queue.stranded(self._there):
            _, copies = self._queue.pop(future)
            self._cancel([future])
            if not copies:
                self._put_back(replace(task, tries=task.tries + 1))

    def _unstick(self) -> None:
        """Hand out once more what sits on workers that do not get to it, where others have nothing to do."""
        for future, task in self._queue.to_copy(self._there):
            self._hand_out(replace(task, tries=task.tries + 1), like=future)
            if str(future.key) in self._there.stuck.lost:
                self._results.give_up(future)

    def _lost(self) -> Exception:
        return SchedulerLost(
            f"The scheduler at {self._address} went away in the middle of a call of Parallel (the client is "
            f"{self._client.status!r}). Connect a new client, and start again."
        )


def _label(calls: Calls) -> str:
    """What the dashboard shows, as of joblib's backend for Dask."""
    mixed = "mixed_" if len({id(_plain(function)) for function, _, _ in calls}) > 1 else ""
    name = "".join(c if c.isalnum() else "_" for c in funcname(_plain(calls[0][0])))
    return f"{mixed}batch_of_{name}"


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _plain(function: Any) -> Any:
    return getattr(function, "__wrapped__", function)  # scikit-learn wraps each anew


def _wanted_here() -> Callable[[], bool]:
    """Whether anybody waits for the task that this is called in, if it is one."""
    try:
        return wanted_on(get_worker())
    except ValueError:
        return lambda: True
