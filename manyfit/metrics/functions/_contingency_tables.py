"""Results of clusterings that are not one score, of labels on a device."""

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
from manyfit.metrics.functions._representative_rows import N_FACTS, drawn, facts, refuse_as_scikit_learn
from manyfit.metrics.functions._structured_results import Whole
from manyfit.metrics.kernels._kernel import Targets, as_targets
from manyfit.metrics.kernels.labels._clustering_agreement import CLUSTER_METRICS, pairs
from manyfit.metrics.kernels.labels._counts import contingency

Array = Any


def _clustering(
    function: Callable[..., Any], labels: Any, clusters: Array, options: dict[str, Any]
) -> tuple[Targets, Array]:
    """Codes of labels and of clusters, which have nothing to do with each other."""
    if labels.ndim != 1 or clusters.ndim != 1:
        refuse_as_scikit_learn(function, {"labels_true": labels, "labels_pred": clusters}, options)
    if isinstance(labels, np.ndarray) and labels.dtype.kind not in "biuf":
        labels = np.unique(labels, return_inverse=True)[1]
    sides = (to_device_of(labels, clusters), clusters)
    known = to_host(array_namespace(clusters).stack([facts(side) for side in sides])).reshape(-1, N_FACTS)
    if not known[:, -1].all():
        # It refuses what is not finite, and warns of fractions.
        n_rows = min(clusters.shape[0], 4)
        function(
            *(drawn(of, side, n_rows) for of, side in zip(known.tolist(), sides, strict=True)), **options
        )
    return as_targets("labels", sides[0], clusters[None, ...])


def _pair_confusion(function: Callable[..., Any], labels: Any, clusters: Array, _: None) -> Array:
    targets, P = _clustering(function, labels, clusters, {})
    xp, of = array_namespace(P), pairs(contingency(targets, P))
    cells = xp.stack([of.neither[0], of.clusters_only[0], of.labels_only[0], of.both[0]])
    return xp.astype(xp.round(xp.reshape(cells, (2, 2))), xp.int64)


def _measures(
    function: Callable[..., Any], labels: Any, clusters: Array, _: None, *, beta: float
) -> tuple[Array, ...]:
    targets, P = _clustering(function, labels, clusters, {"beta": beta})
    kernels = (CLUSTER_METRICS[score] for score in (homogeneity_score, completeness_score, v_measure_score))
    beyond: tuple[dict[str, Any], ...] = ({}, {}, {"beta": beta})
    return tuple(many.kernel(targets, P, **own)[0, ...] for many, own in zip(kernels, beyond, strict=True))


CLUSTER_TABLES: dict[Callable[..., Any], Whole] = {
    pair_confusion_matrix: Whole(_pair_confusion, "a few facts of each array, and the labels"),
    homogeneity_completeness_v_measure: Whole(_measures, "a few facts of each array, and the labels"),
}
