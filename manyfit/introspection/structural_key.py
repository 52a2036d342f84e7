"""Keys of unfitted estimators and parameter values: fits of things with equal keys give equal results.

The key describes the content of the exact types that this module and `_frame_key` name: scalars and
containers of Python in their order, arrays, scalars and dtypes of NumPy, sparse matrices, frames, and
estimators whose parameters are their attributes. Everything else is known by its identity, since a class may
have hidden state (slots, properties). Equal things may have different keys, which costs a fit; different
things never have equal keys.

Keys are compared within one search; `stable_digest` is for comparisons between processes.
"""

from __future__ import annotations

import functools
import struct
import types
from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from manyfit._compat import is_metadata_request
from manyfit.arrays import array_digest, describes_itself
from manyfit.introspection._frame_key import frame_parts

__all__ = [
    "BY_IDENTITY",
    "DEEPEST",
    "SCALARS",
    "ById",
    "Unkeyable",
    "Wrapped",
    "keeps_its_parameters",
    "object_state",
    "plain_state",
    "structural_key",
]

SCALARS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
# A copy of these is the same object.
BY_IDENTITY = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    np.ufunc,
    type(np.mean),  # a function that other libraries can override
)
# Levels of nested parameters.
DEEPEST = 50
# Objects in one value that are read one by one: more would take longer than many a fit.
_MAX_OBJECTS = 1_000_000
# Plain objects of these packages keep all their state in their attributes.
_KNOWN_PACKAGES = ("sklearn.", "manyfit.", "scipy.sparse.")


class Unkeyable(Exception):
    """Something has no key, so that no work that depends on it is shared."""


class Wrapped:
    """Base class of the wrapper around a shared transformer: keys and rules read the transformer inside."""

    _shared_inner: Any


