"""Medians and weighted quantiles of many rows of numbers, in shapes that do not depend on values."""

from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, clip
from manyfit.metrics.kernels._kernel import or_nan
from manyfit.metrics.kernels._regression_targets import constant

Array = Any


def medians(values: Array) -> Array:
    """Medians along the second axis of (m, n) or (m, n, q)."""
    n = values.shape[1]
    lower, upper = (n - 1) // 2, n // 2
    if isinstance(values, np.ndarray):
        # 10 times as fast as sorting a million numbers.
        ordered = np.partition(values, (lower, upper), axis=1)
    else:
        ordered = array_namespace(values).sort(values, axis=1)
    return (ordered[:, lower, ...] + ordered[:, upper, ...]) / 2


def weighted_quantiles(values: Array, weight: Array, level: float) -> Array:
    """Quantiles, (k,), of finite values (k, n) with weights (n,) of their dtype; NaN if all weights are zero.

    A quantile is averaged with the next value where the weights below are exactly `level`, as in
    ``sklearn.utils.stats._weighted_percentile(average=True)`` (1.8 and 1.9); 1.7 takes the lower value. It
    sorts once and needs about four times the memory of the values.
    """
    xp, last = array_namespace(values), values.shape[1] - 1
    order = xp.argsort(values, axis=1, stable=False)
    weights = xp.reshape(xp.take(weight, xp.reshape(order, (-1,))), order.shape)
    below = xp.cumulative_sum(weights, axis=1)
    total = below[:, last:]
    sought = constant(xp, level * 100, values) / 100 * total
    # At level 0, leading values without weight are no quantiles.
    sought = xp.where(
        sought == 0, constant(xp, float(xp.finfo(values.dtype).smallest_normal), sought), sought
    )
    # Counted, since searchsorted takes one row only; clipped, since rounding may exceed the last place.
    place = clip(xp, xp.count_nonzero(below < sought, axis=1, keepdims=True), 0, last)
    reached = xp.take_along_axis(below, place, axis=1)
    after = clip(xp, place + 1, 0, last)
    weighted = xp.count_nonzero(below <= reached, axis=1, keepdims=True)
    weighted = xp.where(weighted > last, place, weighted)
    after = xp.where(xp.take_along_axis(weights, after, axis=1) == 0, weighted, after)
    lower, upper = (
        xp.take_along_axis(values, xp.take_along_axis(order, at, axis=1), axis=1) for at in (place, after)
    )
    above = reached - sought > xp.finfo(values.dtype).eps
    quantiles = xp.where(above, lower, (lower + upper) / 2)
    return or_nan(quantiles, (total != 0) & xp.isfinite(total))[:, 0]


def quantiles_of_rows(values: Array, weight: Array, level: float) -> Array:
    """Weighted quantiles along the second axis of (m, n) or (m, n, q); weights are (n,) or (n, 1)."""
    xp = array_namespace(values)
    weight = xp.reshape(weight, (-1,))
    if values.ndim == 2:
        return weighted_quantiles(values, weight, level)
    m, n, q = values.shape
    lines = xp.reshape(xp.permute_dims(values, (0, 2, 1)), (m * q, n))
    return xp.reshape(weighted_quantiles(lines, weight, level), (m, q))
