"""The content of frames, series and indexes of pandas and polars as arrays and values that have keys."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np


def frame_parts(thing: Any) -> tuple[Any, ...] | None:
    """Values, labels, dtypes and memory layout of a frame, a series or an index.

    Arrays made of a frame, and sums over these, depend on its memory layout. None for all other things, for
    subclasses, and for extension types of other libraries.
    """
    kind = type(thing)
    library = sys.modules.get(kind.__module__.partition(".")[0])
    name = getattr(library, "__name__", None)
    if name == "polars" and kind in (library.DataFrame, library.Series):  # type: ignore[union-attr]
        return _polars_parts(thing if kind is library.DataFrame else thing.to_frame())  # type: ignore[union-attr]
    if name != "pandas":
        return None
    try:
        if kind is library.DataFrame:  # type: ignore[union-attr]
            columns = _columns([thing.iloc[:, j] for j in range(thing.shape[1])])
            return (_index(thing.columns), columns, *_rest(thing))
        if kind is library.Series:  # type: ignore[union-attr]
            return (thing.name, _columns([thing]), *_rest(thing))
        return _index(thing) if isinstance(thing, library.Index) else None  # type: ignore[union-attr]
    except _UnknownType:
        return None


class _UnknownType(Exception):
    """The content of a column or an index of this type is not known."""


def _polars_parts(frame: Any) -> tuple[Any, ...] | None:
    dtypes = [repr(dtype) for dtype in frame.dtypes]
    if any("Object" in dtype for dtype in dtypes):  # Python objects
        return None
    return list(frame.columns), dtypes, pickle.dumps(frame)


def _rest(thing: Any) -> tuple[Any, ...]:
    return _index(thing.index), thing.attrs, thing.flags.allows_duplicate_labels


def _columns(columns: list[Any]) -> list[Any]:
    """Values of each column, the piece of memory that they are in, and their offset in it."""
    pieces: dict[int, int] = {}
    found = []
    for column in columns:
        if not isinstance(column.dtype, np.dtype):
            found.append(_extension(column.array))
            continue
        values = memory = column.to_numpy()
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        piece = pieces.setdefault(id(memory), len(pieces))
        found.append((values, piece, _address(values) - _address(memory)))
    return found


def _address(X: np.ndarray) -> int:
    return int(X.__array_interface__["data"][0])


def _extension(values: Any) -> tuple[Any, ...]:
    dtype = values.dtype
    if not (_is_pandas(type(values)) and _is_pandas(type(dtype))):
        raise _UnknownType
    if hasattr(values, "categories") and hasattr(values, "codes"):
        return type(dtype), np.asarray(values.codes), _index(values.categories), values.ordered
    if "object" in repr(dtype):  # sparse or intervals of Python objects
        raise _UnknownType
    return type(dtype), repr(dtype), pickle.dumps(values, protocol=5)


def _is_pandas(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "pandas"


def _index(index: Any) -> tuple[Any, ...]:
    kind = type(index)
    if not _is_pandas(kind):
        raise _UnknownType
    head = (kind, list(index.names), repr(getattr(index, "freq", None)))
    if hasattr(index, "levels"):
        return *head, [_index(level) for level in index.levels], [np.asarray(codes) for codes in index.codes]
    if hasattr(index, "step") and hasattr(index, "start"):
        return *head, index.start, index.stop, index.step
    if isinstance(index.dtype, np.dtype):
        return *head, index.to_numpy()
    return *head, _extension(index.array)
