"""scikit-learn's own distances and kernels of pairs of rows, as measures of tiles.

Where terms cancel, as in squared distances from a product, float32 rows are computed in the widest floating
dtype, tile by tile, as in scikit-learn.
"""

from collections.abc import Callable
from math import isnan
from typing import Any

from manyfit.arrays import clip, device, float_dtype
from manyfit.metrics.distances._tiles import Measure

Array = Any


def product(xp: Any, x: Array, y: Array) -> Array:
    """Inner products of rows, (a, b)."""
    return x @ xp.matrix_transpose(y)


def widen(xp: Any, *arrays: Array) -> list[Array]:
    """Arrays in the widest floating dtype of their device."""
    return [xp.astype(array, float_dtype(array), copy=False) for array in arrays]


def squares(xp: Any, x: Array, y: Array) -> Array:
    """Squared Euclidean distances from one product."""
    x, y = widen(xp, x, y)
    values = product(xp, x, y)
    values *= -2.0
    values += xp.sum(x * x, axis=1)[:, None]
    values += xp.sum(y * y, axis=1)[None, :]
    return clip(xp, values, low=0.0)


def root(xp: Any, values: Array) -> Array:
    """Square roots."""
    return xp.sqrt(values)


EUCLIDEAN = Measure(squares, root, itself=0.0)
SQUARED = Measure(squares, itself=0.0)


def differences(x: Array, y: Array) -> Array:
    """Differences of rows, (a, b, d)."""
    return x[:, None, :] - y[None, :, :]


def absolute(xp: Any, x: Array, y: Array) -> Array:
    """Sums of absolute differences."""
    return xp.sum(xp.abs(differences(x, y)), axis=2)


MANHATTAN = Measure(absolute, wide=True)


def normalize_rows(xp: Any, x: Array) -> Array:
    """Rows of length one; shorter than 10 eps they stay, as in `sklearn.preprocessing.normalize`."""
    lengths = xp.sqrt(xp.sum(x * x, axis=1))
    nothing = lengths < 10 * xp.finfo(x.dtype).eps
    return x / xp.where(nothing, xp.ones_like(lengths), lengths)[:, None]


def similarity(xp: Any, x: Array, y: Array) -> Array:
    """Cosines of the angles between rows."""
    return product(xp, normalize_rows(xp, x), normalize_rows(xp, y))


def angle(xp: Any, x: Array, y: Array) -> Array:
    """One less the cosine."""
    return clip(xp, 1.0 - similarity(xp, x, y), low=0.0, high=2.0)


COSINE = Measure(angle, itself=0.0)


def great_circle(xp: Any, x: Array, y: Array) -> Array:
    """The squared half chord of two points on the unit sphere, given as latitude and longitude."""
    north, east = (xp.sin(0.5 * (x[:, k][:, None] - y[:, k][None, :])) for k in (0, 1))
    north *= north
    east *= east
    east *= xp.cos(x[:, 0])[:, None]
    east *= xp.cos(y[:, 0])[None, :]
    return north + east


HAVERSINE = Measure(great_circle, lambda xp, values: 2.0 * xp.asin(xp.sqrt(values)))


def nan_euclidean(missing: float, *, squared: bool) -> Measure:
    """Distances over the columns known in both rows, scaled up to all; NaN if no column is.

    See ``sklearn.metrics.pairwise.nan_euclidean_distances`` (1.7 to 1.9).
    """

    def tile(xp: Any, x: Array, y: Array) -> Array:
        d = x.shape[1]
        x, y = widen(xp, x, y)
        gaps = [xp.isnan(rows) if isnan(missing) else rows == missing for rows in (x, y)]
        x, y = (xp.where(gap, xp.zeros_like(rows), rows) for gap, rows in zip(gaps, (x, y), strict=True))
        no_x, no_y = (xp.astype(gap, x.dtype) for gap in gaps)
        values = squares(xp, x, y) - product(xp, x * x, no_y) - product(xp, no_x, y * y)
        both = product(xp, 1.0 - no_x, 1.0 - no_y)
        scaled = clip(xp, values, low=0.0) / clip(xp, both, low=1.0) * float(d)
        return xp.where(both == 0, xp.full((), float("nan"), dtype=x.dtype, device=device(x)), scaled)

    # A row of NaN only has no distance to itself.
    return Measure(tile, None if squared else root, itself=0.0, nan_stays=True)


def negative_chi2(xp: Any, x: Array, y: Array) -> Array:
    """Negative sums of squared differences over sums."""
    a, b = x[:, None, :], y[None, :, :]
    total = a + b
    terms = a - b
    terms *= terms
    terms /= xp.where(total == 0, xp.ones_like(total), total)
    return -xp.sum(terms, axis=2)


# Kernels


def with_default_gamma(make: Callable[..., Measure]) -> Callable[..., Measure]:
    """A kernel whose default `gamma` is one over the number of features."""

    def measure(n_features: int, *, gamma: float | None = None, **options: Any) -> Measure:
        return make(1.0 / n_features if gamma is None else float(gamma), **options)

    return measure


def _product_kernel(gamma: float, coef0: float, last: Callable[[Any, Array], Array]) -> Measure:
    def tile(xp: Any, x: Array, y: Array) -> Array:
        values = product(xp, x, y)
        values *= gamma
        values += float(coef0)
        return last(xp, values)

    return Measure(tile)


@with_default_gamma
def polynomial(gamma: float, degree: float = 3, coef0: float = 1) -> Measure:
    """See `sklearn.metrics.pairwise.polynomial_kernel`."""
    return _product_kernel(gamma, coef0, lambda xp, values: values ** float(degree))


@with_default_gamma
def sigmoid(gamma: float, coef0: float = 1) -> Measure:
    """See `sklearn.metrics.pairwise.sigmoid_kernel`."""
    return _product_kernel(gamma, coef0, lambda xp, values: xp.tanh(values))


def _decay(gamma: float, distance: Measure) -> Measure:
    return Measure(
        lambda xp, x, y: xp.exp(-gamma * distance.tile(xp, x, y)),
        wide=distance.wide,
        itself=None if distance.itself is None else 1.0,
    )


rbf = with_default_gamma(lambda gamma: _decay(gamma, SQUARED))
laplacian = with_default_gamma(lambda gamma: _decay(gamma, MANHATTAN))


def chi2(n_features: int, *, gamma: float = 1.0) -> Measure:
    """See `sklearn.metrics.pairwise.chi2_kernel`."""
    return Measure(lambda xp, x, y: xp.exp(float(gamma) * negative_chi2(xp, x, y)), wide=True)


ADDITIVE_CHI2 = Measure(negative_chi2, wide=True)
LINEAR = Measure(product)
SIMILARITY = Measure(similarity)
# By name: from the number of features and options to a measure.
KERNELS: dict[str, Callable[..., Measure]] = {
    "additive_chi2": lambda n_features: ADDITIVE_CHI2,
    "chi2": chi2,
    "cosine": lambda n_features: SIMILARITY,
    "laplacian": laplacian,
    "linear": lambda n_features: LINEAR,
    "poly": polynomial,
    "polynomial": polynomial,
    "rbf": rbf,
    "sigmoid": sigmoid,
}
