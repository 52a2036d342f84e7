"""Scores of classes: their columns, and scikit-learn's conditions on them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, device, float_dtype, to_device
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._kernel import Targets, is_floating

Array = Any


def scores_kernel(scores: Callable[..., Array]) -> Callable[..., Array]:
    """A kernel that reads floating scores."""

    @wraps(scores)
    def kernel(targets: Targets, P: Array, **options: Any) -> Array:
        P = P if is_floating(P) else array_namespace(P).astype(P, float_dtype(P))
        return scores(targets, P, **options)

    return kernel


def by_setting(P: Array) -> Array:
    """All values of each setting, (m, ...)."""
    return P if P.ndim == 2 else array_namespace(P).reshape(P, (P.shape[0], math.prod(P.shape[1:])))


def all_finite(P: Array) -> Array:
    """Settings without NaN and infinity, which scikit-learn refuses."""
    xp = array_namespace(P)
    return xp.all(xp.isfinite(by_setting(P)), axis=1)


def are_probabilities(P: Array) -> Array:
    """Settings with values in [0, 1] only; for other sums than 1 scikit-learn only warns."""
    xp, values = array_namespace(P), by_setting(P)
    return (xp.min(values, axis=1) >= 0) & (xp.max(values, axis=1) <= 1)


def rows_sum_to_one(P: Array) -> Array:
    """Settings whose rows sum to 1 within the tolerance of ``numpy.allclose(1, ...)``."""
    xp = array_namespace(P)
    sums = xp.sum(P, axis=-1)
    return xp.all(xp.abs(1 - sums) <= 1e-8 + 1e-5 * xp.abs(sums), axis=-1)


def with_labels(targets: Targets, labels: Sequence[Any] | None) -> Targets:
    """Targets with the classes `labels`, one for each column of scores.

    Raises Unsupported for labels that are not sorted, or lack a class.
    """
    if labels is None or targets.codes is None:
        return targets
    known, classes = np.asarray(labels), np.asarray(targets.classes)
    if known.ndim != 1 or not np.array_equal(np.unique(known), known) or not np.isin(classes, known).all():
        raise Unsupported(f"labels={labels!r} that are not sorted, or not all labels")
    if np.array_equal(known, classes):
        return targets
    xp = array_namespace(targets.codes)
    places = to_device(np.searchsorted(known, classes), device(targets.codes), xp)
    return replace(targets, codes=xp.take(places, targets.codes), classes=known)


def require_columns(targets: Targets, P: Array, *, two: int = 2) -> None:
    """Raise Unsupported unless scores are (m, n) for two classes or (m, n, K) for K.

    `two` is the least K with columns: 3 if scikit-learn takes two columns for indicators of labels.
    """
    K = targets.n_classes
    if targets.codes is None:
        raise Unsupported(f"Scores of shape {tuple(P.shape)} of targets that are not one label a row")
    fits = K <= 2 if P.ndim == 2 else P.ndim == 3 and P.shape[2] == K and two <= K
    if not fits:
        raise Unsupported(f"Scores of shape {tuple(P.shape)} of {K} classes")


def indicators(targets: Targets) -> Array:
    """Which rows are of each class, (n_classes, n)."""
    xp, codes = array_namespace(targets.codes), targets.codes
    classes = xp.arange(targets.n_classes, dtype=codes.dtype, device=device(codes))
    return codes[None, :] == classes[:, None]


def positive_rows(targets: Targets, pos_label: Any) -> Array:
    """Which rows, (n,), are of the class to which scores (m, n) belong.

    As in scikit-learn's ``_check_pos_label_consistency`` (1.7 to 1.9): without `pos_label` it is 1 if labels
    are 0, 1 or -1, 1, else the greatest label of a row.
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


def present_classes(targets: Targets) -> Array:
    """Which classes are the target of some row, (n_classes,)."""
    if isinstance(targets.codes, np.ndarray):  # in a quarter of the time for a few rows
        return np.bincount(targets.codes, minlength=targets.n_classes) > 0
    return array_namespace(targets.codes).any(indicators(targets), axis=1)


def all_classes_present(targets: Targets, labels: Sequence[Any] | None) -> Array:
    """Whether scikit-learn finds these classes: `labels` are given, or all are targets."""
    xp = array_namespace(targets.codes)
    if targets.n_classes >= 2 and labels is None:
        return xp.all(present_classes(targets))
    return xp.asarray(targets.n_classes >= 2, device=device(targets.codes))


def class_totals(targets: Targets) -> Array:
    """Weights of the classes, (n_classes,)."""
    return targets.sum(indicators(targets))


def target_scores(targets: Targets, P: Array) -> Array:
    """The scores (m, n) of the targets' classes, from scores (m, n, K)."""
    xp, (m, n, K) = array_namespace(P), P.shape
    places = xp.arange(n, dtype=xp.int64, device=device(P)) * K + targets.codes
    return xp.take(xp.reshape(P, (m, n * K)), places, axis=1)
