"""OneHotEncoder and OrdinalEncoder: which categories the training rows hold decides the columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from manyfit._compat import unknown_warning
from manyfit.families.protocol import Array, ColumnStep, register_column_step
from manyfit.folds import CategoryColumn, FoldColumns, LinearColumns, Unsupported, as_categories

Codes = tuple[int, ...]


class OneHotEncoderStep(ColumnStep):
    """OneHotEncoder (1.9).

    Categories of the training rows in sorted order, the missing one last, or those that are given;
    infrequent ones share the last column. A category of other rows only has no column.
    """

    serves = (OneHotEncoder,)

    def check(self, step: Any) -> None:
        _require_dtype(step)

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        entries, start, stored, unknown = list[Any](), 0, 0, dict[int, CategoryColumn]()
        for k, column in _read(step, columns):
            train, _ = columns.fold.counts(column.j)
            first = columns.fold.encoding.category_start(column.j)
            known = seen(columns, column, given(step, k, column))
            if step.handle_unknown == "error":
                columns = _with_unknown(columns, column, known, "ignore")
            elif known.unknown and (step.handle_unknown == "warn" or step.drop is not None):
                unknown[k] = column
            kept = self._kept(step, k, columns, known)
            index = np.array([code for codes in kept for code in codes], dtype=np.intp)
            places = np.repeat(np.arange(start, start + len(kept)), list(map(len, kept)))
            entries.append((first + index, places, np.ones(index.size)))
            start, stored = start + len(kept), stored + int(train[index].sum())
        if unknown:
            why = unknown_category(columns, next(iter(unknown.values())), "warns")
            columns = columns.with_warning(unknown_warning(step, list(unknown)), why)
        linear = LinearColumns(
            tuple(entries),
            np.zeros(start),
            float(stored) if step.sparse_output else None,
            dtype=np.dtype(step.dtype),
        )
        return columns.changed([linear])

    def _kept(self, step: Any, k: int, columns: FoldColumns, known: Known) -> list[Codes]:
        """The codes of each column of the output."""
        infrequent = _infrequent(step, known.counts, columns.fold.n_train)
        kept = [codes for codes, rare in zip(known.codes, infrequent, strict=True) if not rare]
        dropped = self._dropped(step, k, known.labels, infrequent)
        if infrequent.any():
            merged = [code for i in np.flatnonzero(infrequent) for code in known.codes[i]]
            if step.handle_unknown in ("infrequent_if_exist", "warn"):
                merged += known.others
            kept.append(tuple(merged))
        if dropped is not None and (step.drop != "if_binary" or len(kept) == 2):
            del kept[dropped]
        return kept

    def _dropped(self, step: Any, k: int, labels: tuple[Any, ...], infrequent: Array) -> int | None:
        """The place of the column to drop, counted after infrequent ones are merged."""
        if step.drop is None or isinstance(step.drop, str):
            return None if step.drop is None else 0
        dropped = np.asarray(step.drop, dtype=object)[k]
        places = [i for i, label in enumerate(labels) if label is dropped or label == dropped]
        if is_nan(dropped) and is_nan(labels[-1]):
            places = [len(labels) - 1]
        if len(places) != 1 or infrequent[places[0]]:
            raise Unsupported("a category to drop is missing, or infrequent")
        return places[0] - int(infrequent[: places[0]].sum())


class OrdinalEncoderStep(ColumnStep):
    """OrdinalEncoder (1.9): the rank of a category among those of the training rows, or among given ones."""

    serves = (OrdinalEncoder,)

    def check(self, step: Any) -> None:
        _require_dtype(step)
        encodes = step.handle_unknown == "use_encoded_value"
        if encodes != (step.unknown_value is not None):
            raise Unsupported("unknown_value does not go with handle_unknown")
        if encodes and not (isinstance(step.unknown_value, Integral) or is_nan(step.unknown_value)):
            raise Unsupported("unknown_value is neither an integer nor NaN")
        dtype = np.dtype(step.dtype)
        if encodes and dtype.kind != "f" and not _holds(dtype, step.unknown_value):
            raise Unsupported(f"unknown_value does not fit dtype={step.dtype!r}")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        entries = []
        for k, column in _read(step, columns):
            known = seen(columns, column, given(step, k, column))
            if step.handle_unknown == "error":
                columns = _with_unknown(columns, column, known, "use_encoded_value")
            ranks = self._ranks(step, columns, known)
            codes, numbers = (np.array(one) for one in zip(*ranks, strict=True))
            dtype = np.dtype(step.dtype)
            if dtype.kind != "f" and not (_holds(dtype, numbers.min()) and _holds(dtype, numbers.max())):
                raise Unsupported(f"ranks do not fit dtype={step.dtype!r}")
            start = columns.fold.encoding.category_start(column.j)
            entries.append((start + codes, np.full(len(codes), k), numbers))
        linear = LinearColumns(tuple(entries), np.zeros(len(columns.parts)), dtype=np.dtype(step.dtype))
        return columns.changed([linear])

    def _ranks(self, step: Any, columns: FoldColumns, known: Known) -> list[tuple[int, float]]:
        """The number of each code, as scikit-learn encodes it."""
        has_gap = is_nan(known.labels[-1])
        n = len(known.labels) - has_gap  # a gap is no category
        infrequent = _infrequent(step, known.counts[:n], columns.fold.n_train)
        place = np.where(infrequent, n - infrequent.sum(), np.cumsum(~infrequent) - 1)
        numbers = [*map(float, place)]
        taken = range(n - int(infrequent.sum()) + bool(infrequent.any()))
        if has_gap:
            numbers.append(float(step.encoded_missing_value))
            if np.isnan(numbers[-1]):
                raise Unsupported("OrdinalEncoder leaves gaps")
            if 0 <= numbers[-1] < len(taken):
                raise Unsupported("encoded_missing_value is the rank of a category")
        ranks = [(code, x) for codes, x in zip(known.codes, numbers, strict=True) for code in codes]
        if step.handle_unknown == "error":
            return ranks
        if step.unknown_value in taken:
            raise Unsupported("unknown_value is the rank of a category")
        if known.unknown and is_nan(step.unknown_value):
            raise Unsupported("OrdinalEncoder makes gaps of unknown categories")
        return ranks + [(code, float(step.unknown_value)) for code in known.others if known.unknown]


@dataclass(frozen=True)
class Known:
    """The categories that an encoder knows of one column."""

    labels: tuple[Any, ...]  # in the encoder's order
    codes: tuple[Codes, ...]  # the codes of each
    counts: Array  # the training rows of each
    others: Codes  # the codes of all other categories
    unknown: bool  # whether a training or test row has one of the others
    unknown_in_training: bool  # whether a training row has


def seen(columns: FoldColumns, column: CategoryColumn, listed: tuple[Any, ...] | None = None) -> Known:
    """The categories of the training rows, or those of a list."""
    train, test = (counts.tolist() for counts in columns.fold.counts(column.j))
    groups = dict(column.groups)
    if listed is None:
        listed = tuple(label for label, codes in groups.items() if any(train[code] for code in codes))
    codes = tuple(groups.get(label, ()) for label in listed)
    counts = np.array([sum(train[code] for code in one) for one in codes], dtype=np.intp)
    known = {code for one in codes for code in one}
    others = tuple(code for one in groups.values() for code in one if code not in known)
    in_training = any(train[code] for code in others)
    unknown = in_training or any(test[code] for code in others)
    return Known(listed, codes, counts, others, unknown, in_training)


def _with_unknown(columns: FoldColumns, column: CategoryColumn, known: Known, handled_by: str) -> FoldColumns:
    """The columns of a fold for which scikit-learn raises at an unknown category.

    Raises `Unsupported` if a training row has one; else the fold has no scores.
    """
    if not known.unknown:
        return columns
    why = unknown_category(columns, column, f"raises unless handle_unknown={handled_by!r}")
    if known.unknown_in_training:
        raise Unsupported(why)
    return columns.without_scores(why)


def unknown_category(columns: FoldColumns, column: CategoryColumn, what_sklearn_does: str) -> str:
    """Why a column with an unknown category is left alone."""
    name = columns.name_of(column)
    return f"{name} holds an unknown category, for which scikit-learn {what_sklearn_does}"


def given(step: Any, k: int, column: CategoryColumn) -> tuple[Any, ...] | None:
    """The categories that an encoder is given for its k-th column; None if it reads them off the rows.

    A gap is the very object that marks gaps in the column. Raises `Unsupported` for a list that
    scikit-learn may refuse or convert.
    """
    if isinstance(step.categories, str):
        return None
    values = step.categories[k]
    listed = [math.nan if is_nan(v) else v for v in getattr(values, "tolist", lambda: list(values))()]
    rest = listed[:-1] if listed and (listed[-1] is None or is_nan(listed[-1])) else listed
    gap = listed[-1] if len(rest) < len(listed) else ...
    labels = [label for label, _ in column.groups if label is not column.missing]
    kinds = {type(label) for label in labels} or {str}
    if kinds == {float}:
        rest = [float(v) if type(v) is int else v for v in rest]
    is_text = kinds == {str} and all(type(v) is str for v in rest)
    is_sorted = kinds <= {int, float} and len(kinds) == 1 and {type(v) for v in rest} <= kinds
    is_sorted = is_sorted and all(one < other for one, other in itertools.pairwise(rest))
    if not rest or not (is_text or is_sorted) or len(set(rest)) < len(rest):
        raise Unsupported("the given categories have other types than the column, or another order")
    if gap is not ... and column.missing is not ... and gap is not column.missing:
        raise Unsupported("the gap among the given categories is not that of the column")
    if gap is not ... and (kinds == {int} or (gap is None and not is_text)):
        raise Unsupported("the given categories hold a gap, and the column is of numbers")
    return (*rest, *listed[len(rest) :])


def is_nan(value: Any) -> bool:
    """Whether a value is a float that is NaN."""
    return isinstance(value, float) and value != value


def _read(step: Any, columns: FoldColumns) -> Iterator[tuple[int, CategoryColumn]]:
    """The columns that an encoder reads, numbered."""
    width = len(columns.parts)
    lists = [one for one in (step.categories, getattr(step, "drop", None)) if one is not None]
    if any(len(one) != width for one in lists if not isinstance(one, str)):
        raise Unsupported("categories or drop have another length than the columns")
    for k, part in enumerate(columns.parts):
        yield k, as_categories(columns.fold.encoding, part)


def _holds(dtype: np.dtype[Any], number: float) -> bool:
    """Whether a number is an integer in the range of a dtype of integers."""
    return (
        dtype.kind in "iu" and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max and number == int(number)
    )


def _require_dtype(step: Any) -> None:
    dtype = np.dtype(step.dtype)
    if dtype.kind not in "iub" and dtype not in (np.float64, np.float32):
        raise Unsupported(f"dtype={step.dtype!r} is of other numbers")


def _infrequent(step: Any, counts: Array, n_train: int) -> Array:
    """Which categories are infrequent, as ``_identify_infrequent`` of scikit-learn's encoders decides it."""
    rare = np.zeros(counts.size, dtype=bool)
    if isinstance(step.min_frequency, Integral):
        rare = counts < step.min_frequency
    elif step.min_frequency is not None:
        rare = counts < n_train * step.min_frequency
    left = counts.size - int(rare.sum()) + 1  # scikit-learn counts one that infrequent ones share in any case
    if step.max_categories is not None and step.max_categories < left:
        n_frequent = step.max_categories - 1
        if n_frequent == 0:
            rare[:] = True
        else:
            rare[np.argsort(counts, kind="mergesort")[:-n_frequent]] = True
    return rare


register_column_step(OneHotEncoderStep())
register_column_step(OrdinalEncoderStep())
