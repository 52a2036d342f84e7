"""What a worker keeps of searches: arrays and unpickled packages, by the keys of their content."""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from manyfit.cluster._package import placed, unpacked


class Missing(KeyError):
    """The worker does not have what a task needs."""


@dataclass
class _Item:
    value: Any
    nbytes: int
    holds: frozenset[str] = frozenset()  # the arrays of a package, which go only with it


class Store:
    """Arrays, and what was unpickled around them; the least recently used make room.

    Parameters
    ----------
    limit : int
        Bytes of arrays. What was put in last stays, even if it is larger.

    Notes
    -----
    Dask's own memory accounting does not see it. Arrays are those that Dask has, as long as it has them too:
    they count twice then, and are there once.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._items: OrderedDict[str, _Item] = OrderedDict()
        self._lock = threading.RLock()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        with self._lock:
            return sum(item.nbytes for item in self._items.values())

    def keys(self) -> set[str]:
        """All keys."""
        with self._lock:
            return set(self._items)

    def put(self, pickled: bytes, key: str, arrays: dict[str, Any]) -> None:
        """Keep a package; `arrays` are those of its arrays that are not here yet.

        Raises
        ------
        Missing
            If an array is neither here nor given.
        """
        with self._lock:
            for name, array in arrays.items():
                self._items[name] = _Item(placed(name, array), array.nbytes)
            held: set[str] = set()

            def find(name: str) -> Any:
                if name not in self._items:
                    raise Missing(name)
                held.add(name)
                return self._items[name].value

            value = unpacked(pickled, find)
            self._items[key] = _Item(value, len(pickled), frozenset(held))
            self._touch(key)
            self._make_room(key)

    def get(self, key: str) -> Any:
        """What a package holds.

        Raises
        ------
        Missing
            If it is not here.
        """
        with self._lock:
            if key not in self._items:
                raise Missing(key)
            self._touch(key)
            return self._items[key].value

    def drop(self, keys: Iterable[str]) -> None:
        """Let go of packages and arrays, and of the packages that hold them."""
        with self._lock:
            for key in keys:
                self._items.pop(key, None)
                for other in [k for k, item in self._items.items() if key in item.holds]:
                    del self._items[other]

    def _touch(self, key: str) -> None:
        for name in (*self._items[key].holds, key):
            self._items.move_to_end(name)

    def _make_room(self, newest: str) -> None:
        kept = {newest, *self._items[newest].holds}
        while self.nbytes > self.limit:
            oldest = next((key for key in self._items if key not in kept), None)
            if oldest is None:
                return
            self.drop([oldest])
