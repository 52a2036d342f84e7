"""Large arguments of a call of Parallel on the cluster: sent once, and kept while they are needed."""

import contextlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distributed import Client

from manyfit.cluster.pool.placement import get_placement
from manyfit.cluster.worker.content_pickle import PartNames, array_key, is_pickle, part_sizes
from manyfit.joblib_backend._batch_pickle import PackedBatch

# Bytes that a call sent last and that stay until it ends, whether or not the caller still has them.
RECENT_BYTES = 2**28
# Share of all workers' memory for what stays between calls.
KEPT_PART = 0.25


class SharedArguments:
    """Parts of the batches of one call of Parallel, on the cluster.

    A part stays while a batch with it is unfinished, and while the caller has the array or frame that it is.
    Parts that come and go with each call, such as the folds of a search, stay with the largest array of the
    call, if together they are no larger.
    """

    def __init__(self, client: Client) -> None:
        self._placement = get_placement(client)
        self._retained = self._placement.retained
        self._largest: weakref.ref[Any] | None = None
        self._recent: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def limit(self, memory: float) -> None:
        """Set the memory of all workers, in bytes; 0 is no limit."""
        self._retained.limit = KEPT_PART * memory if memory else float("inf")

    def hold(self, packed: PackedBatch) -> None:
        """Keep the parts of a batch until it is released, and those that stay for longer."""
        self._placement.use(packed.parts)
        sizes = part_sizes(packed.parts)
        for owner, key in packed.owners:
            self._retained.keep(key, sizes[key], owner)
            self._note_largest(owner)
        with self._lock:
            for key, nbytes in sizes.items():
                self._recent[key] = nbytes
                self._recent.move_to_end(key)
                self._retained.keep(key, nbytes, self)
            while len(self._recent) > len(sizes) and sum(self._recent.values()) > RECENT_BYTES:
                self._retained.discard(self._recent.popitem(last=False)[0], self)

    def _note_largest(self, owner: Any) -> None:
        before = self._largest() if self._largest is not None else None
        nbytes = getattr(owner, "nbytes", None)
        if isinstance(nbytes, int) and (before is None or nbytes > before.nbytes):
            with contextlib.suppress(TypeError):  # some objects cannot be weakly referenced
                self._largest = weakref.ref(owner)

    def release(self, packed: PackedBatch) -> None:
        """Stop keeping the parts of a batch that is done."""
        self._placement.stop_using(packed.parts)

    def end(self) -> None:
        """Stop keeping what only the call needed."""
        largest = self._largest() if self._largest is not None else None
        with self._lock:
            recent, self._recent = self._recent, OrderedDict()
        arrays = {key: nbytes for key, nbytes in recent.items() if not is_pickle(key)}
        if largest is not None and sum(arrays.values()) <= 2 * largest.nbytes:  # including itself
            for key, nbytes in arrays.items():
                self._retained.keep(key, nbytes, largest)
        for key in recent:
            self._retained.discard(key, self)

    def locate(self, parts: Mapping[str, Any]) -> PartNames:
        """Return what Dask calls parts, and their bytes."""
        return self._placement.locate(parts)

    def send(self, parts: Mapping[str, Any], receiver: Callable[[], str | None]) -> None:
        """Send the parts that the cluster lacks to a worker that `receiver` chooses, or to the next one.

        Raises a MemoryError if they do not fit. If no worker can be reached, tasks will miss the parts.
        """
        tried: set[str] = set()
        while parts:
            worker = receiver()
            if worker is None or worker in tried:
                return
            tried.add(worker)
            try:
                self._placement.send(parts, worker)
                return
            except MemoryError:
                raise
            except Exception:  # the worker went away, or does not answer: another one may
                continue

    def send_again(
        self,
        parts: Mapping[str, Any],
        sent: PartNames,
        missing: Sequence[str],
        receiver: Callable[[], str | None],
    ) -> None:
        """Send parts again that a worker could not get as they were `sent`.

        Raises a RuntimeError if an array was changed since.
        """
        self._placement.forget({key: sent[key][0] for key in missing})
        for key in missing:
            if not is_pickle(key) and not key.startswith(array_key(parts[key])):
                raise RuntimeError(
                    "An array was changed in place while tasks that read it were running, and has to be sent "
                    "again. Change it when Parallel has returned, or give each task an array of its own."
                )
        self.send(parts, receiver)
