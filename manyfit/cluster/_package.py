"""What every task of a run has in common, pickled, with its large arrays apart so that each travels once."""

import hashlib
import io
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np
from array_api_compat import is_dask_array, size
from numpy.typing import NDArray

from manyfit.arrays import array_digest, array_namespace, is_array, on_device, place_of, to_host, to_place

Array = NDArray[Any]

# Smaller arrays stay in the pickle: an array apart costs a task on each worker.
APART_BYTES = 2**15
# Between the key of a content and the place where an array of it is needed.
_AT = "@"


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
        The contents, by keys that say as well where the array is needed: see `placed`.
    """

    key: str
    pickled: bytes
    arrays: Mapping[str, Array] = field(repr=False)


def packed(thing: Any, salt: str = "") -> Package:
    """Pickle something, large arrays apart.

    Arrays are read once, to be known by their content: so one that was changed in place is another one. Those
    of a device come to the host for that, and travel from there.

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
        self._known: dict[int, tuple[str, Any]] = {}  # with the array, so that its id is not used again

    def persistent_id(self, thing: Any) -> str | None:
        if id(thing) in self._known:
            return self._known[id(thing)][0]
        host = _apart(thing)
        if host is None:
            return None
        key = array_key(host)
        if not isinstance(thing, np.ndarray):
            key = _AT.join((key, *place_of(thing)))
        self.arrays[key] = host
        self._known[id(thing)] = key, thing
        return key

    def reducer_override(self, thing: Any) -> Any:
        # torch's own would look for a device of the same number, which a worker may not have.
        if on_device(thing) and _is_plain(thing):
            return to_place, (to_host(thing), place_of(thing))
        return super().reducer_override(thing)


def _apart(thing: Any) -> Array | None:
    """The content of an array that travels apart; None for everything else."""
    if isinstance(thing, np.ndarray):
        # A memory map is an array like any other to a worker, which may not have the file.
        plain = type(thing) in (np.ndarray, np.memmap) and not thing.dtype.hasobject
        return np.asarray(thing) if plain and thing.nbytes >= APART_BYTES else None
    if not is_array(thing) or not _is_plain(thing):
        return None
    nbytes = (size(thing) or 0) * getattr(thing.dtype, "itemsize", 8)
    return to_host(thing) if nbytes >= APART_BYTES else None


def _is_plain(thing: Any) -> bool:
    """Whether an array is its content, and no more."""
    if isinstance(thing, np.ndarray) or is_dask_array(thing) or getattr(thing, "requires_grad", False):
        return False
    return type(thing) is type(array_namespace(thing).empty(0))


def placed(key: str, host: Array) -> Any:
    """An array that travelled apart, where its key says that it belongs."""
    _, *place = key.split(_AT)
    if place:
        return to_place(host, (place[0], place[1]))
    lent = host.view()  # where the worker is in the client's process, this is the user's array
    lent.flags.writeable = False  # tasks have it in common
    return lent


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arrays: Callable[[str], Array]) -> None:
        super().__init__(file)
        self._arrays = arrays

    def persistent_load(self, key: Any) -> Array:
        return self._arrays(key)


def array_key(X: Array) -> str:
    """A key of the content of an array of numbers."""
    return _hex(repr(array_digest(X)).encode(), b"")


def _hex(content: Any, head: bytes) -> str:
    digest = hashlib.sha1(content, usedforsecurity=False)
    digest.update(head)
    return digest.hexdigest()
