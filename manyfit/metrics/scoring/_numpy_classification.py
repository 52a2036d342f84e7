"""Classification metrics of many settings at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, balanced_accuracy_score, brier_score_loss, log_loss

from manyfit.metrics.kernels._class_scores import are_probabilities
from manyfit.metrics.kernels._label_codes_numpy import codes_and_known
from manyfit.metrics.scoring._targets import ScoredTargets, Scores, SearchMetric

Array = NDArray[Any]

# Part of scikit-learn's own tolerance of sums of probabilities: beyond it, it might warn.
SUM_SLACK = 0.5


def _accuracy(truth: ScoredTargets, predicted: Array) -> Scores | None:
    if not _are_labels(truth, predicted):
        return None
    # Only of these can a value that is no class be no label at all.
    strange = predicted.dtype.kind in "fO"

    def scores(P: Array) -> Array:
        right = truth.mean(truth.y == P)
        return np.where(_all_known(truth, P), right, np.nan) if strange else right

    return scores


def _balanced_accuracy(truth: ScoredTargets, predicted: Array) -> Scores | None:
    codes, weight = truth.codes, truth.weight
    if not _are_labels(truth, predicted) or not truth.holds_all_classes or codes is None:
        return None
    totals = np.bincount(codes, weight)

    def scores(P: Array) -> Array:
        hits = (truth.y == P).astype(np.float64) if weight is None else (truth.y == P) * weight
        recalls = [np.bincount(codes, of_one) / totals for of_one in hits]
        return np.where(_all_known(truth, P), np.mean(recalls, axis=1), np.nan)

    return scores


def _are_labels(truth: ScoredTargets, predicted: Array) -> bool:
    """Whether the targets are classes, and predictions arrays of the same kind."""
    return truth.codes is not None and predicted.ndim == 2 and predicted.dtype.kind == truth.y.dtype.kind


def _all_known(truth: ScoredTargets, P: Array) -> Array:
    """Which settings predict nothing but classes."""
    assert truth.classes is not None
    if P.dtype.kind != "O":
        return np.asarray(codes_and_known(truth.classes, P)[1].all(axis=1))
    classes = set(truth.classes.tolist())
    return np.array([set(one.tolist()) <= classes for one in P])


def _log_loss(truth: ScoredTargets, probabilities: Array) -> Scores | None:
    if not _have_columns(truth, probabilities):
        return None
    chosen = _chosen_of_two if probabilities.shape[2] == 2 else _chosen_of_many
    pick, eps = chosen(truth, probabilities), np.finfo(probabilities.dtype).eps

    def scores(P: Array) -> Array:
        picked, valid = pick(P)
        np.clip(picked, eps, 1 - eps, out=picked)
        losses = np.log(picked, out=picked)
        return np.where(valid, -truth.mean(losses), np.nan)

    return scores


def _have_columns(truth: ScoredTargets, P: Array) -> bool:
    """Whether there are columns for the classes, all of which are targets.

    Where a class is the target of no row, scikit-learn raises, or takes another one for its column.
    """
    if P.ndim != 3 or P.dtype not in (np.float64, np.float32) or not truth.holds_all_classes:
        return False
    return truth.classes is not None and P.shape[2] == len(truth.classes)


def _second(P: Array) -> tuple[Array, Array]:
    """Probabilities of the second of two classes, all that scikit-learn reads, and which are in [0, 1]."""
    p = np.ascontiguousarray(P[:, :, 1])
    return p, are_probabilities(p)


# Given some probabilities: those of the targets, and which settings scikit-learn takes without a word.
Pick = Callable[[Array], tuple[Array, Array]]


def _chosen_of_two(truth: ScoredTargets, _: Array) -> Pick:
    first = truth.codes == 0

    def pick(P: Array) -> tuple[Array, Array]:
        p, valid = _second(P)
        return np.where(first, 1 - p, p), valid

    return pick


def _chosen_of_many(truth: ScoredTargets, probabilities: Array) -> Pick:
    n, K = probabilities.shape[1:]
    assert truth.codes is not None
    places = np.arange(n) * K + truth.codes

    def pick(P: Array) -> tuple[Array, Array]:
        flat = P.reshape(len(P), n * K)
        return flat.take(places, axis=1), _unquestioned(P)

    return pick


def _unquestioned(P: Array) -> Array:
    """Which settings have rows of probabilities of which scikit-learn will not warn."""
    off = np.abs(P @ np.ones(P.shape[2], dtype=P.dtype) - 1).max(axis=1)
    slack = SUM_SLACK * np.sqrt(np.finfo(P.dtype).eps)
    return np.asarray((off <= slack) & are_probabilities(P))


def _brier(truth: ScoredTargets, probabilities: Array) -> Scores | None:
    if not _have_columns(truth, probabilities):
        return None
    if probabilities.shape[2] > 2:
        return _brier_of_many(truth, probabilities)
    if truth.y.dtype.kind in "OU":  # of texts scikit-learn asks which one is positive
        return None
    first = truth.codes == 0

    def scores(P: Array) -> Array:
        p, valid = _second(P)
        q, p = (1 - p).astype(np.float64), p.astype(np.float64)
        # Both columns, as scikit-learn sums them: 1 - (1 - p) is not p to the last bit.
        squares = np.where(first, 1 - q, q) ** 2 + np.where(first, p, 1 - p) ** 2
        return np.where(valid, 0.5 * truth.mean(squares), np.nan)

    return scores


def _brier_of_many(truth: ScoredTargets, probabilities: Array) -> Scores:
    rows = np.arange(probabilities.shape[1])

    def scores(P: Array) -> Array:
        off = -P.astype(np.float64)
        off[:, rows, truth.codes] += 1
        return np.where(_unquestioned(P), truth.mean((off**2).sum(axis=2)), np.nan)

    return scores


CLASS_METRICS: dict[Callable[..., Any], SearchMetric] = {
    accuracy_score: SearchMetric(("predict",), _accuracy),
    balanced_accuracy_score: SearchMetric(("predict",), _balanced_accuracy),
    brier_score_loss: SearchMetric(("predict_proba",), _brier),
    log_loss: SearchMetric(("predict_proba",), _log_loss),
}
