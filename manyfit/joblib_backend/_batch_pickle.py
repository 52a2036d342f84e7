"""Pickles of batches of calls whose large arguments are parts of their own, sent once."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyfit.cluster.worker.content_pickle import APART_BYTES, array_part_key, large_array_content, pickle_key
from manyfit.joblib_backend._array_pickle import PartReference, dump_with_parts

# Smaller arrays, in bytes, are read for each batch, larger ones once a call of Parallel. joblib's processes
# do the same: they map arrays of 1 MB and more into memory, once.
REREAD_BYTES = 2**20
# Dask warns of graphs of 10 MB: a batch that is this large without its large parts is a part itself.
WHOLE_BYTES = 2**20
# Arguments are examined one by one if they have this many bytes each on average.
EXAMINED_BYTES = 1024
# Instances of these types are never large.
_SMALL = (int, float, bool, complex, type(None))

Calls = Sequence[tuple[Any, tuple[Any, ...], Mapping[str, Any]]]
"""Calls as `joblib.delayed` makes them: function, positional arguments, keyword arguments."""


@dataclass(frozen=True)
class PackedBatch:
    """A pickled batch."""

    pickled: bytes  # calls and nested backend, which refer to parts by key; empty if this is a part itself
    whole: str | None  # key of the part that it is then
    parts: Mapping[str, Any] = field(repr=False)  # arrays by the key of their content, and pickles
    owners: Sequence[tuple[Any, str]] = field(repr=False)  # objects of the caller, each with its part


class BatchPacker:
    """Pickles the batches of one call of Parallel, arrays and arguments of `least` bytes as parts.

    It holds no reference to them: arrays that a generator makes on the way are freed.
    """

    def __init__(self, least: int = APART_BYTES) -> None:
        self.least = least
        # Keys by address and layout, so that views count as well; with the array that owns the memory.
        self._arrays: dict[Any, tuple[weakref.ref[Any], str]] = {}
        self._frames: dict[int, tuple[weakref.ref[Any], str, dict[str, Any]]] = {}
        self._were_large: set[int] = set()  # ids of objects that may be gone: a hint only

    def pack(self, calls: Calls, nested: Any) -> PackedBatch:
        """Pickle a batch."""
        batch = _Batch(self)
        things = {id(thing): thing for thing in _arguments(calls) if not isinstance(thing, _SMALL)}
        were_large = {one for one, thing in things.items() if _hint(thing) in self._were_large}
        for one in were_large:
            batch.add_part(things[one])
        content = batch.pickled(calls, nested)
        others = [thing for one, thing in things.items() if one not in were_large]
        if len(content) >= max(self.least, EXAMINED_BYTES * len(others)):
            found = [batch.add_part(thing) for thing in others]
            if any(found):
                content = batch.pickled(calls, nested)
        whole = None
        if len(content) >= WHOLE_BYTES:
            whole = pickle_key(content)
            batch.parts[whole], content = content, b""
        return PackedBatch(content, whole, batch.parts, list(batch.owners.values()))

    def array_key(self, thing: Any, host: np.ndarray) -> str:
        """Return the key of an array; a large one that was read before is not read again."""
        if not isinstance(thing, np.ndarray) or host.nbytes < REREAD_BYTES:
            return array_part_key(thing, host)
        where = host.__array_interface__["data"][0], host.shape, host.strides, host.dtype
        holder, key = self._arrays.get(where, (None, ""))
        if holder is None or holder() is None:
            key = array_part_key(thing, host)
            self._arrays[where] = weakref.ref(root(thing)), key
        return key

    def frame(self, thing: Any) -> tuple[str, dict[str, Any]] | None:
        """Return the key and the parts of a large frame that was pickled before."""
        holder, key, parts = self._frames.get(id(thing), (None, "", {}))
        return (key, parts) if holder is not None and holder() is thing else None

    def remember(self, thing: Any, key: str, parts: dict[str, Any], nbytes: int) -> None:
        """Remember a large argument."""
        self._were_large.add(_hint(thing))
        if nbytes >= REREAD_BYTES and hasattr(type(thing), "__array__"):
            one, frames = id(thing), self._frames
            frames[one] = weakref.ref(thing, lambda _: frames.pop(one, None)), key, parts


class _Batch:
    """Collects the parts of one batch."""

    def __init__(self, packer: BatchPacker) -> None:
        self.parts: dict[str, Any] = {}
        self.owners: dict[str, tuple[Any, str]] = {}
        self._packer = packer
        self._large: dict[int, PartReference] = {}
        # With the array, so that its id is not used again.
        self._seen: dict[int, tuple[Any, str, np.ndarray]] = {}

    def pickled(self, calls: Calls, nested: Any) -> bytes:
        """Pickle calls, with references in place of the parts."""
        named = [
            (
                self._named(function),
                tuple(map(self._named, args)),
                {k: self._named(v) for k, v in kwargs.items()},
            )
            for function, args, kwargs in calls
        ]
        return dump_with_parts((named, nested), self._name)

    def _named(self, thing: Any) -> Any:
        return self._large.get(id(thing), thing)

    def add_part(self, thing: Any) -> bool:
        """Make an argument a part if it is large enough; return whether it is."""
        known = self._packer.frame(thing)
        if known is None:
            if self._name(thing) is not None:
                return False  # an array is a part anyway
            before, self.parts = self.parts, {}
            content = dump_with_parts(thing, self._name)
            inside, self.parts = self.parts, {**before, **self.parts}
            if len(content) < self._packer.least:
                return False
            key = pickle_key(content)
            known = key, {**inside, key: content}
            self._packer.remember(thing, *known, len(content))
        key, parts = known
        self.parts.update(parts)
        self._large[id(thing)] = PartReference(key)
        self.owners[key] = thing, key
        return True

    def _name(self, thing: Any) -> str | None:
        if id(thing) not in self._seen:
            content = large_array_content(thing, self._packer.least)
            if content is None:
                return None
            self._seen[id(thing)] = thing, self._packer.array_key(thing, content), content
        _, key, host = self._seen[id(thing)]
        self.parts[key] = host
        self.owners[key] = root(thing), key
        return key


def root(array: Any) -> Any:
    """Return the array that owns the memory of another one, which may be itself."""
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _arguments(calls: Calls) -> Iterator[Any]:
    for function, args, kwargs in calls:
        yield function
        yield from args
        yield from kwargs.values()


def _hint(thing: Any) -> int:
    # A generator of tasks makes a new function of the same code for each task.
    return id(getattr(thing, "__code__", thing))
