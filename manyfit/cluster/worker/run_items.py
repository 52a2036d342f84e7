"""What runs on a worker: items of a run, one after the other, on parts that it fetches when it lacks them."""

import asyncio
import signal
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from dask.sizeof import sizeof
from dask.utils import format_bytes
from distributed import Worker, WorkerPlugin, get_worker
from distributed.system import MEMORY_LIMIT
from distributed.utils import sync
from distributed.utils_comm import gather_from_workers, retry_operation

from manyfit.arrays import to_place
from manyfit.cluster.worker._heartbeats import WATCH_S, Heartbeats
from manyfit.cluster.worker._memory_guard import MemoryGuard, MemoryRoom, Patience
from manyfit.cluster.worker._store import Store
from manyfit.cluster.worker.cancelled_tasks import runs_of
from manyfit.cluster.worker.content_pickle import array_key, is_pickle, key_at, placed, unpacked
from manyfit.cluster.worker.errors import end_if_device_is_lost
from manyfit.cluster.worker.task_context import PartialResult, Task, at_task, still_wanted

# A task that has taken longer hands the rest of its items back, for others to take.
LONGEST_TASK_S = 2.0
# The part of a worker's memory that parts of searches may take.
STORED_PART = 0.5
# How often a worker is asked whether it has room now.
WAIT_S = 0.2


@dataclass
class TaskRun:
    """What a task came to.

    Attributes
    ----------
    n : int
        How many of its items were run: the first ones.
    results : bytes
        Their results, pickled within the task, so that what cannot be pickled is an error of the task. With
        them, what is left of the last one, if it was handed back, as a tuple.
    seconds : float
    missing : tuple of str
        Parts that could be had from nobody; nothing was run then.
    """

    n: int = 0
    results: bytes = b""
    seconds: float = 0.0
    missing: tuple[str, ...] = ()


_stores: "weakref.WeakKeyDictionary[Worker, Store]" = weakref.WeakKeyDictionary()
_keepers: "weakref.WeakKeyDictionary[Worker, MemoryGuard]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_making: defaultdict[tuple[int, str], threading.Lock] = defaultdict(threading.Lock)


def store_of(worker: Worker) -> Store:
    """The store of a worker, made by the first task that keeps something."""
    with _lock:
        if worker not in _stores:
            limit = worker.memory_manager.memory_limit or MEMORY_LIMIT
            _stores[worker] = store = Store(int(STORED_PART * limit))
            _keepers[worker] = MemoryGuard(worker, store)
            worker.loop.add_callback(_keepers[worker].start)
        return _stores[worker]


async def drop(keys: Sequence[str], dask_worker: Worker) -> None:
    """Let go of what was kept."""
    if dask_worker in _stores:
        _stores[dask_worker].drop(keys)


async def room_for(nbytes: int, key: str, dask_worker: Worker) -> MemoryRoom:
    """Whether so many bytes for a package fit into a worker, which lets go of what no task uses."""
    store_of(dask_worker)
    return _keepers[dask_worker].make_room(nbytes, key)


def run(pickled: bytes, key: str, name: str | None) -> TaskRun:
    """Run a function on each of some items, until that takes too long or nobody wants it any more.

    Parameters
    ----------
    pickled : bytes
        The function and the items. The scheduler, which need not know their types, unpickles nothing.
    key : str
        Of the package that is the function's second argument.
    name : str or None
        What Dask calls it, to have it from another worker.
    """
    worker = get_worker()
    still_wanted = wanted_on(worker)
    with store_of(worker).using(key, still_wanted), runs_of(worker).running(still_wanted):
        return _run(worker, pickled, key, name)


def _run(worker: Worker, pickled: bytes, key: str, name: str | None) -> TaskRun:
    start = time.perf_counter()
    common, missing = _common(worker, key, name)
    if missing:
        return TaskRun(missing=missing)
    function: Callable[[Any, Any], Any]
    function, items = _here(worker, lambda: cloudpickle.loads(pickled))
    results: list[Any] = []
    rest: tuple[Any, ...] = ()
    left: dict[str, Any] | None = {} if len(items) > 1 else None
    with at_task(Task(wanted_on(worker), worker.state.nthreads == 1, left)):
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


def _here(worker: Worker, load: Callable[[], Any]) -> Any:
    """What is loaded; an error, as of a module that is not there, says where."""
    try:
        return load()
    except Exception as error:
        error.add_note(f"The worker {worker.address} cannot load what the search sends.")
        raise


def wanted_on(worker: Worker) -> Callable[[], bool]:
    """Whether anybody still waits for the task that this thread runs, as a function."""
    task = worker.state.tasks.get(worker.get_current_task())
    return lambda: task is None or task.state != "cancelled"


class NotInterrupted(WorkerPlugin):  # type: ignore[misc]
    """Has worker processes leave an interrupt to the client: a terminal sends it to all processes at once."""

    name = "manyfit-not-interrupted"

    def setup(self, worker: Worker) -> None:
        """Take it and do nothing, which, unlike ignoring it, a program that a fit starts does not inherit."""
        # Workers within the client's process run in another thread.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, lambda *_: None)


# ------------------------------------------------------------------------------------ packages


def _common(worker: Worker, key: str, name: str | None) -> tuple[Any, tuple[str, ...]]:
    """What a package holds, or what is missing to make it."""
    store = store_of(worker)
    with _lock:
        making = _making[id(store), key]
    with making:  # one thread makes it, and the others of this worker wait for that
        found = store.find([key])
        missing = () if key in found or name is None else _make(worker, store, key, name, found)
    with _lock:
        _making.pop((id(store), key), None)
    return (found[key], ()) if key in found else (None, missing or (key,))


