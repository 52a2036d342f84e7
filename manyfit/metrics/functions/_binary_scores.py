"""Scores of two classes on a device with their labels, and what scikit-learn has to say of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, float_dtype, to_device_of, to_host
from manyfit.metrics.functions._representative_rows import N_FACTS, facts, refuse_as_scikit_learn
from manyfit.metrics.functions._threshold_counts import Points, points_of

Array = Any


def _is_label(values: Array, label: Any) -> Array:
    """Which values equal a label of whatever type."""
    if isinstance(values, np.ndarray):
        return np.asarray(values == label)
    xp = array_namespace(values)
    if xp.isdtype(values.dtype, "bool"):
        values = xp.astype(values, xp.int8)
    if isinstance(label, str) or not np.isfinite(label):
        return xp.zeros_like(values, dtype=xp.bool)
    if xp.isdtype(values.dtype, "real floating"):
        return values == float(label)
    limits = xp.iinfo(values.dtype)
    if label != int(label) or not limits.min <= label <= limits.max:
        return xp.zeros_like(values, dtype=xp.bool)
    return values == int(label)


@dataclass(frozen=True)
class Known:
    """What has come home of a curve."""

    numbers: list[int]
    positives: bool
    negatives: bool
    two_labels: bool


@dataclass(frozen=True)
class Scored:
    """Scores of two classes on a device, for one of scikit-learn's functions.

    Attributes
    ----------
    function : callable
        scikit-learn's.
    y_true : array of shape (n,)
        Labels, host or device.
    scores : array of shape (n,)
        On a device.
    weight : array of shape (n,), or None
        Beside the scores.
    options : dict
        Other arguments of `function`.
    """

    function: Callable[..., Any]
    y_true: Any
    scores: Array
    weight: Array | None
    options: dict[str, Any]

    def points(self) -> Points:
        """The different scores of rows that have weight."""
        if any(array is not None and array.ndim != 1 for array in (self.y_true, self.scores, self.weight)):
            self.refuse()
        label = self.options["pos_label"]
        positive = _is_label(self.y_true, 1 if label is None else label)
        return points_of(self.scores, to_device_of(positive, self.scores), self.weight)

    def refuse(self) -> None:
        """Raise what scikit-learn raises of the data."""
        arrays = {"y_true": self.y_true, "y_score": self.scores, "sample_weight": self.weight}
        refuse_as_scikit_learn(self.function, arrays, self.options)

    def bring_home(self, of: Points, *numbers: Array) -> Known:
        """Some integers of no dimension, and what is known of the data; raise what there is to raise."""
        xp, w = array_namespace(of.fps), self.weight
        fine = xp.all(xp.isfinite(xp.astype(self.scores, float_dtype(self.scores))))
        if w is not None:
            fine = fine & xp.all(xp.isfinite(w)) & xp.any(w != 0)
        targets = [np.asarray(flag) if isinstance(flag, bool) else flag for flag in self._targets()]
        flags = (fine, *(to_device_of(flag, fine) for flag in targets), of.tps[-1] > 0, of.fps[-1] > 0)
        found = to_host(xp.stack([xp.astype(one, xp.int64) for one in (*flags, *numbers)])).tolist()
        fine, valid, two_labels, positives, negatives = map(bool, found[:5])
        if not (fine and valid):
            self.refuse()
        return Known(found[5:], positives, negatives, two_labels)

    def _targets(self) -> tuple[Any, Any]:
        """Whether scikit-learn takes these targets, and whether they are two labels; on host or device."""
        y, label = self.y_true, self.options["pos_label"]
        if isinstance(y, np.ndarray) and y.dtype.kind not in "biuf":
            different = set(y.tolist())
            return label is not None and all(isinstance(one, str) for one in different), len(different) == 2
        known = facts(y)
        low, high, only_two, whole = (known[i, ...] for i in range(N_FACTS))
        two_labels = (only_two == 1) & (low != high)
        if label is not None:
            return whole == 1, two_labels
        # 0 and 1, -1 and 1, or one of these.
        usual = (high == 1) | ((low == high) & (high <= 0))
        return usual & (low >= -1) & (only_two == 1) & (whole == 1), two_labels

    def warn(self, known: Known) -> None:
        """Let scikit-learn warn that there are no positives, or no negatives."""
        for label, there in ((0, known.positives), (1, known.negatives)):
            if not there:
                self.function(np.asarray([label, label]), np.asarray([0.0, 1.0]))
