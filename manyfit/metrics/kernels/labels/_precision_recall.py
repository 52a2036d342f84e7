"""Precision, recall, F and Jaccard scores of many settings at once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import f1_score, fbeta_score, jaccard_score, precision_score, recall_score

from manyfit.arrays import array_namespace, device, to_device_of
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import MetricKernel, Targets
from manyfit.metrics.kernels.labels._counts import (
    Counts,
    as_flags,
    as_floating,
    count_labels,
    float_weight,
    nan_where,
    ratio,
    refused_settings,
)

Array = Any
# Values of each label from its counts and the value of 0 / 0.
Measure = Callable[[Counts, float], Array]

AVERAGES = (None, "binary", "micro", "macro", "weighted", "samples")


def precision(counts: Counts, undefined: float) -> Array:
    return ratio(counts.hits, counts.predicted, undefined)


def recall(counts: Counts, undefined: float) -> Array:
    return ratio(counts.hits, counts.true, undefined)


def _jaccard(counts: Counts, undefined: float) -> Array:
    return ratio(counts.hits, counts.predicted + counts.true - counts.hits, undefined)


def fbeta(beta: float) -> Measure:
    if np.isposinf(beta):
        return recall
    if beta == 0:
        return precision
    square = beta**2

    def measure(counts: Counts, undefined: float) -> Array:
        return ratio((1 + square) * counts.hits, square * counts.true + counts.predicted, undefined)

    return measure


def _score(
    measure: Measure | None,
    targets: Targets,
    P: Array,
    *,
    labels: Any,
    pos_label: Any,
    average: str | None,
    zero_division: Any,
    beta: float = 1.0,
) -> Array:
    """The kernel of a measure; None is the F score, whose `beta` is an option."""
    if average not in AVERAGES:
        raise Unsupported(f"average={average!r}")
    measure = fbeta(beta) if measure is None else measure
    undefined = value_of_undefined(zero_division)
    refused = refused_settings(targets, P)
    if average == "samples":
        counts = counts_by_sample(targets, P, labels)
        scores = mean_of_counted(measure(counts, undefined), float_weight(targets, P), counts.present)
    elif average == "binary":
        scores = _one_label(targets, count_labels(targets, P), measure, pos_label, undefined)
    else:
        scores = _averaged(targets, count_labels(targets, P), measure, labels, average, undefined)
    return nan_where(scores, refused)


def value_of_undefined(zero_division: Any) -> float:
    """The value of 0 / 0; scikit-learn's warning is not given."""
    if isinstance(zero_division, str):
        if zero_division != "warn":
            raise Unsupported(f"zero_division={zero_division!r}")
        return 0.0
    return float(zero_division) if zero_division in (0, 1) else np.nan


def _one_label(targets: Targets, counts: Counts, measure: Measure, pos_label: Any, undefined: float) -> Array:
    """Values of one label, (m,); NaN for settings with more than two labels, or with two others."""
    if targets.codes is None:
        raise Unsupported("average='binary' of several labels for a row")
    if pos_label is None:
        raise Unsupported("average='binary' without pos_label")
    xp = array_namespace(counts.hits)
    place = [_place(targets.classes, pos_label)]
    n_present = xp.sum(as_floating(counts.present, counts.hits), axis=1)
    one = select_labels(counts, place)
    values = measure(one, undefined)[:, 0]
    return nan_where(values, (n_present > 2) | ((n_present == 2) & ~one.present[:, 0]))


def _place(classes: Any, label: Any) -> int:
    """Position of a label; one past the last if it is no class."""
    known = np.asarray(classes).tolist()
    return known.index(label) if label in known else len(known)


def select_labels(counts: Counts, places: list[int]) -> Counts:
    """Counts of labels at some places, in their order; one place past the last has no rows."""
    return Counts(*(take_columns(part, places) for part in counts))


def take_columns(values: Array, places: list[int]) -> Array:
    """Columns of a matrix at some places; one place past the last is empty."""
    xp = array_namespace(values)
    index = to_device_of(np.asarray(places, dtype=np.int64), values)
    none = xp.zeros((values.shape[0], 1), dtype=values.dtype, device=device(values))
    return xp.take(xp.concat([values, none], axis=1), index, axis=1)


def _averaged(
    targets: Targets, counts: Counts, measure: Measure, labels: Any, average: str | None, undefined: float
) -> Array:
    """Averages over labels, (m,), or values of all labels, (m, n_labels).

    Without `labels`, labels that a setting lacks count for nothing in an average, and are NaN as values.
    """
    xp = array_namespace(counts.hits)
    counted = counts.present
    if labels is not None:
        counts = select_labels(counts, label_places(targets, counts.hits.shape[1], labels))
        counted = xp.ones_like(counts.present)
    if average == "micro":
        hits, predicted, true = (xp.sum(part, axis=1, keepdims=True) for part in counts[:3])
        return measure(Counts(hits, predicted, true, counts.present), undefined)[:, 0]
    values = measure(counts, undefined)
    if average is None:
        return xp.where(counted, values, xp.full_like(values, np.nan))
    return mean_of_counted(values, counts.true if average == "weighted" else None, counted)


def label_places(targets: Targets, n_labels: int, labels: Any) -> list[int]:
    """Positions of the given labels among classes or indicators."""
    wanted = np.asarray(labels).tolist()
    if targets.codes is not None:
        known = {label: place for place, label in enumerate(np.asarray(targets.classes).tolist())}
        return [known.get(label, len(known)) for label in wanted]
    if any(label not in range(n_labels) for label in wanted):
        raise Unsupported(f"labels={labels!r} of {n_labels} indicators")
    return [int(label) for label in wanted]


def mean_of_counted(values: Array, weights: Array | None, counted: Array) -> Array:
    """Mean along the last axis of counted values that are not NaN; weights that are all zero are ignored."""
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
    """Counts of labels in each row of indicators, (m, n), 0 for rows without weight.

    Raises Unsupported for codes.
    """
    if targets.codes is not None:
        raise Unsupported("average='samples' of one label for a row")
    xp, w = array_namespace(P), float_weight(targets, P)
    true, chosen = as_flags(targets.numbers), as_flags(P)
    if labels is not None:
        index = to_device_of(np.asarray(label_places(targets, P.shape[2], labels), dtype=np.int64), P)
        true, chosen = xp.take(true, index, axis=1), xp.take(chosen, index, axis=2)

    def total(rows: Array) -> Array:
        sums = xp.sum(as_floating(rows, P), axis=-1)
        # A row without weight is 0 / 0.
        return sums if w is None else sums * as_floating(w != 0, P)

    predicted = total(chosen)
    everywhere = xp.ones_like(predicted, dtype=xp.bool)
    return Counts(total(true & chosen), predicted, xp.broadcast_to(total(true), predicted.shape), everywhere)


_OPTIONS = {"labels": None, "pos_label": 1, "average": "binary", "zero_division": "warn"}

PRECISION_RECALL_METRICS: dict[Callable[..., Any], MetricKernel] = {
    f1_score: MetricKernel(partial(_score, None), "labels", _OPTIONS),
    fbeta_score: MetricKernel(partial(_score, None), "labels", {**_OPTIONS, "beta": 1.0}),
    jaccard_score: MetricKernel(partial(_score, _jaccard), "labels", _OPTIONS),
    precision_score: MetricKernel(partial(_score, precision), "labels", _OPTIONS),
    recall_score: MetricKernel(partial(_score, recall), "labels", _OPTIONS),
}
