"""Fetch data of searches and calls of Parallel to a worker, and keep them in its store."""

import asyncio
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dask.sizeof import sizeof
from dask.utils import format_bytes
from distributed import Worker
from distributed.system import MEMORY_LIMIT
from distributed.utils import sync
from distributed.utils_comm import gather_from_workers, retry_operation

from manyfit.arrays import to_place
from manyfit.cluster.worker._heartbeats import WATCH_S, Heartbeats
from manyfit.cluster.worker._memory_guard import MemoryGuard, MemoryRoom, RoomWait
from manyfit.cluster.worker._store import Store
from manyfit.cluster.worker.cancelled_tasks import check_periodically
from manyfit.cluster.worker.content_pickle import (
    PartNames,
    array_key,
    device_key,
    is_pickle,
    place_array,
    unpack,
)
from manyfit.cluster.worker.task_context import make_wanted_check

# Share of a worker's memory that its store may take.
STORED_PART = 0.5
# Seconds between two questions to a worker whether it has memory.
WAIT_S = 0.2

_stores: "weakref.WeakKeyDictionary[Worker, Store]" = weakref.WeakKeyDictionary()
_guards: "weakref.WeakKeyDictionary[Worker, MemoryGuard]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_part_locks: defaultdict[tuple[int, str], threading.Lock] = defaultdict(threading.Lock)


def get_store(worker: Worker) -> Store:
    """Return the store of a worker; the first call makes it."""
    with _lock:
        if worker not in _stores:
            limit = worker.memory_manager.memory_limit or MEMORY_LIMIT
            _stores[worker] = store = Store(int(STORED_PART * limit))
            _guards[worker] = guard = MemoryGuard(worker, store)
            check_periodically(worker, "manyfit-memory", guard.check)
        return _stores[worker]


async def drop_parts(keys: Sequence[str], dask_worker: Worker) -> None:
    """Drop parts from the store of a worker."""
    if dask_worker in _stores:
        _stores[dask_worker].drop(keys)


async def make_room_for(nbytes: int, key: str, dask_worker: Worker) -> MemoryRoom:
    """Free memory of a worker until so many bytes for a package fit, if that is possible."""
    get_store(dask_worker)
    return _guards[dask_worker].make_room(nbytes, key)


@contextmanager
def _one_thread(store: Store, key: str) -> Iterator[None]:
    """Have one thread of a worker make a part, while others wait; an empty key is any part."""
    with _lock:
        lock = _part_locks[id(store), key]
    with lock:
        yield
    if key:
        with _lock:
            _part_locks.pop((id(store), key), None)


def fetch_parts(
    worker: Worker, parts: PartNames, package: str = ""
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return parts, and the keys of those that no worker has.

    Pickles are returned as they are or, if `package` is the key of the one that refers to all other parts,
    unpickled. The worker keeps what is returned.
    """
    store, wanted = get_store(worker), [package] if package else list(parts)
    found = store.find(wanted)
    if len(found) == len(wanted):
        return found, ()
    with _one_thread(store, package):
        found = store.find(parts)
        needed = {key: name for key, (name, _) in parts.items() if key not in found}
        _wait_for_room(worker, package, needed, parts)
        fetched = _fetch(worker, [name for name in needed.values() if name])
        missing = tuple(key for key, name in needed.items() if name not in fetched)
        for key, name in needed.items():  # a pickle comes after the parts that it refers to
            held, (_, nbytes) = set[str](), parts[key]
            if name not in fetched or (package and missing and is_pickle(key)):
                continue
            if not is_pickle(key):
                found[key] = place_array(key, fetched[name])
            elif not package:
                found[key] = fetched[name]
            else:
                found[key], held = _unpickle(worker, fetched[name], found)
                inside = sum(getattr(found[one], "nbytes", 0) for one in held)
                nbytes = max(nbytes, sizeof(found[key]) - inside)
            store.add(key, found[key], nbytes, parts.keys() - {key} if key == package else held)
    return found, missing


def _unpickle(worker: Worker, pickled: bytes, found: Mapping[str, Any]) -> tuple[Any, set[str]]:
    """Unpickle a part of a package; return it, and the keys of the parts in it."""
    held = set[str]()

    def find(key: str) -> Any:
        held.add(key)
        return found[key]

    return load_with_note(worker, lambda: unpack(pickled, find)), held


def to_worker_device(worker: Worker, key: str | None, host: Any, place: tuple[str, str]) -> Any:
    """Copy an array to a device of this worker, once; `key` is that of its part, if it is one.

    The copy is dropped with the part.
    """
    store, key = get_store(worker), key or array_key(host)
    copy = device_key(key, place)
    with _one_thread(store, copy):
        found = store.find([copy])
        if not found:
            found = {copy: to_place(host, place)}
            store.add(copy, found[copy], host.nbytes, holds=[key])
    return found[copy]


def _wait_for_room(worker: Worker, package: str, needed: Mapping[str, str], parts: PartNames) -> None:
    """Wait for memory for the parts that are not in this worker's memory."""
    in_memory = getattr(worker.data, "fast", worker.data)  # not what Dask has written to disk
    nbytes = sum(parts[key][1] for key, name in needed.items() if name not in in_memory)
    wait, is_wanted = RoomWait(), make_wanted_check(worker)
    while not (room := sync(worker.loop, make_room_for, nbytes, package, dask_worker=worker)).fits:
        if wait.is_over(room) or not is_wanted():
            raise MemoryError(
                f"The data of the search take {format_bytes(nbytes)}, and the worker {worker.address} "
                f"{room}. Give workers more memory, or start fewer on a machine."
            )
        time.sleep(WAIT_S)  # tasks of other searches end


def load_with_note(worker: Worker, load: Callable[[], Any]) -> Any:
    """Unpickle something; an error, such as of a missing module, names the worker."""
    try:
        return load()
    except Exception as error:
        error.add_note(f"The worker {worker.address} cannot load what the search sends.")
        raise


def _fetch(worker: Worker, names: Sequence[str]) -> dict[str, Any]:
    """Fetch Dask's data of these names from this worker or others; names that no worker has are left out."""

    async def fetch() -> dict[str, Any]:
        found = {name: worker.data[name] for name in names if name in worker.data}
        others = [name for name in names if name not in found]
        if others:
            who_has = await retry_operation(worker.scheduler.who_has, keys=others)
            found.update(await _gather(worker, who_has))
        return found

    return sync(worker.loop, fetch) if names else {}  # type: ignore[no-any-return]


async def _gather(worker: Worker, who_has: Mapping[Any, Sequence[str]]) -> dict[str, Any]:
    """Fetch data of other workers, as long as these answer."""
    heartbeats = Heartbeats()
    while who_has:
        gathering = asyncio.ensure_future(gather_from_workers(who_has, rpc=worker.rpc, who=worker.address))
        silent: frozenset[str] = frozenset()
        try:
            while not (await asyncio.wait([gathering], timeout=WATCH_S))[0] and not silent:
                heartbeats.update((await worker.scheduler.identity(n_workers=-1))["workers"])
                silent = heartbeats.silent & {one for holders in who_has.values() for one in holders}
            if gathering.done():
                gathered, *_ = gathering.result()
                return {name: gathered[name] for name in who_has if name in gathered}
        finally:
            gathering.cancel()
        left = {name: [one for one in holders if one not in silent] for name, holders in who_has.items()}
        who_has = {name: holders for name, holders in left.items() if holders}
    return {}
