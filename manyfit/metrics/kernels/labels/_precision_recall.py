"""Precision, recall, F and Jaccard scores of many settings at once, in any namespace of the array API."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import f1_score, fbeta_score, jaccard_score, precision_score, recall_score

from manyfit.arrays import array_namespace, device, to_device_of
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import MetricKernel, Targets
from manyfit.metrics.kernels.labels._counts import (
    Counts,
    as_floating,
    counts,
    is_on,
    ratio,
    refusals,
    refuse,
    weight_of,
)

Array = Any
# Values of each label from its counts; the last argument is what 0 / 0 counts as.
Measure = Callable[[Counts, float], Array]

AVERAGES = (None, "binary", "micro", "macro", "weighted", "samples")


def precision(of: Counts, undefined: float) -> Array:
    return ratio(of.hits, of.predicted, undefined)


def recall(of: Counts, undefined: float) -> Array:
    return ratio(of.hits, of.true, undefined)


def _jaccard(of: Counts, undefined: float) -> Array:
    return ratio(of.hits, of.predicted + of.true - of.hits, undefined)


def fbeta(beta: float) -> Measure:
    if np.isposinf(beta):
        return recall
    if beta == 0:
        return precision
    square = beta**2

    def measure(of: Counts, undefined: float) -> Array:
        return ratio((1 + square) * of.hits, square * of.true + of.predicted, undefined)

    return measure


def _kernel(measure: Measure | None) -> Callable[..., Array]:
    """The kernel of a measure; None: of the F score that it is given the `beta` of."""

    def kernel(
        targets: Targets,
        P: Array,
        *,
        labels: Any,
        pos_label: Any,
        average: str | None,
        zero_division: Any,
        beta: float = 1.0,
    ) -> Array:
        if average not in AVERAGES:
            raise Unsupported(f"average={average!r}")
        chosen = fbeta(beta) if measure is None else measure
        undefined = undefined_as(zero_division)
        refused = refusals(targets, P)
        if average == "samples":
            return refuse(_by_sample(targets, P, chosen, labels, undefined), refused)
        of = counts(targets, P)
        if average == "binary":
            scores = _of_one(targets, of, chosen, pos_label, undefined)
        else:
            scores = _averaged(targets, of, chosen, labels, average, undefined)
        return refuse(scores, refused)

    return kernel


def undefined_as(zero_division: Any) -> float:
    """What 0 / 0 counts as; scikit-learn's warning of it is not given."""
    if isinstance(zero_division, str):
        if zero_division != "warn":
            raise Unsupported(f"zero_division={zero_division!r}")
        return 0.0
    return float(zero_division) if zero_division in (0, 1) else np.nan


def _of_one(targets: Targets, of: Counts, measure: Measure, pos_label: Any, undefined: float) -> Array:
    """Values of one label, of shape (m,); NaN of settings with more than two labels, or with two others."""
    if targets.codes is None:
        raise Unsupported("average='binary' of several labels for a row")
    if pos_label is None:
        raise Unsupported("average='binary' without pos_label")
    xp = array_namespace(of.hits)
    place = [_place(targets.classes, pos_label)]
    n_present = xp.sum(as_floating(of.present, of.hits), axis=1)
    one = taken(of, place)
    values = measure(one, undefined)[:, 0]
    return refuse(values, (n_present > 2) | ((n_present == 2) & ~one.present[:, 0]))


def _place(classes: Any, label: Any) -> int:
    """Position of a label; one past the last if it is no class."""
    known = np.asarray(classes).tolist()
    return known.index(label) if label in known else len(known)


def taken(of: Counts, places: list[int]) -> Counts:
    """Counts of some labels, in this order; one past the last stands for labels of no row."""
    xp = array_namespace(of.hits)
    index = to_device_of(np.asarray(places, dtype=np.int64), of.hits)

    def of_places(values: Array) -> Array:
        none = xp.zeros((values.shape[0], 1), dtype=values.dtype, device=device(values))
        return xp.take(xp.concat([values, none], axis=1), index, axis=1)

    return Counts(*(of_places(part) for part in (of.hits, of.predicted, of.true, of.present)))


