"""The large parts of batches on the cluster: how long they stay, and that they are there."""

import contextlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from distributed import Client

from manyfit.cluster.pool.placement import nbytes_of, placement_of
from manyfit.cluster.worker.content_pickle import array_key, is_pickle
from manyfit.joblib_backend._batch_pickle import Packed
from manyfit.joblib_backend._workers import BackendWorkers

# So much of what a call has sent last stays until it ends, whether or not the caller still has it.
RECENT_BYTES = 2**28
# The part of all workers' memory that is kept between calls, at most.
KEPT_PART = 0.25


class Parts:
    """Parts of the batches of one call of Parallel.

    A part is there while a batch with it is under way, and as long as the caller has the array or the frame
    that it is. What comes and goes with each call, as the folds of a search, stays with the largest array of
    the call, if all of it is no more than that. Whatever a call has sent last stays until it ends.

    Parameters
    ----------
    client : Client
    """

    def __init__(self, client: Client) -> None:
        self._placement = placement_of(client)
        self._kept = self._placement.kept
        self._largest: weakref.ref[Any] | None = None
        self._recent: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def limit(self, memory: float) -> None:
        """Say how much memory the workers have; 0 is no limit."""
        self._kept.limit = KEPT_PART * memory if memory else float("inf")

    def hold(self, packed: Packed) -> None:
        """Keep the parts of a batch until it is released, and what stays longer."""
        self._placement.use(packed.parts)
        sizes = sizes_of(packed.parts)
        for owner, key in packed.owners:
            self._kept.keep(key, sizes[key], owner)
            self._look_at(owner)
        with self._lock:
            for key, nbytes in sizes.items():
                self._recent[key] = nbytes
                self._recent.move_to_end(key)
                self._kept.keep(key, nbytes, self)
            while len(self._recent) > len(sizes) and sum(self._recent.values()) > RECENT_BYTES:
                self._kept.keep_no_more(self._recent.popitem(last=False)[0], self)

    def _look_at(self, owner: Any) -> None:
        before = self._largest() if self._largest is not None else None
        nbytes = getattr(owner, "nbytes", None)
        if isinstance(nbytes, int) and (before is None or nbytes > before.nbytes):
            with contextlib.suppress(TypeError):  # not all can be referred to weakly
                self._largest = weakref.ref(owner)

    def release(self, packed: Packed) -> None:
        """The batch is done."""
        self._placement.use_no_more(packed.parts)

    def end(self) -> None:
        """The call is done."""
        largest = self._largest() if self._largest is not None else None
        with self._lock:
            recent, self._recent = self._recent, OrderedDict()
        arrays = {key: nbytes for key, nbytes in recent.items() if not is_pickle(key)}
        if largest is not None and sum(arrays.values()) <= 2 * largest.nbytes:  # with itself
            for key, nbytes in arrays.items():
                self._kept.keep(key, nbytes, largest)
        for key in recent:
            self._kept.keep_no_more(key, self)

    def names(self, parts: Iterable[str]) -> dict[str, str]:
        """What Dask calls parts; an empty text where they are not there."""
        return self._placement.names(parts)

    def send(self, parts: Mapping[str, Any], there: BackendWorkers) -> bool:
        """Send what is not there; whether that could be done.

        Raises
        ------
        MemoryError
            If there is no room for it on the cluster.
        """
        tried: set[str] = set()
        while parts:
            receiver = there.receiver
            if receiver is None or receiver in tried:
                return False
            tried.add(receiver)
            try:
                self._placement.send_parts(parts, receiver)
                break
            except MemoryError:
                raise
            except Exception:  # it went away, or does not answer: another one may
                continue
        return True

    def send_again(
        self,
        parts: Mapping[str, Any],
        names: Mapping[str, str],
        missing: Sequence[str],
        there: BackendWorkers,
    ) -> None:
        """Send what turned out not to be there, by the names that it had.

        Raises
        ------
        RuntimeError
            If it is not what it was.
        """
        self._placement.forget({key: names[key] for key in missing})
        for key in missing:
            if not is_pickle(key) and not key.startswith(array_key(parts[key])):
                raise RuntimeError(
                    "An array was changed in place while tasks that read it were under way, and has to be "
                    "sent again. Change it when Parallel has returned, or give each task an array of its own."
                )
        self.send(parts, there)


def sizes_of(parts: Mapping[str, Any]) -> dict[str, int]:
    """Bytes of parts."""
    return {key: nbytes_of(part) for key, part in parts.items()}
