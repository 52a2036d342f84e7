"""Data of searches that a worker keeps: arrays, and objects that were unpickled around them."""

import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Part:
    value: Any
    nbytes: int
    holds: frozenset[str]  # keys of parts that are not dropped before this one
    used: float = field(default_factory=time.monotonic)


class Store:
    """Parts of packages by content; the least recently used are dropped beyond `limit` bytes.

    The last part always stays, with the parts that it holds. Dask's memory accounting does not see the store.
    On the worker that a part was sent to, Dask has the same array, which then counts twice.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._parts: OrderedDict[str, _Part] = OrderedDict()
        self._in_use: defaultdict[str, list[Callable[[], bool]]] = defaultdict(list)
        self._lock = threading.Lock()  # never held for long: the worker's event loop takes it, too

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        with self._lock:
            return self._nbytes()

    def _nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts.values())

    @contextmanager
    def using(self, keys: Iterable[str], is_wanted: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Protect parts, and the parts that they hold, from being dropped for others."""
        keys = set(keys)
        with self._lock:
            for key in keys:
                self._in_use[key].append(is_wanted)
        try:
            yield
        finally:
            with self._lock:
                for key in keys:
                    self._in_use[key].remove(is_wanted)
                    if not self._in_use[key]:
                        del self._in_use[key]

    def used_beside(self, key: str) -> set[bool]:
        """Return, for the uses of all other parts, whether they are still wanted."""
        with self._lock:
            return {is_wanted() for one, uses in self._in_use.items() if one != key for is_wanted in uses}

    def keys(self) -> set[str]:
        """Return the keys of all parts."""
        with self._lock:
            return set(self._parts)

    def find(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the parts of these keys that are stored; they count as used now."""
        now, found = time.monotonic(), {}
        with self._lock:
            for key in keys:
                part = self._parts.get(key)
                if part is None:
                    continue
                found[key] = part.value
                for one in (*part.holds, key):
                    if one in self._parts:
                        self._parts[one].used = now
                        self._parts.move_to_end(one)
        return found

    def add(self, key: str, value: Any, nbytes: int, holds: Iterable[str] = ()) -> None:
        """Store a part, which holds others."""
        with self._lock:
            self._parts[key] = _Part(value, nbytes, frozenset(holds))
            while self._nbytes() > self.limit and self._drop_oldest({key}):
                pass

    def drop_oldest(self) -> bool:
        """Drop the least recently used part that is not in use; return whether there was one."""
        with self._lock:
            return self._drop_oldest(set())

    def _drop_oldest(self, but: set[str]) -> bool:
        kept = set(self._in_use) | but
        for one in list(kept):
            if one in self._parts:
                kept |= self._parts[one].holds
        oldest = next((one for one in self._parts if one not in kept), None)
        if oldest is not None:
            self._drop({oldest})
        return oldest is not None

    def _drop(self, keys: set[str]) -> None:
        while keys:
            for key in keys:
                self._parts.pop(key, None)
            keys = {one for one, part in self._parts.items() if not part.holds.isdisjoint(keys)}

    def drop(self, keys: Iterable[str]) -> None:
        """Drop parts, and the parts that hold them."""
        with self._lock:
            self._drop(set(keys))

    def drop_unused(self, seconds: float) -> None:
        """Drop what has not been used for so long."""
        since = time.monotonic() - seconds
        with self._lock:
            used = set(self._in_use)
            self._drop({key for key, part in self._parts.items() if part.used < since and key not in used})
