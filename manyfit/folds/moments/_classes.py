"""Moments of the rows of each class, summed once for the atoms of the splits and merged for training sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from manyfit.exceptions import Unsupported
from manyfit.folds._blas_threads import map_threads
from manyfit.folds.moments._counts import ClassCounts, CountSums, count_classes, count_in_order
from manyfit.folds.moments._moments import AtomMoments, Moments, MomentSource
from manyfit.folds.moments._setwise_merge import SetwiseMerge
from manyfit.folds.splits._atoms import Array, AtomGroup
from manyfit.folds.splits._row_index import RowReader, row_blocks

_Spreads = tuple[Array, Array, Array]
"""Counts, means and squares about them."""

# Values that are centred and squared at a time: they stay in the second-level cache.
BLOCK_VALUES, MIN_BLOCK_ROWS = 2**15, 64
NO_ROWS = "the split has no training rows"
# Values in all rows under which starting threads costs more than they save: 2 MiB of float64.
MIN_THREADED_VALUES = 2**18


@dataclass(frozen=True)
class ClassMoments:
    """Moments of the C classes of some rows, which have at least one row each."""

    labels: Array  # (C,), labels of the classes, sorted
    counts: Array  # (C,), numbers of rows
    origin: Array  # (p,), a point amid the data
    offsets: Array  # (C, p), means less the origin
    scatters: Array  # (C, p, p), sums of squares and products about the means


class ClassSpreads(NamedTuple):
    """The same without products: `means` and `squares` about them, (C, p).

    With sample weights, `counts` are weights, and rows count by theirs in `means` and `squares`.
    """

    labels: Array
    counts: Array  # (C,)
    means: Array
    squares: Array
    n_rows: float
    variances: Array  # (p,), of the rows of all classes, without weights


class Labels(NamedTuple):
    """Distinct labels, sorted, and the position of each row's."""

    labels: Array
    codes: Array

    @classmethod
    def of(cls, y: Array) -> "Labels":
        """The labels of rows, from a one-dimensional y."""
        return cls(*np.unique(y, return_inverse=True))


class ClassAtoms:
    """The rows of each class in each atom of a group that a split trains on, and their sums.

    `sets` are the positions of an atom and a class with the rows that they have in common, if any. `passes`
    counts those over the rows; `weights`, (n,), are those of the fit.
    """

    def __init__(self, X: Any, y: Labels, group: AtomGroup, weights: Array | None = None) -> None:
        self._X, self._y, self.group, self._weights, self.passes = X, y, group, weights, 0
        self._counts: dict[float | None, CountSums] = {}
        self._used = np.flatnonzero(group.train.any(axis=0))
        self._sets = list(self._cut())
        if not self._sets:
            raise Unsupported(NO_ROWS)

    def _cut(self) -> Iterator[tuple[int, int, Array]]:
        codes, size = self._y.codes, len(self._y.labels)
        for a, atom in enumerate(self._used):
            rows = self.group.rows[atom]
            index = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            own = codes[index]
            ordered = index[np.argsort(own, kind="stable")]
            ends = np.cumsum(np.bincount(own, minlength=size))
            for c, (start, stop) in enumerate(zip(ends - np.diff(ends, prepend=0), ends, strict=True)):
                if stop > start:
                    yield a, c, ordered[start:stop]

    @property
    def shape(self) -> tuple[int, int]:
        """Atoms and classes."""
        return len(self._used), len(self._y.labels)

    def weights(self, i: int) -> Array:
        """How often split `i` trains on each atom."""
        return np.asarray(self.group.train[i - self.group.splits.start, self._used])

    @cached_property
    def moments(self) -> list[AtomMoments]:
        """Moments of the atoms for each class."""
        X: MomentSource = self._X
        self.passes += 1
        p, rows = X.shape[1], [rows for _, _, rows in self._sets]
        summed = [one for one, _ in X.moments(np.empty((X.shape[0], 0)), rows)]
        none = Moments(0.0, 0.0, summed[0].origin, np.zeros(p), np.zeros((p, p)))
        n_atoms, n_classes = self.shape
        parts = [[none] * n_atoms for _ in range(n_classes)]
        for (a, c, _), one in zip(self._sets, summed, strict=True):
            parts[c][a] = one
        return [AtomMoments(own) for own in parts]

    def merged_moments(self, i: int) -> ClassMoments:
        """Moments of the classes of the training rows of split `i`."""
        merged = [one.merged(self.weights(i)) for one in self.moments]
        kept = [c for c, one in enumerate(merged) if one.rows]
        if not kept:
            raise Unsupported(NO_ROWS)
        return ClassMoments(
            self._y.labels[kept],
            np.array([int(merged[c].rows) for c in kept]),
            merged[0].origin,
            np.stack([merged[c].offset for c in kept]),
            np.stack([merged[c].scatter for c in kept]),
        )

    def counts_of(self, i: int, train: Array, threshold: float | None) -> ClassCounts:
        """Sums of the features of the classes of split `i`, which trains on `train`; for sparse chunks."""
        codes, n_classes, split = self._y.codes, len(self._y.labels), i - self.group.splits.start
        if threshold not in self._counts:
            self.passes += 1
            self._counts[threshold] = count_classes(
                self._X, codes, n_classes, self.group, self._weights, threshold
            )
        found = self._counts[threshold]
        if not (found.is_exact or (np.diff(train) >= 0).all()):
            found, n_passes = count_in_order(self._X, codes, n_classes, train, self._weights, threshold)
            self.passes, split = self.passes + n_passes, 0
        return found.of_split(split, self._y.labels, np.unique(codes[train]))

    @cached_property
    def spreads(self) -> list[_Spreads]:
        """Counts (n_atoms, n_classes), means and squares about them (n_atoms, n_classes, p).

        With weights of rows that are read in chunks, the same with them follows.
        """
        X: RowReader = self._X
        self.passes += 1
        if hasattr(X, "held"):  # rows that are read in chunks
            return [self._placed(one) for one in _spreads_in_chunks(X, self._sets, self._weights)]
        if self._weights is not None:
            raise Unsupported("sums within classes have no weights")
        counts, means, squares = self._placed([])

        def task(item: tuple[int, int, Array]) -> None:
            a, c, rows = item
            counts[a, c], means[a, c], squares[a, c] = _spread(X, rows)

        if sum(len(rows) for _, _, rows in self._sets) * X.shape[1] >= MIN_THREADED_VALUES:
            map_threads(task, self._sets)
        else:
            for item in self._sets:
                task(item)
        return [(counts, means, squares)]

    def _placed(self, found: Sequence[tuple[float, Array, Array]]) -> _Spreads:
        """The spreads of sets, by atom and class; zeros where there are none."""
        counts, (means, squares) = np.zeros(self.shape), np.zeros((2, *self.shape, self._X.shape[1]))
        for (a, c, _), one in zip(self._sets, found, strict=False):
            counts[a, c], means[a, c], squares[a, c] = one
        return counts, means, squares

    def merged_spreads(self, i: int) -> ClassSpreads:
        """Means and squares of the classes of the training rows of split `i`."""
        spreads, repeats = self.spreads, self.weights(i)
        used = np.flatnonzero(repeats)  # atoms that are left out may hold NaN
        kept = np.flatnonzero((repeats[used, None] * spreads[0][0][used]).any(axis=0))
        if not kept.size:
            raise Unsupported(NO_ROWS)

        def merged(counts: Array, means: Array, squares: Array) -> _Spreads:
            counts, means, squares = (one[used][:, kept] for one in (counts, means, squares))
            return merge_spreads(
                repeats[used, None] * counts, means, np.einsum("a,acp->cp", repeats[used], squares)
            )

        counts, means, squares = merged(*spreads[0])
        n, _, total = merge_spreads(counts, means, squares.sum(axis=0))
        if len(spreads) > 1:
            counts, means, squares = merged(*spreads[1])
            if np.isclose(counts, 0.0).any():
                raise Unsupported("a class has no weight in the training rows")
        with np.errstate(invalid="ignore"):
            return ClassSpreads(self._y.labels[kept], counts, means, squares, float(n), total / n)


