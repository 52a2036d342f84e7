"""What a worker keeps of searches: arrays and what was unpickled around them, by their content."""

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
    holds: frozenset[str]  # parts that go only with this one
    used: float = field(default_factory=time.monotonic)


class Store:
    """Parts of packages; the least recently used make room.

    Parameters
    ----------
    limit : int
        Bytes. What was put in last stays with all that it holds, even if that is more.

    Notes
    -----
    Dask's own memory accounting does not see it. Parts are those that Dask has, on the worker that they were
    sent to: they count twice there, and are there once.
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
    def using(self, key: str, wanted: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Within it, a part and what it holds does not make room for others; `wanted` by somebody, or not."""
        with self._lock:
            self._in_use[key].append(wanted)
        try:
            yield
        finally:
            with self._lock:
                self._in_use[key].remove(wanted)
                if not self._in_use[key]:
                    del self._in_use[key]

    def used_beside(self, key: str) -> set[bool]:
        """Of the uses of other parts than this one: whether somebody wants them."""
        with self._lock:
            return {wanted() for one, uses in self._in_use.items() if one != key for wanted in uses}

    def keys(self) -> set[str]:
        """All keys."""
        with self._lock:
            return set(self._parts)

    def find(self, keys: Iterable[str]) -> dict[str, Any]:
        """Those of some parts that are here, by key; they count as used now."""
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
        """Keep a part, which holds others."""
        with self._lock:
            self._parts[key] = _Part(value, nbytes, frozenset(holds))
            while self._nbytes() > self.limit and self._drop_oldest({key}):
                pass

    def drop_oldest(self) -> bool:
        """Let go of the part that was used least recently, if one is not in use; whether there was one."""
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
        """Let go of parts, and of those that hold them."""
        with self._lock:
            self._drop(set(keys))

    def drop_unused(self, seconds: float) -> None:
        """Let go of what nobody has used for so long."""
        since = time.monotonic() - seconds
        with self._lock:
            used = set(self._in_use)
            self._drop({key for key, part in self._parts.items() if part.used < since and key not in used})
