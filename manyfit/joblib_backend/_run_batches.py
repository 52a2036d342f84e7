"""What runs on a worker: the calls of a batch, one after the other."""

import pickle
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Worker, get_worker
from joblib import parallel_config

from manyfit.cluster.worker.cancelled_tasks import runs_of
from manyfit.cluster.worker.content_pickle import is_pickle
from manyfit.cluster.worker.errors import end_if_device_is_lost
from manyfit.cluster.worker.run_items import parts_of, store_of, wanted_on
from manyfit.cluster.worker.task_context import Task, at_task, still_wanted
from manyfit.joblib_backend._array_pickle import unpickled
from manyfit.joblib_backend._batch_result import described, failed, succeeded
from manyfit.joblib_backend._device_arrays import OnDevice
from manyfit.joblib_backend._thread_limits import limited_to


@dataclass(frozen=True)
class Load:
    """Batches that are one task, and how they are run.

    Attributes
    ----------
    batches : sequence of (bytes or str)
        Pickles, or the keys of parts that are those.
    names : dict of str to str
        What Dask calls the parts of the batches, by their keys; an empty text for those that were not there.
    sizes : dict of str to int
        Bytes of the parts.
    copied : int or None
        Each batch has its own copies of arrays smaller than that, and finds others read-only; None: of all.
    threads : int or None
        Threads of BLAS and OpenMP, if they were asked for.
    device : str, tuple of str or None
        Where data of estimators that take them there go, if that was asked for.
    """

    batches: Sequence[bytes | str]
    names: Mapping[str, str]
    sizes: Mapping[str, int]
    copied: int | None = None
    threads: int | None = None
    device: str | tuple[str, str] | None = None


def run(pickled: bytes) -> list[bytes] | tuple[str, ...]:
    """Run the calls of some batches, as long as anybody waits for them.

    Parameters
    ----------
    pickled : bytes
        A `Load`: the scheduler would unpickle what it is given.

    Returns
    -------
    list of bytes, or tuple of str
        What `read` reads, of each batch up to the first that fails; or the parts that could be had from
        nobody, and nothing was run.
    """
    worker = get_worker()
    load: Load = pickle.loads(pickled)
    parts, missing = parts_of(worker, {key: name for key, name in load.names.items() if name}, load.sizes)
    missing = (*missing, *(key for key, name in load.names.items() if not name and key not in parts))
    if missing:
        return missing
    store, outcomes = store_of(worker), []
    with ExitStack() as stack:
        still_wanted = wanted_on(worker)
        stack.enter_context(runs_of(worker).running(still_wanted))
        for key in parts:
            stack.enter_context(store.using(key, still_wanted))
        for batch in load.batches:
            start = time.perf_counter()
            try:
                results = _results(worker, load, parts[batch] if isinstance(batch, str) else batch, parts)
                outcomes.append(succeeded(results, time.perf_counter() - start))
            except (
                BaseException
            ) as error:  # what ends a process elsewhere ends the call, as with other backends
                end_if_device_is_lost(described(error))
                outcomes.append(failed(error))
                break
    return outcomes


def _results(worker: Worker, load: Load, pickled: bytes, parts: Mapping[str, Any]) -> list[Any]:
    made: dict[str, Any] = {}
    calls, (backend, n_jobs) = _loaded(worker, load, pickled, parts, made)
    results, run_one = [], _called
    if load.device is not None:
        run_one = OnDevice(worker, load.device, {id(array): key for key, array in made.items()}).run
    with (
        at_task(Task(wanted_on(worker), _alone(worker), None)),
        parallel_config(backend=backend, n_jobs=n_jobs),
        limited_to(load.threads, _alone(worker)),
    ):
        for function, args, kwargs in calls:
            if not still_wanted():
                break  # nobody reads it
            results.append(run_one(function, args, kwargs))
    return results


def _called(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _loaded(
    worker: Worker, load: Load, pickled: bytes, parts: Mapping[str, Any], made: dict[str, Any]
) -> Any:
    def find(key: str) -> Any:
        if key not in made:
            if is_pickle(key):
                made[key] = unpickled(parts[key], find)  # the batch's own, which it may change
            else:
                part = parts[key]
                own = isinstance(part, np.ndarray) and (load.copied is None or part.nbytes < load.copied)
                made[key] = part.copy(order="K") if own else part
        return made[key]

    try:
        return unpickled(pickled, find)
    except Exception as error:
        if isinstance(error, ImportError | AttributeError):
            error.add_note(
                f"The worker {worker.address} could not load a task. What tasks are made of has to be "
                "importable there: install it, or send it with client.upload_file; what is defined in "
                "__main__ goes along."
            )
        raise


def _alone(worker: Worker) -> bool:
    """Whether a worker has its process for itself, and runs one task at a time."""
    return worker.state.nthreads == 1 and not worker.address.startswith("inproc://")
