"""Pickles of batches of calls whose large arguments are parts of their own, sent once."""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyfit.arrays import memory_owner
from manyfit.cluster.worker.content_pickle import APART_BYTES, PartCollector, array_part_key, pickle_key

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
    owners: Sequence[tuple[Any, str]] = field(repr=False)  # objects of the caller, each with a part of it


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
        collector = PartCollector(self.least, self.array_key)
        things = {id(thing): thing for thing in _arguments(calls) if not isinstance(thing, _SMALL)}
        were_large = {one for one, thing in things.items() if _hint(thing) in self._were_large}
        for one in were_large:
            self._add(collector, things[one])
        content = collector.dumps((calls, nested))
        others = [thing for one, thing in things.items() if one not in were_large]
        if len(content) >= max(self.least, EXAMINED_BYTES * len(others)):
            n_large = len(collector.objects)
            for thing in others:
                self._add(collector, thing)
            if len(collector.objects) > n_large:
                content = collector.dumps((calls, nested))
        parts, whole = collector.content, None
        if len(content) >= WHOLE_BYTES:
            whole = pickle_key(content)
            parts[whole], content = content, b""
        owned = [*collector.arrays.values(), *collector.objects.values()]
        return PackedBatch(content, whole, parts, [(memory_owner(thing), key) for thing, key in owned])

    def _add(self, collector: PartCollector, thing: Any) -> None:
        """Make an argument a part if it is large enough; a large frame is pickled once."""
        holder, key, parts = self._frames.get(id(thing), (None, "", {}))
        if holder is not None and holder() is thing:
            collector.add_pickled(thing, key, parts)
            return
        inside = collector.add(thing)
        if id(thing) not in collector.objects:
            return
        self._were_large.add(_hint(thing))
        key = collector.objects[id(thing)][1]
        if len(collector.content[key]) >= REREAD_BYTES and hasattr(type(thing), "__array__"):
            one, frames, parts = id(thing), self._frames, {part: collector.content[part] for part in inside}
            frames[one] = weakref.ref(thing, lambda _: frames.pop(one, None)), key, parts

    def array_key(self, thing: Any, host: np.ndarray) -> str:
        """Return the key of an array; a large one that was read before is not read again."""
        if not isinstance(thing, np.ndarray) or host.nbytes < REREAD_BYTES:
            return array_part_key(thing, host)
        where = host.__array_interface__["data"][0], host.shape, host.strides, host.dtype
        holder, key = self._arrays.get(where, (None, ""))
        if holder is None or holder() is None:
            key = array_part_key(thing, host)
            self._arrays[where] = weakref.ref(memory_owner(thing)), key
        return key


def _arguments(calls: Calls) -> Iterator[Any]:
    for function, args, kwargs in calls:
        yield function
        yield from args
        yield from kwargs.values()


def _hint(thing: Any) -> int:
    # A generator of tasks makes a new function of the same code for each task.
    return id(getattr(thing, "__code__", thing))
