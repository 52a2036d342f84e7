"""Weights of positives and negatives scored at least as high as each different score, on a device.

Shapes do not depend on values: places behind the last threshold repeat it.
"""

from dataclasses import dataclass
from typing import Any

from manyfit.arrays import array_namespace, device, float_dtype

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
