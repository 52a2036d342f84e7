"""Scores of two classes on a device: scikit-learn's checks of them, and counts at each different score.

Shapes do not depend on values: places behind the last threshold repeat it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of, to_host
from manyfit.metrics.functions._representative_rows import N_FACTS, raise_sklearn_error, value_facts

Array = Any


@dataclass(frozen=True)
class ThresholdCounts:
    """Weights of negatives and positives scored at least as high as each threshold, from the highest.

    All are (n,); `count`, a 0-d int64 array, is the number of thresholds. The last one fills the places
    behind it.
    """

    fps: Array
    tps: Array
    thresholds: Array
    count: Array

    def select(self, keep: Array) -> "ThresholdCounts":
        """The points of a mask, (n,)."""
        xp = array_namespace(keep)
        places, count = true_places(keep)
        fps, tps, thresholds = (xp.take(part, places) for part in (self.fps, self.tps, self.thresholds))
        return ThresholdCounts(fps, tps, thresholds, count)

    def ends(self, interior: Array) -> Array:
        """A mask of the first and the last point, and of `interior`, (n - 2,), between them."""
        xp, n = array_namespace(self.fps), self.fps.shape[0]
        true = xp.ones(1, dtype=xp.bool, device=device(interior))
        places = xp.arange(n, dtype=xp.int64, device=device(interior))
        mask = xp.concat([true, interior, true]) | (places == self.count - 1)
        return mask & (places < self.count)

    def after_nothing(self) -> "ThresholdCounts":
        """The points behind one with the threshold infinity, which no score reaches."""
        xp, dtype = array_namespace(self.fps), self.fps.dtype
        nothing = xp.zeros(1, dtype=dtype, device=device(self.fps))
        above = xp.full(1, xp.inf, dtype=dtype, device=device(self.fps))
        thresholds = xp.astype(self.thresholds, dtype)
        return ThresholdCounts(
            xp.concat([nothing, self.fps]),
            xp.concat([nothing, self.tps]),
            xp.concat([above, thresholds]),
            self.count + 1,
        )


def true_places(mask: Array) -> tuple[Array, Array]:
    """Places where a mask, (n,), is true, the last one repeated to (n,), and their number."""
    xp, n = array_namespace(mask), mask.shape[0]
    so_far = xp.cumulative_sum(xp.astype(mask, xp.int64))
    ordinals = xp.arange(1, n + 1, dtype=xp.int64, device=device(mask))
    return xp.searchsorted(so_far, xp.minimum(ordinals, so_far[-1])), so_far[-1]


def count_at_thresholds(scores: Array, positive: Array, weight: Array | None) -> ThresholdCounts:
    """The different scores, (n,), of rows with weight."""
    xp, dtype = array_namespace(scores), float_dtype(scores)
    keys = xp.astype(scores, xp.int8) if xp.isdtype(scores.dtype, "bool") else scores
    # Stable, so that weights of equal scores are summed in scikit-learn's order.
    order = xp.argsort(keys, descending=True, stable=True)
    counted = xp.ones_like(positive)
    if weight is not None:
        no_weight = xp.astype(xp.take(weight, order) == 0, xp.int8)
        order = xp.take(order, xp.argsort(no_weight, stable=True))
        counted = xp.take(weight, order) != 0
    keys, positive = xp.take(keys, order), xp.take(positive, order)
    last = xp.ones_like(counted[:1])
    last = xp.concat([(keys[1:] != keys[:-1]) | ~counted[1:], last]) & counted
    places, count = true_places(last)
    if weight is None:
        tps = xp.take(xp.cumulative_sum(xp.astype(positive, dtype)), places)
        fps = xp.astype(places + 1, dtype) - tps
    else:
        w = xp.astype(xp.take(weight, order), dtype)
        # A sum of its own, not a difference, which rounding could make decrease.
        sums = (xp.where(side, w, xp.zeros_like(w)) for side in (positive, ~positive))
        tps, fps = (xp.take(xp.cumulative_sum(side), places) for side in sums)
    return ThresholdCounts(fps, tps, xp.take(xp.take(scores, order), places), count)


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
