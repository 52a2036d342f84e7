"""Curves of the scores of two classes on a device, with as many points as there are different scores.

Everything is computed in shapes that do not depend on the data. How many points there are, and what
scikit-learn would refuse or warn of, then comes home in one go.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.metrics
from sklearn.metrics import auc, det_curve, precision_recall_curve, roc_curve

from manyfit.arrays import array_namespace, device, float_dtype, to_device_of, to_host
from manyfit.metrics.functions._binary_scores import Scored
from manyfit.metrics.functions._structured_results import Whole
from manyfit.metrics.kernels.labels._counts import ratio

Array = Any

# Longest array that NumPy prints in full.
SHOWN = 1000


def _at_thresholds(
    function: Callable[..., Any], y_true: Any, scores: Array, weight: Array | None, **options: Any
) -> tuple[Array, ...]:
    rows = Scored(function, y_true, scores, weight, options)
    of = rows.points()
    (count,) = rows.bring_home(of, of.count).numbers
    fps, tps = of.fps[:count], of.tps[:count]
    return fps[-1] - fps, fps, tps[-1] - tps, tps, of.thresholds[:count]


def _changed(values: Array) -> Array:
    """Which values but the first and the last differ from one of their neighbours."""
    different = values[1:] != values[:-1]
    return different[:-1] | different[1:]


def _is_corner(values: Array) -> Array:
    """At which values but the first and the last the step changes."""
    step = values[1:] - values[:-1]
    return step[1:] != step[:-1]


def _roc(
    function: Callable[..., Any],
    y_true: Any,
    scores: Array,
    weight: Array | None,
    *,
    drop_intermediate: bool,
    **options: Any,
) -> tuple[Array, Array, Array]:
    rows = Scored(function, y_true, scores, weight, options)
    of = rows.points()
    if drop_intermediate and of.tps.shape[0] > 2:
        of = of.kept(of.ends(_is_corner(of.fps) | _is_corner(of.tps)))
    of = of.after_nothing()
    known = rows.bring_home(of, of.count)
    rows.warn(known)
    end = known.numbers[0]
    fps, tps = of.fps[:end], of.tps[:end]
    undefined = array_namespace(tps).full_like(tps, np.nan)
    return (
        fps / fps[-1] if known.negatives else undefined,
        tps / tps[-1] if known.positives else undefined,
        of.thresholds[:end],
    )


def _precision_recall(
    function: Callable[..., Any],
    y_true: Any,
    scores: Array,
    weight: Array | None,
    *,
    drop_intermediate: bool,
    **options: Any,
) -> tuple[Array, Array, Array]:
    rows = Scored(function, y_true, scores, weight, options)
    of = rows.points()
    if drop_intermediate and of.tps.shape[0] > 2:
        of = of.kept(of.ends(_changed(of.tps)))
    known = rows.bring_home(of, of.count)
    rows.warn(known)
    xp, end = array_namespace(of.tps), known.numbers[0]
    tps, fps = of.tps[:end], of.fps[:end]
    precision = ratio(tps, tps + fps, 0.0)
    recall = tps / tps[-1] if known.positives else xp.ones_like(tps)
    last = xp.ones_like(tps[:1])
    return (
        xp.concat([xp.flip(precision), last]),
        xp.concat([xp.flip(recall), 0 * last]),
        xp.flip(of.thresholds[:end]),
    )


def _det(
    function: Callable[..., Any],
    y_true: Any,
    scores: Array,
    weight: Array | None,
    *,
    drop_intermediate: bool,
    **options: Any,
) -> tuple[Array, Array, Array]:
    rows = Scored(function, y_true, scores, weight, options)
    of = rows.points().after_nothing()
    if drop_intermediate and of.tps.shape[0] > 2:
        of = of.kept(of.ends(_changed(of.tps)))
    xp = array_namespace(of.tps)
    valid = xp.arange(of.tps.shape[0], dtype=xp.int64, device=device(of.tps)) < of.count
    # From the last point without false positives to the first one without false negatives.
    start = xp.count_nonzero(valid & (of.fps <= of.fps[0])) - 1
    end = xp.count_nonzero(valid & (of.tps < of.tps[-1])) + 1
    known = rows.bring_home(of, start, end)
    if not known.two_labels:
        rows.refuse()
    part = slice(*known.numbers)
    fns = of.tps[-1] - of.tps
    return (
        xp.flip(of.fps[part]) / of.fps[-1],
        xp.flip(fns[part]) / of.tps[-1],
        xp.flip(of.thresholds[part]),
    )


def _area(function: Callable[..., Any], x: Any, y: Array, _: None) -> Array:
    """The area under points; x comes home if it is refused, of many points the ends only."""
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


_ONCE = "how many points there are, and whether the data is fit for them, both in one go"

CURVES: dict[Callable[..., Any], Whole] = {
    roc_curve: Whole(_roc, _ONCE),
    precision_recall_curve: Whole(_precision_recall, _ONCE),
    det_curve: Whole(_det, _ONCE),
    auc: Whole(_area, "whether `x` is in order"),
}
if hasattr(sklearn.metrics, "confusion_matrix_at_thresholds"):  # since 1.8
    CURVES[sklearn.metrics.confusion_matrix_at_thresholds] = Whole(_at_thresholds, _ONCE)
