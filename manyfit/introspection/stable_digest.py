"""Digests of content that are the same in every process.

Equal digests mean equal content; equal content may have two digests.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import hashlib
import struct
import sys
import types
from array import array
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from manyfit._compat import PassthroughScorer
from manyfit.arrays import array_digest, describes_itself, is_array, to_host
from manyfit.introspection._function_code import (
    cell_content,
    code_parts,
    is_importable,
    is_library_module,
    names_read,
    package_version,
)
from manyfit.introspection.object_state import (
    SCALARS,
    Unkeyable,
    is_plain,
    keeps_its_parameters,
    object_state,
)

__all__ = ["Digester", "Unkeyable"]

_BY_NAME = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
)
# Attributes of a class that do not say what it does.
_NOT_CONTENT = frozenset(
    ("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__annotate__",
     "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "__firstlineno__",
     "__static_attributes__", "__slotnames__", "_abc_impl")
)  # fmt: skip
_DEEPEST = 60  # four calls each


class Digester:
    """Computes digests; each object is read once.

    Types of numbers count (1, 1.0 and True differ), and the memory layout of arrays. Objects count with their
    class and state, functions and classes with their names and code, those of installed packages with the
    package's version. A function or class that cannot be imported (a lambda, one of a script or notebook)
    also counts with the values of the global names that it reads; an imported one with the functions,
    classes and plain values of its module that it reads.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bytes]] = {}  # with the thing, so that its id is not used again
        self._open: dict[int, int] = {}

    def __call__(self, thing: Any) -> str:
        """The digest of `thing`; `Unkeyable` names the part whose content cannot be compared."""
        return digest_of_parts("digest", self._digest(thing)).hex()

    def _digest(self, thing: Any) -> bytes:
        kind = type(thing)
        if kind in SCALARS:
            return digest_of_scalar(kind, thing)
        seen = self._seen(kind, thing)
        if seen is not None:
            return seen
        if len(self._open) > _DEEPEST:
            raise Unkeyable(f"a structure more than {_DEEPEST} deep")
        self._open[id(thing)] = len(self._open)
        try:
            digest = self._content(kind, thing)
        finally:
            self._open.pop(id(thing), None)
        self._known[id(thing)] = thing, digest
        return digest

    def _seen(self, kind: type, thing: Any) -> bytes | None:
        """The digest of an object that was read before, or that holds itself; or None."""
        known = self._known.get(id(thing))
        if known is not None:
            return known[1]
        if id(thing) in self._open:
            return digest_of_parts("again", str(len(self._open) - self._open[id(thing)]).encode())
        return None

    def _all(self, tag: str, things: Iterable[Any]) -> bytes:
        return digest_of_parts(tag, *map(self._digest, things))

    def _content(self, kind: type, thing: Any) -> bytes:
        if kind in (list, tuple):
            alike = _alike(thing)
            return digest_of_parts(kind.__name__, *alike) if alike else self._all(kind.__name__, thing)
        if kind in (set, frozenset):
            return self._set(kind, thing)
        if kind is dict:
            return self._all("dict", (part for item in thing.items() for part in item))
        if isinstance(thing, np.generic) and kind.__module__ == "numpy" and not thing.dtype.hasobject:
            return self._all("scalar", (kind.__name__, thing.dtype, thing.tobytes()))
        if kind in (np.ndarray, np.memmap):
            return self._array(thing)
        if isinstance(thing, np.dtype):
            return self._dtype(thing)
        if scipy.sparse.issparse(thing) and kind.__module__.startswith("scipy."):
            return self._sparse(kind, thing)
        if isinstance(thing, type):
            return self._class(thing)
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if isinstance(thing, types.ModuleType):
            return self._all("module", (thing.__name__, package_version(thing.__name__)))
        if isinstance(thing, types.MethodType):
            return self._all("method", (thing.__func__, thing.__self__))
        if isinstance(thing, (property, staticmethod, classmethod)):
            own = (thing.fget, thing.fset, thing.fdel) if isinstance(thing, property) else (thing.__func__,)
            return self._all(kind.__name__, own)
        if isinstance(thing, (*_BY_NAME, np.ufunc)):
            return self._named(thing)
        if isinstance(thing, enum.Enum):
            return self._all("enum", (kind, thing.name))
        if is_array(thing) and not isinstance(thing, np.ndarray):
            return self._foreign_array(kind, thing)
        if kind.__module__.partition(".")[0] == "pandas" and hasattr(thing, "iloc"):
            return self._frame(kind, thing)
        return self._object(kind, thing)

    def _foreign_array(self, kind: type, X: Any) -> bytes:
        return self._all("array", (kind, str(X.dtype), to_host(X, label="data named by their content")))

    def _set(self, kind: type, things: Any) -> bytes:
        digests = list(map(self._digest, things))
        # The order of strings in a set differs between processes.
        texts = any(isinstance(thing, (str, bytes)) for thing in things)
        return digest_of_parts(kind.__name__, *(sorted(digests) if texts else digests))

    def _dtype(self, dtype: np.dtype) -> bytes:
        described = (type(dtype).__module__, repr(dtype), dtype.char)
        if describes_itself(dtype):
            return self._all("dtype", described)
        inner = dtype.subdtype[:1] if dtype.subdtype else [f[0] for f in (dtype.fields or {}).values()]
        return self._all("dtype", (*described, dict(dtype.metadata or {}), *inner))

    def _array(self, X: np.ndarray) -> bytes:
        if X.dtype.hasobject:
            order = X.ndim > 1 and (X.flags.c_contiguous, X.flags.f_contiguous)
            return self._all("objects", (X.shape, X.dtype, order, X.ravel().tolist()))
        if not X.size:
            return self._all("ndarray", (X.dtype, X.shape))
        # The layout of one dimension changes no sum.
        X = np.ascontiguousarray(X) if X.ndim == 1 else np.asarray(X)
        _, *described, content = array_digest(X)
        return self._all("ndarray", (X.dtype, *map(repr, described), content))

    def _subclass(self, kind: type, X: Any) -> bytes:
        """An array or scalar of a subclass, with its attributes, which NumPy's own pickles leave out."""
        own = [] if kind.__reduce__ is np.ndarray.__reduce__ else self._pickled(kind, X)
        return self._all("subclass", (kind, np.asarray(X), getattr(X, "__dict__", {}), *own))

    def _sparse(self, kind: type, X: Any) -> bytes:
        if X.format in ("lil", "dok"):
            X = X.tocsr()
        names = {"coo": ("coords", "data"), "dia": ("offsets", "data")}
        inside = names.get(X.format, ("indptr", "indices", "data"))
        return self._all("sparse", (kind.__name__, X.shape, *(getattr(X, name) for name in inside)))

    def _frame(self, kind: type, frame: Any) -> bytes:
        """By columns, since reading a whole frame may move them in memory."""
        labels = frame.columns if frame.ndim == 2 else frame.name
        values = [
            column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array
            for column in columns_of(frame)
        ]
        flags = frame.flags.allows_duplicate_labels
        return self._all("frame", (kind, labels, frame.index, frame.attrs, flags, values))

    def _object(self, kind: type, thing: Any) -> bytes:
        if kind is PassthroughScorer:  # the estimator's own score; the estimator counts by itself
            return self._all("own score", ())
        if kind is FrozenEstimator:
            return self._all("frozen", (thing.estimator,))
        if kind is functools.partial:
            return self._all("partial", (thing.func, thing.args, thing.keywords, vars(thing)))
        if isinstance(thing, (np.ndarray, np.generic)):
            return self._subclass(kind, thing)
        if is_plain(thing) and not _defines_pickling(kind):
            state = object_state(thing) | _params_elsewhere(thing)
            state.pop("_skl_callbacks", None)
            with suppress(Unkeyable):  # a part that is no content may have no digest
                return self._state(kind, state)
        return self._all("pickled", (kind, *self._pickled(kind, thing), _params_elsewhere(thing)))

    def _state(self, kind: type, state: Mapping[str, Any]) -> bytes:
        """Sorted by name, since attributes have no order."""
        return self._all("object", (kind, *(part for item in sorted(state.items()) for part in item)))

    def _pickled(self, kind: type, thing: Any) -> list[Any]:
        """The parts from which pickle would make an object."""
        reduce = copyreg.dispatch_table.get(kind)
        try:
            parts = reduce(thing) if reduce is not None else thing.__reduce_ex__(4)
        except Exception as error:  # it cannot be pickled, for any reason
            raise Unkeyable(f"a {kind.__name__}, which cannot be pickled") from error
        if isinstance(parts, str):  # a global name
            return [parts, getattr(thing, "__module__", None), getattr(thing, "__wrapped__", None)]
        return [list(part) if j > 2 and part is not None else part for j, part in enumerate(parts)]

    def _named(self, thing: Any) -> bytes:
        owner = getattr(thing, "__objclass__", None) or getattr(thing, "__self__", None)
        if isinstance(owner, types.ModuleType):
            owner = owner.__name__
        module = getattr(thing, "__module__", None)
        if isinstance(thing, np.ufunc):
            known = ("numpy", "scipy.special")
            named = (m for m in known if getattr(sys.modules.get(m), thing.__name__, None) is thing)
            module = next(named, None)
            if module is None:
                raise Unkeyable(f"the ufunc {thing.__name__}, which no module names")
        return self._all("named", (owner, module, thing.__name__, package_version(module)))

    def _function(self, function: types.FunctionType) -> bytes:
        found = is_importable(function)
        name = (function.__module__, function.__qualname__, package_version(function.__module__))
        if found and is_library_module(function.__module__):
            return self._all("function", name)
        own = (
            code_parts(function.__code__),
            function.__defaults__,
            function.__kwdefaults__,
            vars(function),
            [cell_content(cell) for cell in function.__closure__ or ()],
        )
        read = {
            name: value
            for name, value in names_read(function).items()
            if not found or _is_own_value(value, function)
        }
        return self._all("function", (*name, *own, read))

    def _class(self, cls: type) -> bytes:
        name = (cls.__module__, cls.__qualname__, package_version(cls.__module__))
        found = is_importable(cls)
        if found and is_library_module(cls.__module__):
            return self._all("class", name)
        parts: list[bytes] = [*map(self._digest, (*name, *cls.__bases__))]
        for attribute, value in sorted(vars(cls).items()):
            if attribute in _NOT_CONTENT:
                continue
            try:
                parts += [self._digest(attribute), self._digest(value)]
            except Unkeyable:
                if not found:
                    raise
        return digest_of_parts("class", *parts)


