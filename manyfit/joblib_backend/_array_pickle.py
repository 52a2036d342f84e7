"""Pickles that refer to parts by key.

Only objects of types that pickle does not know are examined, so that a list of a million numbers is as fast
as with pickle.
"""

import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle

from manyfit.arrays import is_on_device, place_of, to_host, to_place


class PartReference:
    """Stands for a part in a pickle."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __reduce__(self) -> Any:
        return _find, (self._key,)


def dump_with_parts(thing: Any, name: Callable[[Any], str | None]) -> bytes:
    """Pickle an object, with references to the arrays for which `name` returns a key."""
    file = io.BytesIO()
    _Pickler(file, name).dump(thing)
    return file.getvalue()


def load_with_parts(content: bytes, find: Callable[[str], Any]) -> Any:
    """Unpickle an object; `find` returns the part of a key."""
    before = getattr(_thread, "find", None)
    _thread.find = find
    try:
        return pickle.loads(content)
    finally:
        _thread.find = before


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, name: Callable[[Any], str | None]) -> None:
        super().__init__(file, protocol=5)
        self._name = name

    def reducer_override(self, thing: Any) -> Any:
        key = self._name(thing)
        if key is not None:
            return _find, (key,)
        if is_on_device(thing):
            # torch's own pickle needs a device of the same number, which a worker may not have.
            return to_place, (to_host(thing, label="data for workers"), place_of(thing))
        return super().reducer_override(thing)


_thread = threading.local()


def _find(key: str) -> Any:
    return _thread.find(key)
