"""Silhouettes of many clusterings of one X: each distance is computed once for all settings."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import sklearn.metrics
from sklearn.utils import check_random_state

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of
from manyfit.metrics._deferred_checks import (
    Doubt,
    as_floats,
    brought,
    is_floating,
    not_finite,
    refuse_nan_of_data,
)
from manyfit.metrics.clustering._labels import Clusterings, checked_labels, clusterings
from manyfit.metrics.distances._functions import distance, given_distances
from manyfit.metrics.distances._tiles import Measure, budget, matrix

Array = Any


def silhouettes(
    there: Array,
    X: Any,
    labels: Any,
    *,
    metric: Any = "euclidean",
    alone: bool = True,
    max_bytes: int | None = None,
    **options: Any,
) -> Array:
    """Silhouettes of the rows, of shape (m, n), in the dtype of X.

    Parameters
    ----------
    there : array
        Lies where they are computed.
    X : array-like of shape (n, d)
        The rows; or their distances, (n, n).
    labels : array-like of shape (m, n)
        Of m settings.
    metric : str
        A metric of `pairwise_distances`.
    alone : bool
        Whether scikit-learn's error is raised where there is no score of a setting; else it is NaN.
    max_bytes : int, optional
        Of memory beside X, labels and result.
    **options : dict
        Of the metric.
    """
    rows = brought(X, there)
    labels = checked_labels(rows, labels)
    if metric == "precomputed":
        rows, doubts = _given(rows)
        measure = None
    else:
        floats = is_floating(rows)
        rows = as_floats(rows)[0]
        doubts = not_finite(rows, refuse_nan_of_data) if floats else []
        measure = distance(metric, rows, same=True, options=options)
    found = clusterings(labels, rows, doubts, alone=alone)
    with np.errstate(all="ignore"):
        scores = _of_rows(measure, rows, found, budget(rows, max_bytes))
    return found.or_nan(array_namespace(rows).astype(scores, rows.dtype, copy=False))


def silhouette_scores(
    there: Array,
    X: Any,
    labels: Any,
    *,
    sample_size: int | None = None,
    random_state: Any = None,
    **options: Any,
) -> Array:
    """Mean silhouettes, of shape (m,); of a sample, that of all settings is the same. See `silhouettes`."""
    if sample_size is not None:
        rows = brought(X, there)
        labels = checked_labels(rows, labels)
        chosen = check_random_state(random_state).permutation(rows.shape[0])[:sample_size]
        X = _taken(rows, chosen, 0)
        if options.get("metric") == "precomputed":
            X = _taken(X, chosen, 1)
        labels = _taken(labels, chosen, 1)
    scores = silhouettes(there, X, labels, **options)
    return array_namespace(scores).mean(scores, axis=1)


def _taken(array: Array, chosen: Any, axis: int) -> Array:
    return array_namespace(array).take(array, to_device_of(chosen, array), axis=axis)


def _given(rows: Array) -> tuple[Array, list[Doubt]]:
    """Distances that were computed before, as scikit-learn takes them."""
    xp = array_namespace(rows)
    # Not rounding of whole numbers.
    most = 100 * float(xp.finfo(rows.dtype).eps) if is_floating(rows) else 0.0
    rows, doubts = given_distances(rows, None, rows)
    off = xp.any(xp.abs(xp.linalg.diagonal(rows)) > most)
    return rows, [*doubts[:-1], (off, _refuse_diagonal), doubts[-1]]


def _refuse_diagonal() -> None:
    sklearn.metrics.silhouette_samples(np.ones((2, 2)), [0, 1], metric="precomputed")


def _groups(found: Clusterings, max_bytes: int) -> list[tuple[slice, slice]]:
    """Settings and clusters whose indicators fit, of some settings all clusters or of one some."""
    (m, n), K = found.codes.shape, found.n_clusters
    columns = max(1, max_bytes // (9 * max(n, 1)))
    c, k = max(1, columns // K), min(K, columns)
    return [
        (slice(i, min(i + c, m)), slice(j, min(j + k, K))) for i in range(0, m, c) for j in range(0, K, k)
    ]


def _of_rows(measure: Measure | None, X: Array, found: Clusterings, max_bytes: int) -> Array:
    """Silhouettes of shape (m, n)."""
    xp, n = array_namespace(X), X.shape[0]
    groups = _groups(found, max_bytes // 4)
    # Of one group, which is the rule, indicators are made once.
    members = _members(found, groups[0], n, X) if len(groups) == 1 else None
    blocks = []
    columns = max((a.stop - a.start) * (b.stop - b.start) for a, b in groups)
    # A row of a block is its distances, and some four numbers for each cluster of a group.
    for at in _row_blocks(n, max_bytes // (32 * max(n, 4 * columns))):
        if measure is None:
            of_block = xp.astype(X[at, :], float_dtype(X), copy=False)
        else:
            of_block = matrix(
                measure, X, X, same=True, dtype=float_dtype(X), rows=at, max_bytes=max_bytes // 4
            )
        parts: dict[int, list[Any]] = {}
        for group in groups:
            inside = _members(found, group, n, X) if members is None else members
            sums, sizes = (
                _reshaped(of_block @ inside, group),
                _reshaped(xp.sum(inside, axis=0)[None, :], group),
            )
            parts.setdefault(group[0].start, []).append(_near(found, group, at, sums, sizes))
        blocks.append(xp.concat([_silhouette(xp, several) for several in parts.values()], axis=1))
    return xp.matrix_transpose(xp.concat(blocks, axis=0))


def _row_blocks(n: int, step: int) -> Iterator[slice]:
    for i in range(0, n, max(1, step)):
        yield slice(i, min(i + max(1, step), n))


def _members(found: Clusterings, group: tuple[slice, slice], n: int, X: Array) -> Array:
    """1 where a row is in a cluster of a setting, of shape (n, settings times clusters)."""
    xp = array_namespace(X)
    inside = xp.astype(found.in_setting(*group, slice(0, n)), float_dtype(X))
    return xp.matrix_transpose(xp.reshape(inside, (-1, n)))


def _reshaped(columns: Array, group: tuple[slice, slice]) -> Array:
    c, k = (part.stop - part.start for part in group)
    return array_namespace(columns).reshape(columns, (columns.shape[0], c, k))


def _near(
    found: Clusterings, group: tuple[slice, slice], at: slice, sums: Array, sizes: Array
) -> tuple[Array, Array, Array]:
    """Sum of distances within the own cluster, its size, and the least mean to another one, each (b, c)."""
    xp = array_namespace(sums)
    own = xp.permute_dims(found.in_setting(*group, at), (2, 0, 1))
    nothing = xp.zeros_like(sums)
    far = xp.full((), float("inf"), dtype=sums.dtype, device=device(sums))
    others = xp.where(own | (sizes == 0), far, sums / xp.where(sizes == 0, xp.ones_like(sizes), sizes))
    within = xp.sum(xp.where(own, sums, nothing), axis=2)
    return within, xp.sum(xp.where(own, sizes, nothing), axis=2), xp.min(others, axis=2)


def _silhouette(xp: Any, several: list[tuple[Array, Array, Array]]) -> Array:
    """Silhouettes of shape (b, c), 0 of a row that is alone in its cluster."""
    within, size, nearest = several[0]
    for more_within, more_size, other in several[1:]:
        within, size, nearest = within + more_within, size + more_size, xp.minimum(nearest, other)
    a = within / (size - 1)
    score = (nearest - a) / xp.maximum(a, nearest)
    return xp.where(xp.isnan(score) | (size == 1), xp.zeros_like(score), score)
