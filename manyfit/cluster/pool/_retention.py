"""Parts that stay on a cluster between runs, as long as the objects that they come from exist."""

import contextlib
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Entry:
    nbytes: int
    # By id; parts of equal content have several owners.
    owners: dict[int, weakref.ref[Any]] = field(default_factory=dict)


class RetainedParts:
    """Keys of parts, each retained while one of its owners exists.

    `on_release` is called when parts are no longer retained. This may happen in any thread and any call, so
    it must not wait.
    """

    def __init__(self, on_release: Callable[[], None]) -> None:
        self.limit = float("inf")
        self._on_release = on_release
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def keep(self, key: str, nbytes: int, owner: Any) -> bool:
        """Retain a part while an object exists; return False if that has no weak references.

        Beyond `limit` bytes in all, the least recently used parts are no longer retained.
        """
        try:
            reference = weakref.ref(owner, self._on_end_of(key, id(owner)))
        except TypeError:
            return False
        with self._lock:
            if key not in self._entries:
                self._entries[key] = _Entry(nbytes)
                self._nbytes += nbytes
            self._entries.move_to_end(key)
            known = self._entries[key].owners.get(id(owner))
            if known is None or known() is not owner:
                self._entries[key].owners[id(owner)] = reference
            dropped = False
            while self._nbytes > self.limit and len(self._entries) > 1:
                _, entry = self._entries.popitem(last=False)
                self._nbytes -= entry.nbytes
                dropped = True
        if dropped:
            self._on_release()
        return True

    def replace(self, owner: Any, own: Mapping[str, int], beside: Mapping[str, int]) -> bool:
        """Retain the parts that an object consists of now, and no others that it was; as `keep` otherwise.

        Parts beside it, such as the folds of its rows, stay while together they are smaller than the object.
        `own` and `beside` are bytes by key.
        """
        entries = list(self._entries.items())
        before = {key: entry.nbytes for key, entry in entries if id(owner) in entry.owners}
        others = dict(beside)
        if own.keys() <= before.keys():
            others = {key: n for key, n in {**before, **beside}.items() if key not in own}
            others = others if sum(others.values()) < sum(own.values()) else dict(beside)
        for key in before.keys() - own.keys() - others.keys():
            self.discard(key, owner)
        return all(self.keep(key, nbytes, owner) for key, nbytes in {**own, **others}.items())

    def discard(self, key: str, owner: Any) -> None:
        """Stop retaining a part for an object that still exists."""
        self._drop(key, id(owner), None)

    def _on_end_of(self, key: str, owner: int) -> Callable[[Any], None]:
        this = weakref.ref(self)

        def gone(reference: Any) -> None:
            # At the very end of the interpreter this module is empty.
            retained = this() if sys is not None and not sys.is_finalizing() else None
            if retained is not None:
                retained._drop(key, owner, reference)

        return gone

    def _drop(self, key: str, owner: int, reference: Any) -> None:
        # Without the lock, which this thread may hold: at worst a part is dropped too early.
        entry = self._entries.get(key)
        if entry is None or (reference is not None and entry.owners.get(owner) is not reference):
            return
        entry.owners.pop(owner, None)
        if not entry.owners and self._entries.pop(key, None) is entry:
            self._nbytes -= entry.nbytes
            with contextlib.suppress(Exception):  # the interpreter ends, or the client's loop is closed
                self._on_release()
