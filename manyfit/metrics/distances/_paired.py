"""Distances of row i of one array to row i of another, on a device."""

from collections.abc import Callable
from typing import Any

import sklearn.metrics.pairwise as theirs

from manyfit.arrays import array_namespace
from manyfit.folds import Unsupported
from manyfit.metrics._deferred_checks import as_pair, raise_if_any
from manyfit.metrics.distances._sklearn_measures import normalize_rows
from manyfit.metrics.distances._tiles import memory_budget

Array = Any


def _euclidean(xp: Any, x: Array, y: Array) -> Array:
    between = x - y
    between *= between
    return xp.sqrt(xp.sum(between, axis=1))


def _manhattan(xp: Any, x: Array, y: Array) -> Array:
    return xp.sum(xp.abs(x - y), axis=1)


def _cosine(xp: Any, x: Array, y: Array) -> Array:
    between = normalize_rows(xp, x) - normalize_rows(xp, y)
    between *= between
    return 0.5 * xp.sum(between, axis=1)


# By scikit-learn's function.
PAIRED_MEASURES: dict[Callable[..., Any], Callable[..., Array]] = {
    theirs.paired_cosine_distances: _cosine,
    theirs.paired_euclidean_distances: _euclidean,
    theirs.paired_manhattan_distances: _manhattan,
}


def _paired(like: Array, X: Any, Y: Any, between: Callable[..., Array]) -> Array:
    x, y, checks = as_pair(X, Y, like, paired=True)
    raise_if_any(checks)
    xp, n = array_namespace(x), x.shape[0]
    step = max(1, memory_budget(x) // (24 * x.shape[1]))
    blocks = [slice(i, min(i + step, n)) for i in range(0, n, step)]
    parts = [between(xp, x[rows, :], y[rows, :]) for rows in blocks]
    return parts[0] if len(parts) == 1 else xp.concat(parts)


def device_paired_distances(
    like: Array, X: Any, Y: Any, *, metric: Any = "euclidean", **unused: Any
) -> Array:
    """See `sklearn.metrics.pairwise.paired_distances`."""
    if not isinstance(metric, str):
        raise Unsupported("a metric that is called for each pair")
    return _paired(like, X, Y, PAIRED_MEASURES[theirs.PAIRED_DISTANCES[metric]])


def _paired_function(between: Callable[..., Array]) -> Callable[..., Array]:
    return lambda like, X, Y: _paired(like, X, Y, between)


PAIRED_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    theirs.paired_distances: device_paired_distances,
    **{function: _paired_function(between) for function, between in PAIRED_MEASURES.items()},
}
