"""Pickles in which what travels apart is named by its key.

Only what pickle asks about is looked at, which are objects that are not of Python's own types: a list of a
million numbers is written as fast as ever.
"""

import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle

from manyfit.arrays import is_on_device, place_of, to_host, to_place


class Named:
    """Stands for something that travels apart.

    Parameters
    ----------
    key : str
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def __reduce__(self) -> Any:
        return _find, (self._key,)


def pickled(thing: Any, name: Callable[[Any], str | None]) -> bytes:
    """Pickle something; of arrays for which `name` has a key, only that."""
    file = io.BytesIO()
    _Pickler(file, name).dump(thing)
    return file.getvalue()


def unpickled(content: bytes, find: Callable[[str], Any]) -> Any:
    """What was pickled; `find` gives what it names."""
    before = getattr(_here, "find", None)
    _here.find = find
    try:
        return pickle.loads(content)
    finally:
        _here.find = before


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, name: Callable[[Any], str | None]) -> None:
        super().__init__(file, protocol=5)
        self._name = name

    def reducer_override(self, thing: Any) -> Any:
        key = self._name(thing)
        if key is not None:
            return _find, (key,)
        if is_on_device(thing):
            # torch's own would look for a device of the same number, which a worker may not have.
            return to_place, (to_host(thing, label="data for workers"), place_of(thing))
        return super().reducer_override(thing)


_here = threading.local()


def _find(key: str) -> Any:
    return _here.find(key)
