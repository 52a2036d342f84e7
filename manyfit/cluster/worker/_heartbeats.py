"""Workers that no longer answer, by the heartbeats that their scheduler receives.

A process that is stopped, that swaps, or that the network no longer reaches keeps its connections. Dask waits
for it during the scheduler's ``worker-ttl``, five minutes, and a call to it waits for ever. A worker whose
interpreter is held by compiled code sends no heartbeat either, but goes on later: it keeps its tasks, and
other workers get copies of them.
"""

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

from manyfit.cluster.inspection.scheduler_info import ANSWER_S, Workers

# Seconds without a heartbeat after which a worker counts as silent. Heartbeats come twice a second; on large
# clusters they come every (workers / 200 + 1) seconds.
SILENT_S = 10.0
# Seconds between two checks of a worker during a call.
WATCH_S = 1.0
# Seconds of silence that count at most between two updates: a scheduler in a process that was held up itself
# has received nothing.
MOST_BETWEEN_UPDATES_S = 2.5
# Slowest rate at which data arrive: while a worker receives them, it may be silent.
LEAST_BYTES_PER_S = 2**27
# Seconds that a call which was given up has to complete. By then the scheduler has removed the worker: with
# Dask's settings it does so after 300 s of silence.
COMPLETES_S = 600.0


class Heartbeats:
    """Seconds for which each worker has been silent.

    They are counted between updates; later heartbeats of other workers show them at once.
    """

    def __init__(self) -> None:
        # Last heartbeat, by the scheduler's clock, and silence. Replaced, never changed: several threads read
        # it.
        self._heard: dict[str, tuple[float, float]] = {}
        self._updated = time.monotonic()
        self._lock = threading.Lock()

    def update(self, workers: Workers) -> None:
        """Update by what the scheduler knows of its workers."""
        with self._lock:
            now = time.monotonic()
            passed = min(now - self._updated, MOST_BETWEEN_UPDATES_S)
            self._updated, before, heard = now, self._heard, dict[str, tuple[float, float]]()
            newest = max((float(info["last_seen"]) for info in workers.values()), default=0.0)
            for address, info in workers.items():
                last = float(info["last_seen"])
                known, silence = before.get(address, (None, 0.0))
                counted = silence + passed if last == known else 0.0
                heard[address] = last, max(counted, newest - last)
            self._heard = heard

    def mark_silent(self, address: str) -> None:
        """Count a worker that did not answer as silent until its next heartbeat."""
        with self._lock:
            if address in self._heard:
                last, silence = self._heard[address]
                self._heard = {**self._heard, address: (last, max(silence, _limit(len(self._heard))))}

    def silence(self, address: str) -> float:
        """Return the seconds for which a worker has been silent."""
        return self._heard.get(address, (0.0, 0.0))[1]

    @property
    def silent(self) -> frozenset[str]:
        """Addresses of the workers that no longer answer."""
        heard = self._heard
        limit = _limit(len(heard))
        return frozenset(one for one, (_, silence) in heard.items() if silence >= limit)


def _limit(n_workers: int) -> float:
    """Return the seconds without a heartbeat after which one of so many workers is silent."""
    return max(SILENT_S, 4 * (n_workers / 200 + 1))


_of_clients: "weakref.WeakKeyDictionary[Any, Heartbeats]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def get_heartbeats(client: Any) -> Heartbeats:
    """Return the heartbeats of a client's cluster, which its runs share."""
    with _lock:
        return _of_clients.setdefault(client, Heartbeats())


def call_with_worker(
    client: Any,
    address: str,
    call: Callable[[], Awaitable[Any]],
    *,
    limit: float = float("inf"),
    nbytes: int = 0,
    completes: bool = False,
) -> Any:
    """Make a call that a worker takes part in, and wait while it answers, for `limit` seconds at most.

    `call` makes the coroutine; the worker receives `nbytes`. A call that leaves data on the cluster
    `completes` even if given up. Raises a ConnectionError if the worker is gone, paused, silent or too slow.
    """
    heartbeats = get_heartbeats(client)
    receiving = nbytes / LEAST_BYTES_PER_S

    async def watched() -> Any:
        calling = asyncio.ensure_future(call())
        until = time.monotonic() + limit
        try:
            while not (await asyncio.wait([calling], timeout=min(WATCH_S, limit)))[0]:
                identity = await asyncio.wait_for(client.scheduler.identity(n_workers=-1), ANSWER_S)
                workers = identity["workers"]
                if address not in workers or workers[address]["status"] != "running":
                    raise ConnectionError(f"The worker {address} went away, or is paused.")
                heartbeats.update(workers)
                late = time.monotonic() > until
                if late:
                    heartbeats.mark_silent(address)
                if late or (
                    address in heartbeats.silent and heartbeats.silence(address) > SILENT_S + receiving
                ):
                    raise ConnectionError(f"The worker {address} no longer answers.")
            return calling.result()
        finally:
            if completes and not calling.done():
                _complete(calling)
            else:
                calling.cancel()

    return client.sync(watched)


_given_up: set["asyncio.Future[Any]"] = set()  # asyncio itself keeps weak references only


def _complete(calling: "asyncio.Future[Any]") -> None:
    """Let a call that was given up go on."""
    too_late = asyncio.get_running_loop().call_later(COMPLETES_S, calling.cancel)

    def done(call: "asyncio.Future[Any]") -> None:
        too_late.cancel()
        _given_up.discard(call)
        if not call.cancelled():
            call.exception()  # asyncio would report an error that nobody has read

    _given_up.add(calling)
    calling.add_done_callback(done)
