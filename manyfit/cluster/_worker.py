"""What runs on a worker: keep what was sent, and items of a run one after the other."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from distributed import get_worker
from distributed.system import MEMORY_LIMIT

from manyfit.cluster._died import end_if_device_is_lost
from manyfit.cluster._store import Missing, Store

# A task that has taken longer hands the rest of its items back, for others to take.
LONGEST_TASK_S = 2.0
# The part of a worker's memory that arrays of searches may take.
STORED_PART = 0.5


@dataclass
class Ran:
    """What a task came to.

    Attributes
    ----------
    n : int
        How many of its items were run: the first ones.
    results : bytes
        Their results, pickled within the task, so that what cannot be pickled is an error of the task.
    seconds : float
    worker : str
        Address.
    missing : bool
        Whether the worker did not have the package; nothing was run then.
    """

    worker: str
    n: int = 0
    results: bytes = b""
    seconds: float = 0.0
    missing: bool = False


_stores: list[Store] = []
_making = threading.Lock()


def store() -> Store:
    """The store of this process, made by the first task that keeps something."""
    with _making:
        if not _stores:
            limit = getattr(getattr(get_worker(), "memory_manager", None), "memory_limit", None)
            _stores.append(Store(int(STORED_PART * (limit or MEMORY_LIMIT))))
        return _stores[0]


def keep(key: str, pickled: bytes, arrays: dict[str, Any]) -> str:
    """Keep a package on this worker; returns the worker's address, or what was missing raises."""
    store().put(pickled, key, arrays)
    return str(get_worker().address)


async def drop(keys: Sequence[str]) -> None:
    """Let go of what was kept; a coroutine, so that nobody has to wait for it."""
    for one in _stores:
        one.drop(keys)


def run(pickled: bytes, key: str) -> Ran:
    """Run a function on each of some items, until that takes too long or nobody wants it any more.

    Parameters
    ----------
    pickled : bytes
        The function and the items. The scheduler, which need not know their types, unpickles nothing.
    key : str
        Of the package that is the function's second argument.
    """
    worker = get_worker()
    start = time.perf_counter()
    ran = Ran(str(worker.address))
    try:
        common = store().get(key)
    except Missing:
        ran.missing = True
        return ran
    function: Callable[[Any, Any], Any]
    function, items = cloudpickle.loads(pickled)
    wanted = _wanted(worker)
    results = []
    for item in items:
        try:
            results.append(function(item, common))
        except Exception as error:
            end_if_device_is_lost(f"{type(error).__name__}: {error}")
            raise
        ran.seconds = time.perf_counter() - start
        if ran.seconds > LONGEST_TASK_S or not wanted():
            break
    ran.n, ran.results = len(results), cloudpickle.dumps(results)
    return ran


def _wanted(worker: Any) -> Callable[[], bool]:
    task = worker.state.tasks.get(worker.get_current_task())
    return lambda: task is None or task.state != "cancelled"
