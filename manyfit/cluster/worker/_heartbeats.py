"""Which workers no longer answer, by the heartbeats that their scheduler has heard.

A process that is stopped, that swaps, or that the network no longer reaches keeps its connections. Dask waits
for it for as long as the scheduler's ``worker-ttl``, five minutes, and a call to it waits for ever. A worker
whose interpreter is held by compiled code sends no heartbeat either, but goes on later: nothing is taken from
it, its tasks are only given to others as well.
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
# How often it is looked whether a worker that takes part in a call is still there.
WATCH_S = 1.0
# Between two looks no more silence than this is counted: a scheduler in a process that was held up itself
# has heard nobody.
MOST_BETWEEN_LOOKS_S = 2.5
# Bytes a second at which data arrive at least, for which a worker may be silent while it receives them.
LEAST_BYTES_PER_S = 2**27
# Seconds that a send which was given up has to complete. By then a scheduler has removed its worker: with
# Dask's settings it does after 300 s of silence.
COMPLETES_S = 600.0


class Heartbeats:
    """Says for each worker how long it has been silent.

    That is counted while somebody looks. Where other workers have been heard since, it is known at once.
    """

    def __init__(self) -> None:
        # Last heartbeat, by the scheduler's clock, and silence. It is never changed, replaced only: several
        # threads look, and read it meanwhile.
        self._heard: dict[str, tuple[float, float]] = {}
        self._looked = time.monotonic()
        self._lock = threading.Lock()

    def look(self, workers: Workers) -> None:
        """Take in what the scheduler says of its workers."""
        with self._lock:
            now = time.monotonic()
            passed = min(now - self._looked, MOST_BETWEEN_LOOKS_S)
            self._looked, before, heard = now, self._heard, dict[str, tuple[float, float]]()
            newest = max((float(info["last_seen"]) for info in workers.values()), default=0.0)
            for address, info in workers.items():
                last = float(info["last_seen"])
                known, silence = before.get(address, (None, 0.0))
                counted = silence + passed if last == known else 0.0
                heard[address] = last, max(counted, newest - last)
            self._heard = heard

    def missed(self, address: str) -> None:
        """Count a worker that did not answer a call as silent until its next heartbeat."""
        with self._lock:
            if address in self._heard:
                last, silence = self._heard[address]
                self._heard = {**self._heard, address: (last, max(silence, _limit(len(self._heard))))}

    def silence(self, address: str) -> float:
        """Seconds that a worker has been silent for."""
        return self._heard.get(address, (0.0, 0.0))[1]

    @property
    def silent(self) -> frozenset[str]:
        """Addresses of the workers that no longer answer."""
        heard = self._heard
        limit = _limit(len(heard))
        return frozenset(one for one, (_, silence) in heard.items() if silence >= limit)


def _limit(n_workers: int) -> float:
    """Seconds without a heartbeat from which on one of so many workers is silent."""
    return max(SILENT_S, 4 * (n_workers / 200 + 1))


_of_clients: "weakref.WeakKeyDictionary[Any, Heartbeats]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def heartbeats_of(client: Any) -> Heartbeats:
    """The heartbeats of the workers of a client's cluster: one run knows what the one before has found."""
    with _lock:
        return _of_clients.setdefault(client, Heartbeats())


def with_worker(
    client: Any,
    address: str,
    call: Callable[[], Awaitable[Any]],
    *,
    limit: float = float("inf"),
    nbytes: int = 0,
    completes: bool = False,
) -> Any:
    """Make a call that a worker takes part in, for as long as the worker answers.

    Parameters
    ----------
    client : distributed.Client
        Connected.
    address : str
        Of the worker.
    call : callable
        Makes the coroutine, in the loop of the client.
    limit : float
        Seconds that the call may take.
    nbytes : int
        Bytes that the worker receives by it.
    completes : bool
        Whether a call that is given up goes on by itself, and what it comes to then goes, be it an error. One
        that leaves data on the cluster has to: a client lets go only of what it has heard of.

    Returns
    -------
    object
        What the call comes to.

    Raises
    ------
    ConnectionError
        If the worker went away, is paused, no longer answers, or the call took longer than `limit`.
    """
    heartbeats = heartbeats_of(client)
    patience = nbytes / LEAST_BYTES_PER_S

    async def watched() -> Any:
        calling = asyncio.ensure_future(call())
        until = time.monotonic() + limit
        try:
            while not (await asyncio.wait([calling], timeout=min(WATCH_S, limit)))[0]:
                identity = await asyncio.wait_for(client.scheduler.identity(n_workers=-1), ANSWER_S)
                workers = identity["workers"]
                if address not in workers or workers[address]["status"] != "running":
                    raise ConnectionError(f"The worker {address} went away, or takes nothing any more.")
                heartbeats.look(workers)
                late = time.monotonic() > until
                if late:
                    heartbeats.missed(address)
                if late or (
                    address in heartbeats.silent and heartbeats.silence(address) > SILENT_S + patience
                ):
                    raise ConnectionError(f"The worker {address} no longer answers.")
            return calling.result()
        finally:
            if completes and not calling.done():
                _complete(calling)
            else:
                calling.cancel()

    return client.sync(watched)


_left: set["asyncio.Future[Any]"] = set()  # asyncio itself would forget them


def _complete(calling: "asyncio.Future[Any]") -> None:
    """Have a call go on that nobody waits for."""
    too_late = asyncio.get_running_loop().call_later(COMPLETES_S, calling.cancel)

    def done(call: "asyncio.Future[Any]") -> None:
        too_late.cancel()
        _left.discard(call)
        if not call.cancelled():
            call.exception()  # asyncio would report one that nobody has seen

    _left.add(calling)
    calling.add_done_callback(done)
