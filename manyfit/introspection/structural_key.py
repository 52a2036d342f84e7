"""Keys of unfitted estimators and parameter values: fits of things with equal keys give equal results.

A key is a digest of content, as in `stable_digest`, and the things that are known by identity: functions,
classes, and objects that may have hidden state (slots, properties). Their content is read if they are
containers, ranges or partial functions of Python, arrays or scalars of NumPy, sparse matrices, frames, or
estimators whose parameters are their attributes. Equal things may have different keys, which costs a fit;
different things never have equal keys. Keys are compared within one search.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from manyfit.arrays import memory_owner
from manyfit.introspection.object_state import (
    BY_IDENTITY,
    SCALARS,
    Unkeyable,
    Wrapped,
    is_of_known_package,
    is_plain,
    keeps_its_parameters,
    object_state,
)
from manyfit.introspection.stable_digest import Digester, columns_of, digest_of_parts, digest_of_scalar

__all__ = ["ById", "Unkeyable", "structural_key"]

# Objects in one value that are read one by one: more would take longer than many a fit.
_MAX_OBJECTS = 1_000_000
# Pickle tells all of these, and of objects of these packages.
_PICKLED = (OrderedDict, bytearray, defaultdict, functools.partial, range, slice)
_PICKLED_PACKAGES = ("datetime", "pandas", "polars", "pyarrow", "zoneinfo")


def structural_key(thing: Any, *, by_identity: bool = True) -> tuple[Any, ...]:
    """A hashable key of an unfitted estimator or a parameter value; `Unkeyable` if it has none.

    Types of scalars count (1, 1.0 and True differ, so do 0.0 and -0.0), so do the order of containers, and
    dtype, shape and memory layout of arrays. Estimators count with everything in ``vars()``, which includes
    output configuration and metadata requests. A mutable object that occurs twice differs from two equal
    ones. The key keeps objects alive that it knows by identity; without `by_identity` it is `Unkeyable`.
    """
    kind = type(thing)
    if kind in SCALARS:
        return kind, digest_of_scalar(kind, thing)
    if isinstance(thing, np.generic) and kind.__module__ == "numpy" and thing.dtype.kind in "biufc":
        return kind, thing.tobytes()
    digester = _KeyDigester(by_identity)
    return digester(thing), *digester.identities


class ById:
    """A dictionary key for the identity of a thing, which the reference keeps alive."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return type(other) is ById and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


class _KeyDigester(Digester):
    """Digests beside which `identities` are the things that are known by identity, in order."""

    def __init__(self, by_identity: bool) -> None:
        super().__init__()
        self.identities: list[ById] = []
        self._by_identity, self._left = by_identity, _MAX_OBJECTS
        # With the thing, so that its id is not used again.
        self._numbers: dict[int, tuple[int, Any]] = {}
        self._in_frame = False

    def _seen(self, kind: type, thing: Any) -> bytes | None:
        """An object that occurs again, which is another thing than one that is equal to it."""
        if self._in_frame:  # how often pandas holds an object says nothing
            return super()._seen(kind, thing)
        if kind is tuple or kind is frozenset:
            return None
        if id(thing) in self._numbers:  # also if it holds itself
            return digest_of_parts("again", b"%d" % self._numbers[id(thing)][0])
        self._numbers[id(thing)] = len(self._numbers), thing
        return None

    def _content(self, kind: type, thing: Any) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise Unkeyable(f"a structure of more than {_MAX_OBJECTS} objects")
        if isinstance(thing, Wrapped):
            return self._digest(thing._shared_inner)
        if isinstance(thing, BY_IDENTITY) or kind.__name__ == "cython_function_or_method":
            return self._identity(thing)
        return super()._content(kind, thing)

    def _identity(self, thing: Any) -> bytes:
        self.identities.append(ById(thing))
        return digest_of_parts("known by identity")

    def _unknown(self, thing: Any) -> bytes:
        if self._by_identity:
            return self._identity(thing)
        raise Unkeyable(type(thing).__name__)

    def _set(self, kind: type, things: Iterable[Any]) -> bytes:
        return self._all(kind.__name__, things)  # in the order in which it is read

    def _foreign_array(self, kind: type, X: Any) -> bytes:
        return self._unknown(X)

    def _frame(self, kind: type, frame: Any) -> bytes:
        outer, self._in_frame = self._in_frame, True
        try:
            return self._all("laid out", (super()._frame(kind, frame), _layout(frame)))
        finally:
            self._in_frame = outer

    def _object(self, kind: type, thing: Any) -> bytes:
        if kind is FrozenEstimator:
            # A clone holds the same estimator, which a fit does not change.
            rest = {name: value for name, value in vars(thing).items() if name != "estimator"}
            return digest_of_parts("frozen", self._identity(thing.estimator), self._state(kind, rest))
        if hasattr(thing, "get_params"):
            if not keeps_its_parameters(thing):
                raise Unkeyable(f"a {kind.__name__}, which keeps parameters elsewhere than in its attributes")
            return self._state(kind, object_state(thing))
        if is_of_known_package(kind) and is_plain(thing):
            return self._state(kind, object_state(thing))
        package = kind.__module__.partition(".")[0]
        if kind not in _PICKLED and package not in _PICKLED_PACKAGES:
            return self._unknown(thing)
        return super()._object(kind, thing)


def _layout(frame: Any) -> list[tuple[Any, ...]]:
    """The piece of memory that holds each column, and its place in that: sums over rows depend on both."""
    pieces: dict[int, int] = {}
    found = []
    for column in columns_of(frame):
        if isinstance(column.dtype, np.dtype):
            values = column.to_numpy()
            memory = memory_owner(values)
            piece = pieces.setdefault(id(memory), len(pieces))
            found.append((piece, values.ctypes.data - memory.ctypes.data, values.strides))
    return found
