"""scikit-learn's functions of pairs of rows, of arrays on a device."""

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import sklearn.metrics.pairwise as theirs

from manyfit.arrays import array_namespace
from manyfit.folds import Unsupported
from manyfit.metrics._deferred_checks import Doubt, brought, not_finite, pair_of, settle, stand_in, told
from manyfit.metrics.distances._scipy_measures import (
    BRAY_CURTIS_OF_SIZES,
    OF_SETS,
    scipy_distance,
    warn_of_sets,
)
from manyfit.metrics.distances._sklearn_measures import (
    COSINE,
    EUCLIDEAN,
    HAVERSINE,
    KERNELS,
    MANHATTAN,
    SQUARED,
    partly_known,
)
from manyfit.metrics.distances._tiles import Measure, matrix, nearest

Array = Any

# Under the names that scikit-learn has for them, and of `pairwise_distances`.
OWN = {
    "cityblock": MANHATTAN,
    "cosine": COSINE,
    "euclidean": EUCLIDEAN,
    "haversine": HAVERSINE,
    "l1": MANHATTAN,
    "l2": EUCLIDEAN,
    "manhattan": MANHATTAN,
}


def distance(metric: Any, X: Array, *, same: bool, options: Mapping[str, Any]) -> Measure:
    """The measure of a metric of `pairwise_distances`, or Unsupported.

    Parameters
    ----------
    metric : str or callable
        As there.
    X : array of shape (n_x, d)
        What is measured, of a floating dtype.
    same : bool
        Whether there is no other Y.
    options : mapping
        Other keyword arguments.
    """
    if not isinstance(metric, str):
        raise Unsupported("a metric that is called for each pair")
    if metric == "nan_euclidean":
        known = {"missing_values": np.nan, "squared": False, "copy": True}
        if set(options) <= set(known):
            chosen = known | dict(options)
            return partly_known(float(chosen["missing_values"]), squared=chosen["squared"])
    elif metric in OWN:
        if metric in ("euclidean", "l2") and set(options) == {"squared"}:
            return SQUARED if options["squared"] else EUCLIDEAN
        if metric == "haversine" and X.shape[1] != 2:
            theirs.haversine_distances(np.zeros((1, X.shape[1])))
        if not options:
            return OWN[metric]
    else:
        return scipy_distance(metric, X, same=same, options=options)
    raise Unsupported(f"metric={metric!r} with {min(options)}")


def measured(
    metric: Any, X: Any, Y: Any, there: Array, options: Mapping[str, Any]
) -> tuple[Measure, Array, Array, list[Doubt]]:
    """Measure, X, Y and what is in doubt, of data as they were given."""
    x, y, doubts = pair_of(X, Y, there)
    if metric in OF_SETS:
        warn_of_sets(metric, X, *(() if Y is None else (Y,)))
        doubts = []  # NaN is something
    elif metric == "nan_euclidean" and np.isnan(options.get("missing_values", np.nan)):
        check = partial(theirs.check_pairwise_arrays, Y=None, ensure_all_finite="allow-nan")
        doubts = [d for a in ([x] if x is y else [x, y]) for d in not_finite(a, check, allow_nan=True)]
    return distance(metric, x, same=y is x, options=options), x, y, doubts


def distances_of(
    there: Array,
    X: Any,
    Y: Any = None,
    metric: Any = "euclidean",
    *,
    n_jobs: int | None = None,
    ensure_all_finite: Any = True,
    **options: Any,
) -> Array:
    """See `sklearn.metrics.pairwise_distances`."""
    every = not isinstance(ensure_all_finite, str) and bool(ensure_all_finite)
    if metric == "precomputed":
        x, doubts = given_distances(X, Y, there)
        settle(doubts if every else doubts[-1:])
        return x
    if not every and metric not in (*OWN, "nan_euclidean", *OF_SETS):
        raise Unsupported(f"ensure_all_finite={ensure_all_finite!r}")
    measure, x, y, doubts = measured(metric, X, Y, there, options)
    settle(doubts)
    return matrix(measure, x, y, same=y is x)


def given_distances(X: Any, Y: Any, there: Array) -> tuple[Array, list[Doubt]]:
    """Distances computed before, and what may be wrong with them, last of all that some are negative."""
    x, _, doubts = pair_of(X, Y, there, precomputed=True)

    def negative() -> None:
        theirs.pairwise_distances(np.full((1, 1), -1.0), metric="precomputed")

    return x, [*doubts, (array_namespace(x).any(x < 0), negative)]


