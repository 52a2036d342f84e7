"""What every task of a run has in common, pickled, with its large arrays apart so that each travels once."""

import hashlib
import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Smaller arrays stay in the pickle: an array apart costs a task on each worker.
APART_BYTES = 2**15


@dataclass(frozen=True)
class Package:
    """Something pickled, and the arrays that the pickle names by their content.

    Attributes
    ----------
    key : str
        Of the content, arrays included.
    pickled : bytes
        Small; large arrays are in it by name only.
    arrays : dict of str to ndarray
        By the key of their content.
    """

    key: str
    pickled: bytes
    arrays: Mapping[str, Array] = field(repr=False)


def packed(thing: Any, salt: str = "") -> Package:
    """Pickle something, large arrays apart.

    Arrays are read once, to be known by their content: so one that was changed in place is another one.

    Parameters
    ----------
    thing : object
        Functions and classes of ``__main__`` are pickled by value.
    salt : str
        Part of the key.

    Returns
    -------
    Package

    Raises
    ------
    Exception
        Whatever pickling raises for what cannot be pickled.
    """
    file = io.BytesIO()
    pickler = _Pickler(file, protocol=5)
    pickler.dump(thing)
    pickled = file.getvalue()
    return Package(_hex(pickled, salt.encode()), pickled, pickler.arrays)


def unpacked(pickled: bytes, arrays: Callable[[str], Array]) -> Any:
    """What was pickled; `arrays` gives those that are apart."""
    return _Unpickler(io.BytesIO(pickled), arrays).load()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self.arrays: dict[str, Array] = {}
        self._known: dict[int, str] = {}

    def persistent_id(self, thing: Any) -> str | None:
        if type(thing) is not np.ndarray or thing.nbytes < APART_BYTES or thing.dtype.hasobject:
            return None
        if id(thing) not in self._known:  # the pickler keeps what it has seen alive
            self._known[id(thing)] = key = array_key(thing)
            self.arrays[key] = thing
        return self._known[id(thing)]


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arrays: Callable[[str], Array]) -> None:
        super().__init__(file)
        self._arrays = arrays

    def persistent_load(self, key: Any) -> Array:
        return self._arrays(key)


def array_key(X: Array) -> str:
    """A key of the content of an array of numbers, with its type, shape and layout in memory.

    The layout counts because sums over another layout round differently.
    """
    fortran = X.flags.f_contiguous and not X.flags.c_contiguous
    content = X.T if fortran else np.ascontiguousarray(X)
    head = f"{X.dtype!r} {X.shape} {fortran}".encode()
    return _hex(content.reshape(-1).view(np.uint8).data, head)


def _hex(content: Any, head: bytes) -> str:
    digest = hashlib.sha1(content, usedforsecurity=False)
    digest.update(head)
    return digest.hexdigest()
