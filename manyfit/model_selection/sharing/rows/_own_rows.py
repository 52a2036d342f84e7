"""Copies of shared data for estimators that may write into their input, and the check whether they did."""

from __future__ import annotations

import copy
import datetime
import io
import numbers
import pickle
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from manyfit._compat import safe_indexing
from manyfit.arrays import copy_with_strides
from manyfit.model_selection.sharing.rows._frame_copy import copy_with_gaps
from manyfit.model_selection.sharing.rows._read_only import (
    SPARSE_PARTS,
    frame_kind,
    is_numpy_array,
    is_sparse_matrix,
)
from manyfit.model_selection.sharing.rows._same_data import unchanged

__all__ = ["InputWritten", "OwnRows", "call_on_copies", "has_mutable_items", "own_copy"]

T = TypeVar("T")
_IMMUTABLE = (str, bytes, numbers.Number, datetime.date, datetime.timedelta, type(None), np.generic)


class InputWritten(Exception):
    """An estimator wrote into its input, so that only scikit-learn's own fit gives scikit-learn's result."""


class OwnRows:
    """Copies of shared data, each for one call, and the check that nothing was written into them.

    A fit that writes nothing is the same on copies as on arrays that others read, too.
    """

    def __init__(self) -> None:
        self._copies: list[tuple[Any, Any]] = []

    def copy(self, shared: T) -> T:
        """A copy for one call; `shared` itself if it is no data."""
        own = own_copy(shared)
        if own is not shared:
            self._copies.append((shared, own))
        return own

    def require_unchanged(self) -> None:
        """Drop all copies; raise `InputWritten` if one of them has changed."""
        copies, self._copies = self._copies, []
        if not all(unchanged(shared, own) for shared, own in copies):
            raise InputWritten("an estimator writes into its input")


def call_on_copies(method: Callable[..., Any], data: Iterable[Any], params: Mapping[str, Any]) -> Any:
    """Call a method on copies of shared data, and return a copy of its result, which may be a view of them.

    It raises `InputWritten` if the method wrote into its input, or if its owner keeps the result: the next
    call might change it.
    """
    rows = OwnRows()
    output = method(*map(rows.copy, data), **{name: rows.copy(value) for name, value in params.items()})
    rows.require_unchanged()
    own = own_copy(output)
    if own is output:
        return own
    if type(output) is list:  # it has no weak references; only this function holds its copy
        kept = sys.getrefcount(output) > sys.getrefcount(own)
    else:
        memory = [weakref.ref(piece) for piece in _pieces(output)]
        del output
        kept = any(piece() is not None for piece in memory)
    if kept:
        raise InputWritten("a transformer keeps what it returns")
    return own


def _pieces(X: Any) -> Iterator[Any]:
    """The arrays that own the memory of an array, a sparse matrix or a frame; a frame itself, too."""
    if is_sparse_matrix(X):
        for name in SPARSE_PARTS[X.format]:
            part = getattr(X, name)
            yield from map(_root, part if isinstance(part, tuple) else (part,))
    elif is_numpy_array(X):
        yield _root(X)
    else:
        yield X
        if frame_kind(X) == "pandas":
            kinds = {X.dtype} if X.ndim == 1 else set(X.dtypes)
            one = X.ndim == 1 or len(kinds) == 1
            columns = [X] if one else (X.iloc[:, j] for j in range(X.shape[1]))
            yield from (_root(column.to_numpy()) for column in columns if _has_numpy_dtype(column))


def _has_numpy_dtype(column: Any) -> bool:
    kind = column.dtype if column.ndim == 1 else column.dtypes.iloc[0]
    return isinstance(kind, np.dtype)


def _root(X: np.ndarray) -> np.ndarray:
    while isinstance(X.base, np.ndarray):
        X = X.base
    return X


def own_copy(X: T) -> T:
    """A copy in the same memory layout; a copied list has the same items."""
    if is_numpy_array(X):
        plain = X.flags.forc or X.dtype.hasobject  # type: ignore[attr-defined]
        return np.array(X, order="K", copy=True) if plain else copy_with_strides(X)  # type: ignore
    if is_sparse_matrix(X):
        own = copy.copy(X)  # it keeps the flags, so that SciPy does not check for sorted indices again
        for name in SPARSE_PARTS[own.format]:  # type: ignore[attr-defined]
            setattr(own, name, _copied_part(getattr(X, name)))
        return own
    kind = frame_kind(X)
    if kind == "pandas":
        return _pandas_copy(X)  # type: ignore[no-any-return]
    if kind == "polars":  # a clone shares its memory
        return safe_indexing(X, np.arange(len(X)))  # type: ignore[no-any-return, arg-type]
    return copy.copy(X) if type(X) is list else X


class _Arrays(pickle.Pickler):
    """Pickles a frame without its arrays, which it collects in `found`."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.found: list[np.ndarray] = []

    def persistent_id(self, thing: Any) -> int | None:
        if type(thing) is not np.ndarray:
            return None
        self.found.append(thing)
        return len(self.found) - 1


class _WithArrays(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, arrays: list[np.ndarray]) -> None:
        super().__init__(file)
        self._arrays = arrays

    def persistent_load(self, key: Any) -> np.ndarray:
        return self._arrays[key]


def _pandas_copy(frame: Any) -> Any:
    """A deep copy in the same blocks and layout, which `DataFrame.copy` changes, and as writeable.

    scikit-learn, for one, writes into the memory of a frame if it can, and otherwise into a copy.
    """
    with_gaps = copy_with_gaps(frame, bytearray)
    if with_gaps is not None:
        return with_gaps
    file = io.BytesIO()
    pickler = _Arrays(file)
    try:
        pickler.dump(frame)
        file.seek(0)
        return _WithArrays(file, [own_copy(array) for array in pickler.found]).load()
    except Exception:  # a subclass or an extension type that cannot be pickled
        return frame.copy()


def _copied_part(part: Any) -> Any:
    return tuple(map(_copied_part, part)) if isinstance(part, tuple) else part.copy()


def has_mutable_items(X: Any) -> bool:
    """Whether `X` holds objects that can be changed, such as a list of lists or a column of objects.

    Fits share these even under scikit-learn, and their order then matters.
    """
    if isinstance(X, list | tuple):
        return not all(isinstance(item, _IMMUTABLE) for item in X)
    if isinstance(X, np.ndarray):
        if X.dtype.names is not None:
            return any(has_mutable_items(X[name]) for name in X.dtype.names)
        return bool(X.dtype.hasobject) and not all(isinstance(item, _IMMUTABLE) for item in X.ravel())
    if frame_kind(X) != "pandas":
        return False
    columns = [X] if X.ndim == 1 else [X.iloc[:, j] for j in range(X.shape[1])]
    return any(column.dtype == object and has_mutable_items(column.to_numpy()) for column in columns)