def _named(metric: str) -> Callable[..., Array]:
    def of_metric(there: Array, X: Any, Y: Any = None, **options: Any) -> Array:
        return distances_of(there, X, Y, metric, **options)

    return of_metric


def _euclidean(
    there: Array,
    X: Any,
    Y: Any = None,
    *,
    Y_norm_squared: Any = None,
    squared: bool = False,
    X_norm_squared: Any = None,
) -> Array:
    """Norms that are given are not used, but for their shapes: they cost nothing beside the product."""
    norms = {"X_norm_squared": (X, X_norm_squared), "Y_norm_squared": (X if Y is None else Y, Y_norm_squared)}
    for name, (data, norm) in norms.items():
        rows = stand_in(brought(data, there))
        norm = None if norm is None else stand_in(brought(norm, there))
        if norm is not None and rows.ndim == 2 and norm.shape not in ((n := len(rows),), (n, 1), (1, n)):
            of_both = (rows, rows[:1]) if data is X else (rows[:1], rows)
            told(theirs.euclidean_distances, *of_both, **{name: norm})
    return distances_of(there, X, Y, "euclidean", squared=squared)


def _nearest(
    there: Array, X: Any, Y: Any, *, axis: int = 1, metric: Any = "euclidean", metric_kwargs: Any = None
) -> tuple[Array, Array]:
    """See `sklearn.metrics.pairwise_distances_argmin_min`."""
    if axis == 0:
        X, Y = Y, X
    measure, x, y, doubts = measured(metric, X, Y, there, dict(metric_kwargs or {}))
    settle(doubts)
    if metric == "braycurtis":
        measure = BRAY_CURTIS_OF_SIZES
    return nearest(measure, x, y, same=y is x)


def kernels_of(
    there: Array,
    X: Any,
    Y: Any = None,
    metric: Any = "linear",
    *,
    filter_params: bool = False,
    n_jobs: int | None = None,
    **options: Any,
) -> Array:
    """See `sklearn.metrics.pairwise.pairwise_kernels`."""
    if not isinstance(metric, str):
        raise Unsupported("a kernel that is called for each pair")
    x, y, doubts = pair_of(X, Y, there, precomputed=metric == "precomputed")
    if metric == "precomputed":
        settle(doubts)
        return x
    if filter_params:
        options = {name: value for name, value in options.items() if name in theirs.KERNEL_PARAMS[metric]}
    strange = set(options) - set(theirs.KERNEL_PARAMS[metric])
    if strange or not all(value is None or isinstance(value, Real) for value in options.values()):
        raise Unsupported(f"metric={metric!r} with {', '.join(sorted(strange)) or 'an array for a number'}")
    if "chi2" in metric:
        doubts += [(array_namespace(x).any(x < 0), lambda: theirs.additive_chi2_kernel([[-1.0]]))]
        doubts += [(array_namespace(x).any(y < 0), lambda: theirs.additive_chi2_kernel([[0.0]], [[-1.0]]))]
    settle(doubts)
    return matrix(KERNELS[metric](x.shape[1], **options), x, y, same=y is x)


def _kernel(metric: str) -> Callable[..., Array]:
    def of_metric(there: Array, X: Any, Y: Any = None, *, dense_output: bool = True, **options: Any) -> Array:
        return kernels_of(there, X, Y, metric, **options)

    return of_metric


PAIR_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    theirs.additive_chi2_kernel: _kernel("additive_chi2"),
    theirs.chi2_kernel: _kernel("chi2"),
    theirs.cosine_distances: _named("cosine"),
    theirs.cosine_similarity: _kernel("cosine"),
    theirs.euclidean_distances: _euclidean,
    theirs.haversine_distances: _named("haversine"),
    theirs.laplacian_kernel: _kernel("laplacian"),
    theirs.linear_kernel: _kernel("linear"),
    theirs.manhattan_distances: _named("manhattan"),
    theirs.nan_euclidean_distances: _named("nan_euclidean"),
    theirs.pairwise_distances: distances_of,
    theirs.pairwise_distances_argmin: lambda there, X, Y, **options: _nearest(there, X, Y, **options)[0],
    theirs.pairwise_distances_argmin_min: _nearest,
    theirs.pairwise_kernels: kernels_of,
    theirs.polynomial_kernel: _kernel("polynomial"),
    theirs.rbf_kernel: _kernel("rbf"),
    theirs.sigmoid_kernel: _kernel("sigmoid"),
}
