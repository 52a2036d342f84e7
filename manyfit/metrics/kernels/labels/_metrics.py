"""Metrics of predicted labels, for many settings at once.

They have scikit-learn's values for undefined scores, without its warnings.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    hamming_loss,
    matthews_corrcoef,
    zero_one_loss,
)

from manyfit._compat import negative_likelihood_ratio, positive_likelihood_ratio
from manyfit.arrays import array_namespace, device, float_dtype, to_device_of
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import MetricKernel, Targets
from manyfit.metrics.kernels.labels._clustering_agreement import AGREEMENT_METRICS
from manyfit.metrics.kernels.labels._counts import (
    Table,
    as_flags,
    as_floating,
    count_labels,
    float_weight,
    nan_where,
    ratio,
    refused_settings,
    score_tables,
    sum_where,
)
from manyfit.metrics.kernels.labels._precision_recall import PRECISION_RECALL_METRICS

Array = Any


def _right(targets: Targets, P: Array) -> Array:
    """Weight of the rows that are all right, (m,)."""
    xp, w = array_namespace(P), float_weight(targets, P)
    if targets.codes is None:
        right = xp.all(as_flags(targets.numbers) == as_flags(P), axis=-1)
    else:
        # NumPy compares two dtypes in small pieces, which takes twice as long.
        right = xp.astype(targets.codes, P.dtype, copy=False) == P
    if isinstance(right, np.ndarray):
        return sum_where(right, w)
    return xp.sum(as_floating(right, P), axis=-1) if w is None else as_floating(right, P) @ w


def _total(targets: Targets, P: Array) -> Array:
    """Weight of all rows, a 0-d array."""
    xp, w = array_namespace(P), float_weight(targets, P)
    if w is not None:
        return xp.sum(w)
    return xp.asarray(P.shape[1], dtype=float_dtype(P), device=device(P))


def _share(targets: Targets, P: Array, weight: Array) -> Array:
    """Weights of some rows, (m,), by that of all; NaN if no row has any."""
    if targets.weight is None:
        return weight / P.shape[1]
    return ratio(weight, _total(targets, P), np.nan)


def _accuracy(targets: Targets, P: Array, *, normalize: bool) -> Array:
    right = _right(targets, P)
    scores = _share(targets, P, right) if normalize else right
    return nan_where(scores, refused_settings(targets, P))


def _zero_one(targets: Targets, P: Array, *, normalize: bool) -> Array:
    best = 1.0 if normalize else _total(targets, P)
    return best - _accuracy(targets, P, normalize=normalize)


def _hamming(targets: Targets, P: Array) -> Array:
    if targets.codes is not None:
        return 1.0 - _accuracy(targets, P, normalize=True)
    xp, w = array_namespace(P), float_weight(targets, P)
    wrong = xp.mean(as_floating(as_flags(targets.numbers) != as_flags(P), P), axis=-1)
    wrong = xp.sum(wrong, axis=-1) if w is None else wrong @ w
    return nan_where(_share(targets, P, wrong), refused_settings(targets, P))


def _require_one_label(targets: Targets, name: str) -> None:
    if targets.codes is None:
        raise Unsupported(f"{name} of several labels for a row")


def _balanced_accuracy(targets: Targets, P: Array, *, adjusted: bool) -> Array:
    _require_one_label(targets, "balanced_accuracy_score")
    xp, counts = array_namespace(P), count_labels(targets, P)
    n_true = xp.sum(as_floating(counts.true != 0, P), axis=1)
    scores = ratio(xp.sum(ratio(counts.hits, counts.true, 0.0), axis=1), n_true, np.nan)
    if adjusted:
        chance = ratio(xp.ones_like(n_true), n_true, np.nan)
        # For one class scikit-learn divides by zero; sums of weights may differ by rounding.
        alone = xp.where(scores < 1 - 1e-12, xp.full_like(scores, -np.inf), xp.full_like(scores, np.nan))
        scores = xp.where(n_true == 1, alone, ratio(scores - chance, 1 - chance, np.nan))
    return nan_where(scores, refused_settings(targets, P))


def _matthews(targets: Targets, P: Array) -> Array:
    _require_one_label(targets, "matthews_corrcoef")
    xp, counts = array_namespace(P), count_labels(targets, P)
    n = xp.sum(counts.predicted, axis=1)
    both = xp.sum(counts.hits, axis=1) * n - xp.sum(counts.true * counts.predicted, axis=1)
    varied = [n**2 - xp.sum(side**2, axis=1) for side in (counts.true, counts.predicted)]
    # If all rows have one label, the differences are 0 whatever rounding leaves.
    several = [xp.sum(as_floating(side != 0, P), axis=1) > 1 for side in (counts.true, counts.predicted)]
    square = xp.where(several[0] & several[1], varied[0] * varied[1], xp.zeros_like(n))
    scores = ratio(both, xp.sqrt(xp.where(square > 0, square, xp.zeros_like(n))), 0.0)
    return nan_where(scores, refused_settings(targets, P))


def _kappa(targets: Targets, P: Array, *, labels: Any, weights: Any, replace_undefined_by: float) -> Array:
    _require_one_label(targets, "cohen_kappa_score")
    if weights not in (None, "linear", "quadratic"):
        raise Unsupported(f"weights={weights!r} of cohen_kappa_score")
    ranks = None if labels is None else _ranks(targets.classes, labels)

    def scores(table: Table) -> Array:
        return _kappa_of(table, ranks, weights, replace_undefined_by)

    return nan_where(score_tables(scores, targets, P), refused_settings(targets, P))


def _ranks(classes: Any, labels: Any) -> Any:
    """Position of each class among the given labels, the last one of several, or -1."""
    places = {label: place for place, label in enumerate(np.asarray(labels).tolist())}
    return np.asarray([places.get(label, -1) for label in np.asarray(classes).tolist()])


def _kappa_of(table: Table, ranks: Any, weights: str | None, undefined: float) -> Array:
    cells = table.cells
    xp = array_namespace(cells)
    present = table.in_truth | table.in_predicted
    refused = None
    if ranks is None:
        # scikit-learn ranks the labels of this setting only.
        rank = xp.cumulative_sum(as_floating(present, cells), axis=1)
    else:
        selected = to_device_of(ranks >= 0, cells)
        kept = as_floating(selected, cells)
        cells = cells * kept[:, None] * kept
        rank = xp.broadcast_to(as_floating(to_device_of(ranks, cells), cells), present.shape)
        refused = xp.broadcast_to(~xp.any(table.in_truth & selected), present.shape[:1])
    apart = rank[:, :, None] - rank[:, None, :]
    cost = as_floating(apart != 0, cells)
    if weights is not None:
        cost = xp.abs(apart) if weights == "linear" else apart**2
    true, predicted = xp.sum(cells, axis=2), xp.sum(cells, axis=1)
    n = xp.sum(true, axis=1)
    by_chance = ratio(true[:, :, None] * predicted[:, None, :], n[:, None, None], 0.0)
    expected = xp.sum(cost * by_chance, axis=(1, 2))
    # Undefined if nothing, or only one label, is expected.
    scores = 1 - ratio(xp.sum(cost * cells, axis=(1, 2)), expected, 1 - undefined)
    return nan_where(scores, refused)


def _likelihood_ratio(targets: Targets, P: Array, *, positive: bool) -> Array:
    """A likelihood ratio of scikit-learn's scorers."""
    _require_one_label(targets, "class_likelihood_ratios")
    if targets.weight is not None:
        raise Unsupported("the likelihood ratios of scikit-learn's scorers take no weights")
    scores = score_tables(partial(_likelihood_ratio_of, positive), targets, P)
    return nan_where(scores, refused_settings(targets, P))


