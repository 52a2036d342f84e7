"""Pickles in parts, so that large arrays are sent once for all tasks of a run.

Only objects of types that pickle does not know are examined, so that a list of a million numbers is as fast
as with pickle.
"""

import hashlib
import io
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import GenericAlias
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
PartNames = Mapping[str, tuple[str, int]]
"""Parts by key: what Dask calls each, which is empty for parts that were not sent, and its bytes."""


@dataclass(frozen=True)
class Package:
    """An object pickled in parts that are each sent once."""

    key: str  # of the part that is the whole object, and refers to the others
    # Arrays, by the key of their content and device, and pickles: of each owner that is no array, and of the
    # whole. A pickle comes after the parts that it refers to.
    parts: Mapping[str, Any] = field(repr=False)
    owned: Sequence[tuple[Any, frozenset[str]]] = field(repr=False, default=())  # owners and their parts


def pack(thing: Any, salt: str = "", owners: Iterable[Any] = ()) -> Package:
    """Pickle an object in parts: its large arrays, and its `owners`, which later packages may contain again.

    Parts are known by content, so an array changed in place is another part. Device arrays are copied to the
    host, and definitions in ``__main__`` pickled by value. `salt` changes the key.
    """
    # Workers keep what they unpickle under the key of the pickle; of a call of Parallel they keep the pickle.
    collector = PartCollector(salt="package")
    owned = [(owner, collector.add(owner)) for owner in owners if owner is not None]
    pickled = collector.dumps(thing)
    key = pickle_key(pickled, "package" + salt)
    return Package(key, {**collector.content, key: pickled}, owned)


def unpack(pickled: bytes, find: Callable[[str], Any]) -> Any:
    """Unpickle an object; `find` returns the parts that it refers to."""
    return _Unpickler(io.BytesIO(pickled), find).load()


def is_pickle(key: str) -> bool:
    """Whether this is the key of a pickle, not of an array."""
    return key.startswith(_PICKLE)


class PartCollector:
    """Pickles objects, and collects the parts that the pickles refer to: arrays of `least` bytes or more, and
    objects that were added.
    """

    def __init__(
        self,
        least: int = APART_BYTES,
        array_key: Callable[[Any, Array], str] | None = None,
        salt: str = "",
    ) -> None:
        self.content: dict[str, Any] = {}
        # Keys by id, with the array or object, so that its id is not used again.
        self.arrays: dict[int, tuple[Any, str]] = {}
        self.objects: dict[int, tuple[Any, str]] = {}
        self._inside: dict[str, frozenset[str]] = {}  # parts of an object, itself among them
        self._least, self._array_key, self._salt = least, array_key or array_part_key, salt
        self._named: set[str] = set()

    def add(self, thing: Any) -> frozenset[str]:
        """Make an object a part of its own if it is large enough; return the keys of all parts in it."""
        self._named = set()
        if self.name(thing) is None and not is_on_device(thing):
            pickled = self.dumps(thing)
            if len(pickled) >= self._least:
                key = pickle_key(pickled, self._salt)
                parts = {one: self.content[one] for one in self._named}
                self.add_pickled(thing, key, {**parts, key: pickled})
                self._named.add(key)
        return frozenset(self._named)

    def add_pickled(self, thing: Any, key: str, parts: Mapping[str, Any]) -> None:
        """Make an object a part; `parts` are its pickle and what that refers to."""
        self.content.update(parts)
        self.objects[id(thing)] = thing, key
        self._inside[key] = frozenset(parts)

    def name(self, thing: Any) -> str | None:
        """Return the key of an array that is a part; None for other objects."""
        if id(thing) not in self.arrays:
            host = large_array_content(thing, self._least)
            if host is None:
                return None
            key = self._array_key(thing, host)
            self.content[key], self.arrays[id(thing)] = host, (thing, key)
        key = self.arrays[id(thing)][1]
        self._named.add(key)
        return key

    def object_key(self, thing: Any) -> str | None:
        """Return the key of an object that was added and is a part; None for other objects."""
        _, key = self.objects.get(id(thing), (None, None))
        if key is not None:
            self._named |= self._inside[key]
        return key

    def dumps(self, thing: Any) -> bytes:
        """Pickle an object, with references to its parts."""
        file = io.BytesIO()
        (_ObjectPickler if self.objects else _Pickler)(file, self).dump(thing)
        return file.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, parts: PartCollector) -> None:
        super().__init__(file, protocol=5)
        self._parts = parts

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type | GenericAlias):  # a class of arrays has their methods
            return super().reducer_override(thing)
        key = self._parts.name(thing)
        if key is not None:
            return _find_part, (key,)
        # torch's own pickle needs a device of the same number, which a worker may not have.
        if is_on_device(thing) and _is_plain(thing):
            return to_place, (to_host(thing, label="data for workers"), place_of(thing))
        return super().reducer_override(thing)


class _ObjectPickler(_Pickler):
    # Called for every object, since those that were added may be lists, which no reducer is asked about.
    def persistent_id(self, thing: Any) -> str | None:
        return self._parts.object_key(thing)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, find: Callable[[str], Any]) -> None:
        super().__init__(file)
        self._find = find

    def persistent_load(self, key: Any) -> Any:
        return self._find(key)

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name == _find_part.__name__:
            return self._find
        return super().find_class(module, name)


def _find_part(key: str) -> Any:
    """Stand for the function that finds parts; only `unpack` can read pickles with it."""
    raise pickle.UnpicklingError(f"The pickle refers to {key}, and is not whole.")


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


def array_part_key(thing: Any, host: Array) -> str:
    """Return the key of an array's content and of the device that it is needed on."""
    key = array_key(host)
    place = None if isinstance(thing, np.ndarray) else place_of(thing)
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


def array_key(X: Array) -> str:
    """Return the key of an array's content."""
    return _hex(repr(array_digest(X)).encode())


def pickle_key(pickled: bytes, salt: str = "") -> str:
    """Return the key of a pickle; another `salt` makes it another one."""
    return _PICKLE + _hex(salt.encode() + pickled)


def part_sizes(parts: Mapping[str, Any]) -> dict[str, int]:
    """Return the bytes of each part."""
    return {key: len(part) if isinstance(part, bytes) else int(part.nbytes) for key, part in parts.items()}


def _hex(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
