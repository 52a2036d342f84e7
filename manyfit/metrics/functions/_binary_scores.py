"""Scores of two classes on a device with their labels, and scikit-learn's checks of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, float_dtype, to_device_of, to_host
from manyfit.metrics.functions._representative_rows import N_FACTS, raise_sklearn_error, value_facts
from manyfit.metrics.functions._threshold_counts import ThresholdCounts, count_at_thresholds

Array = Any


def _is_label(values: Array, label: Any) -> Array:
    """Which values equal a label of any type."""
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
class CurveFacts:
    """Facts about a curve that the host has read."""

    numbers: list[int]
    positives: bool
    negatives: bool
    two_labels: bool


@dataclass(frozen=True)
class BinaryScores:
    """Scores of two classes, (n,), on a device, for one of scikit-learn's functions with its options.

    Labels, (n,), are on host or device; weights are where the scores are, or None.
    """

    function: Callable[..., Any]
    y_true: Any
    scores: Array
    weight: Array | None
    options: dict[str, Any]

    def points(self) -> ThresholdCounts:
        """The different scores of rows with weight."""
        if any(array is not None and array.ndim != 1 for array in (self.y_true, self.scores, self.weight)):
            self.refuse()
        label = self.options["pos_label"]
        positive = _is_label(self.y_true, 1 if label is None else label)
        return count_at_thresholds(self.scores, to_device_of(positive, self.scores), self.weight)

    def refuse(self) -> None:
        """Raise scikit-learn's error for the data."""
        arrays = {"y_true": self.y_true, "y_score": self.scores, "sample_weight": self.weight}
        raise_sklearn_error(self.function, arrays, self.options)

    def read(self, points: ThresholdCounts, *numbers: Array) -> CurveFacts:
        """Facts of the data and some 0-d integers, read in one transfer; raises scikit-learn's errors."""
        xp, w = array_namespace(points.fps), self.weight
        fine = xp.all(xp.isfinite(xp.astype(self.scores, float_dtype(self.scores))))
        if w is not None:
            fine = fine & xp.all(xp.isfinite(w)) & xp.any(w != 0)
        targets = [np.asarray(flag) if isinstance(flag, bool) else flag for flag in self._targets()]
        flags = (
            fine,
            *(to_device_of(flag, fine) for flag in targets),
            points.tps[-1] > 0,
            points.fps[-1] > 0,
        )
        found = to_host(xp.stack([xp.astype(one, xp.int64) for one in (*flags, *numbers)])).tolist()
        fine, valid, two_labels, positives, negatives = map(bool, found[:5])
        if not (fine and valid):
            self.refuse()
        return CurveFacts(found[5:], positives, negatives, two_labels)

    def _targets(self) -> tuple[Any, Any]:
        """Whether scikit-learn accepts the targets, and whether they are two labels, on host or device."""
        y, label = self.y_true, self.options["pos_label"]
        if isinstance(y, np.ndarray) and y.dtype.kind not in "biuf":
            different = set(y.tolist())
            return label is not None and all(isinstance(one, str) for one in different), len(different) == 2
        known = value_facts(y)
        low, high, only_two, whole = (known[i, ...] for i in range(N_FACTS))
        two_labels = (only_two == 1) & (low != high)
        if label is not None:
            return whole == 1, two_labels
        # 0 and 1, -1 and 1, or one of these.
        usual = (high == 1) | ((low == high) & (high <= 0))
        return usual & (low >= -1) & (only_two == 1) & (whole == 1), two_labels

    def warn(self, known: CurveFacts) -> None:
        """Let scikit-learn warn about missing positives or negatives."""
        for label, present in ((0, known.positives), (1, known.negatives)):
            if not present:
                self.function(np.asarray([label, label]), np.asarray([0.0, 1.0]))
