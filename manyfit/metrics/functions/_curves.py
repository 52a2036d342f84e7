"""ROC, precision-recall and DET curves of scores on a device, with a point for each different score.

Shapes do not depend on values until the number of points reaches the host, with what scikit-learn would
refuse or warn about, in one transfer.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.metrics
from sklearn.metrics import auc, det_curve, precision_recall_curve, roc_curve

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of, to_host
from manyfit.metrics.functions._binary_scores import BinaryScores
from manyfit.metrics.functions._structured_results import StructuredMetric
from manyfit.metrics.kernels.labels._counts import ratio

Array = Any

# Longest array that NumPy prints in full.
SHOWN = 1000


def _at_thresholds(rows: BinaryScores, drop_intermediate: bool) -> tuple[Array, ...]:
    points = rows.points()
    (count,) = rows.read(points, points.count).numbers
    fps, tps = points.fps[:count], points.tps[:count]
    return fps[-1] - fps, fps, tps[-1] - tps, tps, points.thresholds[:count]


def _changed(values: Array) -> Array:
    """Which values but the first and the last differ from a neighbour."""
    different = values[1:] != values[:-1]
    return different[:-1] | different[1:]


def _is_corner(values: Array) -> Array:
    """At which values but the first and the last the step changes."""
    step = values[1:] - values[:-1]
    return step[1:] != step[:-1]


def _roc(rows: BinaryScores, drop_intermediate: bool) -> tuple[Array, Array, Array]:
    points = rows.points()
    if drop_intermediate and points.tps.shape[0] > 2:
        points = points.select(points.ends(_is_corner(points.fps) | _is_corner(points.tps)))
    points = points.after_nothing()
    known = rows.read(points, points.count)
    rows.warn(known)
    end = known.numbers[0]
    fps, tps = points.fps[:end], points.tps[:end]
    undefined = array_namespace(tps).full_like(tps, np.nan)
    return (
        fps / fps[-1] if known.negatives else undefined,
        tps / tps[-1] if known.positives else undefined,
        points.thresholds[:end],
    )


def _precision_recall(rows: BinaryScores, drop_intermediate: bool) -> tuple[Array, Array, Array]:
    points = rows.points()
    if drop_intermediate and points.tps.shape[0] > 2:
        points = points.select(points.ends(_changed(points.tps)))
    known = rows.read(points, points.count)
    rows.warn(known)
    xp, end = array_namespace(points.tps), known.numbers[0]
    tps, fps = points.tps[:end], points.fps[:end]
    precision = ratio(tps, tps + fps, 0.0)
    recall = tps / tps[-1] if known.positives else xp.ones_like(tps)
    last = xp.ones_like(tps[:1])
    return (
        xp.concat([xp.flip(precision), last]),
        xp.concat([xp.flip(recall), 0 * last]),
        xp.flip(points.thresholds[:end]),
    )


def _det(rows: BinaryScores, drop_intermediate: bool) -> tuple[Array, Array, Array]:
    points = rows.points().after_nothing()
    if drop_intermediate and points.tps.shape[0] > 2:
        points = points.select(points.ends(_changed(points.tps)))
    xp = array_namespace(points.tps)
    valid = xp.arange(points.tps.shape[0], dtype=xp.int64, device=device(points.tps)) < points.count
    # From the last point without false positives to the first one without false negatives.
    start = xp.count_nonzero(valid & (points.fps <= points.fps[0])) - 1
    end = xp.count_nonzero(valid & (points.tps < points.tps[-1])) + 1
    known = rows.read(points, start, end)
    if not known.two_labels:
        rows.refuse()
    part = slice(*known.numbers)
    fns = points.tps[-1] - points.tps
    return (
        xp.flip(points.fps[part]) / points.fps[-1],
        xp.flip(fns[part]) / points.tps[-1],
        xp.flip(points.thresholds[part]),
    )


def _area(function: Callable[..., Any], x: Any, y: Array, _: None) -> Array:
    """The area under points; for the error message, the host reads x, or the ends of a long x."""
    if x.ndim != 1 or y.ndim != 1 or x.shape[0] < 2:
        function(*(np.broadcast_to(0.0, array.shape) for array in (x, y)))
    xp = array_namespace(y)
    given, dtype = to_device_of(x, y), float_dtype(y)
    x, y = xp.astype(given, dtype), xp.astype(y, dtype)
    step = x[1:] - x[:-1]
    falls = xp.any(step < 0)
    if to_host(falls & xp.any(step > 0)):
        ends = given if given.shape[0] <= SHOWN else xp.concat([given[:3], given[-3:]])
        shown = to_host(ends)
        if ends is not given:
            middle = np.resize(np.asarray([0, 1], dtype=shown.dtype), SHOWN)
            shown = np.concatenate([shown[:3], middle, shown[3:]])
        function(shown, shown)
    area = xp.sum(step * (y[1:] + y[:-1])) / 2
    return xp.where(falls, -area, area)


def _curve(curve: Callable[[BinaryScores, bool], tuple[Array, ...]]) -> StructuredMetric:
    """The metric whose result is a curve of scores of two classes."""

    def compute(
        function: Callable[..., Any],
        y_true: Any,
        scores: Array,
        weight: Array | None,
        *,
        drop_intermediate: bool = False,
        **options: Any,
    ) -> tuple[Array, ...]:
        return curve(BinaryScores(function, y_true, scores, weight, options), drop_intermediate)

    return StructuredMetric(compute, "the number of points and whether the data are valid, together")


CURVES: dict[Callable[..., Any], StructuredMetric] = {
    roc_curve: _curve(_roc),
    precision_recall_curve: _curve(_precision_recall),
    det_curve: _curve(_det),
    auc: StructuredMetric(_area, "whether `x` is in order"),
}
if hasattr(sklearn.metrics, "confusion_matrix_at_thresholds"):  # since 1.8
    CURVES[sklearn.metrics.confusion_matrix_at_thresholds] = _curve(_at_thresholds)