def _likelihood_ratio_of(positive: bool, table: Table) -> Array:
    xp, cells = array_namespace(table.cells), table.cells
    present = table.in_truth | table.in_predicted
    # The two labels of a setting; they differ between settings if there are more classes.
    rank = xp.cumulative_sum(as_floating(present, cells), axis=1)
    no, yes = (as_floating((rank == k) & present, cells) for k in (1, 2))

    def cell(true: Array, predicted: Array) -> Array:
        return xp.sum(cells * true[:, :, None] * predicted[:, None, :], axis=(1, 2))

    tn, fp, fn, tp = cell(no, no), cell(no, yes), cell(yes, no), cell(yes, yes)
    a, b = (tp, fp) if positive else (fn, tn)
    # 1 for an empty denominator, as in scikit-learn's scorers; NaN without positives.
    found = xp.where(b == 0, xp.ones_like(b), ratio(a * (tn + fp), b * (tp + fn), np.nan))
    return nan_where(found, rank[:, -1] != 2)


LABEL_METRICS: dict[Callable[..., Any], MetricKernel] = {
    accuracy_score: MetricKernel(_accuracy, "labels", {"normalize": True}, rowwise=True),
    zero_one_loss: MetricKernel(_zero_one, "labels", {"normalize": True}, rowwise=True),
    hamming_loss: MetricKernel(_hamming, "labels", rowwise=True),
    balanced_accuracy_score: MetricKernel(_balanced_accuracy, "labels", {"adjusted": False}),
    matthews_corrcoef: MetricKernel(_matthews, "labels"),
    cohen_kappa_score: MetricKernel(
        _kappa, "labels", {"labels": None, "weights": None, "replace_undefined_by": np.nan}
    ),
    positive_likelihood_ratio: MetricKernel(partial(_likelihood_ratio, positive=True), "labels"),
    negative_likelihood_ratio: MetricKernel(partial(_likelihood_ratio, positive=False), "labels"),
    **PRECISION_RECALL_METRICS,
    **AGREEMENT_METRICS,
}
