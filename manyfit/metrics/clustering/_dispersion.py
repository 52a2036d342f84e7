"""Scores of the spread of many clusterings of one X within clusters and between them.

Means of clusters are had in two passes and kept as two numbers, the mean of the first pass and that of what
rows lie off it: far from the origin one number would lose the digits that count.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, clip, device, float_dtype
from manyfit.metrics._deferred_checks import brought, is_floating, not_finite, refuse_nan_of_data
from manyfit.metrics.clustering._labels import Clusterings, checked_labels, clusterings, wide
from manyfit.metrics.distances._tiles import budget

Array = Any

# Spread and distances that are nothing to scikit-learn's Davies-Bouldin score.
NOTHING = 1e-8


@dataclass(frozen=True)
class _Spread:
    """Some settings of clusterings, and their rows, a block at a time.

    Attributes
    ----------
    X : array of shape (n, d)
        The rows.
    found : Clusterings
        Of all settings.
    settings : slice
        Those that are looked at, c of them.
    max_bytes : int
        Of memory.
    sizes : array of shape (c, K)
        Rows of each cluster, 1 where there are none.
    present : array of bool of shape (c, K)
        Whether there are some.
    about : array of shape (c, K, d)
        Points near the means of the clusters.
    off : array of shape (c, K, d)
        How far the means are from there.
    """

    X: Array
    found: Clusterings
    settings: slice
    max_bytes: int
    sizes: Array = None
    present: Array = None
    about: Array = None
    off: Array = None

    def apart(self, some: slice, others: slice) -> Array:
        """Differences of the means of clusters, of shape (c, some, others, d)."""
        values = self.about[:, some, None, :] - self.about[:, None, others, :]
        values += self.off[:, some, None, :]
        values -= self.off[:, None, others, :]
        return values

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Indicators, (c, K, b), and how far rows are from the means of their clusters, (c, b, d)."""
        xp, (n, d), K = array_namespace(self.X), self.X.shape, self.found.n_clusters
        c = self.settings.stop - self.settings.start
        step = max(1, self.max_bytes // (8 * c * (4 * d + 2 * K)))
        for i in range(0, n, step):
            at = slice(i, min(i + step, n))
            inside = self.found.in_setting(self.settings, slice(0, K), at)
            rows = wide(self.X[at, :])[None, :, :]
            if self.about is None:
                rows = xp.broadcast_to(rows, (c, *rows.shape[1:]))
            else:
                # A setting without a score may have more clusters than are looked at.
                codes = clip(xp, self.found.codes[self.settings, at], high=K - 1)
                first = xp.arange(c, dtype=codes.dtype, device=device(codes)) * K
                places = xp.reshape(codes + first[:, None], (-1,))
                rows = rows - _taken(self.about, places)
                if self.off is not None:
                    rows -= _taken(self.off, places)
            yield xp.astype(inside, rows.dtype), rows

    def sums(self, of_rows: Callable[[Array], Array]) -> Array:
        """Sums over the rows of each cluster of what ``of_rows`` makes of (c, b, d), (c, b, q)."""
        total: Any = None
        for inside, rows in self.blocks():
            part = inside @ of_rows(rows)
            total = part if total is None else total + part
        return total


def _taken(points: Array, places: Array) -> Array:
    """Of points of shape (c, K, d) those at c b places, of shape (c, b, d)."""
    xp, (c, _, d) = array_namespace(points), points.shape
    return xp.reshape(xp.take(xp.reshape(points, (-1, d)), places, axis=0), (c, -1, d))


def _spread(X: Array, found: Clusterings, settings: slice, max_bytes: int) -> _Spread:
    xp = array_namespace(X)
    plain = _Spread(X, found, settings, max_bytes)
    counts = plain.sums(lambda rows: xp.ones_like(rows[:, :, :1]))[:, :, 0]
    present = counts > 0
    sizes = xp.where(present, counts, xp.ones_like(counts))
    plain = replace(plain, sizes=sizes, present=present)
    near = replace(plain, about=plain.sums(lambda rows: rows) / sizes[:, :, None])
    return replace(near, off=near.sums(lambda rows: rows) / sizes[:, :, None])


def _calinski_harabasz(of: _Spread) -> Array:
    xp, n = array_namespace(of.X), of.X.shape[0]
    within = xp.sum(of.sums(lambda rows: xp.sum(rows * rows, axis=2, keepdims=True)), axis=(1, 2))
    share = xp.astype(of.present, of.sizes.dtype) * of.sizes / n
    # From the first cluster, all means and theirs.
    means = of.apart(slice(None), slice(0, 1))[:, :, 0, :]
    means -= xp.sum(share[:, :, None] * means, axis=1, keepdims=True)
    between = n * xp.sum(share * xp.sum(means * means, axis=2), axis=1)
    K = xp.sum(xp.astype(of.present, of.sizes.dtype), axis=1)
    same = within == 0
    scores = between * (n - K) / (xp.where(same, xp.ones_like(within), within) * (K - 1.0))
    return xp.where(same, xp.ones_like(scores), scores)


def _davies_bouldin(of: _Spread) -> Array:
    xp, (c, K, d) = array_namespace(of.X), of.about.shape
    of_rows = of.sums(lambda rows: xp.sqrt(xp.sum(rows * rows, axis=2, keepdims=True)))
    spread = of_rows[:, :, 0] / of.sizes
    infinite = xp.full((), float("inf"), dtype=spread.dtype, device=device(spread))
    worst, farthest = [], xp.zeros((c,), dtype=spread.dtype, device=device(spread))
    step = max(1, of.max_bytes // (16 * c * K * d))
    for i in range(0, K, step):
        some = slice(i, min(i + step, K))
        between = of.apart(some, slice(None))
        between *= between
        apart = xp.sqrt(xp.sum(between, axis=3))
        both = of.present[:, some, None] & of.present[:, None, :]
        farthest = xp.maximum(farthest, xp.max(xp.where(both, apart, xp.zeros_like(apart)), axis=(1, 2)))
        alike = (spread[:, some, None] + spread[:, None, :]) / xp.where(apart == 0, infinite, apart)
        worst.append(xp.max(xp.where(both, alike, xp.zeros_like(alike)), axis=2))
    present = xp.astype(of.present, spread.dtype)
    scores = xp.sum(xp.concat(worst, axis=1) * present, axis=1) / xp.sum(present, axis=1)
    nothing = (xp.max(spread * present, axis=1) <= NOTHING) | (farthest <= NOTHING)
    return xp.where(nothing, xp.zeros_like(scores), scores)


def _scores(kernel: Callable[[_Spread], Array]) -> Callable[..., Array]:
    def of_settings(
        there: Array, X: Any, labels: Any, *, alone: bool = True, max_bytes: int | None = None
    ) -> Array:
        """Scores of shape (m,), in the widest floating dtype. See `silhouettes`."""
        rows = brought(X, there)
        labels = checked_labels(rows, labels)
        xp, floats = array_namespace(rows), is_floating(rows)
        found = clusterings(labels, rows, not_finite(rows, refuse_nan_of_data) if floats else [], alone=alone)
        if not floats:
            rows = xp.astype(rows, float_dtype(rows))
        max_bytes, m = budget(rows, max_bytes), labels.shape[0]
        c = max(1, max_bytes // (32 * found.n_clusters * rows.shape[1]))
        with np.errstate(all="ignore"):
            scores = [
                kernel(_spread(rows, found, slice(i, min(i + c, m)), max_bytes // 2)) for i in range(0, m, c)
            ]
        return found.or_nan(scores[0] if len(scores) == 1 else xp.concat(scores))

    return of_settings


calinski_harabasz = _scores(_calinski_harabasz)
davies_bouldin = _scores(_davies_bouldin)