def merge_spreads(counts: Array, means: Array, squares: Array) -> tuple[Array, Array, Array]:
    """Counts, means and squares of sets of rows as one; `squares` are the sum of their own.

    The sets lie along the first axis of `counts` and `means`, (k, ...) and (k, ..., p).
    """
    total = counts.sum(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is found later
        mean = (counts[..., None] * means).sum(axis=0) / total[..., None]
        return total, mean, squares + (counts[..., None] * (means - mean) ** 2).sum(axis=0)


def _spreads_in_chunks(
    X: Any, sets: list[tuple[int, int, Array]], weights: Array | None
) -> list[list[tuple[float, Array, Array]]]:
    """`_spread` of all sets in one pass over the chunks, merged in order, and with weights, if given."""
    work, rows = _SpreadsInRead(weights), [np.sort(own) for _, _, own in sets]
    none, n = (0.0, *np.zeros((2, X.shape[1]))), len(sets)
    found = X.reduced(work, SetwiseMerge(merge_two_spreads), rows) or [None] * (2 * n)
    found = [none if one is None else one for one in found]
    return [found[:n]] if weights is None else [found[:n], found[n:]]


@dataclass(frozen=True)
class _SpreadsInRead:
    """`_spread` of each set in a read that is in memory, None for a set without rows or weight."""

    is_kept: ClassVar[bool] = True  # by a `RangeStore`
    weights: Array | None

    def __call__(self, X: Any, rows: slice, block: Any, local: list[Array]) -> list[Any]:
        found = [_spread(block, own) if len(own) else None for own in local]
        if not all(one is None or np.isfinite(one[2]).all() for one in found):
            X.require_finite(rows, block)
        if self.weights is None:
            return found
        W = self.weights[rows]
        return found + [_spread(block, own, W) if W[own].any() else None for own in local]


def merge_two_spreads(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[float, Array, Array]:
    """Count, means and squares of two sets of rows as one; see `merge_spreads`."""
    counts, means = np.array([one[0], other[0]]), np.stack([one[1], other[1]])
    total, mean, squares = merge_spreads(counts, means, one[2] + other[2])
    return float(total), mean, squares


def _spread(X: RowReader, rows: Array, weights: Array | None = None) -> tuple[float, Array, Array]:
    """Count, means and squares about them of some rows, block by block; `weights` are those of all rows."""
    if weights is not None:
        rows = rows[weights[rows] > 0.0]
    size = max(MIN_BLOCK_ROWS, BLOCK_VALUES // X.shape[1])
    parts = []
    with np.errstate(invalid="ignore", over="ignore"):
        for block in row_blocks(rows, size):
            Z = np.array(X.take(block), dtype=np.float64)
            if weights is None:
                mean = Z.mean(axis=0)
                Z -= mean
                parts.append((float(len(Z)), mean, np.einsum("np,np->p", Z, Z)))
                continue
            own = weights[block]
            mean = np.average(Z, axis=0, weights=own)
            Z -= mean
            parts.append((float(own.sum()), mean, own @ (Z * Z)))
        counts, means, squares = (np.array(one) for one in zip(*parts, strict=True))
        total, mean, merged = merge_spreads(counts, means, squares.sum(axis=0))
    return float(total), mean, merged
