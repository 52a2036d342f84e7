"""Data that a client has sent to its cluster, so that nothing is sent twice.

Each part of a package is sent to one worker, as scattered data of Dask. Other workers fetch it from there
when a task first needs it, so that nothing waits for a worker that is busy, paused or gone.
"""

import asyncio
import contextlib
import sys
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from typing import Any
from uuid import uuid4

from dask.utils import format_bytes
from distributed import Client, Future, LocalCluster

from manyfit._compat import wait_for_restarts
from manyfit.cluster.inspection.scheduler_info import call_soon_in_loop
from manyfit.cluster.pool._retention import RetainedParts
from manyfit.cluster.worker._heartbeats import call_with_worker
from manyfit.cluster.worker._memory_guard import MemoryRoom, RoomWait
from manyfit.cluster.worker.content_pickle import Package, PartNames, is_pickle, part_sizes
from manyfit.cluster.worker.fetch import WAIT_S, drop_parts, make_room_for

# Seconds that a worker has to say whether it has memory.
ANSWER_S = 5.0
# Seconds to try to have workers drop data. Workers that are not reached drop them after ten minutes.
DROP_S = 60.0
FOREVER_S = 86400.0
# Least size in bytes of data for which a worker first has to have the memory.
LARGE = 16 * 2**20
# Seconds that data wait for memory before a warning.
WARN_ROOM_S = 10.0
# Seconds until the next try to release data while a search sends some.
TIDY_S = 0.05


