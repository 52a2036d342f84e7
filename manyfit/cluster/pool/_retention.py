"""What stays on a cluster between runs: parts of things that are still there, the newest first."""

import contextlib
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Entry:
    nbytes: int
    # By id; parts of equal content have several.
    things: dict[int, weakref.ref[Any]] = field(default_factory=dict)


class RetainedParts:
    """Parts by key, each kept for as long as one of the things that it is kept for.

    Parameters
    ----------
    let_go : callable
        Called when something is kept no more, in any thread and any call: it must not wait.
    """

    def __init__(self, let_go: Callable[[], None]) -> None:
        self.limit = float("inf")
        self._let_go = let_go
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def keep(self, key: str, nbytes: int, thing: Any) -> bool:
        """Keep a part as long as a thing is there; whether that can be told.

        Of all that is kept, what was used least recently goes where it is more than `limit` bytes.
        """
        try:
            reference = weakref.ref(thing, self._gone(key, id(thing)))
        except TypeError:
            return False
        with self._lock:
            if key not in self._entries:
                self._entries[key] = _Entry(nbytes)
                self._nbytes += nbytes
            self._entries.move_to_end(key)
            known = self._entries[key].things.get(id(thing))
            if known is None or known() is not thing:
                self._entries[key].things[id(thing)] = reference
            went = False
            while self._nbytes > self.limit and len(self._entries) > 1:
                _, entry = self._entries.popitem(last=False)
                self._nbytes -= entry.nbytes
                went = True
        if went:
            self._let_go()
        return True

    def keep_no_more(self, key: str, thing: Any) -> None:
        """Do not keep a part for a thing that is still there."""
        self._drop(key, id(thing), None)

    def _gone(self, key: str, thing: int) -> Callable[[Any], None]:
        this = weakref.ref(self)

        def gone(reference: Any) -> None:
            # Nothing of this module is left at the very end of the interpreter.
            kept = this() if sys is not None and not sys.is_finalizing() else None
            if kept is not None:
                kept._drop(key, thing, reference)

        return gone

    def _drop(self, key: str, thing: int, reference: Any) -> None:
        # Without the lock, which this thread may hold: at worst something goes too early.
        entry = self._entries.get(key)
        if entry is None or (reference is not None and entry.things.get(thing) is not reference):
            return
        entry.things.pop(thing, None)
        if not entry.things and self._entries.pop(key, None) is entry:
            self._nbytes -= entry.nbytes
            with contextlib.suppress(Exception):  # the interpreter ends, or the client's loop is closed
                self._let_go()
