"""What one client has sent to its cluster, so that nothing is sent twice.

Each part of a package is sent to one worker, as scattered data of Dask's; the others fetch it from there when
a task first needs it. So nothing waits for a worker that is busy, paused or gone.
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
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from dask.utils import format_bytes
from distributed import Client, Future, LocalCluster

from manyfit._compat import wait_for_restarts
from manyfit.cluster.inspection.scheduler_info import call_soon_in_loop
from manyfit.cluster.pool._retention import RetainedParts
from manyfit.cluster.worker._heartbeats import with_worker
from manyfit.cluster.worker._memory_guard import MemoryRoom, Patience
from manyfit.cluster.worker.content_pickle import Package, is_pickle
from manyfit.cluster.worker.run_items import WAIT_S, drop, room_for

# A worker has so long to say whether it has room.
ANSWER_S = 5.0
# So long it is tried to have workers drop what is gone. Those that did not hear of it drop it in ten minutes.
TELL_S = 60.0
FOREVER_S = 86400.0
# Before as many bytes are sent to a worker it is asked for room.
LARGE = 16 * 2**20
# Seconds that data wait for room before the user is told.
TELL_ROOM_S = 10.0
# How soon it is tried again to let go of what an array left behind while a search was sending.
TIDY_S = 0.05


@dataclass
class _Owner:
    """Whatever parts of a package stay for as long as a thing does.

    Attributes
    ----------
    reference : weakref
        To the thing.
    keys : frozenset of str
        What it consisted of when it was last sent.
    beside : dict of str to int
        Bytes of what was sent with it, as the folds of its rows: as long as that is less than itself.
    """

    reference: weakref.ref[Any]
    keys: frozenset[str]
    beside: dict[str, int] = field(default_factory=dict)


class Placement:
    """What a client's cluster has of its searches. One for each client: `placement_of`."""

    def __init__(self, client: Client) -> None:
        self._client = weakref.ref(client)
        self._sent: dict[str, Future] = {}
        # Of packages: what Dask called each other part when they were sent.
        self._named: dict[str, dict[str, str]] = {}
        self._owners: dict[int, _Owner] = {}
        self._in_use: Counter[str] = Counter()
        self.kept = RetainedParts(self._tidy_soon)
        self._lock = threading.Lock()

    @property
    def client(self) -> Client:
        """The client."""
        client = self._client()
        assert client is not None
        return client

    def hold(self, package: Package) -> None:
        """Keep what is sent of a package until it is released, and what its owners own as long as they are.

        An owner owns what it consisted of when it was last sent, and the first one what else there was. Those
        that cannot be referred to weakly, as lists, own nothing: what is theirs goes with the run.
        """
        with self._lock:
            self._in_use.update(list(package.parts))
            owned = frozenset().union(*(keys for _, keys in package.owned))
            sizes = {k: nbytes_of(part) for k, part in package.parts.items() if not is_pickle(k)}
            beside = {key: n for key, n in sizes.items() if key not in owned}
            for owner, keys in package.owned:
                if keys and self._owns(owner, keys, beside, sum(sizes.get(key, 0) for key in keys)):
                    beside = {}

    def _owns(self, thing: Any, keys: frozenset[str], beside: dict[str, int], nbytes: int) -> bool:
        known = self._owners.get(id(thing))
        if known is not None and known.keys == keys:
            before = known.beside
        else:
            try:
                known = _Owner(weakref.ref(thing, self._gone_with(id(thing))), keys)
            except TypeError:
                return False
            self._owners[id(thing)], before = known, {}
        together = before | beside
        known.beside = together if sum(together.values()) < nbytes else beside
        return True

    def release(self, package: Package) -> None:
        """Let go of a package, but for what its owners own."""
        with self._lock:
            self._in_use.subtract(list(package.parts))
            self._in_use += Counter()
        self.tidy()

    def send(
        self, package: Package, worker: str, meanwhile: Callable[[], None] = lambda: None
    ) -> dict[str, str]:
        """Send what is not there of a package to a worker; what Dask calls its parts then, and itself.

        While it waits for room there, it calls `meanwhile`, which may raise.
        """
        with self._lock:
            nbytes = sum(nbytes_of(part) for key, part in package.parts.items() if not self._is_there(key))
        self._wait_for_room(worker, package.key, nbytes, meanwhile)
        with self._lock:
            there = {key for key in package.parts if self._is_there(key)}
            others = package.parts.keys() - {package.key}
            names = {key: str(self._sent[key].key) if key in there else _name(key) for key in others}
            if package.key in there and self._named.get(package.key) == names:
                # Of a search like this one, which runs now.
                return {**names, package.key: str(self._sent[package.key].key)}
            parts = self._for(worker, {names[key]: package.parts[key] for key in others - there})
            whole = _name(package.key)
            sizes = {key: nbytes_of(package.parts[key]) for key in others}
            sent = self._scatter({**parts, whole: (package.parts[package.key], names, sizes)}, worker, nbytes)
            self._sent.update({key: sent[names[key]] for key in others - there})
            self._sent[package.key], self._named[package.key] = sent[whole], names
            return {**names, package.key: whole}

    def send_parts(self, parts: Mapping[str, Any], worker: str) -> None:
        """Send what is not there of some parts to a worker, each for itself."""
        with self._lock:
            nbytes = sum(nbytes_of(part) for key, part in parts.items() if not self._is_there(key))
        self._wait_for_room(worker, "", nbytes)
        with self._lock:
            names = {_name(key): key for key in parts if not self._is_there(key)}
            if names:
                content = self._for(worker, {name: parts[key] for name, key in names.items()})
                sent = self._scatter(content, worker, nbytes)
                self._sent.update({key: sent[name] for name, key in names.items()})

    def _scatter(self, parts: Mapping[str, Any], worker: str, nbytes: int) -> Any:
        """Send to a worker for as long as it takes something: Dask would wait for one that has gone."""
        client = self.client

        def send() -> Any:
            return client.scatter(parts, workers=[worker], hash=False, timeout=FOREVER_S, asynchronous=True)

        return with_worker(client, worker, send, nbytes=nbytes, completes=True)

    def names(self, keys: Iterable[str]) -> dict[str, str]:
        """What Dask calls some parts, an empty text where they are not there."""
        with self._lock:
            return {key: str(self._sent[key].key) if self._is_there(key) else "" for key in keys}

    def use(self, keys: Iterable[str]) -> None:
        """Keep parts that are there, or will be, until they are used no more."""
        with self._lock:
            self._in_use.update(list(keys))  # of a mapping it would take the values

    def use_no_more(self, keys: Iterable[str]) -> None:
        """The parts may go, but for those that are used by others, owned or kept."""
        keys = list(keys)
        with self._lock:
            self._in_use.subtract(keys)
            for key in keys:
                if self._in_use[key] <= 0:
                    del self._in_use[key]
            left = any(key not in self._in_use and key not in self.kept for key in keys)
        if left:
            self.tidy()

    def _for(self, worker: str, parts: Mapping[Any, Any]) -> Any:
        # Within one process they are handed over as they are, and the user may change these.
        within = worker.startswith("inproc://")
        return {name: copy(part) for name, part in parts.items()} if within else parts

    def _wait_for_room(
        self, worker: str, key: str, nbytes: int, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        if nbytes < LARGE:
            return
        patience, start, told = Patience(), time.monotonic(), False
        while not (room := self._room_on(worker, nbytes, key)).fits:
            if patience.ends(room):
                raise MemoryError(
                    f"The data of the search take {format_bytes(nbytes)}, and the worker {worker}, which has "
                    f"the most memory left, {room}. Give workers more memory, or have fewer on a machine."
                )
            if not told and (room.later or room.unwanted) and time.monotonic() - start > TELL_ROOM_S:
                told = True
                _warn_of_room(worker, nbytes, room)
            time.sleep(WAIT_S)
            meanwhile()

    def _room_on(self, worker: str, nbytes: int, key: str) -> MemoryRoom:
        client = self.client

        def ask() -> Any:
            return client.run(room_for, nbytes, key, workers=[worker])

        return with_worker(client, worker, ask, limit=ANSWER_S)[worker]  # type: ignore[no-any-return]

    def forget(self, names: Mapping[str, str]) -> None:
        """Parts turned out not to be there by these names, whatever Dask has said so far.

        What was sent again since then has another name, and stays.
        """
        with self._lock:
            for key, name in names.items():
                if key in self._sent and self._sent[key].key == name:
                    del self._sent[key]
                    self._named.pop(key, None)

    def _is_there(self, key: str) -> bool:
        return key in self._sent and self._sent[key].status == "finished"

    def _gone_with(self, owner: int) -> Callable[[Any], None]:
        """What to do when this owner goes, which may be in any thread and any call: no more than a note."""
        this = weakref.ref(self)

        def gone(reference: Any) -> None:
            placement = this()
            client = None if placement is None or sys is None or sys.is_finalizing() else placement._client()
            if placement is None or client is None:
                return
            known = placement._owners.get(owner)
            if known is not None and known.reference is reference:
                del placement._owners[owner]
            with contextlib.suppress(Exception):  # the loop may be closed
                call_soon_in_loop(client, placement.tidy)

        return gone

    def _tidy_soon(self) -> None:
        client = None if sys is None or sys.is_finalizing() else self._client()
        if client is not None:
            call_soon_in_loop(client, self.tidy)

    async def _tidy_later(self) -> None:
        await asyncio.sleep(TIDY_S)
        self.tidy()

    def tidy(self) -> None:
        """Let go of all that no run and no owner needs; never waits."""
        client = self._client()
        if client is None or client.status != "running":
            return
        if not self._lock.acquire(blocking=False):
            # Perhaps it is held by one who waits for the loop, in which this may run.
            call_soon_in_loop(client, self._tidy_later)
            return
        try:
            owned = set().union(*(one.keys.union(one.beside) for one in self._owners.copy().values()))
            owned.update(self._in_use)
            left = [key for key in self._sent if key not in owned and key not in self.kept]
            for key in left:
                self._sent.pop(key).release()
                self._named.pop(key, None)
        finally:
            self._lock.release()
        if left:
            call_soon_in_loop(client, _tell, client, left)


def _warn_of_room(worker: str, nbytes: int, room: MemoryRoom) -> None:
    text = f"Data of {format_bytes(nbytes)} wait for room on the worker {worker}, which {room}."
    warnings.warn(text, RuntimeWarning, stacklevel=2)


async def _tell(client: Client, keys: list[str]) -> None:
    with contextlib.suppress(Exception):  # the cluster goes away now
        await asyncio.wait_for(client.run(drop, keys, on_error="ignore"), TELL_S)  # type: ignore[arg-type]


def nbytes_of(part: Any) -> int:
    """Bytes of an array or a pickle."""
    return len(part) if isinstance(part, bytes) else int(part.nbytes)


def _name(key: str) -> str:
    # Of its own each time: Dask may still be forgetting what had the name before.
    return f"manyfit-{'package' if key.startswith('pickle') else 'array'}-{key[:48]}-{uuid4().hex[:8]}"


_placements: "weakref.WeakKeyDictionary[Client, Placement]" = weakref.WeakKeyDictionary()
_placements_lock = threading.Lock()


def placement_of(client: Client) -> Placement:
    """What this client has sent."""
    with _placements_lock:
        for other in list(_placements):
            if other.status == "closed":  # what was sent refers to its client
                del _placements[other]
        if client not in _placements:
            _placements[client] = Placement(client)
            if isinstance(client.cluster, LocalCluster):
                # Processes of this machine: their nannies start them again, however often a fit kills them.
                wait_for_restarts(client.cluster)
        return _placements[client]
