"""The columns of a frame or array, as numbers with gaps or as categories."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyfit.exceptions import Unsupported
from manyfit.folds.splits._atoms import Array

# Names of dtypes of pandas (nullable), Arrow and polars. float16 and longer floats are left to scikit-learn.
_FLOATS = ("float32", "float64", "float[pyarrow]", "double[pyarrow]")


@dataclass(frozen=True)
class Categories:
    """The categories of a column over all rows."""

    # Distinct values in scikit-learn's order: sorted, and the missing value, if there is one, last.
    labels: tuple[Any, ...]
    codes: Array  # (n,), the position in `labels` of the value of each row
    # The missing value, None or NaN, if the last label is one; else an object of no meaning.
    missing: Any = ...


class Table:
    """The columns of X, a DataFrame of pandas or polars, or a matrix of numbers or objects.

    Each column is read once, when a step first asks for it. Raises `Unsupported` for an X of another kind.
    """

    def __init__(self, X: Any) -> None:
        is_frame = hasattr(X, "columns") and hasattr(X, "to_numpy")
        if not is_frame and not (type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiubO"):
            found = f"X is of class {type(X).__name__}"
            raise Unsupported(f"columns are encoded in frames and NumPy arrays only, and {found}")
        if 0 in X.shape:
            raise Unsupported(f"X is empty: shape {X.shape}")
        self._X, self.is_frame, self.shape = X, is_frame, (int(X.shape[0]), int(X.shape[1]))
        self.names = names = list(X.columns) if is_frame else list(range(X.shape[1]))
        if len(set(names)) < len(names) or (is_frame and not all(isinstance(name, str) for name in names)):
            raise Unsupported("columns of X have the same name, or names that are no strings")
        self._numbers: dict[int, Array] = {}
        self._categories: dict[int, Categories] = {}
        self._heads: dict[tuple[int, ...], Any] = {}

    def head(self, columns: tuple[int, ...]) -> Any:
        """The first row of some columns of a frame, which are chosen in it by name, position or dtype."""
        if columns not in self._heads:
            head, index = self._X[:1], list(columns)
            self._heads[columns] = head.iloc[:, index] if hasattr(head, "iloc") else head[:, index]
        return self._heads[columns]

    @cached_property
    def kinds(self) -> list[tuple[str | None, np.dtype[Any]]]:
        """The kind of the numbers of each column, see `number_kind`, and its dtype."""
        return [(self.number_kind(j), self.dtype(j)) for j in range(self.shape[1])]

    def _column(self, j: int) -> Any:
        if not self.is_frame:
            return self._X[:, j]
        return self._X.iloc[:, j] if hasattr(self._X, "iloc") else self._X[:, j]

    def number_kind(self, j: int) -> str | None:
        """The kind of the numbers of a column: "f", "i", "u" or "b"; None for a column of other things."""
        return _number_kind(self._column(j))

    def dtype(self, j: int) -> np.dtype[Any]:
        """The dtype of a column of numbers, as the array of all columns has it; float64 for nullable ones."""
        dtype = self._column(j).dtype
        if isinstance(dtype, np.dtype):
            return dtype
        is_single = hasattr(self._X, "to_torch") and str(dtype) == "Float32"  # polars
        return np.dtype(np.float32 if is_single else np.float64)

    def numbers(self, j: int) -> Array:
        """A column as float64 with NaN for gaps, (n,)."""
        if j not in self._numbers:
            self._numbers[j] = _as_numbers(self._column(j))
        return self._numbers[j]

    def categories(self, j: int) -> Categories:
        """The categories of a column."""
        if j not in self._categories:
            column = self._column(j)
            known = _factorize_strings(column)
            self._categories[j] = _categorize(np.asarray(column)) if known is None else _in_order(*known)
        return self._categories[j]


def _number_kind(column: Any) -> str | None:
    """The kind of a dtype of numbers: "f", "i", "u" or "b"; None for other dtypes."""
    dtype = column.dtype
    kind = getattr(dtype, "kind", None)  # pandas has it for nullable and Arrow dtypes, too
    if kind is None:  # polars
        is_number = dtype.is_numeric() or str(dtype) == "Boolean"
        return ("f" if dtype.is_float() else "i") if is_number else None
    return kind if kind in "fiub" else None


def _as_numbers(column: Any) -> Array:
    dtype, kind = column.dtype, _number_kind(column)
    if kind is None:
        raise Unsupported(f"a column of dtype {dtype} is read as numbers")
    if kind == "f" and dtype != np.float32 and str(dtype).lower() not in _FLOATS:
        raise Unsupported(f"a column is of dtype {dtype}: steps compute in it")
    if str(dtype).startswith("Sparse"):
        raise Unsupported(f"a column is of dtype {dtype}, of which scikit-learn may make a sparse matrix")
    if isinstance(column, np.ndarray) or isinstance(dtype, np.dtype):
        return np.asarray(column, dtype=np.float64)
    if hasattr(column, "cast"):  # polars: null becomes NaN
        return np.asarray(column.to_numpy(), dtype=np.float64)
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _categorize(values: Array) -> Categories:
    """The categories of values of one kind: numbers, or strings with missing values of one kind."""
    if values.dtype.kind in "fiub":
        distinct, codes = np.unique(values, return_inverse=True)
        is_nan = values.dtype.kind == "f" and bool(np.isnan(distinct[-1]))
        if np.isinf(distinct).any():
            raise Unsupported("a column of categories holds infinity")
        labels = [*distinct[:-1].tolist(), math.nan] if is_nan else distinct.tolist()
        return Categories(tuple(labels), codes.reshape(-1), math.nan if is_nan else ...)
    if values.dtype.kind not in "OU":
        raise Unsupported(f"categories of dtype {values.dtype} are not read")
    return _in_order(*_factorize(values))


def _in_order(raw: Array, known: list[Any]) -> Categories:
    """Categories from distinct values, strings but for a gap, and the position of each row's among them."""
    strings = sorted(v for v in known if type(v) is str)
    others = [v for v in known if type(v) is not str]
    if len(others) > 1 or not (others in ([], [None]) or others[0] is math.nan):
        raise Unsupported("a column of categories holds values of several types")
    ordered = (*strings, *others)
    number = {label: code for code, label in enumerate(known)}
    place = np.empty(len(known), dtype=np.intp)
    place[[number[label] for label in ordered]] = np.arange(len(ordered))
    return Categories(ordered, place[raw], others[0] if others else ...)


