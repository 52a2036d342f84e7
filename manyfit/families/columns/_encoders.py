"""OneHotEncoder and OrdinalEncoder: which categories the training rows hold decides the columns."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from manyfit.families.protocol import register_column_step
from manyfit.folds import CategoryColumn, FoldColumns, LinearColumns, Unsupported, as_categories

Array = NDArray[Any]
Codes = tuple[int, ...]


class OneHotEncoderStep:
    """OneHotEncoder (1.9).

    Categories of the training rows in sorted order, the missing one last; infrequent ones share the last
    column.
    A category of other rows only has no column.
    """

    serves = (OneHotEncoder,)

    def check(self, step: Any) -> None:
        if not (isinstance(step.categories, str) and step.categories == "auto"):
            raise Unsupported("categories are given")
        if np.dtype(step.dtype) != np.float64:
            raise Unsupported(f"dtype={step.dtype!r} is not float64")
        if not (step.drop is None or (isinstance(step.drop, str) and step.drop in ("first", "if_binary"))):
            raise Unsupported("drop is an array")
        if step.drop is not None and _merges(step):
            raise Unsupported("drop together with infrequent categories")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        """The columns behind the encoder."""
        entries, start, stored = list[Any](), 0, 0
        for part in columns.parts:
            column = as_categories(columns.fold.encoding, part)
            kept, n_rows = self._kept(step, columns, column)
            first = columns.fold.encoding.category_start(column.j)
            for k, codes in enumerate(kept):
                entries.append((first + np.array(codes), np.full(len(codes), start + k), np.ones(len(codes))))
            start, stored = start + len(kept), stored + n_rows
        linear = LinearColumns(tuple(entries), np.zeros(start), float(stored) if step.sparse_output else None)
        return columns.changed([linear])

    def _kept(self, step: Any, columns: FoldColumns, column: CategoryColumn) -> tuple[list[Codes], int]:
        """The codes of each column of the output, and how many training rows have one of them."""
        known, counts, unknown = seen(columns, column)
        infrequent = (
            _infrequent(step, counts, columns.fold.n_train) if _merges(step) else np.zeros(0, dtype=bool)
        )
        kept: list[Codes] = list(known)
        if infrequent.any():
            merged = tuple(
                code for codes, rare in zip(known, infrequent, strict=True) if rare for code in codes
            )
            if step.handle_unknown in ("infrequent_if_exist", "warn"):
                merged = (*merged, *unknown[0])
            kept = [codes for codes, rare in zip(known, infrequent, strict=True) if not rare] + [merged]
        if unknown[1] and (step.handle_unknown in ("error", "warn") or step.drop is not None):
            raise Unsupported("test rows hold a category that the training rows do not hold")
        n_rows = columns.fold.n_train
        if step.drop == "first" or (step.drop == "if_binary" and len(kept) == 2):
            n_rows -= int(counts[0])
            kept = kept[1:]
        return kept, n_rows


class OrdinalEncoderStep:
    """OrdinalEncoder (1.9): the rank of a category among those of the training rows."""

    serves = (OrdinalEncoder,)

    def check(self, step: Any) -> None:
        if not (isinstance(step.categories, str) and step.categories == "auto"):
            raise Unsupported("categories are given")
        if np.dtype(step.dtype) != np.float64:
            raise Unsupported(f"dtype={step.dtype!r} is not float64")
        if _merges(step):
            raise Unsupported("OrdinalEncoder merges infrequent categories")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        """The columns behind the encoder."""
        entries = []
        for k, part in enumerate(columns.parts):
            column = as_categories(columns.fold.encoding, part)
            known, _, unknown = seen(columns, column)
            if column.missing is not ... and dict(column.groups)[column.missing] in known:
                raise Unsupported("OrdinalEncoder leaves gaps")
            if unknown[1] and step.handle_unknown == "error":
                raise Unsupported("test rows hold a category that the training rows do not hold")
            if unknown[1] and not _is_number(step.unknown_value):
                raise Unsupported("OrdinalEncoder makes gaps of unknown categories")
            ranks = [(code, float(rank)) for rank, codes in enumerate(known) for code in codes]
            ranks += [(code, float(step.unknown_value)) for code in unknown[0] if unknown[1]]
            codes, numbers = (np.array(one) for one in zip(*ranks, strict=True))
            start = columns.fold.encoding.category_start(column.j)
            entries.append((start + codes, np.full(len(codes), k), numbers))
        return columns.changed([LinearColumns(tuple(entries), np.zeros(len(columns.parts)))])


def seen(columns: FoldColumns, column: CategoryColumn) -> tuple[list[Codes], Array, tuple[Codes, bool]]:
    """The categories of the training rows, their counts, and the codes of all others.

    Also whether a test row has one of the others.
    """
    train, test = columns.fold.counts(column.j)
    counts = np.array([train[list(codes)].sum() for _, codes in column.groups])
    known = [codes for (_, codes), n in zip(column.groups, counts, strict=True) if n]
    others = tuple(
        code for (_, codes), n in zip(column.groups, counts, strict=True) if not n for code in codes
    )
    return known, counts[counts > 0], (others, bool(test[list(others)].any()))


def _merges(step: Any) -> bool:
    return step.min_frequency is not None or step.max_categories is not None


def _infrequent(step: Any, counts: Array, n_train: int) -> Array:
    """Which categories are infrequent, as ``_identify_infrequent`` of scikit-learn's encoders decides it."""
    rare = np.zeros(counts.size, dtype=bool)
    if isinstance(step.min_frequency, Integral):
        rare = counts < step.min_frequency
    elif step.min_frequency is not None:
        rare = counts < n_train * step.min_frequency
    left = counts.size - int(rare.sum()) + bool(rare.any())
    if step.max_categories is not None and step.max_categories < left:
        n_frequent = step.max_categories - 1
        if n_frequent == 0:
            rare[:] = True
        else:
            rare[np.argsort(counts, kind="mergesort")[:-n_frequent]] = True
    return rare


def _is_number(value: Any) -> bool:
    return isinstance(value, Integral) or (isinstance(value, float) and value == value)


register_column_step(OneHotEncoderStep())
register_column_step(OrdinalEncoderStep())