class ById:
    """A dictionary key for the identity of a thing, which the reference keeps alive."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return type(other) is ById and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


class _Plain:
    pass


def _is_plain(thing: Any) -> bool:
    """Whether all state of an object is in its ``__dict__``: its class has neither slots nor a C part."""
    kind = type(thing)
    return kind.__basicsize__ == _Plain.__basicsize__ and not kind.__itemsize__ and hasattr(thing, "__dict__")


def object_state(thing: Any) -> dict[str, Any]:
    """The attributes of an object, without the reference of a metadata request to its estimator."""
    state = vars(thing)
    if is_metadata_request(thing):
        # Only messages use the owner.
        state = {name: value for name, value in state.items() if name != "owner"}
    return state


def plain_state(thing: Any) -> dict[str, Any] | None:
    """The attributes of an object; None if it has state elsewhere."""
    return object_state(thing) if _is_plain(thing) else None


def _of_known_package(kind: type) -> bool:
    return kind.__module__.startswith(_KNOWN_PACKAGES)


def keeps_its_parameters(estimator: Any) -> bool:
    """Whether the parameters of an estimator are its attributes, and its clones are made from them.

    Otherwise (a property, a slot, a computed value, an own ``__sklearn_clone__``) nothing of it is shared.
    """
    kind = type(estimator)
    if _of_known_package(kind):
        return _is_plain(estimator)
    cloned = getattr(kind, "__sklearn_clone__", None)
    own_clones = cloned is not None and cloned is not BaseEstimator.__sklearn_clone__
    if own_clones or not _is_plain(estimator):
        return False
    state = vars(estimator)
    try:
        params = estimator.get_params(deep=False)
        return all(name in state and state[name] is value for name, value in params.items())
    except Exception:  # a parameter without an attribute: scikit-learn says what is wrong with it
        return False


def structural_key(thing: Any, *, by_identity: bool = True) -> Hashable:
    """A hashable key of an unfitted estimator or a parameter value; `Unkeyable` if it has none.

    Types of scalars count (1, 1.0 and True differ, so do 0.0 and -0.0), so do the order of containers, and
    dtype, shape and memory layout of arrays. Estimators count with everything in ``vars()``, which includes
    output configuration and metadata requests. A mutable object that occurs twice differs from two equal
    ones. The key keeps objects alive that it knows by identity; without `by_identity` it is `Unkeyable`.
    """
    return _Walk(by_identity).key(thing)


class _Walk:
    """Makes the key of one thing."""

    def __init__(self, by_identity: bool) -> None:
        self._by_identity = by_identity
        self._left, self._depth = _MAX_OBJECTS, 0
        # With the thing, so that its identity is not used again.
        self._seen: dict[int, tuple[int, Any]] = {}

    def key(self, thing: Any) -> Hashable:
        kind = type(thing)
        if kind in SCALARS:
            return _scalar(kind, thing)
        if isinstance(thing, Wrapped):
            return self.key(thing._shared_inner)
        if isinstance(thing, BY_IDENTITY):
            return ById(thing)
        self._left -= 1
        if self._left < 0 or self._depth > DEEPEST:
            raise Unkeyable("a structure that is too large")
        if kind is not tuple and kind is not frozenset:
            if id(thing) in self._seen:  # also if it holds itself
                return "again", self._seen[id(thing)][0]
            self._seen[id(thing)] = len(self._seen), thing
        self._depth += 1
        try:
            make = _MAKERS.get(kind)
            return self._other(kind, thing) if make is None else (kind, make(self, thing))
        finally:
            self._depth -= 1

    def items(self, things: Iterable[Any]) -> Hashable:
        """Items in their order; many scalars of one type at once."""
        things = tuple(things)
        kinds = set(map(type, things))
        if len(kinds) == 1:
            (kind,) = kinds
            if kind in (str, bytes, int, bool):  # equal only if they are the same
                return kind, things
            if kind is float:
                return kind, array("d", things).tobytes()
        return tuple(map(self.key, things))

    def mapping(self, things: Mapping[Any, Any]) -> Hashable:
        return self.items(things), self.items(things.values())

    def named(self, state: Mapping[str, Any]) -> Hashable:
        """Attributes, in any order."""
        names = sorted(state)
        return tuple(names), tuple(self.key(state[name]) for name in names)

    def array(self, X: np.ndarray) -> Hashable:
        dtype = X.dtype
        if dtype.kind in "OT" and describes_itself(dtype):  # objects, and NumPy's strings of any length
            order = X.flags.c_contiguous, X.flags.f_contiguous
            return repr(dtype), X.shape, order, self.items(X.ravel().tolist())
        if dtype.hasobject or not describes_itself(dtype):
            return self.unknown(X)
        return array_digest(X)

    def unknown(self, thing: Any) -> Hashable:
        if self._by_identity:
            return ById(thing)
        raise Unkeyable(type(thing).__name__)

    def _other(self, kind: type, thing: Any) -> Hashable:
        if isinstance(thing, np.generic):
            known = kind.__module__ == "numpy" and not thing.dtype.hasobject and describes_itself(thing.dtype)
            return (kind, repr(thing.dtype), thing.tobytes()) if known else self.unknown(thing)
        if isinstance(thing, np.dtype):
            return (np.dtype, repr(thing), thing.char) if describes_itself(thing) else self.unknown(thing)
        if hasattr(thing, "get_params"):
            if not keeps_its_parameters(thing):
                raise Unkeyable(f"a {kind.__name__}, which keeps parameters elsewhere than in its attributes")
            return ById(kind), self.named(object_state(thing))
        if _of_known_package(kind) and _is_plain(thing):
            return ById(kind), self.named(object_state(thing))
        parts = frame_parts(thing)
        return self.unknown(thing) if parts is None else (kind, self.key(parts))


def _scalar(kind: type, value: Any) -> Hashable:
    if kind is float:  # zeros and NaNs have signs
        return kind, struct.pack("d", value)
    return (kind, struct.pack("dd", value.real, value.imag)) if kind is complex else (kind, value)


def _frozen(walk: _Walk, frozen: FrozenEstimator) -> Hashable:
    # A clone holds the same estimator, which a fit does not change.
    rest = {name: value for name, value in vars(frozen).items() if name != "estimator"}
    return ById(frozen.estimator), walk.named(rest)


def _ordered(walk: _Walk, things: OrderedDict[Any, Any]) -> Hashable:
    return walk.mapping(things), walk.named(vars(things))  # unlike a dict it takes attributes


def _partial(walk: _Walk, call: functools.partial[Any]) -> Hashable:
    # Not as one tuple: `keywords` is the dict that the object holds.
    return walk.key(call.func), walk.key(call.args), walk.key(call.keywords), walk.named(vars(call))


_MAKERS: dict[type, Callable[[_Walk, Any], Hashable]] = {
    **dict.fromkeys((list, tuple, set, frozenset), _Walk.items),  # a set in the order in which it is read
    dict: _Walk.mapping,
    OrderedDict: _ordered,
    defaultdict: lambda walk, things: (walk.key(things.default_factory), walk.mapping(things)),
    range: lambda walk, one: (one.start, one.stop, one.step),
    slice: lambda walk, one: tuple(map(walk.key, (one.start, one.stop, one.step))),
    functools.partial: _partial,
    types.MethodType: lambda walk, one: (walk.key(one.__func__), walk.key(one.__self__)),
    np.ndarray: _Walk.array,
    FrozenEstimator: _frozen,
}
