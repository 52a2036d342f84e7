"""Clusterings of many settings of one X: their labels as codes, and what scikit-learn refuses of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_X_y

from manyfit._compat import check_number_of_labels
from manyfit.arrays import array_namespace, device, float_dtype, is_array, to_device_of
from manyfit.metrics._deferred_checks import (
    Doubt,
    is_floating,
    not_finite,
    refuse_nan_of_labels,
    settle,
    stand_in,
    told,
)

Array = Any


@dataclass(frozen=True)
class Clusterings:
    """The clusters of n rows in m settings; arrays lie where the rows do.

    Attributes
    ----------
    codes : array of int64 of shape (m, n)
        Position of each row's label among those of its setting.
    n_labels : ndarray of shape (m,)
        How many labels there are in each setting; on the host.
    valid : ndarray of bool of shape (m,)
        Whether there are from 2 to n - 1; on the host.
    """

    codes: Array
    n_labels: Any
    valid: Any

    @property
    def n_clusters(self) -> int:
        """The most clusters that a setting has of which there is a score."""
        return int(self.n_labels[self.valid].max(initial=2))

    def in_setting(self, settings: slice, clusters: slice, rows: slice) -> Array:
        """Whether a row is in a cluster, of shape (settings, clusters, rows)."""
        xp = array_namespace(self.codes)
        of = xp.arange(clusters.start, clusters.stop, dtype=self.codes.dtype, device=device(self.codes))
        return self.codes[settings, None, rows] == of[None, :, None]

    def or_nan(self, scores: Array) -> Array:
        """Scores, (m,) or (m, n), but for settings that scikit-learn refuses."""
        if self.valid.all():
            return scores
        xp = array_namespace(scores)
        valid = xp.reshape(to_device_of(self.valid, scores), (-1, *[1] * (scores.ndim - 1)))
        return xp.where(valid, scores, xp.full((), float("nan"), dtype=scores.dtype, device=device(scores)))


def checked_labels(X: Array, labels: Any) -> Array:
    """Labels of the rows of X as an array of shape (m, n), on the host or where they lie.

    Raises what scikit-learn raises of the shapes of X and of the labels of a setting, which may be a column.
    """
    labels = labels if is_array(labels) else np.asarray(labels)
    told(check_X_y, stand_in(X), np.broadcast_to(np.zeros(()), labels.shape[1:]))
    return labels if labels.ndim == 2 else array_namespace(labels).reshape(labels, labels.shape[:2])


def clusterings(labels: Any, X: Array, doubts: Sequence[Doubt], *, alone: bool) -> Clusterings:
    """Labels as codes, and whether scikit-learn would refuse something.

    Parameters
    ----------
    labels : array of shape (m, n)
        On the host or where `X` lies; texts on the host only.
    X : array
        Where the codes are to be.
    doubts : sequence of Doubt
        About X. The host waits once, for all of them and, of labels that lie on a device, their numbers.
    alone : bool
        Whether one setting is asked for: scikit-learn's error is raised where there is no score of it.
    """
    n = labels.shape[1]
    if isinstance(labels, np.ndarray):
        codes, counts = _on_host(labels)
        codes = to_device_of(codes, X)
    else:
        labels = to_device_of(labels, X)
        codes, counts = _on_device(labels)
        if is_floating(labels):
            doubts = [*doubts, *not_finite(labels, refuse_nan_of_labels)]
    n_labels = settle(doubts, counts)
    if alone:
        check_number_of_labels(int(n_labels[0]), n)
    return Clusterings(codes, n_labels, (n_labels > 1) & (n_labels < n))


def _on_host(labels: Any) -> tuple[Any, Any]:
    if labels.dtype.kind == "f":
        check_X_y(np.zeros((labels.size, 1)), labels.reshape(-1))
    codes = np.empty(labels.shape, dtype=np.int64)
    for row, found in zip(labels, codes, strict=True):
        found[:] = LabelEncoder().fit_transform(row)
    return codes, codes.max(axis=1, initial=-1) + 1


def _on_device(labels: Array) -> tuple[Array, Array]:
    """Codes by ranks among the sorted labels of a setting, whose values stay where they are."""
    xp = array_namespace(labels)
    if xp.isdtype(labels.dtype, "bool"):  # which the array API does not sort
        labels = xp.astype(labels, xp.int8)
    order = xp.argsort(labels, axis=1)
    ordered = xp.take_along_axis(labels, order, axis=1)
    steps = xp.astype(ordered[:, 1:] != ordered[:, :-1], xp.int64)
    ranks = xp.cumulative_sum(xp.concat([xp.zeros_like(steps[:, :1]), steps], axis=1), axis=1)
    return xp.take_along_axis(ranks, xp.argsort(order, axis=1), axis=1), ranks[:, -1] + 1


def wide(X: Array) -> Array:
    """X in the widest floating dtype of its device."""
    return array_namespace(X).astype(X, float_dtype(X), copy=False)
