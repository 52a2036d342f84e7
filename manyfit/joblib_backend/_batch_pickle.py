"""Batches of calls, pickled so that what is large in them travels apart, once."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyfit.cluster.worker.content_pickle import APART_BYTES, apart, key_of, pickle_key
from manyfit.joblib_backend._array_pickle import Named, pickled

# Smaller arrays are read again for each batch, larger ones once a call of Parallel, as joblib's processes do:
# these map arrays of 1 MB and more into memory, once.
REREAD_BYTES = 2**20
# Dask warns of graphs of 10 MB: a batch that is still so large without its large parts is a part itself.
WHOLE_BYTES = 2**20
# Things of a batch are looked at one by one if they have so many bytes each on average.
WORTH_A_LOOK = 1024
# These are never large.
_SMALL = (int, float, bool, complex, type(None))

Calls = Sequence[tuple[Any, tuple[Any, ...], Mapping[str, Any]]]
"""Of what `joblib.delayed` makes: function, positional arguments, keyword arguments."""


@dataclass(frozen=True)
class Packed:
    """A pickled batch.

    Attributes
    ----------
    pickled : bytes
        Calls and nested backend, with keys in place of the parts; empty if this is a part itself.
    whole : str or None
        The part that it is then.
    parts : dict of str to (ndarray or bytes)
        Arrays by the key of their content, and pickles that name arrays.
    owners : list of (object, str)
        Things of the caller, each with the part that it is.
    """

    pickled: bytes
    whole: str | None
    parts: Mapping[str, Any] = field(repr=False)
    owners: Sequence[tuple[Any, str]] = field(repr=False)


class Packer:
    """Pickles the batches of one call of Parallel.

    Parameters
    ----------
    least : int
        Bytes from which on arrays and arguments travel apart.

    Notes
    -----
    Holds nothing of what it has seen: arrays that a generator makes on the way are let go.
    """

    def __init__(self, least: int = APART_BYTES) -> None:
        self.least = least
        # By where an array lies in memory and how, so that views count as well; with what has that memory.
        self._arrays: dict[Any, tuple[weakref.ref[Any], str]] = {}
        self._frames: dict[int, tuple[weakref.ref[Any], str, dict[str, Any]]] = {}
        self._were_large: set[int] = set()  # of objects that may be gone: a hint only

    def pack(self, calls: Calls, nested: Any) -> Packed:
        """Pickle a batch.

        Raises
        ------
        Exception
            Whatever pickling raises for what cannot be pickled.
        """
        batch = _Batch(self)
        things = {id(thing): thing for thing in _arguments(calls) if not isinstance(thing, _SMALL)}
        were_large = {one for one, thing in things.items() if _hint(thing) in self._were_large}
        for one in were_large:
            batch.take_apart(things[one])
        content = batch.pickled(calls, nested)
        others = [thing for one, thing in things.items() if one not in were_large]
        if len(content) >= max(self.least, WORTH_A_LOOK * len(others)):
            found = [batch.take_apart(thing) for thing in others]
            if any(found):
                content = batch.pickled(calls, nested)
        whole = None
        if len(content) >= WHOLE_BYTES:
            whole = pickle_key(content)
            batch.parts[whole], content = content, b""
        return Packed(content, whole, batch.parts, list(batch.owners.values()))

    def array_key(self, thing: Any, host: np.ndarray) -> str:
        """The key of an array, which is read for it unless it is large and was read before."""
        if not isinstance(thing, np.ndarray) or host.nbytes < REREAD_BYTES:
            return key_of(thing, host)
        where = host.__array_interface__["data"][0], host.shape, host.strides, host.dtype
        holder, key = self._arrays.get(where, (None, ""))
        if holder is None or holder() is None:
            key = key_of(thing, host)
            self._arrays[where] = weakref.ref(root(thing)), key
        return key

    def frame(self, thing: Any) -> tuple[str, dict[str, Any]] | None:
        """The key and the parts of a large frame that was pickled before."""
        holder, key, parts = self._frames.get(id(thing), (None, "", {}))
        return (key, parts) if holder is not None and holder() is thing else None

    def know(self, thing: Any, key: str, parts: dict[str, Any], nbytes: int) -> None:
        """Remember what was large."""
        self._were_large.add(_hint(thing))
        if nbytes >= REREAD_BYTES and hasattr(type(thing), "__array__"):
            one, frames = id(thing), self._frames
            frames[one] = weakref.ref(thing, lambda _: frames.pop(one, None)), key, parts


class _Batch:
    """Collects what travels apart from one batch."""

    def __init__(self, packer: Packer) -> None:
        self.parts: dict[str, Any] = {}
        self.owners: dict[str, tuple[Any, str]] = {}
        self._packer = packer
        self._large: dict[int, Named] = {}
        # With the array, so that its id is not used again.
        self._seen: dict[int, tuple[Any, str, np.ndarray]] = {}

    def pickled(self, calls: Calls, nested: Any) -> bytes:
        """Pickle calls, with what was taken apart named in its place."""
        named = [
            (
                self._named(function),
                tuple(map(self._named, args)),
                {k: self._named(v) for k, v in kwargs.items()},
            )
            for function, args, kwargs in calls
        ]
        return pickled((named, nested), self._name)

    def _named(self, thing: Any) -> Any:
        return self._large.get(id(thing), thing)

    def take_apart(self, thing: Any) -> bool:
        """Have an argument travel apart if that is worth it; whether it is."""
        known = self._packer.frame(thing)
        if known is None:
            if self._name(thing) is not None:
                return False  # an array does so anyway
            before, self.parts = self.parts, {}
            content = pickled(thing, self._name)
            inside, self.parts = self.parts, {**before, **self.parts}
            if len(content) < self._packer.least:
                return False
            key = pickle_key(content)
            known = key, {**inside, key: content}
            self._packer.know(thing, *known, len(content))
        key, parts = known
        self.parts.update(parts)
        self._large[id(thing)] = Named(key)
        self.owners[key] = thing, key
        return True

    def _name(self, thing: Any) -> str | None:
        if id(thing) not in self._seen:
            content = apart(thing, self._packer.least)
            if content is None:
                return None
            self._seen[id(thing)] = thing, self._packer.array_key(thing, content), content
        _, key, host = self._seen[id(thing)]
        self.parts[key] = host
        self.owners[key] = root(thing), key
        return key


def root(array: Any) -> Any:
    """The array that has the memory of another one, which may be itself."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _arguments(calls: Calls) -> Iterator[Any]:
    for function, args, kwargs in calls:
        yield function
        yield from args
        yield from kwargs.values()


def _hint(thing: Any) -> int:
    # A generator of tasks makes each function anew, of the same code.
    return id(getattr(thing, "__code__", thing))