def _params_elsewhere(thing: Any) -> dict[str, Any]:
    """Parameters of an estimator that are not its attributes."""
    if not hasattr(type(thing), "get_params") or keeps_its_parameters(thing):
        return {}
    return dict(thing.get_params(deep=False))


def columns_of(frame: Any) -> list[Any]:
    """The columns of a pandas frame as series; of a series, itself."""
    return [frame.iloc[:, j] for j in range(frame.shape[1])] if frame.ndim == 2 else [frame]


def _defines_pickling(kind: type) -> bool:
    """Whether a class chooses what is pickled, which leaves out its caches, say."""
    if issubclass(kind, BaseEstimator):  # its own method adds the version
        return False
    return any(
        getattr(kind, name) is not getattr(object, name)
        for name in ("__reduce__", "__reduce_ex__", "__getstate__")
    )


def digest_of_parts(tag: str, *parts: bytes) -> bytes:
    """The digest of a thing from those of its parts; `tag` names its kind."""
    lengths = " ".join([tag, *(str(len(part)) for part in parts)])
    return hashlib.sha1(b"".join((lengths.encode(), b"\n", *parts)), usedforsecurity=False).digest()


def _alike(things: list[Any] | tuple[Any, ...]) -> tuple[bytes, ...]:
    """Many scalars of one type as bytes; empty for others."""
    if len(things) < 20:
        return ()
    kinds = set(map(type, things))
    if kinds == {float}:
        return b"float", array("d", things).tobytes()
    if kinds == {str}:
        lengths = array("q", map(len, things)).tobytes()
        return b"str", lengths, "".join(things).encode("utf-8", "surrogatepass")
    if kinds <= {int, bool}:
        return b"int", ",".join(map(_text, things)).encode()
    return ()


def digest_of_scalar(kind: type, thing: Any) -> bytes:
    """A scalar itself, with its type."""
    if kind is float:  # zeros and NaNs have signs
        return b"float " + struct.pack("d", thing)
    if kind is bytes:
        return b"bytes " + thing  # type: ignore[no-any-return]
    return f"{kind.__name__} {_text(thing)}".encode("utf-8", "backslashreplace")


def _text(thing: Any) -> str:
    """A scalar as text; integers of thousands of digits, which Python does not print, in hexadecimal."""
    try:
        return repr(thing)
    except ValueError:
        return hex(thing)


def _is_own_value(value: Any, function: Callable[..., Any]) -> bool:
    """Whether a global value belongs to an imported function: its module neither imports nor changes it."""
    if isinstance(value, (types.FunctionType, type)):
        return value.__module__ == function.__module__
    return type(value) in (*SCALARS, tuple, frozenset, np.ndarray)
