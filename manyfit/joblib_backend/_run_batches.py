"""Run the function calls of batches on a worker."""

import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Worker, get_worker
from joblib import parallel_config

from manyfit.cluster.worker.content_pickle import PartNames, is_pickle, unpack
from manyfit.cluster.worker.errors import end_if_device_is_lost
from manyfit.cluster.worker.fetch import fetch_parts
from manyfit.cluster.worker.run_items import TaskRun, running_task
from manyfit.cluster.worker.task_context import still_wanted
from manyfit.joblib_backend._batch_result import describe_error, pickle_error, pickle_results
from manyfit.joblib_backend._device_arrays import DeviceCalls
from manyfit.joblib_backend._thread_limits import limit_threads


@dataclass(frozen=True)
class BatchTask:
    """Batches that are one task, and how to run them."""

    batches: Sequence[bytes | str]  # pickles, or keys of parts that are pickles
    parts: PartNames  # parts of all batches
    copied: int | None = None  # calls get copies of smaller arrays, others read-only; None: all copies
    threads: int | None = None  # threads of BLAS and OpenMP; None changes nothing
    device: str | tuple[str, str] | None = None  # device for the data of estimators that support it


def run_batches(pickled: bytes) -> TaskRun:
    """Run batches up to the first that fails, while they are wanted.

    `pickled` is a `BatchTask`, which the scheduler is not to unpickle. The results of the run are what
    `read_result` reads, one for each batch.
    """
    worker = get_worker()
    task: BatchTask = pickle.loads(pickled)
    parts, missing = fetch_parts(worker, task.parts)
    if missing:
        return TaskRun(missing=missing)
    results, start = [], time.perf_counter()
    with running_task(worker, parts):
        for batch in task.batches:
            try:
                content = parts[batch] if isinstance(batch, str) else batch
                results.append(pickle_results(_results(worker, task, content, parts)))
            except BaseException as error:  # an exit ends the call, as with other backends
                end_if_device_is_lost(describe_error(error))
                results.append(pickle_error(error))
                break
    return TaskRun(len(results), results, time.perf_counter() - start)


def _results(worker: Worker, task: BatchTask, pickled: bytes, parts: Mapping[str, Any]) -> list[Any]:
    made: dict[str, Any] = {}
    calls, (backend, n_jobs) = _loaded(worker, task, pickled, parts, made)
    results, run_one = [], _call
    if task.device is not None:
        run_one = DeviceCalls(worker, task.device, {id(array): key for key, array in made.items()}).run
    # Whether the worker has its process for itself, and runs one task at a time.
    single_thread = worker.state.nthreads == 1 and not worker.address.startswith("inproc://")
    with (
        parallel_config(backend=backend, n_jobs=n_jobs),
        limit_threads(task.threads, single_thread),
    ):
        for function, args, kwargs in calls:
            if not still_wanted():
                break  # the call was cancelled
            results.append(run_one(function, args, kwargs))
    return results


def _call(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _loaded(
    worker: Worker, task: BatchTask, pickled: bytes, parts: Mapping[str, Any], made: dict[str, Any]
) -> Any:
    def find(key: str) -> Any:
        if key not in made:
            if is_pickle(key):
                made[key] = unpack(parts[key], find)  # the batch's own, which it may change
            else:
                part = parts[key]
                own = isinstance(part, np.ndarray) and (task.copied is None or part.nbytes < task.copied)
                made[key] = part.copy(order="K") if own else part
        return made[key]

    try:
        return unpack(pickled, find)
    except Exception as error:
        if isinstance(error, ImportError | AttributeError):
            error.add_note(
                f"The worker {worker.address} could not load a task. The modules of its functions "
                "and arguments must be importable on the worker: install them, or send them with "
                "client.upload_file. Definitions in __main__ are sent with the task."
            )
        raise