def _factorize_strings(column: Any) -> tuple[Array, list[Any]] | None:
    """`_factorize` of pandas' columns of dtype str, without an object for each row; None for any other."""
    if str(column.dtype) != "str" or not hasattr(column, "factorize"):
        return None
    codes, known = column.factorize()
    gaps = codes < 0
    if not gaps.any():
        return codes, known.tolist()
    return np.where(gaps, len(known), codes), [*known.tolist(), math.nan]


def _factorize(values: Array) -> tuple[Array, list[Any]]:
    """Distinct objects, all NaN as one, and the position of each row's object among them."""
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        # It takes None for NaN, so that rows without a value are looked at one by one.
        codes, known = pandas.factorize(values)
        gaps = np.flatnonzero(codes < 0)
        distinct = [*known.tolist(), *{id(v): v for v in _one_nan(values[gaps].tolist())}.values()]
        if len(distinct) == len(known) + 1:
            codes[gaps] = len(known)
        if len(distinct) <= len(known) + 1:
            return codes, distinct
    numbers: dict[Any, int] = {}
    number = numbers.setdefault
    raw = np.fromiter((number(v, len(numbers)) for v in _one_nan(values.tolist())), np.intp, len(values))
    return raw, list(numbers)


def _one_nan(values: list[Any]) -> Iterator[Any]:
    """The values with one object for all NaN: a dict would tell two of them apart."""
    return (math.nan if type(v) is float and v != v else v for v in values)
