"""SciPy's distances under the names that scikit-learn takes, as measures of tiles.

Distances of numbers are sums over features, without products whose terms cancel, as in SciPy. Distances of
sets are counts, from products of indicators.
"""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import pairwise_distances

from manyfit.arrays import array_namespace, clip, to_device_of, to_host
from manyfit.folds import Unsupported
from manyfit.metrics._deferred_checks import as_device_array
from manyfit.metrics.distances._sklearn_measures import differences, product, root
from manyfit.metrics.distances._tiles import Measure

Array = Any


def _bray_curtis(xp: Any, x: Array, y: Array) -> Array:
    together = xp.sum(xp.abs(x[:, None, :] + y[None, :, :]), axis=2)
    return xp.sum(xp.abs(differences(x, y)), axis=2) / together


def _bray_curtis_of_sizes(xp: Any, x: Array, y: Array) -> Array:
    together = xp.sum(xp.abs(x), axis=1)[:, None] + xp.sum(xp.abs(y), axis=1)[None, :]
    return xp.sum(xp.abs(differences(x, y)), axis=2) / xp.where(
        together == 0, xp.ones_like(together), together
    )


def _canberra(xp: Any, x: Array, y: Array) -> Array:
    sizes = xp.abs(x)[:, None, :] + xp.abs(y)[None, :, :]
    terms = xp.abs(differences(x, y))
    terms /= xp.where(sizes == 0, xp.ones_like(sizes), sizes)
    return xp.sum(terms, axis=2)


def _squares(xp: Any, x: Array, y: Array, weight: Array = None) -> Array:
    terms = differences(x, y)
    terms *= terms
    if weight is not None:
        terms *= weight
    return xp.sum(terms, axis=2)


def _scaled_squares(xp: Any, x: Array, y: Array, *, variances: Array) -> Array:
    terms = differences(x, y)
    terms *= terms
    terms /= variances
    return xp.sum(terms, axis=2)


def _in_metric(xp: Any, x: Array, y: Array, *, inverse: Array) -> Array:
    between = differences(x, y)
    rows = xp.reshape(between, (-1, between.shape[2]))
    return xp.reshape(xp.sum((rows @ inverse) * rows, axis=1), between.shape[:2])


def _powers(xp: Any, x: Array, y: Array, *, p: float, weight: Array) -> Array:
    terms = xp.abs(differences(x, y)) ** p
    if weight is not None:
        terms *= weight
    return xp.sum(terms, axis=2)


def _correlation(xp: Any, x: Array, y: Array) -> Array:
    """One less the correlation of two rows; NaN for a constant row."""
    x, y = (rows - xp.mean(rows, axis=1, keepdims=True) for rows in (x, y))
    x, y = (rows / xp.sqrt(xp.sum(rows * rows, axis=1, keepdims=True)) for rows in (x, y))
    return 1.0 - clip(xp, product(xp, x, y), low=-1.0, high=1.0)


# From numbers of features: in both rows, only in the first, only in the second, and in all.
Counts = Callable[[Any, Array, Array, Array, int], Array]


def _set_measure(score: Counts) -> Measure:
    def tile(xp: Any, x: Array, y: Array) -> Array:
        x, y = (xp.astype(rows != 0, rows.dtype) for rows in (x, y))
        both = product(xp, x, y)
        first, second = xp.sum(x, axis=1)[:, None] - both, xp.sum(y, axis=1)[None, :] - both
        return score(xp, both, first, second, x.shape[1])

    return Measure(tile, itself=0.0)


def _or_zero(xp: Any, part: Array, whole: Array) -> Array:
    return part / xp.where(part == 0, xp.ones_like(whole), whole)


def _yule(xp: Any, both: Array, first: Array, second: Array, d: int) -> Array:
    unlike, neither = first * second, d - both - first - second
    return _or_zero(xp, 2 * unlike, both * neither + unlike)


