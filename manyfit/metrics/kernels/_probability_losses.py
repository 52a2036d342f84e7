"""Losses of probabilities and of margins, for many settings at once."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import brier_score_loss, d2_log_loss_score, hinge_loss, log_loss

from manyfit._compat import d2_brier_score, log_loss_is_of_float64
from manyfit.arrays import array_namespace, clip
from manyfit.metrics.kernels._class_scores import (
    all_classes_present,
    all_finite,
    are_probabilities,
    class_totals,
    indicators,
    positive_rows,
    require_columns,
    scores_kernel,
    target_scores,
    with_labels,
)
from manyfit.metrics.kernels._kernel import MetricKernel, Targets, or_nan

Array = Any
Labels = Sequence[Any] | None


def _log_losses(targets: Targets, P: Array) -> Array:
    """Negative logarithm of the probability of each target, (m, n)."""
    xp = array_namespace(P)
    # |p - 1| equals 1 - p exactly, and is faster than a choice between two arrays.
    own = target_scores(targets, P) if P.ndim == 3 else P - xp.astype(targets.codes == 0, P.dtype)
    eps = float(xp.finfo(P.dtype).eps)
    if isinstance(own, np.ndarray):
        return _in_place(own, eps)
    return -xp.log(clip(xp, xp.abs(own), eps, 1 - eps))


def _in_place(own: Array, eps: float) -> Array:
    """The same in the memory of an array: new arrays take 1.5 times as long for a million rows."""
    np.abs(own, out=own)
    own.clip(eps, 1 - eps, out=own)
    if own.dtype != np.float64 and log_loss_is_of_float64():
        own = own.astype(np.float64)
    np.log(own, out=own)
    return np.negative(own, out=own)


@scores_kernel
def _log_loss(targets: Targets, P: Array, *, normalize: bool, labels: Labels) -> Array:
    targets = with_labels(targets, labels)
    require_columns(targets, P)
    valid = are_probabilities(P) & all_classes_present(targets, labels)
    losses = _log_losses(targets, P)
    return or_nan(targets.mean(losses) if normalize else targets.sum(losses), valid)


@scores_kernel
def _d2_log_loss(targets: Targets, P: Array, *, labels: Labels) -> Array:
    targets = with_labels(targets, labels)
    require_columns(targets, P)
    xp, totals = array_namespace(P), class_totals(targets)
    shares = totals / xp.sum(totals)
    eps = float(xp.finfo(shares.dtype).eps)
    null = -xp.sum(totals * xp.log(clip(xp, shares, eps, 1 - eps)))
    valid = are_probabilities(P) & all_classes_present(targets, labels) & (P.shape[1] >= 2)
    return or_nan(1 - targets.sum(_log_losses(targets, P)) / null, valid)


@scores_kernel
def _brier(targets: Targets, P: Array, *, pos_label: Any, labels: Labels, scale_by_half: bool | str) -> Array:
    if isinstance(scale_by_half, str):  # "auto"
        scale_by_half = P.shape[2:] in ((), (2,))
    scale = 0.5 if scale_by_half else 1.0
    mean, valid, _ = _mean_squares(targets, P, pos_label, labels)
    return or_nan(scale * mean, valid)


@scores_kernel
def _d2_brier(targets: Targets, P: Array, *, pos_label: Any, labels: Labels) -> Array:
    xp = array_namespace(P)
    mean, valid, shares = _mean_squares(targets, P, pos_label, labels)
    null = xp.sum(shares * (1 - shares))
    return or_nan(1 - mean / null, valid & (P.shape[1] >= 2))


def _mean_squares(targets: Targets, P: Array, pos_label: Any, labels: Labels) -> tuple[Array, Array, Array]:
    """Mean squared distances, (m,), which settings are valid, and the shares of the classes."""
    xp, valid = array_namespace(P), are_probabilities(P)
    if P.ndim == 2:
        require_columns(targets, P)
        positive = positive_rows(targets, pos_label)
        share = targets.mean(positive)
        mean = 2 * targets.mean((P - xp.astype(positive, P.dtype)) ** 2)
        return mean, valid, xp.stack([1 - share, share])
    targets = with_labels(targets, labels)
    require_columns(targets, P)
    totals = class_totals(targets)
    mean = targets.mean(xp.sum((P - xp.astype(indicators(targets).T, P.dtype)[None, ...]) ** 2, axis=-1))
    return mean, valid & all_classes_present(targets, labels), totals / xp.sum(totals)


@scores_kernel
def _hinge(targets: Targets, P: Array, *, labels: Labels) -> Array:
    targets = with_labels(targets, labels)
    require_columns(targets, P, two=3)
    xp, codes, valid = array_namespace(P), targets.codes, all_finite(P)
    if P.ndim == 2:
        # If all rows are of one class, scikit-learn's LabelBinarizer takes it for the lesser one.
        greater = (codes == xp.max(codes)) & (xp.max(codes) != xp.min(codes))
        margins = P * (2 * xp.astype(greater, P.dtype) - 1)
    else:
        valid = valid & all_classes_present(targets, labels)
        others = xp.where(indicators(targets).T[None, ...], xp.full_like(P, -xp.inf), P)
        margins = target_scores(targets, P) - xp.max(others, axis=-1)
    return or_nan(targets.mean(clip(xp, 1 - margins, 0, None)), valid)


PROBABILITY_METRICS: dict[Callable[..., Any], MetricKernel] = {
    log_loss: MetricKernel(_log_loss, "probabilities", {"normalize": True, "labels": None}),
    brier_score_loss: MetricKernel(
        _brier, "probabilities", {"pos_label": None, "labels": None, "scale_by_half": "auto"}
    ),
    d2_log_loss_score: MetricKernel(_d2_log_loss, "probabilities", {"labels": None}),
    hinge_loss: MetricKernel(_hinge, "scores", {"labels": None}),
}
if d2_brier_score is not None:
    PROBABILITY_METRICS[d2_brier_score] = MetricKernel(
        _d2_brier, "probabilities", {"pos_label": None, "labels": None}
    )
