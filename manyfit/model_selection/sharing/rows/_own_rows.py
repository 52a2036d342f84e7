"""Copies of shared data for estimators that may write into their input, and the check whether they did."""

from __future__ import annotations

import copy
import datetime
import numbers
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from manyfit._compat import safe_indexing
from manyfit.arrays import memory_owner
from manyfit.model_selection.sharing.rows._frame_copy import copy_array, pandas_copy
from manyfit.model_selection.sharing.rows._read_only import (
    SPARSE_PARTS,
    change_parts,
    frame_kind,
    is_numpy_array,
    is_sparse_matrix,
)
from manyfit.model_selection.sharing.rows._same_data import unchanged

T = TypeVar("T")
_IMMUTABLE = (str, bytes, numbers.Number, datetime.date, datetime.timedelta, type(None), np.generic)
# How long a frame of a call that has ended may be held by another thread, in steps.
PATIENCE_S = (0.001, 0.004, 0.015, 0.03)


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
        kept = _lasts(lambda: sys.getrefcount(output) > sys.getrefcount(own))
    else:
        memory = [weakref.ref(piece) for piece in _pieces(output)]
        del output
        kept = _lasts(lambda: any(piece() is not None for piece in memory))
    if kept:
        raise InputWritten("a transformer keeps what it returns")
    return own


def _lasts(is_kept: Callable[[], bool]) -> bool:
    """Whether it is kept, and not only for a moment by a thread that looks at this one's frames.

    The profiler of Dask's workers does so every 10 ms: it holds the frame of a call, and all that is in it,
    a little longer than the call.
    """
    for seconds in PATIENCE_S if threading.active_count() > 1 else ():
        if not is_kept():
            return False
        time.sleep(seconds)
    return is_kept()


def _pieces(X: Any) -> Iterator[Any]:
    """The arrays that own the memory of an array, a sparse matrix or a frame; a frame itself, too."""
    if is_sparse_matrix(X):
        for name in SPARSE_PARTS[X.format]:
            part = getattr(X, name)
            yield from map(memory_owner, part if isinstance(part, tuple) else (part,))
    elif is_numpy_array(X):
        yield memory_owner(X)
    else:
        yield X
        if frame_kind(X) == "pandas":
            kinds = {X.dtype} if X.ndim == 1 else set(X.dtypes)
            one = X.ndim == 1 or len(kinds) == 1
            columns = [X] if one else (X.iloc[:, j] for j in range(X.shape[1]))
            yield from (memory_owner(column.to_numpy()) for column in columns if _has_numpy_dtype(column))


def _has_numpy_dtype(column: Any) -> bool:
    kind = column.dtype if column.ndim == 1 else column.dtypes.iloc[0]
    return isinstance(kind, np.dtype)


def own_copy(X: T) -> T:
    """A copy in the same memory layout; a copied list has the same items."""
    if is_numpy_array(X):
        return copy_array(X)  # type: ignore
    if is_sparse_matrix(X):
        return change_parts(X, np.copy)
    kind = frame_kind(X)
    if kind == "pandas":
        # scikit-learn, for one, writes into the memory of a frame if it can, and otherwise into a copy.
        return pandas_copy(X, bytearray)  # type: ignore[no-any-return]
    if kind == "polars":  # a clone shares its memory
        return safe_indexing(X, np.arange(len(X)))  # type: ignore[no-any-return, arg-type]
    return copy.copy(X) if type(X) is list else X


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
