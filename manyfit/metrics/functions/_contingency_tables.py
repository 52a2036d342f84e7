"""Pair confusion matrices and homogeneity measures of clusterings on a device."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import (
    completeness_score,
    homogeneity_completeness_v_measure,
    homogeneity_score,
    v_measure_score,
)
from sklearn.metrics.cluster import pair_confusion_matrix

from manyfit.arrays import array_namespace, to_device_of, to_host
from manyfit.metrics.functions._representative_rows import (
    N_FACTS,
    make_rows,
    raise_sklearn_error,
    value_facts,
)
from manyfit.metrics.functions._structured_results import StructuredMetric
from manyfit.metrics.kernels._kernel import Targets, make_targets
from manyfit.metrics.kernels.labels._clustering_agreement import AGREEMENT_METRICS, count_pairs
from manyfit.metrics.kernels.labels._counts import contingency

Array = Any


def _clustering(
    function: Callable[..., Any], labels: Any, clusters: Array, options: dict[str, Any]
) -> tuple[Targets, Array]:
    """Codes of labels and of clusters, which are unrelated."""
    if labels.ndim != 1 or clusters.ndim != 1:
        raise_sklearn_error(function, {"labels_true": labels, "labels_pred": clusters}, options)
    if isinstance(labels, np.ndarray) and labels.dtype.kind not in "biuf":
        labels = np.unique(labels, return_inverse=True)[1]
    sides = (to_device_of(labels, clusters), clusters)
    known = to_host(array_namespace(clusters).stack([value_facts(side) for side in sides])).reshape(
        -1, N_FACTS
    )
    if not known[:, -1].all():
        # scikit-learn refuses infinity and NaN, and warns about fractions.
        n_rows = min(clusters.shape[0], 4)
        function(
            *(make_rows(facts, side, n_rows) for facts, side in zip(known.tolist(), sides, strict=True)),
            **options,
        )
    return make_targets("labels", sides[0], clusters[None, ...])


def _pair_confusion(function: Callable[..., Any], labels: Any, clusters: Array, _: None) -> Array:
    targets, P = _clustering(function, labels, clusters, {})
    xp, pairs = array_namespace(P), count_pairs(contingency(targets, P))
    cells = xp.stack([pairs.neither[0], pairs.clusters_only[0], pairs.labels_only[0], pairs.both[0]])
    return xp.astype(xp.round(xp.reshape(cells, (2, 2))), xp.int64)


def _measures(
    function: Callable[..., Any], labels: Any, clusters: Array, _: None, *, beta: float
) -> tuple[Array, ...]:
    targets, P = _clustering(function, labels, clusters, {"beta": beta})
    kernels = (AGREEMENT_METRICS[score] for score in (homogeneity_score, completeness_score, v_measure_score))
    beyond: tuple[dict[str, Any], ...] = ({}, {}, {"beta": beta})
    return tuple(many.kernel(targets, P, **own)[0, ...] for many, own in zip(kernels, beyond, strict=True))


CLUSTER_TABLES: dict[Callable[..., Any], StructuredMetric] = {
    pair_confusion_matrix: StructuredMetric(_pair_confusion, "a few facts of each array, and the labels"),
    homogeneity_completeness_v_measure: StructuredMetric(
        _measures, "a few facts of each array, and the labels"
    ),
}