NUMBER_MEASURES = {
    "braycurtis": Measure(_bray_curtis, wide=True, itself=0.0),
    "canberra": Measure(_canberra, wide=True),
    "chebyshev": Measure(lambda xp, x, y: xp.max(xp.abs(differences(x, y)), axis=2), wide=True),
    # SciPy sets the diagonal to 0 without computing it, also for a constant row.
    "correlation": Measure(_correlation, itself=0.0),
    "hamming": Measure(
        lambda xp, x, y: xp.mean(xp.astype(x[:, None, :] != y[None, :, :], x.dtype), axis=2), wide=True
    ),
    "sqeuclidean": Measure(_squares, wide=True),
}
# The formula of `sklearn.metrics.DistanceMetric`, with which scikit-learn looks for the nearest rows.
BRAY_CURTIS_BY_SIZES = Measure(_bray_curtis_of_sizes, wide=True)
SET_MEASURES = {
    "dice": _set_measure(lambda xp, both, one, other, d: (one + other) / (2 * both + one + other)),
    "jaccard": _set_measure(lambda xp, both, one, other, d: _or_zero(xp, one + other, both + one + other)),
    "rogerstanimoto": _set_measure(lambda xp, both, one, other, d: 2 * (one + other) / (d + one + other)),
    "russellrao": _set_measure(lambda xp, both, one, other, d: (d - both) / d),
    "sokalsneath": _set_measure(
        lambda xp, both, one, other, d: 2 * (one + other) / (both + 2 * (one + other))
    ),
    "yule": _set_measure(_yule),
}


def scipy_distance(metric: str, X: Array, *, same: bool, options: Mapping[str, Any]) -> Measure:
    """The measure of one of SciPy's distances with its options, or Unsupported; `same` says that X is Y."""
    given = {name: value for name, value in options.items() if value is not None}
    made = {"minkowski": ("p", "w"), "seuclidean": ("V",), "mahalanobis": ("VI",)}
    strange = set(given) - set(made.get(metric, ()))
    if strange:
        raise Unsupported(f"metric={metric!r} with {min(strange)}")
    if metric in NUMBER_MEASURES:
        return NUMBER_MEASURES[metric]
    if metric in SET_MEASURES:
        return SET_MEASURES[metric]
    if metric not in made:
        raise Unsupported(f"metric={metric!r}")
    xp = array_namespace(X)
    array = given.get(made[metric][-1])
    array = None if array is None else xp.astype(as_device_array(array, X), X.dtype)
    if metric == "minkowski":
        return _minkowski(float(given.get("p", 2)), array)
    if array is None and not same:
        # scikit-learn names the missing option.
        pairwise_distances(np.eye(2), np.zeros((2, 2)), metric=metric)
    if metric == "seuclidean":
        variances = xp.var(X, axis=0, correction=1) if array is None else array
        return Measure(partial(_scaled_squares, variances=variances), root, wide=True, itself=0.0)
    inverse = _inverse_covariance(X) if array is None else array
    return Measure(partial(_in_metric, inverse=inverse), root, wide=True)


def _minkowski(p: float, weight: Array) -> Measure:
    if not p > 0 or (p == inf and weight is not None):
        raise Unsupported(f"metric='minkowski' with p={p}")
    if p == inf:
        return NUMBER_MEASURES["chebyshev"]
    if p == 2:
        return Measure(partial(_squares, weight=weight), root, wide=True)
    return Measure(partial(_powers, p=p, weight=weight), lambda xp, sums: sums ** (1 / p), wide=True)


def _inverse_covariance(X: Array) -> Array:
    """Inverse covariance by NumPy: it raises for a singular matrix, where CuPy returns numbers."""
    xp, n = array_namespace(X), X.shape[0]
    centred = X - xp.mean(X, axis=0)
    return to_device_of(np.linalg.inv(to_host(xp.matrix_transpose(centred) @ centred / (n - 1))), X)


def warn_boolean_conversion(metric: Any, *data: Any) -> None:
    """Warn as scikit-learn does if a metric of sets reads numbers."""
    if metric in SET_MEASURES and any(
        not str(getattr(array, "dtype", "")).endswith("bool") for array in data
    ):
        warnings.warn(
            f"Data was converted to boolean for metric {metric}", DataConversionWarning, stacklevel=3
        )
