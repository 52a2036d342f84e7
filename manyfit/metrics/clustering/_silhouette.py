"""Silhouettes of many clusterings of one X: each distance is computed once for all settings."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import sklearn.metrics
from sklearn.utils import check_random_state

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of
from manyfit.metrics._deferred_checks import (
    DeferredCheck,
    as_device_array,
    as_floats,
    finiteness_checks,
    raise_data_not_finite,
)
from manyfit.metrics.clustering._labels import Clusterings, check_labels, encode_clusterings
from manyfit.metrics.distances._functions import distance_measure, precomputed_distances
from manyfit.metrics.distances._tiles import Measure, memory_budget, pair_matrix, slices
from manyfit.metrics.kernels._kernel import is_floating

Array = Any


def silhouettes(
    like: Array,
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    one_setting: bool = True,
    max_bytes: int | None = None,
    **options: Any,
) -> Array:
    """Silhouettes, (m, n), in the dtype of X and on the device of `like`, of labels of m settings, (m, n).

    X is (n, d), or distances (n, n) if `metric` is "precomputed". With `one_setting`, scikit-learn's error is
    raised if a setting has no score; else its scores are NaN.
    """
    rows = as_device_array(X, like)
    labels = check_labels(rows, labels)
    if metric == "precomputed":
        rows, checks = _check_distances(rows)
        measure = None
    else:
        floats = is_floating(rows)
        rows = as_floats(rows)[0]
        checks = finiteness_checks(rows, raise_data_not_finite) if floats else []
        measure = distance_measure(metric, rows, same=True, options=options)
    found = encode_clusterings(labels, rows, checks, one_setting=one_setting)
    with np.errstate(all="ignore"):
        scores = _silhouettes(measure, rows, found, memory_budget(rows, max_bytes))
    return found.or_nan(array_namespace(rows).astype(scores, rows.dtype, copy=False))


def silhouette_scores(
    like: Array,
    X: Any,
    labels: Any,
    *,
    sample_size: int | None = None,
    random_state: Any = None,
    **options: Any,
) -> Array:
    """Mean silhouettes, (m,); all settings share the sample of `sample_size` rows. See `silhouettes`."""
    if sample_size is not None:
        rows = as_device_array(X, like)
        labels = check_labels(rows, labels)
        chosen = check_random_state(random_state).permutation(rows.shape[0])[:sample_size]
        X = _take(rows, chosen, 0)
        if options.get("metric") == "precomputed":
            X = _take(X, chosen, 1)
        labels = _take(labels, chosen, 1)
    scores = silhouettes(like, X, labels, **options)
    return array_namespace(scores).mean(scores, axis=1)


def _take(array: Array, chosen: Any, axis: int) -> Array:
    return array_namespace(array).take(array, to_device_of(chosen, array), axis=axis)


def _check_distances(rows: Array) -> tuple[Array, list[DeferredCheck]]:
    """Precomputed distances as scikit-learn checks them."""
    xp = array_namespace(rows)
    # Whole numbers have no rounding.
    most = 100 * float(xp.finfo(rows.dtype).eps) if is_floating(rows) else 0.0
    rows, checks = precomputed_distances(rows, None, rows)
    off = xp.any(xp.abs(xp.linalg.diagonal(rows)) > most)
    refuse = partial(sklearn.metrics.silhouette_samples, np.ones((2, 2)), [0, 1], metric="precomputed")
    return rows, [*checks[:-1], (off, refuse), checks[-1]]


def _groups(found: Clusterings, max_bytes: int) -> list[tuple[slice, slice]]:
    """Settings and clusters whose indicators fit: some settings with all clusters, or one with some."""
    (m, n), K = found.codes.shape, found.n_clusters
    columns = max(1, max_bytes // (9 * max(n, 1)))
    return list(product(slices(m, columns // K), slices(K, columns)))


def _silhouettes(measure: Measure | None, X: Array, found: Clusterings, max_bytes: int) -> Array:
    """Silhouettes of shape (m, n)."""
    xp, n = array_namespace(X), X.shape[0]
    groups = _groups(found, max_bytes // 4)
    # With one group, the usual case, indicators are made once.
    members = _members(found, groups[0], n, X) if len(groups) == 1 else None
    blocks = []
    columns = max((a.stop - a.start) * (b.stop - b.start) for a, b in groups)
    # For each row of a block: its distances, and some four numbers for each cluster of a group.
    for at in slices(n, max_bytes // (32 * max(n, 4 * columns))):
        if measure is None:
            block = xp.astype(X[at, :], float_dtype(X), copy=False)
        else:
            block = pair_matrix(
                measure, X, X, same=True, dtype=float_dtype(X), rows=at, max_bytes=max_bytes // 4
            )
        parts: dict[int, list[Any]] = {}
        for group in groups:
            inside = _members(found, group, n, X) if members is None else members
            shape = (-1, *(part.stop - part.start for part in group))
            sums, sizes = (xp.reshape(one, shape) for one in (block @ inside, xp.sum(inside, axis=0)))
            parts.setdefault(group[0].start, []).append(_near(found, group, at, sums, sizes))
        blocks.append(xp.concat([_silhouette(xp, several) for several in parts.values()], axis=1))
    return xp.matrix_transpose(xp.concat(blocks, axis=0))


def _members(found: Clusterings, group: tuple[slice, slice], n: int, X: Array) -> Array:
    """Indicators of the rows' clusters, (n, settings * clusters)."""
    xp = array_namespace(X)
    inside = xp.astype(found.in_setting(*group, slice(0, n)), float_dtype(X))
    return xp.matrix_transpose(xp.reshape(inside, (-1, n)))


def _near(
    found: Clusterings, group: tuple[slice, slice], at: slice, sums: Array, sizes: Array
) -> tuple[Array, Array, Array]:
    """For each row, (b, c): sum of distances within its cluster, its size, least mean to another cluster."""
    xp = array_namespace(sums)
    own = xp.permute_dims(found.in_setting(*group, at), (2, 0, 1))
    nothing = xp.zeros_like(sums)
    far = xp.full((), float("inf"), dtype=sums.dtype, device=device(sums))
    others = xp.where(own | (sizes == 0), far, sums / xp.where(sizes == 0, xp.ones_like(sizes), sizes))
    within = xp.sum(xp.where(own, sums, nothing), axis=2)
    return within, xp.sum(xp.where(own, sizes, nothing), axis=2), xp.min(others, axis=2)


def _silhouette(xp: Any, several: list[tuple[Array, Array, Array]]) -> Array:
    """Silhouettes, (b, c); 0 for the only row of a cluster."""
    within, size, nearest = several[0]
    for more_within, more_size, other in several[1:]:
        within, size, nearest = within + more_within, size + more_size, xp.minimum(nearest, other)
    a = within / (size - 1)
    score = (nearest - a) / xp.maximum(a, nearest)
    return xp.where(xp.isnan(score) | (size == 1), xp.zeros_like(score), score)
