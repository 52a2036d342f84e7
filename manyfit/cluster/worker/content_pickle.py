"""What every task of a run has in common, pickled in parts, so that each large one travels once."""

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

# Smaller arrays stay in the pickle: one apart is one more thing to keep, and to ask for.
APART_BYTES = 2**15
# Between the key of a content and the place where an array of it is needed.
_AT = "@"


# Keys of pickles begin so, those of arrays with the digest of their content.
_PICKLE = "pickle-"


@dataclass(frozen=True)
class Package:
    """Something pickled, in parts that each travel once.

    Attributes
    ----------
    key : str
        Of the part that is the whole, and names the others.
    parts : dict of str to (ndarray or bytes)
        Arrays, by the key of their content and of the place where they are needed, see `placed`; and pickles,
        which name the parts in them: the whole, and one for each owner that is no array.
    owned : list of (object, frozenset of str)
        The owners, and the parts that are theirs.
    """

    key: str
    parts: Mapping[str, Any] = field(repr=False)
    owned: Sequence[tuple[Any, frozenset[str]]] = field(repr=False, default=())


def packed(thing: Any, salt: str = "", owners: Iterable[Any] = ()) -> Package:
    """Pickle something, large arrays and owners apart.

    Arrays are read once, to be known by their content: so one that was changed in place is another one. Those
    of a device come to the host for that, and travel from there.

    Parameters
    ----------
    thing : object
        Functions and classes of ``__main__`` are pickled by value.
    salt : str
        Part of the key.
    owners : iterable
        Large things in it, which later packages may hold again.

    Returns
    -------
    Package

    Raises
    ------
    Exception
        Whatever pickling raises for what cannot be pickled.
    """
    parts = _Parts()
    owned = [(owner, parts.add(owner)) for owner in owners if owner is not None]
    return Package(parts.whole(thing, salt), parts.content, owned)


def unpacked(pickled: bytes, find: Callable[[str], Any]) -> Any:
    """What was pickled; `find` gives the parts that it names."""
    return _Unpickler(io.BytesIO(pickled), find).load()


def is_pickle(key: str) -> bool:
    """Whether the part of this key is a pickle, not an array."""
    return key.startswith(_PICKLE)


class _Parts:
    """Collects what travels apart."""

    def __init__(self) -> None:
        self.content: dict[str, Any] = {}
        self._known: dict[int, tuple[str, Any]] = {}  # with the thing, so that its id is not used again
        self._named: set[str] = set()

    def add(self, owner: Any) -> frozenset[str]:
        """Take an owner apart; the keys of what it consists of."""
        self._named = set()
        if self.name(owner) is None and not is_on_device(owner):  # a small array goes with the whole
            pickled = self._pickled(owner)
            if len(pickled) >= APART_BYTES:
                self._know(owner, pickle_key(pickled), pickled)
        return frozenset(self._named)

    def whole(self, thing: Any, salt: str) -> str:
        """Pickle the rest, and return its key."""
        pickled = self._pickled(thing)
        key = pickle_key(salt.encode() + pickled)
        self.content[key] = pickled
        return key

    def name(self, thing: Any) -> str | None:
        """The key of something that travels apart; None for everything else."""
        if id(thing) not in self._known:
            host = apart(thing)
            if host is None:
                return None
            self._know(thing, key_of(thing, host), host)
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
        # torch's own would look for a device of the same number, which a worker may not have.
        if is_on_device(thing) and _is_plain(thing):
            return to_place, (to_host(thing, label="data for workers"), place_of(thing))
        return super().reducer_override(thing)


def apart(thing: Any, least: int = APART_BYTES) -> Array | None:
    """The content of an array that travels apart, of so many bytes at least; None for everything else."""
    if isinstance(thing, np.ndarray):
        # A memory map is an array like any other to a worker, which may not have the file.
        kind, dtype = type(thing), thing.dtype
        plain = kind in (np.ndarray, np.memmap) and not dtype.hasobject and describes_itself(dtype)
        return np.asarray(thing) if plain and thing.nbytes >= least else None
    if not is_array(thing) or not _is_plain(thing):
        return None
    nbytes = (size(thing) or 0) * getattr(thing.dtype, "itemsize", 8)
    return to_host(thing, label="data for workers") if nbytes >= least else None


def key_of(thing: Any, host: Array, place: tuple[str, str] | None = None) -> str:
    """The key of an array that travels apart: of its content, and of the place where it is needed."""
    key = array_key(host)
    if place is None and not isinstance(thing, np.ndarray):
        place = place_of(thing)
    return key if place is None else key_at(key, place)


def key_at(key: str, place: tuple[str, str]) -> str:
    """The key of an array on a device, from that of its content."""
    return _AT.join((key, *place))


def _is_plain(thing: Any) -> bool:
    """Whether an array is its content, and no more."""
    if isinstance(thing, np.ndarray) or is_dask_array(thing) or getattr(thing, "requires_grad", False):
        return False
    return type(thing) is type(array_namespace(thing).empty(0))


def placed(key: str, host: Array) -> Any:
    """An array that travelled apart, where its key says that it belongs; of the host, read-only."""
    _, *place = key.split(_AT)
    if place:
        return to_place(host, (place[0], place[1]))
    return _locked(host)


def _locked(host: Array) -> Array:
    """A view that nobody can make writeable again: the tasks of a worker have its memory in common."""
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
    """A key of the content of an array of numbers."""
    return _hex(repr(array_digest(X)).encode())


def pickle_key(pickled: bytes) -> str:
    """A key of a pickle."""
    return _PICKLE + _hex(pickled)


def _hex(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
