"""KBinsDiscretizer: the ranges of a column that the training rows of a fold divide."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import KBinsDiscretizer

from manyfit.families.protocol import Array, ColumnStep, register_column_step
from manyfit.folds import FoldColumns, LinearColumns, NumberColumn, Unsupported

# Numbers that are this near to an edge, in units of their size, may lie on its other side in scikit-learn.
NEAR = 1e-9


class KBinsDiscretizerStep(ColumnStep):
    """KBinsDiscretizer (1.9), whose bins of all folds are unions of the ranges between all their edges.

    scikit-learn itself finds the edges, on the training rows of each fold.
    """

    serves = (KBinsDiscretizer,)

    def check(self, step: Any) -> None:
        if step.strategy == "kmeans":
            raise Unsupported("strategy='kmeans' iterates")
        if step.dtype is not None and np.dtype(step.dtype) != np.float64:
            raise Unsupported(f"dtype={step.dtype!r} is not float64")

    def apply(self, step: Any, columns: FoldColumns) -> FoldColumns:
        fold, entries, start = columns.fold, list[Any](), 0
        all_edges = _edges(step, columns)
        for part, edges in zip(columns.parts, all_edges, strict=True):
            assert isinstance(part, NumberColumn)
            first, bins = _bins_of_ranges(step, columns, part, edges)
            index = first + np.arange(bins.size)
            if step.encode == "ordinal":
                entries.append((index, np.full(bins.size, start), bins.astype(np.float64)))
                start += 1
            else:
                entries.append((index, start + bins, np.ones(bins.size)))
                start += edges.size + 1
        stored = float(fold.n_train * len(columns.parts)) if step.encode == "onehot" else None
        return columns.changed([LinearColumns(tuple(entries), np.zeros(start), stored)])


def _edges(step: Any, columns: FoldColumns) -> list[Array]:
    """The inner edges of the bins of each column."""
    if step.subsample is not None and columns.fold.n_train > step.subsample:
        raise Unsupported("KBinsDiscretizer draws rows")
    Z = np.column_stack([columns.fold.numbers(part) for part in columns.numbers_of(step)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            fitted = clone(step).set_params(encode="ordinal").fit(Z)
        except (Warning, ValueError) as error:
            raise Unsupported("KBinsDiscretizer warns or raises on a fold") from error
    return [edges[1:-1] for edges in fitted.bin_edges_]


def _bins_of_ranges(step: Any, columns: FoldColumns, part: NumberColumn, edges: Array) -> tuple[int, Array]:
    """The first column of G of the ranges of a column of X, and the bin of each range, gaps last."""
    encoding = columns.fold.encoding
    distinct = (encoding.distinct(part.j, part.function) - part.shift) / part.scale
    has_gaps = encoding.number_has_gaps(part.j, part.function)
    fill = (part.fill - part.shift) / part.scale if has_gaps and part.fill is not None else None
    read = [] if part.is_unscaled else [distinct]
    read += [] if fill is None else [np.array([fill])]
    _require_clear(step, columns.fold.numbers(part), edges, read, abs(part.shift / part.scale))
    places = np.searchsorted(distinct, edges, side="left")
    first, cuts = encoding.number_ranges(part.j, part.function, places)
    bins = np.searchsorted(places, np.concatenate([[-1], cuts]), side="right")
    if fill is not None:
        bins = np.append(bins, np.searchsorted(edges, fill, side="right"))
    return first, bins


def _require_clear(step: Any, z: Array, edges: Array, read: list[Array], offset: float) -> None:
    """Raise `Unsupported` if rounding may decide on which side of an edge a number lies.

    `read` are sorted numbers that differ from scikit-learn's by rounding. A quantile amid equal numbers is
    one of them, however these are rounded.
    """
    z = np.sort(z)
    levels = np.linspace(0.0, 1.0, edges.size + 2)[1:-1] * (z.size - 1)
    first, end = np.searchsorted(z, edges, "left"), np.searchsorted(z, edges, "right")
    inside = (first < levels - 1) & (levels + 1 < end)
    for numbers in read:
        place = np.searchsorted(numbers, edges)
        for beside in (place - 1, place, place + 1):
            nearest = numbers[np.clip(beside, 0, numbers.size - 1)]
            apart = np.abs(nearest - edges)
            is_doubtful = apart <= NEAR * np.maximum(np.abs(edges), max(1.0, offset))
            if (is_doubtful & ~(inside & (apart == 0.0) & (step.strategy == "quantile"))).any():
                raise Unsupported("a number lies on the edge of a bin, but for rounding")


register_column_step(KBinsDiscretizerStep())