class Placement:
    """Data of one client on its cluster; `get_placement` returns it."""

    def __init__(self, client: Client) -> None:
        self._client = weakref.ref(client)
        self._sent: dict[str, Future] = {}
        self._in_use: Counter[str] = Counter()
        self.retained = RetainedParts(self._tidy_soon)
        self._lock = threading.Lock()

    @property
    def client(self) -> Client:
        """The client whose data these are."""
        client = self._client()
        assert client is not None
        return client

    def hold(self, package: Package) -> None:
        """Keep the parts of a package until it is released, and those of its owners while these exist.

        The first owner also keeps the parts that belong to none. An owner without weak references, such as a
        list, keeps nothing.
        """
        self.use(package.parts)
        sizes = part_sizes(package.parts)
        owned = frozenset[str]().union(*(keys for _, keys in package.owned))
        beside = {key: n for key, n in sizes.items() if key not in owned and not is_pickle(key)}
        for owner, keys in package.owned:
            if keys and self.retained.replace(owner, {key: sizes[key] for key in keys}, beside):
                beside = {}

    def send(
        self,
        parts: Mapping[str, Any],
        worker: str,
        package: str = "",
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Send the parts that the cluster lacks to a worker; they may be those of a package.

        While it waits for memory, it calls `meanwhile`, which may raise.
        """
        sizes = part_sizes(parts)
        with self._lock:
            nbytes = sum(n for key, n in sizes.items() if not self._is_sent(key))
        self._wait_for_room(worker, package, nbytes, meanwhile)
        with self._lock:
            names = {_name(key): key for key in parts if not self._is_sent(key)}
            if names:
                content = {name: parts[key] for name, key in names.items()}
                if worker.startswith("inproc://"):
                    # Workers of this process would share the arrays, and the user may change these.
                    content = {name: copy(part) for name, part in content.items()}
                sent = self._scatter(content, worker, nbytes)
                self._sent.update({key: sent[name] for name, key in names.items()})

    def _scatter(self, parts: Mapping[str, Any], worker: str, nbytes: int) -> Any:
        """Send parts to a worker while it answers; Dask would wait for one that is gone."""
        scatter = partial(self.client.scatter, hash=False, timeout=FOREVER_S, asynchronous=True)
        send = partial(scatter, parts, workers=[worker])
        return call_with_worker(self.client, worker, send, nbytes=nbytes, completes=True)

    def locate(self, parts: Mapping[str, Any]) -> PartNames:
        """Return what Dask calls parts, and their bytes."""
        with self._lock:
            names = {key: str(self._sent[key].key) if self._is_sent(key) else "" for key in parts}
        return {key: (names[key], nbytes) for key, nbytes in part_sizes(parts).items()}

    def use(self, keys: Iterable[str]) -> None:
        """Keep parts, which may be sent later, until `stop_using`."""
        with self._lock:
            self._in_use.update(list(keys))  # a mapping would be added with its values

    def stop_using(self, keys: Iterable[str]) -> None:
        """Release parts, except those that others use, own or retain."""
        keys = list(keys)
        with self._lock:
            self._in_use.subtract(keys)
            for key in keys:
                if self._in_use[key] <= 0:
                    del self._in_use[key]
            left = any(key not in self._in_use and key not in self.retained for key in keys)
        if left:
            self.tidy()

    def _wait_for_room(self, worker: str, key: str, nbytes: int, meanwhile: Callable[[], None]) -> None:
        if nbytes < LARGE:
            return
        wait, start, warned = RoomWait(), time.monotonic(), False
        while not (room := self._ask_for_room(worker, nbytes, key)).fits:
            if wait.is_over(room):
                raise MemoryError(
                    f"The data of the search take {format_bytes(nbytes)}, and the worker {worker}, which has "
                    f"the most memory left, {room}. Give workers more memory, or have fewer on a machine."
                )
            if not warned and (room.later or room.unwanted) and time.monotonic() - start > WARN_ROOM_S:
                warned = True
                text = f"Data of {format_bytes(nbytes)} wait for memory on the worker {worker}, which {room}."
                warnings.warn(text, RuntimeWarning, stacklevel=1)
            time.sleep(WAIT_S)
            meanwhile()

    def _ask_for_room(self, worker: str, nbytes: int, key: str) -> MemoryRoom:
        ask = partial(self.client.run, make_room_for, nbytes, key, workers=[worker])
        return call_with_worker(self.client, worker, ask, limit=ANSWER_S)[worker]  # type: ignore[no-any-return]

    def forget(self, names: Mapping[str, str]) -> None:
        """Forget parts that no worker has by these names, although Dask lists them.

        Parts that were sent again since have other names, and stay.
        """
        with self._lock:
            for key, name in names.items():
                if key in self._sent and self._sent[key].key == name:
                    del self._sent[key]

    def _is_sent(self, key: str) -> bool:
        return key in self._sent and self._sent[key].status == "finished"

    def _tidy_soon(self) -> None:
        client = None if sys is None or sys.is_finalizing() else self._client()
        if client is not None:
            call_soon_in_loop(client, self.tidy)

    async def _tidy_later(self) -> None:
        await asyncio.sleep(TIDY_S)
        self.tidy()

    def tidy(self) -> None:
        """Release everything that no run and no owner needs; never waits."""
        client = self._client()
        if client is None or client.status != "running":
            return
        if not self._lock.acquire(blocking=False):
            # The thread that has the lock may wait for the loop, which this may run in.
            call_soon_in_loop(client, self._tidy_later)
            return
        try:
            left = [key for key in self._sent if key not in self._in_use and key not in self.retained]
            for key in left:
                self._sent.pop(key).release()
        finally:
            self._lock.release()
        if left:
            call_soon_in_loop(client, _drop_on_workers, client, left)


async def _drop_on_workers(client: Client, keys: list[str]) -> None:
    with contextlib.suppress(Exception):  # the cluster goes away now
        await asyncio.wait_for(client.run(drop_parts, keys, on_error="ignore"), DROP_S)  # type: ignore[arg-type]


def _name(key: str) -> str:
    # A new name each time: Dask may still be releasing the data of the last one.
    return f"manyfit-{'package' if key.startswith('pickle') else 'array'}-{key[:48]}-{uuid4().hex[:8]}"


_placements: "weakref.WeakKeyDictionary[Client, Placement]" = weakref.WeakKeyDictionary()
_placements_lock = threading.Lock()


def get_placement(client: Client) -> Placement:
    """Return the placement of a client."""
    with _placements_lock:
        for other in list(_placements):
            if other.status == "closed":  # what was sent refers to its client, and would keep it
                del _placements[other]
        if client not in _placements:
            _placements[client] = Placement(client)
            if isinstance(client.cluster, LocalCluster):
                # Nannies restart the processes of this machine, however often a fit kills them.
                wait_for_restarts(client.cluster)
        return _placements[client]
