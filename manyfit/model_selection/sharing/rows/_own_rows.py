"""Copies of shared data for estimators that may write into what they are given, and whether they did."""

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
from manyfit.model_selection.sharing._fold_cache import (
    SPARSE_PARTS,
    FoldCache,
    frame_kind,
    is_array,
    is_sparse,
)
from manyfit.model_selection.sharing._frame_copy import copy_with_gaps
from manyfit.model_selection.sharing.rows._same_data import unchanged

__all__ = ["InputWritten", "OwnRows", "call_on_copies", "items_in_common", "own_copy"]

T = TypeVar("T")
_IMMUTABLE = (str, bytes, numbers.Number, datetime.date, datetime.timedelta, type(None), np.generic)


class InputWritten(Exception):
    """An estimator wrote into its input. Only scikit-learn's own fit then gives scikit-learn's answer."""


class OwnRows:
    """Copies of shared data, each for one call, and the check that nobody wrote into them.

    Where nobody writes, it makes no difference who has which arrays in common, so that a fit on copies is the
    fit that scikit-learn makes.
    """

    def __init__(self) -> None:
        self._handed: list[tuple[Any, Any]] = []

    def of(self, shared: T, cache: FoldCache | None = None) -> T:
        """A copy to hand out, known to a cache as what is shared is; `shared` itself if it is no data."""
        own = own_copy(shared)
        if own is not shared:
            self._handed.append((shared, own))
            if cache is not None and cache.is_known(shared):
                cache.name(own, cache.token(shared))
        return own

    def require_unchanged(self) -> None:
        """Check all copies, and let go of them.

        Raises
        ------
        InputWritten
            If one of them is not what it was.
        """
        handed, self._handed = self._handed, []
        if not all(unchanged(shared, own) for shared, own in handed):
            raise InputWritten("an estimator writes into its input")


def call_on_copies(method: Callable[..., Any], data: Iterable[Any], params: Mapping[str, Any]) -> Any:
    """Call a method on copies of data that others read, too.

    Returns
    -------
    object
        A copy of what the method returned, which may be a view.

    Raises
    ------
    InputWritten
        If it wrote into what it was given, or if the owner of the method keeps what it returned: whoever has
        it from there may find other numbers in it after the next call.
    """
    rows = OwnRows()
    output = method(*map(rows.of, data), **{name: rows.of(value) for name, value in params.items()})
    rows.require_unchanged()
    own = own_copy(output)
    if own is output:
        return own
    if type(output) is list:  # to which there are no weak references; nobody but this function has its copy
        kept = sys.getrefcount(output) > sys.getrefcount(own)
    else:
        memory = [weakref.ref(piece) for piece in _pieces(output)]
        del output
        kept = any(piece() is not None for piece in memory)
    if kept:
        raise InputWritten("a transformer keeps what it returns")
    return own


def _pieces(X: Any) -> Iterator[Any]:
    """The arrays that have the memory of an array, a sparse matrix or a frame; a frame itself, too."""
    if is_sparse(X):
        for name in SPARSE_PARTS[X.format]:
            part = getattr(X, name)
            yield from map(_root, part if isinstance(part, tuple) else (part,))
    elif is_array(X):
        yield _root(X)
    else:
        yield X
        if frame_kind(X) == "pandas":
            kinds = {X.dtype} if X.ndim == 1 else set(X.dtypes)
            one = X.ndim == 1 or len(kinds) == 1
            columns = [X] if one else (X.iloc[:, j] for j in range(X.shape[1]))
            yield from (_root(column.to_numpy()) for column in columns if _is_numpys(column))


def _is_numpys(column: Any) -> bool:
    kind = column.dtype if column.ndim == 1 else column.dtypes.iloc[0]
    return isinstance(kind, np.dtype)


def _root(X: np.ndarray) -> np.ndarray:
    while isinstance(X.base, np.ndarray):
        X = X.base
    return X


def own_copy(X: T) -> T:
    """A copy with memory of its own in the same layout; of a list one with the same items."""
    if is_array(X):
        plain = X.flags.forc or X.dtype.hasobject  # type: ignore[attr-defined]
        return np.array(X, order="K", copy=True) if plain else copy_with_strides(X)  # type: ignore
    if is_sparse(X):
        own = copy.copy(X)  # with its flags, so that sorted indices are not looked for again
        for name in SPARSE_PARTS[own.format]:  # type: ignore[attr-defined]
            setattr(own, name, _copied_part(getattr(X, name)))
        return own
    kind = frame_kind(X)
    if kind == "pandas":
        return _pandas_copy(X)  # type: ignore[no-any-return]
    if kind == "polars":  # a clone has its memory in common
        return safe_indexing(X, np.arange(len(X)))  # type: ignore[no-any-return, arg-type]
    return copy.copy(X) if type(X) is list else X


class _Arrays(pickle.Pickler):
    """Pickles all but the arrays of a frame, which are collected in `found`."""

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
    """A deep copy in the same blocks and layout, which `copy` would change, as writeable as a new frame.

    scikit-learn, among others, writes into a frame's memory where it can, and else into a copy.
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


def items_in_common(X: Any) -> bool:
    """Whether fits have items of `X` in common that can be written into, although each has rows of its own.

    So it is in scikit-learn for a list of lists, or a column of objects. Which fit comes first then matters.
    """
    if isinstance(X, list | tuple):
        return not all(isinstance(item, _IMMUTABLE) for item in X)
    if isinstance(X, np.ndarray):
        if X.dtype.names is not None:
            return any(items_in_common(X[name]) for name in X.dtype.names)
        return bool(X.dtype.hasobject) and not all(isinstance(item, _IMMUTABLE) for item in X.ravel())
    if frame_kind(X) != "pandas":
        return False
    columns = [X] if X.ndim == 1 else [X.iloc[:, j] for j in range(X.shape[1])]
    return any(column.dtype == object and items_in_common(column.to_numpy()) for column in columns)
