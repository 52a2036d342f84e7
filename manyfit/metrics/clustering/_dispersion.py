"""Calinski-Harabasz and Davies-Bouldin scores of many clusterings of one X.

The mean of a cluster is kept as two numbers: the mean of a first pass, and the mean of the differences from
it. One number would lose the digits that count if the data lie far from the origin.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, clip, device, float_dtype
from manyfit.metrics._deferred_checks import (
    as_device_array,
    finiteness_checks,
    raise_data_not_finite,
)
from manyfit.metrics.clustering._labels import Clusterings, check_labels, encode_clusterings
from manyfit.metrics.distances._tiles import memory_budget, slices
from manyfit.metrics.kernels._kernel import is_floating

Array = Any

# Spread and distances that scikit-learn's Davies-Bouldin score takes for 0.
NOTHING = 1e-8


@dataclass(frozen=True)
class _Spread:
    """The rows of X by cluster for c of the settings.

    `sizes`, (c, K), counts the rows of each cluster, 1 where it has none; `present` says whether it has some.
    The means are ``about + off``, both (c, K, d). `max_bytes` limits the memory of a block of rows.
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
        """Differences of the means of clusters, (c, some, others, d)."""
        values = self.about[:, some, None, :] - self.about[:, None, others, :]
        values += self.off[:, some, None, :]
        values -= self.off[:, None, others, :]
        return values

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """For b rows at a time: indicators, (c, K, b), and differences from cluster means, (c, b, d)."""
        xp, (n, d), K = array_namespace(self.X), self.X.shape, self.found.n_clusters
        c = self.settings.stop - self.settings.start
        for at in slices(n, self.max_bytes // (8 * c * (4 * d + 2 * K))):
            inside = self.found.in_setting(self.settings, slice(0, K), at)
            rows = xp.astype(self.X[at, :], float_dtype(self.X), copy=False)[None, :, :]
            if self.about is None:
                rows = xp.broadcast_to(rows, (c, *rows.shape[1:]))
            else:
                # A setting without a score may have more clusters than K.
                codes = clip(xp, self.found.codes[self.settings, at], high=K - 1)
                first = xp.arange(c, dtype=codes.dtype, device=device(codes)) * K
                places = xp.reshape(codes + first[:, None], (-1,))
                rows = rows - _take_rows(self.about, places)
                if self.off is not None:
                    rows -= _take_rows(self.off, places)
            yield xp.astype(inside, rows.dtype), rows

    def sums(self, row_values: Callable[[Array], Array]) -> Array:
        """Sums over the rows of each cluster of ``of_rows``, which maps (c, b, d) to (c, b, q)."""
        total: Any = None
        for inside, rows in self.blocks():
            part = inside @ row_values(rows)
            total = part if total is None else total + part
        return total


def _take_rows(points: Array, places: Array) -> Array:
    """From points, (c, K, d), those at c * b places: (c, b, d)."""
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


def _calinski_harabasz(spread: _Spread) -> Array:
    xp, n = array_namespace(spread.X), spread.X.shape[0]
    within = xp.sum(spread.sums(lambda rows: xp.sum(rows * rows, axis=2, keepdims=True)), axis=(1, 2))
    share = xp.astype(spread.present, spread.sizes.dtype) * spread.sizes / n
    # All means, and then their mean, relative to the first cluster.
    means = spread.apart(slice(None), slice(0, 1))[:, :, 0, :]
    means -= xp.sum(share[:, :, None] * means, axis=1, keepdims=True)
    between = n * xp.sum(share * xp.sum(means * means, axis=2), axis=1)
    K = xp.sum(xp.astype(spread.present, spread.sizes.dtype), axis=1)
    same = within == 0
    scores = between * (n - K) / (xp.where(same, xp.ones_like(within), within) * (K - 1.0))
    return xp.where(same, xp.ones_like(scores), scores)


def _davies_bouldin(spread: _Spread) -> Array:
    xp, (c, K, d) = array_namespace(spread.X), spread.about.shape
    row_values = spread.sums(lambda rows: xp.sqrt(xp.sum(rows * rows, axis=2, keepdims=True)))
    scatter = row_values[:, :, 0] / spread.sizes
    infinite = xp.full((), float("inf"), dtype=scatter.dtype, device=device(scatter))
    worst, farthest = [], xp.zeros((c,), dtype=scatter.dtype, device=device(scatter))
    for some in slices(K, spread.max_bytes // (16 * c * K * d)):
        between = spread.apart(some, slice(None))
        between *= between
        apart = xp.sqrt(xp.sum(between, axis=3))
        both = spread.present[:, some, None] & spread.present[:, None, :]
        farthest = xp.maximum(farthest, xp.max(xp.where(both, apart, xp.zeros_like(apart)), axis=(1, 2)))
        alike = (scatter[:, some, None] + scatter[:, None, :]) / xp.where(apart == 0, infinite, apart)
        worst.append(xp.max(xp.where(both, alike, xp.zeros_like(alike)), axis=2))
    present = xp.astype(spread.present, scatter.dtype)
    scores = xp.sum(xp.concat(worst, axis=1) * present, axis=1) / xp.sum(present, axis=1)
    nothing = (xp.max(scatter * present, axis=1) <= NOTHING) | (farthest <= NOTHING)
    return xp.where(nothing, xp.zeros_like(scores), scores)


def _scores(kernel: Callable[[_Spread], Array]) -> Callable[..., Array]:
    def score_settings(
        like: Array, X: Any, labels: Any, *, one_setting: bool = True, max_bytes: int | None = None
    ) -> Array:
        """Scores of shape (m,), in the widest floating dtype; see `silhouettes`."""
        rows = as_device_array(X, like)
        labels = check_labels(rows, labels)
        xp, floats = array_namespace(rows), is_floating(rows)
        found = encode_clusterings(
            labels,
            rows,
            finiteness_checks(rows, raise_data_not_finite) if floats else [],
            one_setting=one_setting,
        )
        if not floats:
            rows = xp.astype(rows, float_dtype(rows))
        max_bytes, m = memory_budget(rows, max_bytes), labels.shape[0]
        some = slices(m, max_bytes // (32 * found.n_clusters * rows.shape[1]))
        with np.errstate(all="ignore"):
            scores = [kernel(_spread(rows, found, settings, max_bytes // 2)) for settings in some]
        return found.or_nan(scores[0] if len(scores) == 1 else xp.concat(scores))

    return score_settings


calinski_harabasz = _scores(_calinski_harabasz)
davies_bouldin = _scores(_davies_bouldin)