def _averaged(
    targets: Targets, of: Counts, measure: Measure, labels: Any, average: str | None, undefined: float
) -> Array:
    """Averages over labels, of shape (m,), or values of all of them, of shape (m, n_labels).

    Without `labels`, scikit-learn knows of those that a setting has. In an average others count for nothing,
    and as values of their own they are NaN.
    """
    xp = array_namespace(of.hits)
    counted = of.present
    if labels is not None:
        of = taken(of, places_of(targets, of.hits.shape[1], labels))
        counted = xp.ones_like(of.present)
    if average == "micro":
        hits, predicted, true = (xp.sum(v, axis=1, keepdims=True) for v in (of.hits, of.predicted, of.true))
        return measure(Counts(hits, predicted, true, of.present), undefined)[:, 0]
    values = measure(of, undefined)
    if average is None:
        return xp.where(counted, values, xp.full_like(values, np.nan))
    return mean_over(values, of.true if average == "weighted" else None, counted)


def places_of(targets: Targets, n_labels: int, labels: Any) -> list[int]:
    """Positions of labels that are asked for, among classes or indicators."""
    asked = np.asarray(labels).tolist()
    if targets.codes is not None:
        known = {label: place for place, label in enumerate(np.asarray(targets.classes).tolist())}
        return [known.get(label, len(known)) for label in asked]
    if any(label not in range(n_labels) for label in asked):
        raise Unsupported(f"labels={labels!r} of {n_labels} indicators")
    return [int(label) for label in asked]


def mean_over(values: Array, weights: Array | None, counted: Array) -> Array:
    """Mean along the last axis of what is counted and not NaN; weights that are all zero are left out."""
    xp = array_namespace(values)
    counted = counted & ~xp.isnan(values)
    values = xp.where(counted, values, xp.zeros_like(values))
    plain = ratio(xp.sum(values, axis=1), xp.sum(as_floating(counted, values), axis=1), np.nan)
    if weights is None:
        return plain
    weights = xp.where(counted, weights, xp.zeros_like(values))
    total = xp.sum(weights, axis=1)
    return xp.where(total == 0, plain, ratio(xp.sum(values * weights, axis=1), total, np.nan))


def counts_by_sample(targets: Targets, P: Array, labels: Any) -> Counts:
    """Counts of labels in each row of indicators, of shape (m, n); a row of no weight has none.

    Raises
    ------
    Unsupported
        If there is one label for a row.
    """
    if targets.codes is not None:
        raise Unsupported("average='samples' of one label for a row")
    xp, w = array_namespace(P), weight_of(targets, P)
    true, chosen = is_on(targets.numbers), is_on(P)
    if labels is not None:
        index = to_device_of(np.asarray(places_of(targets, P.shape[2], labels), dtype=np.int64), P)
        true, chosen = xp.take(true, index, axis=1), xp.take(chosen, index, axis=2)

    def total(rows: Array) -> Array:
        sums = xp.sum(as_floating(rows, P), axis=-1)
        # A row of no weight is 0 / 0, whatever is true of it.
        return sums if w is None else sums * as_floating(w != 0, P)

    predicted = total(chosen)
    everywhere = xp.ones_like(predicted, dtype=xp.bool)
    return Counts(total(true & chosen), predicted, xp.broadcast_to(total(true), predicted.shape), everywhere)


def _by_sample(targets: Targets, P: Array, measure: Measure, labels: Any, undefined: float) -> Array:
    """Means over rows of what their indicators score."""
    of = counts_by_sample(targets, P, labels)
    return mean_over(measure(of, undefined), weight_of(targets, P), of.present)


_OPTIONS = {"labels": None, "pos_label": 1, "average": "binary", "zero_division": "warn"}

SET_METRICS: dict[Callable[..., Any], MetricKernel] = {
    f1_score: MetricKernel(_kernel(None), "labels", _OPTIONS),
    fbeta_score: MetricKernel(_kernel(None), "labels", {**_OPTIONS, "beta": 1.0}),
    jaccard_score: MetricKernel(_kernel(_jaccard), "labels", _OPTIONS),
    precision_score: MetricKernel(_kernel(precision), "labels", _OPTIONS),
    recall_score: MetricKernel(_kernel(recall), "labels", _OPTIONS),
}
