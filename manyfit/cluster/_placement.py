"""What one client has sent to its workers, so that nothing is sent twice."""

import contextlib
import threading
import time
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dask.base import annotate
from distributed import Client, Future

from manyfit.cluster._package import Package
from manyfit.cluster._worker import drop, keep

# Larger pickles, as those of texts, go to one worker as data do, and from there to the others.
LARGE_PICKLE = 2**18
# How often it is looked whether a worker that something is sent to is still there.
LOOK_S, POLL_S = 0.5, 0.003
# As long it may take until a worker that is there takes an array.
SEND_S = 60.0
# As many times an array is sent again that was lost with the last worker that had it.
MOST_LOSSES = 5


@dataclass
class _Sent:
    """An array on the cluster: what Dask holds of it, and the workers that keep it."""

    future: Future
    workers: set[str] = field(default_factory=set)


class Placement:
    """What a client's workers have of its searches. One for each client: `placement_of`."""

    def __init__(self, client: Client) -> None:
        self._client = weakref.ref(client)
        self._sent: dict[str, _Sent] = {}
        self._owners: dict[str, list[weakref.ref[Any]]] = {}
        self._lock = threading.RLock()

    @property
    def client(self) -> Client:
        """The client."""
        client = self._client()
        assert client is not None
        return client

    def own(self, package: Package, owners: Iterable[Any]) -> None:
        """Keep the arrays of a package as long as one of `owners` is there, after the run that sends it.

        Owners that cannot be referred to weakly, as lists, own nothing: what is theirs goes with the run.
        """
        with self._lock:
            for owner in owners:
                with contextlib.suppress(TypeError):
                    reference = weakref.ref(owner, self._forget)
                    for key in package.arrays:
                        self._owners.setdefault(key, []).append(reference)

    def _forget(self, gone: weakref.ref[Any]) -> None:
        # Called wherever an array happens to go, in the loop's thread perhaps: it must not wait for it.
        threading.Thread(target=self._forget_now, args=(gone,), daemon=True).start()

    def _forget_now(self, gone: weakref.ref[Any]) -> None:
        with self._lock:
            left = []
            for key, owners in list(self._owners.items()):
                owners[:] = [owner for owner in owners if owner is not gone]
                if not owners:
                    del self._owners[key]
                    left.append(key)
        with contextlib.suppress(Exception):  # the cluster may be gone
            self.drop(left)

    def drop(self, keys: Iterable[str]) -> None:
        """Let go of packages and arrays, unless they have owners."""
        with self._lock:
            keys = [key for key in keys if key not in self._owners]
            for key in keys:
                self._sent.pop(key, None)
        client = self._client()
        if keys and client is not None and client.status == "running":
            with contextlib.suppress(OSError):  # it goes away now
                client.run(drop, keys, on_error="ignore", wait=False)

    def send(self, package: Package, workers: Iterable[str]) -> set[str]:
        """Send a package to workers, each array once to each.

        Returns
        -------
        set of str
            The workers that have it; those that went away are not among them.
        """
        waiting: dict[str, tuple[Future, int]] = {}
        for address in workers:
            self._start(waiting, package, address, MOST_LOSSES)
        there = set()
        while waiting:
            for address, (future, losses) in list(waiting.items()):
                if future.status == "pending":
                    continue
                del waiting[address]
                if future.status == "finished":
                    there.add(address)
                    self._kept(package, address)
                    future.release()
                elif losses and self._again(package, address):
                    self._start(waiting, package, address, losses - 1)
                else:
                    future.result()
            if waiting:
                self._wait(waiting)
        return there

    def _start(
        self, waiting: dict[str, tuple[Future, int]], package: Package, address: str, losses: int
    ) -> None:
        try:
            waiting[address] = self._keep(package, address), losses
        except Exception:
            if address in self.client.nthreads():
                raise  # else it went away while an array was on its way to it

    def _wait(self, waiting: dict[str, tuple[Future, int]]) -> None:
        until = time.monotonic() + LOOK_S
        while all(future.status == "pending" for future, _ in waiting.values()):
            if time.monotonic() > until:
                break
            time.sleep(POLL_S)
        else:
            return
        present = set(self.client.nthreads())
        for address in [address for address in waiting if address not in present]:
            # A task for a worker that is gone waits for ever.
            self.client.cancel([waiting.pop(address)[0]], force=True)

    def _keep(self, package: Package, address: str) -> Future:
        arrays = {
            key: self._future(key, array, address) for key, array in self._needed(package, address).items()
        }
        pickled: Any = package.pickled
        if len(pickled) > LARGE_PICKLE:
            pickled = self._future(f"pickle-{package.key}", pickled, address)
        with annotate(resources={}):  # it waits for no slot
            return self.client.submit(
                keep,
                package.key,
                pickled,
                arrays,
                key=f"manyfit-data-{package.key[:8]}-{time.monotonic_ns()}",
                workers=[address],
                pure=False,
            )

    def _needed(self, package: Package, address: str) -> Mapping[str, Any]:
        with self._lock:
            return {
                key: array
                for key, array in package.arrays.items()
                if key not in self._sent or address not in self._sent[key].workers
            }

    def _future(self, key: str, thing: Any, address: str) -> Future:
        with self._lock:
            sent = self._sent.get(key)
            if sent is None or sent.future.status != "finished":
                name = f"manyfit-array-{key}-{time.monotonic_ns()}"
                # To a worker that needs it; the others have it from there.
                scattered = self.client.scatter({name: thing}, workers=[address], hash=False, timeout=SEND_S)
                future = scattered[name]
                sent = self._sent[key] = _Sent(future, set() if sent is None else sent.workers)
            return sent.future

    def _kept(self, package: Package, address: str) -> None:
        with self._lock:
            for key in package.arrays:
                if key in self._sent:
                    self._sent[key].workers.add(address)

    def _again(self, package: Package, address: str) -> bool:
        """Forget what a worker turned out not to have; whether it is worth another try."""
        with self._lock:
            for key in [*package.arrays, f"pickle-{package.key}"]:
                sent = self._sent.get(key)
                if sent is not None and sent.future.status == "finished":
                    sent.workers.discard(address)
                elif sent is not None:
                    del self._sent[key]
        return self.client.status == "running"


_placements: "weakref.WeakKeyDictionary[Client, Placement]" = weakref.WeakKeyDictionary()
_placements_lock = threading.Lock()


def placement_of(client: Client) -> Placement:
    """What this client has sent."""
    with _placements_lock:
        if client not in _placements:
            _placements[client] = Placement(client)
        return _placements[client]
