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
from distributed import Worker, get_worker
from distributed.system import MEMORY_LIMIT
from distributed.utils import sync
from distributed.utils_comm import gather_from_workers, retry_operation

from manyfit.arrays import to_place
from manyfit.cluster.worker._heartbeats import WATCH_S, Heartbeats
from manyfit.cluster.worker._memory_guard import MemoryGuard, MemoryRoom, RoomWait
from manyfit.cluster.worker._store import Store
from manyfit.cluster.worker.content_pickle import array_key, device_key, is_pickle, place_array, unpack
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
            _guards[worker] = MemoryGuard(worker, store)
            worker.loop.add_callback(_guards[worker].start)
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


def fetch_package(worker: Worker, key: str, name: str | None) -> tuple[Any, tuple[str, ...]]:
    """Return the content of a package, or the keys of the parts that no worker has."""
    store = get_store(worker)
    with _one_thread(store, key):
        found = store.find([key])
        missing = () if key in found or name is None else _make(worker, store, key, name, found)
    return (found[key], ()) if key in found else (None, missing or (key,))


def _make(worker: Worker, store: Store, key: str, name: str, found: dict[str, Any]) -> tuple[str, ...]:
    """Fetch what this worker lacks of a package, and unpickle it into `found`; return the missing parts."""
    package = _fetch(worker, [name])
    if name not in package:
        return (key,)
    pickled, names, sizes = package[name]
    found.update(store.find(names))
    needed = {names[one]: one for one in names if one not in found}
    _wait_for_room(worker, key, needed, sizes)
    parts = {needed[one]: value for one, value in _fetch(worker, list(needed)).items()}
    if len(parts) < len(needed):
        return tuple(one for one in needed.values() if one not in parts)
    for part, array in parts.items():
        if not is_pickle(part):
            found[part] = place_array(part, array)
            store.add(part, found[part], array.nbytes)
    for part in parts:
        if is_pickle(part):
            _unpack(store, part, parts[part], found)
    _unpack(store, key, pickled, found, also=names)
    return ()


def fetch_parts(
    worker: Worker, names: Mapping[str, str], sizes: Mapping[str, int]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return parts, and the keys of those that no worker has.

    `names` is what Dask calls each part, and `sizes` its bytes, by key.
    """
    store = get_store(worker)
    found = store.find(names)
    if len(found) == len(names):
        return found, ()
    with _one_thread(store, ""):
        found |= store.find(names)
        needed = {names[key]: key for key in names if key not in found}
        _wait_for_room(worker, "", needed, sizes)
        for name, part in _fetch(worker, list(needed)).items():
            key = needed[name]
            found[key] = part if is_pickle(key) else place_array(key, part)
            store.add(key, found[key], sizes[key])
    return found, tuple(key for key in names if key not in found)


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


def _wait_for_room(worker: Worker, key: str, needed: Mapping[str, str], sizes: Mapping[str, int]) -> None:
    """Wait for memory for the parts that are not in this worker's memory."""
    in_memory = getattr(worker.data, "fast", worker.data)  # not what Dask has written to disk
    nbytes = sum(sizes[part] for name, part in needed.items() if name not in in_memory)
    wait, is_wanted = RoomWait(), make_wanted_check(worker)
    while not (room := sync(worker.loop, make_room_for, nbytes, key, dask_worker=worker)).fits:
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


def _unpack(
    store: Store, key: str, pickled: bytes, found: dict[str, Any], also: Mapping[str, str] | None = None
) -> None:
    held = set(also or ())

    def find(name: str) -> Any:
        held.add(name)
        return found[name]

    found[key] = load_with_note(get_worker(), lambda: unpack(pickled, find))
    inside = sum(getattr(found[name], "nbytes", 0) for name in held)
    nbytes = len(pickled) if also is not None else max(len(pickled), sizeof(found[key]) - inside)
    store.add(key, found[key], nbytes, held)


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
