"""Centred first and second moments of rows, which add over blocks, atoms, chunks and workers.

Each group of rows is summed about a point amid it. If its mean turns out to lie more than two standard
deviations from that point, the group is summed again about its mean. So a sum of squares is at most five
times its part about the mean: little more than two bits cancel, however far the data lie from zero. Groups
are merged at their common mean, by adding only: a training set is the merge of the other atoms, and nothing
is subtracted. Means are kept relative to a point amid the data, since a mean of 1e5 would be rounded to
1e-11.

References
----------
Chan, Golub, LeVeque: Algorithms for computing the sample variance (1983).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from manyfit.exceptions import Unsupported
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import RowReader

# Rows are summed about a point; where its distance from their mean, squared, is more than so many
# variances, they are summed again about the mean.
MAX_SHIFT = 4.0
# Values of a scatter matrix that are merged at a time: 0.25 MiB.
MERGED_VALUES = 2**15


@dataclass(frozen=True)
class Moments:
    """Moments of the columns ``[X, y]`` over some rows."""

    rows: float  # number of rows, with repetitions
    weight: float  # sum of the weights; the number of rows if there are none
    origin: Array  # (d,), a point amid the data, the same for all rows of the same arrays
    offset: Array  # (d,), weighted mean less the origin, to the rounding of the spread of the data
    scatter: Array  # (d, d), ``sum_i w_i (z_i - mean)(z_i - mean)'``, not divided by anything

    @property
    def mean(self) -> Array:
        """Weighted mean of shape (d,), rounded."""
        return self.origin + self.offset

    def of_targets(self, p: int, index: Array) -> "Moments":
        """The moments of the first p columns, those of X, and some of y."""
        kept = np.concatenate([np.arange(p), p + index])
        scatter = self.scatter[np.ix_(kept, kept)]
        return replace(self, origin=self.origin[kept], offset=self.offset[kept], scatter=scatter)


SummedMoments = list[tuple[Moments, int]]
"""Moments of some sets of rows, each with the number of rows that were read for it."""


class MomentSource(RowReader, Protocol):
    """The part of `RowSource` that moments are made of."""

    def moments(self, Y: Any, atoms: Sequence[Rows], weights: Any = None) -> SummedMoments:
        """Moments of ``[X, Y]`` over each atom."""

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        """Minimum and maximum of some columns over each atom."""


def moments_from_sums(sums: Array, shift: Array, origin: Array, n: int) -> tuple[Moments, bool]:
    """Moments of `n` rows from sums about `shift`, and whether `shift` was too far from their mean."""
    d = origin.size
    weight = float(sums[d, d])
    if weight == 0.0:
        return Moments(float(n), 0.0, origin, np.zeros(d), np.zeros((d, d))), False
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # the sums keep NaN and infinity, which are found later
        delta = sums[:d, d] / weight
        scatter = sums[:d, :d] - np.outer(sums[:d, d], delta)
        offset = (shift - origin) + delta
        far = weight * delta**2 > MAX_SHIFT * np.diagonal(scatter)
    # The scatter of a column of one value is rounding, and may be negative.
    diagonal = np.einsum("ii->i", scatter)
    np.maximum(diagonal, 0.0, out=diagonal)
    return Moments(float(n), weight, origin, offset, scatter), bool(far.any())


def moments_about(
    shift: Array, sums_about: Callable[[Array], Array], origin: Array, n: int
) -> tuple[Moments, int]:
    """Moments of `n` rows from their sums about a point amid them, and how many rows were read.

    If too much was subtracted, they are summed once more, about the mean itself.
    """
    moments, far = moments_from_sums(sums_about(shift), shift, origin, n)
    if not far:
        return moments, n
    shift = moments.mean
    return moments_from_sums(sums_about(shift), shift, origin, n)[0], 2 * n


@dataclass(frozen=True)
class AtomMoments:
    """The moments of every atom of a group, in order, and their merges."""

    parts: Sequence[Moments]

    def merged(self, counts: Array) -> Moments:
        """Moments of a set that repeats atom ``a`` ``counts[a]`` times."""
        left_out = np.flatnonzero(counts != 1.0)
        if left_out.size == 1 and counts.size > 1 and counts[left_out[0]] == 0.0:
            return self._all_but_one(int(left_out[0]))
        # Atoms that are not merged stay out of the sums: they may hold NaN.
        used = np.flatnonzero(counts)
        if not used.size:
            origin = self.parts[0].origin
            return Moments(0.0, 0.0, origin, np.zeros(origin.size), np.zeros((origin.size, origin.size)))
        return merged_moments([self.parts[int(a)] for a in used], counts[used])

    @cached_property
    def _all_but_one(self) -> "AllButOne":
        return AllButOne(self.parts)


class AllButOne:
    """The moments of all but one of some sets, for each of these; nothing is subtracted.

    Merging them all anew for each of k sets would take ``k^2`` merges. Here the sets are cut into blocks of
    about ``sqrt(k)``. What is left without a set is all other blocks, and the sets before and after it in its
    own block: one merge of three, and two to have them. Beside the sets, moments of ``4 sqrt(k)`` sets are
    kept if they are read in order.
    """

    def __init__(self, sets: Sequence[Moments]) -> None:
        size = math.isqrt(len(sets) - 1) + 1
        self._blocks = [sets[start : start + size] for start in range(0, len(sets), size)]
        around = _before_and_after([merged_moments(block) for block in self._blocks])
        self._other_blocks = [merged_moments(pair) if pair else None for pair in around]
        self._size, self._read, self._others = size, -1, list[list[Moments]]()

    def __call__(self, a: int) -> Moments:
        """The moments of all sets but the one at position `a`."""
        block, j = divmod(a, self._size)
        if block != self._read:
            self._read, self._others = block, _before_and_after(self._blocks[block])
        other = self._other_blocks[block]
        return merged_moments(self._others[j] + ([] if other is None else [other]))


def _before_and_after(sets: Sequence[Moments]) -> list[list[Moments]]:
    """For each of some sets the merge of those before it and of those after it, if there are any."""
    before, after = list(sets[:1]), list(sets[-1:])
    for one in sets[1:-1]:
        before.append(merged_moments([before[-1], one]))
    for one in sets[-2:0:-1]:
        after.append(merged_moments([one, after[-1]]))
    after.reverse()
    return [before[j - 1 : j] + after[j : j + 1] for j in range(len(sets))] if len(sets) > 1 else [[]]


def merged_moments(parts: Sequence[Moments], counts: Array | None = None) -> Moments:
    """Moments of the rows of some disjoint sets, each repeated so many times; once if there are no counts.

    Parts are recentred at the mean of their merge, so all terms are positive.
    """
    counts = np.ones(len(parts)) if counts is None else counts
    if len(parts) == 1 and counts[0] == 1.0:
        return parts[0]
    weights = counts * [part.weight for part in parts]
    weight = float(weights.sum())
    means = np.stack([part.offset for part in parts])
    mean = weights @ means / weight if weight else np.zeros(means.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        delta = means - mean
        scatter = _summed_scatter(parts, counts, (weights[:, None] * delta).T, delta)
    rows = float(counts @ [part.rows for part in parts])
    return Moments(rows, weight, parts[0].origin, mean, scatter)


def _summed_scatter(parts: Sequence[Moments], counts: Array, left: Array, right: Array) -> Array:
    """The sum of the scatter matrices, so many times each, and of ``left right``.

    Some rows of the matrices are summed at a time, in the second-level cache: each matrix is read once, and
    their sum is written once.
    """
    d = right.shape[1]
    out, size = np.empty((d, d)), max(1, MERGED_VALUES // d)
    for start in range(0, d, size):
        rows = slice(start, start + size)
        block = np.matmul(left[rows], right, out=out[rows])
        for part, count in zip(parts, counts, strict=True):
            block += part.scatter[rows] if count == 1.0 else count * part.scatter[rows]
    return out


class AtomRanges:
    """Which columns hold one value over a merge of atoms; a column is read once, on first use."""

    def __init__(self, X: MomentSource, atoms: Sequence[Rows]) -> None:
        self._X, self._atoms = X, atoms
        self._low, self._high = np.empty((2, len(atoms), X.shape[1]), dtype=X.dtype)
        self._known = np.zeros(X.shape[1], dtype=bool)

    def constant(self, columns: Array, used: Sequence[Any] | Array) -> Array:
        """Whether each of `columns` holds one value, exactly, over the atoms at the positions `used`."""
        new = columns[~self._known[columns]]
        if new.size:
            self._low[:, new], self._high[:, new] = self._X.ranges(self._atoms, new)
            self._known[new] = True
        where = np.ix_(used, columns)
        return np.asarray(self._low[where].min(axis=0) == self._high[where].max(axis=0))


# Columns of values, weights or targets beyond this, or under its inverse, are not squared: quotients and
# products of two of them, squared, would leave the range of float64 or lose digits at its lower end.
MAX_SIZE = 1e70


def require_squares(moments: Moments, i: int, role: str, dtype: np.dtype[Any]) -> Moments:
    """The moments of the rows of a role on split `i`, if they are finite and their columns can be squared."""
    if not np.isfinite(moments.scatter).all() or not moments.weight > 0:
        raise Unsupported(f"the {role} rows of split {i} have no finite moments (NaN, infinity or no weight)")
    sizes = np.maximum(np.sqrt(np.diagonal(moments.scatter) / moments.weight), np.abs(moments.mean))
    # scikit-learn squares and sums in the dtype of X.
    limit = min(MAX_SIZE, float(np.sqrt(1e-3 * np.finfo(dtype if dtype.kind == "f" else np.float64).max)))
    low, high = 1.0 / limit, limit / np.sqrt(moments.rows)
    if ((sizes > high) | ((sizes < low) & (sizes > 0.0))).any() or not low <= moments.weight <= limit:
        raise Unsupported(f"the {role} rows of split {i} are too large or too small to be squared")
    return moments
