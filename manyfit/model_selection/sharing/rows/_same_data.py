"""Whether a copy of data still equals the original, to the last bit and object."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from manyfit.introspection.structural_key import structural_key
from manyfit.model_selection.sharing.rows._read_only import (
    SPARSE_PARTS,
    frame_kind,
    is_numpy_array,
    is_sparse_matrix,
)


def unchanged(X: Any, own: Any) -> bool:
    """Whether a copy of an array, sparse matrix, frame, series or list still equals the original.

    0.0 and -0.0 differ, and so do 1 and True, None and NaN among objects; NaN equals itself. Data that cannot
    be compared count as changed.
    """
    try:
        return _same(X, own)
    except Exception:
        return False


def _same(X: Any, own: Any) -> bool:
    if is_numpy_array(X):
        return _same_array(X, own)
    if is_sparse_matrix(X):
        parts = SPARSE_PARTS[X.format]
        return X.shape == own.shape and all(
            _same_parts(getattr(X, name), getattr(own, name)) for name in parts
        )
    kind = frame_kind(X)
    if kind == "pandas":
        return _same_pandas(X, own)
    if kind == "polars":
        return _same_polars(X, own)
    return len(X) == len(own) and all(a is b for a, b in zip(X, own, strict=True))


def _same_parts(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same_parts, one, other))
    return _same_array(one, other)


def _same_array(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype == object:
        return all(a is b for a, b in zip(one.ravel(), other.ravel(), strict=True))
    if one.dtype.kind == "T":  # NumPy's strings: a missing one is one object, which equals itself in a list
        return bool(one.tolist() == other.tolist())
    if one.dtype.hasobject:
        # Records are the only other type that is known.
        names = one.dtype.names
        return names is not None and all(_same_array(one[name], other[name]) for name in names)
    if one.dtype.kind in "biufcmM" and one.dtype.itemsize in (1, 2, 4, 8):
        bits = f"u{one.dtype.itemsize}"  # the bits of a NaN equal themselves
        return bool((one.view(bits) == other.view(bits)).all())
    return one.tobytes() == other.tobytes()


# pandas


def _same_pandas(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.shape != other.shape or not _same_beside(one, other):
        return False
    if one.ndim == 1:
        return _same_name(one.name, other.name) and _same_column(one, other)
    if not (_same_index(one.columns, other.columns) and list(one.dtypes) == list(other.dtypes)):
        return False
    kinds = set(one.dtypes)
    if len(kinds) == 1 and isinstance(next(iter(kinds)), np.dtype):
        return _same_array(one.to_numpy(), other.to_numpy())
    return all(_same_column(one.iloc[:, j], other.iloc[:, j]) for j in range(one.shape[1]))


def _same_beside(one: Any, other: Any) -> bool:
    """Whether row labels, attributes and flags are equal."""
    notes = one.attrs, other.attrs
    same_notes = not any(notes) or len({structural_key(note, by_identity=False) for note in notes}) == 1
    return same_notes and one.flags == other.flags and _same_index(one.index, other.index)


def _same_name(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))


def _same_column(one: Any, other: Any) -> bool:
    if one.dtype != other.dtype:
        return False
    if isinstance(one.dtype, np.dtype):
        return _same_array(one.to_numpy(), other.to_numpy())
    return _same_extension(one.array, other.array)


def _same_extension(one: Any, other: Any) -> bool:
    """Whether extension arrays are equal."""
    if hasattr(one, "categories") and hasattr(one, "codes"):  # `equals` ignores their order
        same = _same_index(one.categories, other.categories) and one.ordered == other.ordered
        return bool(same and _same_array(np.asarray(one.codes), np.asarray(other.codes)))
    if not one.equals(other):
        return False
    kind = getattr(one.dtype, "kind", "O")
    return kind != "f" or _same_array(*(np.asarray(a.to_numpy(float, na_value=np.nan)) for a in (one, other)))


def _same_index(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or not one.identical(other):
        return False
    if hasattr(one, "levels"):
        return all(map(_same_index, one.levels, other.levels))
    if isinstance(one, sys.modules["pandas"].RangeIndex):
        return True
    if not isinstance(one.dtype, np.dtype):
        return _same_extension(one.array, other.array)
    a, b = one.to_numpy(), other.to_numpy()
    return all(map(_same_name, a, b)) if a.dtype == object else _same_array(a, b)


# polars


def _same_polars(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or one.shape != other.shape:
        return False
    columns = ([one], [other]) if len(one.shape) == 1 else (one.get_columns(), other.get_columns())
    return all(map(_same_series, *columns))


def _same_series(one: Any, other: Any) -> bool:
    if one.name != other.name or one.dtype != other.dtype or not one.equals(other):
        return False
    return not one.dtype.is_float() or _same_array(*(a.fill_null(0.0).to_numpy() for a in (one, other)))
