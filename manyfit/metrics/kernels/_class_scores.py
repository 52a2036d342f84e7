"""Scores of classes: their columns, and scikit-learn's conditions on them."""

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
        return scores(targets, as_floating_scores(P), **options)

    return kernel


def as_floating_scores(P: Array) -> Array:
    return P if is_floating(P) else array_namespace(P).astype(P, float_dtype(P))


def over_settings(reduce: Callable[..., Array], values: Array) -> Array:
    """Reduce all axes but the first."""
    return reduce(values, axis=tuple(range(1, values.ndim)))


def all_finite(P: Array) -> Array:
    """Settings without NaN and infinity, which scikit-learn refuses."""
    xp = array_namespace(P)
    if P.ndim == 2 and isinstance(P, np.ndarray):
        # A sum is faster than a test of each value, and finite only if all values are.
        sums = np.isfinite(P.sum(axis=1))
        return sums if sums.all() else np.isfinite(P).all(axis=1)
    return over_settings(xp.all, xp.isfinite(P))


def are_probabilities(P: Array) -> Array:
    """Settings with values in [0, 1] only; for other sums than 1 scikit-learn only warns."""
    if isinstance(P, np.ndarray):  # methods take half the time of functions for a few rows
        values = P.reshape(len(P), -1)
        return (values.min(axis=1) >= 0) & (values.max(axis=1) <= 1)
    xp = array_namespace(P)
    return (over_settings(xp.min, P) >= 0) & (over_settings(xp.max, P) <= 1)


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


def present_classes(targets: Targets) -> Array:
    """Which classes are the target of some row, (n_classes,)."""
    if isinstance(targets.codes, np.ndarray):
        return np.bincount(targets.codes, minlength=targets.n_classes) > 0
    xp = array_namespace(targets.codes)
    return xp.stack([xp.any(targets.codes == k) for k in range(targets.n_classes)])


def all_classes_present(targets: Targets, labels: Sequence[Any] | None) -> Array:
    """Whether scikit-learn finds these classes: `labels` are given, or all are targets."""
    xp = array_namespace(targets.codes)
    if targets.n_classes >= 2 and labels is None:
        return xp.all(present_classes(targets))
    return xp.asarray(targets.n_classes >= 2, device=device(targets.codes))


def class_totals(targets: Targets) -> Array:
    """Weights of the classes, (n_classes,)."""
    xp, weight = array_namespace(targets.codes), targets.weight
    if weight is None:
        weight = xp.ones_like(targets.codes, dtype=float_dtype(targets.codes))
    nothing = xp.zeros_like(weight)
    return xp.stack([xp.sum(xp.where(targets.codes == k, weight, nothing)) for k in range(targets.n_classes)])


def target_scores(targets: Targets, P: Array) -> Array:
    """The scores (m, n) of the targets' classes, from scores (m, n, K)."""
    xp, (m, n, K) = array_namespace(P), P.shape
    places = xp.arange(n, dtype=xp.int64, device=device(P)) * K + targets.codes
    return xp.take(xp.reshape(P, (m, n * K)), places, axis=1)
