"""Losses of probabilities and of margins, of many settings at once."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import brier_score_loss, d2_log_loss_score, hinge_loss, log_loss

from manyfit._compat import d2_brier_score
from manyfit.arrays import array_namespace, clip
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._class_scores import (
    all_finite,
    all_present,
    are_probabilities,
    class_totals,
    declared,
    indicators,
    kernel,
    nan_unless,
    of_targets,
    require_columns,
)
from manyfit.metrics.kernels._kernel import MetricKernel, Targets

Array = Any
Labels = Sequence[Any] | None


def _log_losses(targets: Targets, P: Array) -> Array:
    """-log of the probability of each target, of shape (m, n)."""
    xp = array_namespace(P)
    # |p - 1| is 1 - p to the last bit, and faster than a choice between two arrays.
    own = of_targets(targets, P) if P.ndim == 3 else P - xp.astype(targets.codes == 0, P.dtype)
    eps = float(xp.finfo(P.dtype).eps)
    if isinstance(own, np.ndarray):
        return _in_place(own, eps)
    return -xp.log(clip(xp, xp.abs(own), eps, 1 - eps))


def _in_place(own: Array, eps: float) -> Array:
    """The same in the memory of an array: a new one for each step takes 1.5 times as long for 10**6 rows."""
    np.abs(own, out=own)
    np.clip(own, eps, 1 - eps, out=own)
    np.log(own, out=own)
    return np.negative(own, out=own)


def _summed(targets: Targets, rows: Array) -> Array:
    xp = array_namespace(rows)
    return xp.sum(rows if targets.weight is None else rows * targets.weight, axis=-1)


@kernel
def _log_loss(targets: Targets, P: Array, *, normalize: bool, labels: Labels) -> Array:
    targets = declared(targets, labels)
    require_columns(targets, P)
    valid = are_probabilities(P) & all_present(targets, labels)
    losses = _log_losses(targets, P)
    return nan_unless(valid, targets.mean(losses) if normalize else _summed(targets, losses))


@kernel
def _d2_log_loss(targets: Targets, P: Array, *, labels: Labels) -> Array:
    targets = declared(targets, labels)
    require_columns(targets, P)
    xp, totals = array_namespace(P), class_totals(targets)
    shares = totals / xp.sum(totals)
    eps = float(xp.finfo(shares.dtype).eps)
    null = -xp.sum(totals * xp.log(clip(xp, shares, eps, 1 - eps)))
    valid = are_probabilities(P) & all_present(targets, labels) & (P.shape[1] >= 2)
    return nan_unless(valid, 1 - _summed(targets, _log_losses(targets, P)) / null)


def _squares(targets: Targets, P: Array) -> Array:
    """Squared distance of each row, (m, n), between probabilities of K classes and the target's."""
    xp = array_namespace(P)
    return xp.sum((P - xp.astype(indicators(targets).T, P.dtype)[None, ...]) ** 2, axis=-1)


def _positives(targets: Targets, pos_label: Any) -> Array:
    """Booleans of shape (n,): which rows are of the class that (m, n) probabilities are of.

    As scikit-learn's ``_check_pos_label_consistency`` (1.7 to 1.9) has it: without a `pos_label` it is 1
    where labels are 0 or -1 and 1, else the greatest label of a row, not of the classes.
    """
    xp, classes = array_namespace(targets.codes), targets.classes.tolist()
    if pos_label is not None or any(set(classes) <= known for known in ({0, 1}, {-1, 1})):
        wanted = 1 if pos_label is None else pos_label
        if wanted not in classes and len(classes) == 2:
            raise Unsupported(f"pos_label={pos_label!r} that is not a label")
        return targets.codes == (classes.index(wanted) if wanted in classes else -1)
    if any(isinstance(label, str) for label in classes):
        raise Unsupported("Labels that are texts, without pos_label")
    return targets.codes == xp.max(targets.codes)


@kernel
def _brier(targets: Targets, P: Array, *, pos_label: Any, labels: Labels, scale_by_half: bool | str) -> Array:
    if isinstance(scale_by_half, str):  # "auto"
        scale_by_half = P.shape[2:] in ((), (2,))
    scale = 0.5 if scale_by_half else 1.0
    mean, valid, _ = _mean_squares(targets, P, pos_label, labels)
    return nan_unless(valid, scale * mean)


@kernel
def _d2_brier(targets: Targets, P: Array, *, pos_label: Any, labels: Labels) -> Array:
    xp = array_namespace(P)
    mean, valid, shares = _mean_squares(targets, P, pos_label, labels)
    null = xp.sum(shares * (1 - shares))
    return nan_unless(valid & (P.shape[1] >= 2), 1 - mean / null)


def _mean_squares(targets: Targets, P: Array, pos_label: Any, labels: Labels) -> tuple[Array, Array, Array]:
    """Mean squared distances, (m,), which settings are valid, and shares of the classes."""
    xp, valid = array_namespace(P), are_probabilities(P)
    if P.ndim == 2:
        require_columns(targets, P)
        positive = _positives(targets, pos_label)
        share = targets.mean(positive)
        mean = 2 * targets.mean((P - xp.astype(positive, P.dtype)) ** 2)
        return mean, valid, xp.stack([1 - share, share])
    targets = declared(targets, labels)
    require_columns(targets, P)
    totals = class_totals(targets)
    mean = targets.mean(_squares(targets, P))
    return mean, valid & all_present(targets, labels), totals / xp.sum(totals)


@kernel
def _hinge(targets: Targets, P: Array, *, labels: Labels) -> Array:
    targets = declared(targets, labels)
    require_columns(targets, P, two=3)
    xp, codes, valid = array_namespace(P), targets.codes, all_finite(P)
    if P.ndim == 2:
        # Where all rows are of one class, scikit-learn's LabelBinarizer takes it for the lesser one.
        greater = (codes == xp.max(codes)) & (xp.max(codes) != xp.min(codes))
        margins = P * (2 * xp.astype(greater, P.dtype) - 1)
    else:
        valid = valid & all_present(targets, labels)
        others = xp.where(indicators(targets).T[None, ...], xp.full_like(P, -xp.inf), P)
        margins = of_targets(targets, P) - xp.max(others, axis=-1)
    return nan_unless(valid, targets.mean(clip(xp, 1 - margins, 0, None)))


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
