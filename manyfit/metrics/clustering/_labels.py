"""Labels of many clusterings of one X as codes, and scikit-learn's checks of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_X_y

from manyfit._compat import check_number_of_labels
from manyfit.arrays import array_namespace, device, is_array, to_device_of
from manyfit.metrics._deferred_checks import (
    DeferredCheck,
    check_shapes,
    finiteness_checks,
    raise_if_any,
    raise_labels_not_finite,
    shape_stand_in,
)
from manyfit.metrics.kernels._kernel import is_floating, or_nan

Array = Any


@dataclass(frozen=True)
class Clusterings:
    """The clusters of n rows in m settings.

    `codes`, int64 of shape (m, n), lie where the rows do: positions of labels among those of their setting.
    On the host are the number of labels, and whether it is from 2 to n - 1, each of shape (m,).
    """

    codes: Array
    n_labels: Any
    valid: Any

    @property
    def n_clusters(self) -> int:
        """Largest number of clusters of a setting that has a score."""
        return int(self.n_labels[self.valid].max(initial=2))

    def in_setting(self, settings: slice, clusters: slice, rows: slice) -> Array:
        """Whether a row is in a cluster, (settings, clusters, rows)."""
        xp = array_namespace(self.codes)
        places = xp.arange(clusters.start, clusters.stop, dtype=self.codes.dtype, device=device(self.codes))
        return self.codes[settings, None, rows] == places[None, :, None]

    def or_nan(self, scores: Array) -> Array:
        """Scores, (m,) or (m, n), NaN for settings that scikit-learn refuses."""
        if self.valid.all():
            return scores
        return or_nan(scores, to_device_of(self.valid, scores))


def check_labels(X: Array, labels: Any) -> Array:
    """Labels of the rows of X as an array of shape (m, n), on the host or the device where they are.

    Raises scikit-learn's errors about the shapes of X and of the labels of one setting, which may be a
    column.
    """
    labels = labels if is_array(labels) else np.asarray(labels)
    check_shapes(check_X_y, shape_stand_in(X), np.broadcast_to(np.zeros(()), labels.shape[1:]))
    return labels if labels.ndim == 2 else array_namespace(labels).reshape(labels, labels.shape[:2])


def encode_clusterings(
    labels: Any, X: Array, checks: Sequence[DeferredCheck], *, one_setting: bool
) -> Clusterings:
    """Labels, (m, n), as codes on the device of X, after all checks, for which the host waits once.

    With `one_setting`, scikit-learn's error is raised if the setting has no score.
    """
    n = labels.shape[1]
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind == "f":
            check_X_y(np.zeros((labels.size, 1)), labels.reshape(-1))
        if labels.dtype.kind in "OTc":  # which may not compare, or which the array API does not know
            codes = [LabelEncoder().fit_transform(row) for row in labels]
            labels = np.array(codes, dtype=np.int64).reshape(labels.shape)
        codes, counts = _encode_rows(labels)
        codes = to_device_of(codes, X)
    else:
        labels = to_device_of(labels, X)
        codes, counts = _encode_rows(labels)
        if is_floating(labels):
            checks = [*checks, *finiteness_checks(labels, raise_labels_not_finite)]
    n_labels = raise_if_any(checks, counts)
    if one_setting:
        check_number_of_labels(int(n_labels[0]), n)
    return Clusterings(codes, n_labels, (n_labels > 1) & (n_labels < n))


def _encode_rows(labels: Array) -> tuple[Array, Array]:
    """Codes by rank among the sorted labels of a setting, and the numbers of labels."""
    xp = array_namespace(labels)
    if xp.isdtype(labels.dtype, "bool"):  # which the array API does not sort
        labels = xp.astype(labels, xp.int8)
    order = xp.argsort(labels, axis=1)
    ordered = xp.take_along_axis(labels, order, axis=1)
    steps = xp.astype(ordered[:, 1:] != ordered[:, :-1], xp.int64)
    ranks = xp.cumulative_sum(xp.concat([xp.zeros_like(order[:, :1]), steps], axis=1), axis=1)
    return xp.take_along_axis(ranks, xp.argsort(order, axis=1), axis=1), ranks[:, -1] + 1
