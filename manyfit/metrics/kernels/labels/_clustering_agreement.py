"""Scores of clusterings against known labels, for many settings at once, from contingency tables.

Labels and clusters are unrelated; an empty row or column of a table counts for nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    completeness_score,
    fowlkes_mallows_score,
    homogeneity_score,
    mutual_info_score,
    normalized_mutual_info_score,
    rand_score,
    v_measure_score,
)
from sklearn.metrics.cluster import expected_mutual_information

from manyfit.arrays import array_namespace, to_device_of, to_host
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import MetricKernel, Targets
from manyfit.metrics.kernels.labels._counts import (
    Table,
    as_floating,
    nan_where,
    ratio,
    refused_settings,
    score_tables,
)

Array = Any

# Values that scikit-learn takes for 0; a Python float, as the array API requires.
EPS = float(np.finfo(np.float64).eps)


def _kernel(facts: Callable[[Table], Any], score: Callable[..., Array]) -> Callable[..., Array]:
    """The kernel of a score of facts about tables."""

    def kernel(targets: Targets, P: Array, **options: Any) -> Array:
        if targets.codes is None:
            raise Unsupported("a clustering of several labels for a row")
        if targets.weight is not None:
            raise Unsupported("scikit-learn's scores of clusterings take no weights")
        scores = score_tables(lambda table: score(facts(table), **options), targets, P)
        return nan_where(scores, refused_settings(targets, P, whole=False))

    return kernel


@dataclass(frozen=True)
class _Pairs:
    """Numbers of ordered pairs of different rows by what they have in common, each (m,)."""

    both: Array
    clusters_only: Array
    labels_only: Array
    neither: Array


def count_pairs(table: Table) -> _Pairs:
    xp, cells = array_namespace(table.cells), table.cells
    n = xp.sum(cells, axis=(1, 2))
    squares = xp.sum(cells**2, axis=(1, 2))
    label_squares, cluster_squares = (xp.sum(xp.sum(cells, axis=axis) ** 2, axis=1) for axis in (2, 1))
    clusters_only, labels_only = cluster_squares - squares, label_squares - squares
    return _Pairs(squares - n, clusters_only, labels_only, n**2 - clusters_only - labels_only - squares)


def _rand(pairs: _Pairs) -> Array:
    alike = pairs.both + pairs.neither
    return ratio(alike, alike + pairs.clusters_only + pairs.labels_only, 1.0)


def _adjusted_rand(pairs: _Pairs) -> Array:
    xp = array_namespace(pairs.both)
    tp, fp, fn, tn = pairs.both, pairs.clusters_only, pairs.labels_only, pairs.neither
    scores = ratio(2 * (tp * tn - fn * fp), (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn), 1.0)
    return xp.where((fn == 0) & (fp == 0), xp.ones_like(scores), scores)


def _fowlkes_mallows(pairs: _Pairs) -> Array:
    xp, tp = array_namespace(pairs.both), pairs.both
    parts = (ratio(tp, tp + other, 0.0) for other in (pairs.clusters_only, pairs.labels_only))
    first, second = (xp.sqrt(part) for part in parts)
    return first * second


@dataclass(frozen=True)
class _Information:
    """Mutual information and entropies of labels and of clusters, and whether these are single, each (m,)."""

    cells: Array
    mutual: Array
    label_entropy: Array
    cluster_entropy: Array
    one_label: Array
    one_cluster: Array


def _information(table: Table) -> _Information:
    xp, cells = array_namespace(table.cells), table.cells
    a, b = xp.sum(cells, axis=2), xp.sum(cells, axis=1)
    n = xp.sum(a, axis=1)
    one_label, one_cluster = (xp.sum(as_floating(side > 0, cells), axis=1) == 1 for side in (a, b))
    log_n = xp.log(n)[:, None]

    def entropy(side: Array, single: Array) -> Array:
        terms = side / n[:, None] * (_log(side) - log_n)
        return xp.where(single, xp.zeros_like(n), -xp.sum(terms, axis=1))

    share = cells / n[:, None, None]
    # The logarithm of the product, as in scikit-learn: it is rounded once.
    by_chance = 2 * log_n[:, :, None] - _log(a[:, :, None] * b[:, None, :])
    terms = share * (_log(cells) - log_n[:, :, None]) + share * by_chance
    terms = xp.where(xp.abs(terms) < EPS, xp.zeros_like(terms), terms)
    mutual = xp.sum(terms, axis=(1, 2))
    mutual = xp.where((mutual < 0) | one_label | one_cluster, xp.zeros_like(mutual), mutual)
    entropies = entropy(a, one_label), entropy(b, one_cluster)
    return _Information(cells, mutual, *entropies, one_label, one_cluster)


def _log(counts: Array) -> Array:
    """Logarithms of counts, and 0 for 0."""
    xp = array_namespace(counts)
    return xp.log(xp.where(counts > 0, counts, xp.ones_like(counts)))


def _homogeneity(info: _Information) -> Array:
    return ratio(info.mutual, info.label_entropy, 1.0)


def _completeness(info: _Information) -> Array:
    return ratio(info.mutual, info.cluster_entropy, 1.0)


def _v_measure(info: _Information, *, beta: float) -> Array:
    xp, h, c = array_namespace(info.mutual), _homogeneity(info), _completeness(info)
    # Both are zero together, or one of them is and has weight.
    return xp.where(h + c == 0, xp.zeros_like(h), ratio((1 + beta) * h * c, beta * h + c, np.nan))


def _generalized_mean(info: _Information, method: str) -> Array:
    xp, a, b = array_namespace(info.mutual), info.label_entropy, info.cluster_entropy
    if method == "arithmetic":
        return (a + b) / 2
    if method == "geometric":
        return xp.sqrt(a * b)
    if method not in ("min", "max"):
        raise Unsupported(f"average_method={method!r}")
    return xp.where((a < b) == (method == "min"), a, b)


def _normalized_mutual_info(info: _Information, *, average_method: str) -> Array:
    xp = array_namespace(info.mutual)
    scores = ratio(info.mutual, _generalized_mean(info, average_method), np.nan)
    scores = xp.where(info.mutual == 0, xp.zeros_like(scores), scores)
    return xp.where(info.one_label & info.one_cluster, xp.ones_like(scores), scores)


def _adjusted_mutual_info(info: _Information, *, average_method: str) -> Array:
    """Mutual information adjusted for chance, which scikit-learn computes on the host from the tables.

    The host waits: all tables cross to it once, and a number for each goes back.
    """
    xp = array_namespace(info.mutual)
    by_chance = to_device_of(_expected(to_host(info.cells)), info.mutual)
    by_chance = xp.astype(by_chance, info.mutual.dtype)
    scores = _away_from_zero(info.mutual - by_chance) / _away_from_zero(
        _generalized_mean(info, average_method) - by_chance
    )
    scores = xp.where(info.one_label | info.one_cluster, xp.zeros_like(scores), scores)
    return xp.where(info.one_label & info.one_cluster, xp.ones_like(scores), scores)


def _away_from_zero(values: Array) -> Array:
    xp = array_namespace(values)
    eps = xp.full_like(values, EPS)
    return xp.where(values < 0, xp.minimum(values, -eps), xp.maximum(values, eps))


def _expected(cells: Any) -> Any:
    """Expected mutual information of tables (m, K, K) on the host."""
    found = []
    for table in np.rint(cells).astype(np.int64):
        # Empty rows and columns would add logarithms of 0.
        table = table[table.any(axis=1)][:, table.any(axis=0)]
        found.append(expected_mutual_information(table, int(table.sum())))
    return np.asarray(found, dtype=np.float64)


_ARITHMETIC = {"average_method": "arithmetic"}

AGREEMENT_METRICS: dict[Callable[..., Any], MetricKernel] = {
    score: MetricKernel(_kernel(facts, kernel), "labels", options)
    for score, facts, kernel, options in (
        (adjusted_mutual_info_score, _information, _adjusted_mutual_info, _ARITHMETIC),
        (adjusted_rand_score, count_pairs, _adjusted_rand, {}),
        (completeness_score, _information, _completeness, {}),
        (fowlkes_mallows_score, count_pairs, _fowlkes_mallows, {}),
        (homogeneity_score, _information, _homogeneity, {}),
        (mutual_info_score, _information, lambda info: info.mutual, {}),
        (
            normalized_mutual_info_score,
            _information,
            _normalized_mutual_info,
            {"average_method": "arithmetic"},
        ),
        (rand_score, count_pairs, _rand, {}),
        (v_measure_score, _information, _v_measure, {"beta": 1.0}),
    )
}