def _make(worker: Worker, store: Store, key: str, name: str, found: dict[str, Any]) -> tuple[str, ...]:
    """Fetch what this worker lacks of a package, and put it together; what could not be had."""
    came = _fetch(worker, [name])
    if name not in came:
        return (key,)
    pickled, names, sizes = came[name]
    found.update(store.find(names))
    needed = {names[one]: one for one in names if one not in found}
    here = getattr(worker.data, "fast", worker.data)  # in memory, not on disk
    _wait_for_room(worker, key, sum(sizes[one] for name, one in needed.items() if name not in here))
    parts = {needed[one]: value for one, value in _fetch(worker, list(needed)).items()}
    if len(parts) < len(needed):
        return tuple(one for one in needed.values() if one not in parts)
    for part, array in parts.items():
        if not is_pickle(part):
            found[part] = placed(part, array)
            store.add(part, found[part], array.nbytes)
    for part in parts:
        if is_pickle(part):
            _unpack(store, part, parts[part], found)
    _unpack(store, key, pickled, found, also=names)
    return ()


def parts_of(
    worker: Worker, names: Mapping[str, str], sizes: Mapping[str, int]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Parts that travelled each for itself, arrays and pickles, and the keys of those that nobody has.

    Parameters
    ----------
    worker : distributed.Worker
    names : mapping of str to str
        What Dask calls each, by its key.
    sizes : mapping of str to int
        Bytes.
    """
    store = store_of(worker)
    found = store.find(names)
    if len(found) == len(names):
        return found, ()
    with _lock:
        fetching = _making[id(store), ""]
    with fetching:  # one thread fetches what several need
        found |= store.find(names)
        needed = {names[key]: key for key in names if key not in found}
        here = getattr(worker.data, "fast", worker.data)
        _wait_for_room(worker, "", sum(sizes[key] for name, key in needed.items() if name not in here))
        for name, part in _fetch(worker, list(needed)).items():
            key = needed[name]
            found[key] = part if is_pickle(key) else placed(key, part)
            store.add(key, found[key], sizes[key])
    return found, tuple(key for key in names if key not in found)


def on_place(worker: Worker, key: str | None, host: Any, place: tuple[str, str]) -> Any:
    """An array on this worker's device, brought there once; it goes with the part that it is.

    Parameters
    ----------
    worker : distributed.Worker
    key : str or None
        Of the part; None is an array that travelled in its task, and is known by its content.
    host : numpy.ndarray
    place : tuple of str
        As `to_place` takes it.
    """
    store, key = store_of(worker), key or array_key(host)
    there = key_at(key, place)
    with _lock:
        making = _making[id(store), there]
    with making:
        found = store.find([there])
        if not found:
            found = {there: to_place(host, place)}
            store.add(there, found[there], host.nbytes, holds=[key])
    with _lock:
        _making.pop((id(store), there), None)
    return found[there]


def _wait_for_room(worker: Worker, key: str, nbytes: int) -> None:
    patience, still_wanted = Patience(), wanted_on(worker)
    while not (room := sync(worker.loop, room_for, nbytes, key, dask_worker=worker)).fits:
        if patience.ends(room) or not still_wanted():
            raise MemoryError(
                f"The data of the search take {format_bytes(nbytes)}, and the worker {worker.address} "
                f"{room}. Give workers more memory, or have fewer on a machine."
            )
        time.sleep(WAIT_S)  # tasks of other searches end


def _unpack(
    store: Store, key: str, pickled: bytes, found: dict[str, Any], also: Mapping[str, str] | None = None
) -> None:
    held = set(also or ())

    def find(name: str) -> Any:
        held.add(name)
        return found[name]

    found[key] = _here(get_worker(), lambda: unpacked(pickled, find))
    inside = sum(getattr(found[name], "nbytes", 0) for name in held)
    nbytes = len(pickled) if also is not None else max(len(pickled), sizeof(found[key]) - inside)
    store.add(key, found[key], nbytes, held)


def _fetch(worker: Worker, names: Sequence[str]) -> dict[str, Any]:
    """What Dask holds under these names, of this worker or of others; without those that nobody has."""

    async def fetch() -> dict[str, Any]:
        there = {name: worker.data[name] for name in names if name in worker.data}
        others = [name for name in names if name not in there]
        if others:
            who_has = await retry_operation(worker.scheduler.who_has, keys=others)
            there.update(await _gathered(worker, who_has))
        return there

    return sync(worker.loop, fetch) if names else {}  # type: ignore[no-any-return]


async def _gathered(worker: Worker, who_has: Mapping[Any, Sequence[str]]) -> dict[str, Any]:
    """Data of other workers, as long as these answer."""
    heartbeats = Heartbeats()
    while who_has:
        gathering = asyncio.ensure_future(gather_from_workers(who_has, rpc=worker.rpc, who=worker.address))
        silent: frozenset[str] = frozenset()
        try:
            while not (await asyncio.wait([gathering], timeout=WATCH_S))[0] and not silent:
                heartbeats.look((await worker.scheduler.identity(n_workers=-1))["workers"])
                silent = heartbeats.silent & {one for holders in who_has.values() for one in holders}
            if gathering.done():
                came, *_ = gathering.result()
                return {name: came[name] for name in who_has if name in came}
        finally:
            gathering.cancel()
        left = {name: [one for one in holders if one not in silent] for name, holders in who_has.items()}
        who_has = {name: holders for name, holders in left.items() if holders}
    return {}
