"""Pickles in parts, so that large arrays are sent once for all tasks of a run."""

import hashlib
import io
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np
from array_api_compat import is_dask_array, size
from numpy.typing import NDArray

from manyfit.arrays import (
    array_digest,
    array_namespace,
    describes_itself,
    is_array,
    is_on_device,
    place_of,
    to_host,
    to_place,
)

Array = NDArray[Any]

# Smaller arrays, in bytes, stay in the pickle: each part is one more thing to keep and to fetch.
APART_BYTES = 2**15
# Separates the key of a content from the device that an array of it is needed on.
_AT = "@"


# Prefix of the keys of pickles; those of arrays begin with the digest of their content.
_PICKLE = "pickle-"


@dataclass(frozen=True)
class Package:
    """An object pickled in parts that are each sent once."""

    key: str  # of the part that is the whole object, and refers to the others
    # Arrays, by the key of their content and device, and pickles: of the whole, and of each owner that is no
    # array.
    parts: Mapping[str, Any] = field(repr=False)
    owned: Sequence[tuple[Any, frozenset[str]]] = field(repr=False, default=())  # owners and their parts


def pack(thing: Any, salt: str = "", owners: Iterable[Any] = ()) -> Package:
    """Pickle an object in parts: its large arrays, and its `owners`, which later packages may contain again.

    Parts are known by content, so an array changed in place is another part. Device arrays are copied to the
    host, and definitions in ``__main__`` pickled by value. `salt` changes the key.
    """
    parts = _PartCollector()
    owned = [(owner, parts.add(owner)) for owner in owners if owner is not None]
    return Package(parts.whole(thing, salt), parts.content, owned)


def unpack(pickled: bytes, find: Callable[[str], Any]) -> Any:
    """Unpickle an object; `find` returns the parts that it refers to."""
    return _Unpickler(io.BytesIO(pickled), find).load()


def is_pickle(key: str) -> bool:
    """Whether this is the key of a pickle, not of an array."""
    return key.startswith(_PICKLE)


class _PartCollector:
    """Collects the parts of a package."""

    def __init__(self) -> None:
        self.content: dict[str, Any] = {}
        self._known: dict[int, tuple[str, Any]] = {}  # with the object, so that its id is not used again
        self._named: set[str] = set()

    def add(self, owner: Any) -> frozenset[str]:
        """Collect the parts of an owner; return their keys."""
        self._named = set()
        if self.name(owner) is None and not is_on_device(owner):  # a small array stays in the whole
            pickled = self._pickled(owner)
            if len(pickled) >= APART_BYTES:
                self._know(owner, pickle_key(pickled), pickled)
        return frozenset(self._named)

    def whole(self, thing: Any, salt: str) -> str:
        """Pickle the rest; return its key."""
        pickled = self._pickled(thing)
        key = pickle_key(salt.encode() + pickled)
        self.content[key] = pickled
        return key

    def name(self, thing: Any) -> str | None:
        """Return the key of an object that is a part of its own; None for other objects."""
        if id(thing) not in self._known:
            host = large_array_content(thing)
            if host is None:
                return None
            self._know(thing, array_part_key(thing, host), host)
        key = self._known[id(thing)][0]
        self._named.add(key)
        return key

    def _know(self, thing: Any, key: str, content: Any) -> None:
        self.content[key] = content
        self._known[id(thing)] = key, thing
        self._named.add(key)

    def _pickled(self, thing: Any) -> bytes:
        file = io.BytesIO()
        _Pickler(file, self.name).dump(thing)
        return file.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, name: Callable[[Any], str | None]) -> None:
        super().__init__(file, protocol=5)
        self._name = name

    def persistent_id(self, thing: Any) -> str | None:
        return self._name(thing)

    def reducer_override(self, thing: Any) -> Any:
        # torch's own pickle needs a device of the same number, which a worker may not have.
        if is_on_device(thing) and _is_plain(thing):
            return to_place, (to_host(thing, label="data for workers"), place_of(thing))
        return super().reducer_override(thing)


def large_array_content(thing: Any, least: int = APART_BYTES) -> Array | None:
    """Return an array of at least so many bytes as a NumPy array; None for all other objects."""
    if isinstance(thing, np.ndarray):
        # Workers get a memory map as a plain array, since they may not have the file.
        kind, dtype = type(thing), thing.dtype
        plain = kind in (np.ndarray, np.memmap) and not dtype.hasobject and describes_itself(dtype)
        return np.asarray(thing) if plain and thing.nbytes >= least else None
    if not is_array(thing) or not _is_plain(thing):
        return None
    nbytes = (size(thing) or 0) * getattr(thing.dtype, "itemsize", 8)
    return to_host(thing, label="data for workers") if nbytes >= least else None


def array_part_key(thing: Any, host: Array, place: tuple[str, str] | None = None) -> str:
    """Return the key of an array's content and of the device that it is needed on."""
    key = array_key(host)
    if place is None and not isinstance(thing, np.ndarray):
        place = place_of(thing)
    return key if place is None else device_key(key, place)


def device_key(key: str, place: tuple[str, str]) -> str:
    """Return the key of an array on a device, from the key of its content."""
    return _AT.join((key, *place))


def _is_plain(thing: Any) -> bool:
    """Whether an array has nothing but its content."""
    if isinstance(thing, np.ndarray) or is_dask_array(thing) or getattr(thing, "requires_grad", False):
        return False
    return type(thing) is type(array_namespace(thing).empty(0))


def place_array(key: str, host: Array) -> Any:
    """Move an array to the device that its key names; host arrays become read-only."""
    _, *place = key.split(_AT)
    if place:
        return to_place(host, (place[0], place[1]))
    return _locked(host)


def _locked(host: Array) -> Array:
    """Return a view that cannot be made writeable: the tasks of a worker share its memory."""
    fortran = host.flags.f_contiguous and not host.flags.c_contiguous
    content = np.ascontiguousarray(host.T if fortran else host)
    buffer = content.reshape(-1).view(np.uint8).data.toreadonly()
    locked = np.frombuffer(buffer, host.dtype).reshape(host.shape, order="F" if fortran else "C")
    return locked


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, find: Callable[[str], Any]) -> None:
        super().__init__(file)
        self._find = find

    def persistent_load(self, key: Any) -> Any:
        return self._find(key)


def array_key(X: Array) -> str:
    """Return the key of an array's content."""
    return _hex(repr(array_digest(X)).encode())


def pickle_key(pickled: bytes) -> str:
    """Return the key of a pickle."""
    return _PICKLE + _hex(pickled)


def _hex(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
