"""Sums of the features of each class over training rows of sparse chunks, in the order in which rows come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.preprocessing import binarize

from manyfit.exceptions import Unsupported
from manyfit.folds.splits._atoms import AtomGroup, as_rows
from manyfit.folds.splits._row_index import n_rows, row_blocks

Array = NDArray[Any]

# Numbers up to which sums of integers are exact.
EXACT = 2.0**53
# Rows in another order are in memory in parts of this share of its limit: `take` copies them, up to three
# times.
ORDERED_PARTS = 4


class ClassCounts(NamedTuple):
    """The C classes of some rows, sorted: their sums of weights, (C,), and of features, (C, p).

    No bit differs from scikit-learn's ``Y.T @ X`` of a CSR matrix X and indicators Y of the classes, which
    adds one row after the other.
    """

    labels: Array
    weights: Array
    sums: Array


class CountSums(NamedTuple):
    """The same of each split of a group, (n_splits, C) and (n_splits, C, p), for all C classes of y.

    `is_exact` says whether the order of the rows cannot matter, and `is_negative`, (n_splits,), whether the
    training rows have negative numbers.
    """

    weights: Array
    sums: Array
    is_exact: bool
    is_negative: Array

    def of_split(self, i: int, labels: Array, kept: Array) -> ClassCounts:
        """Some of the classes, whose `labels` are those of all rows, on a split."""
        if self.is_negative[i]:
            raise Unsupported("the training rows have negative numbers, and counts have none")
        return ClassCounts(labels[kept], self.weights[i, kept], self.sums[i, kept])


def count_classes(
    X: Any, codes: Array, n_classes: int, group: AtomGroup, weights: Array | None, threshold: float | None
) -> CountSums:
    """Sums over the training rows of each split of a group, in one pass over sparse rows in chunks.

    Parameters
    ----------
    X : ChunkSums
        Sparse rows.
    codes : ndarray of shape (n,)
        The class of each row, from 0.
    n_classes : int
        Number of classes.
    group : AtomGroup
        The splits.
    weights : ndarray of shape (n,) or None
        Sample weights.
    threshold : float or None
        Entries are 1 if they are larger, else 0, as ``binarize`` makes them; None: they stay as they are.
    """
    n_splits, p = len(group.splits), X.shape[1]
    totals, sums = np.zeros((n_splits, n_classes)), np.zeros((n_splits, n_classes * p))
    is_exact, is_negative = True, np.zeros(n_splits, dtype=bool)
    for rows, block, local in X.held(group.rows):
        if not np.isfinite(block.X.data).all():
            X.require_finite(rows, block)
        found = block.X if threshold is None else binarize(block.X, threshold=threshold)
        own = codes[rows]
        W = None if weights is None else weights[rows]
        is_exact = is_exact and _are_integers(found.data) and (W is None or _are_integers(W))
        for s in range(n_splits):
            index = _in_order(local, group.train[s])
            if index.size:
                counted = found[index]
                is_negative[s] |= counted.data.min(initial=0.0) < 0.0
                _add(counted, own[index], None if W is None else W[index], totals[s], sums[s])
    is_exact = is_exact and bool(sums.max(initial=0.0) < EXACT)
    return CountSums(totals, sums.reshape(n_splits, n_classes, p), is_exact, is_negative)


def count_in_order(
    X: Any, codes: Array, n_classes: int, rows: Array, weights: Array | None, threshold: float | None
) -> tuple[CountSums, int]:
    """Sums over some rows in their own order, as those of a single split, and the passes that these took.

    A pass reads as many of the rows as a part of the memory limit holds. See `count_classes`.
    """
    p, rows = X.shape[1], as_rows(rows, X.shape[0])
    totals, sums = np.zeros((1, n_classes)), np.zeros((1, n_classes * p))
    is_negative, n_passes = False, 0
    for own in row_blocks(rows, max(1, X.source.memory // ORDERED_PARTS // X.row_bytes)):
        n_passes += 1
        found = X.take(own)
        counted = found if threshold is None else binarize(found, threshold=threshold)
        is_negative = is_negative or bool(counted.data.min(initial=0.0) < 0.0)
        _add(counted, codes[own], None if weights is None else weights[own], totals[0], sums[0])
    return CountSums(totals, sums.reshape(1, n_classes, p), True, np.array([is_negative])), n_passes


def _in_order(local: list[Any], repeats: Array) -> Array:
    """The rows of a read that a split trains on, in order, each as often as it does."""
    parts = [
        np.repeat(_index(rows), int(times))
        for rows, times in zip(local, repeats, strict=True)
        if times and n_rows(rows)
    ]
    return np.sort(np.concatenate(parts), kind="stable") if parts else np.empty(0, dtype=np.intp)


def _index(rows: Any) -> Array:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else np.asarray(rows)


def _add(X: Any, codes: Array, weights: Array | None, totals: Array, sums: Array) -> None:
    """Add some rows to the sums of their classes, one entry after the other."""
    X = scipy.sparse.csr_array(X)
    each = np.diff(X.indptr)
    place = np.repeat(codes * X.shape[1], each) + X.indices
    entries = X.data.astype(np.float64, copy=False)
    if weights is not None:
        entries = entries * np.repeat(weights, each)
    np.add.at(sums, place, entries)
    np.add.at(totals, codes, 1.0 if weights is None else weights)


def _are_integers(numbers: Array) -> bool:
    return bool((numbers == np.floor(numbers)).all())
