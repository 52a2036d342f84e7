"""scikit-learn's functions of pairs of rows, of arrays on a device."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import sklearn.metrics.pairwise as theirs

from manyfit.arrays import array_namespace
from manyfit.folds import Unsupported
from manyfit.metrics._deferred_checks import (
    DeferredCheck,
    as_device_array,
    as_pair,
    check_shapes,
    finiteness_checks,
    raise_if_any,
    shape_stand_in,
)
from manyfit.metrics.distances._scipy_measures import (
    BRAY_CURTIS_BY_SIZES,
    SET_MEASURES,
    scipy_distance,
    warn_boolean_conversion,
)
from manyfit.metrics.distances._sklearn_measures import (
    COSINE,
    EUCLIDEAN,
    HAVERSINE,
    KERNELS,
    MANHATTAN,
    SQUARED,
    nan_euclidean,
    normalize_rows,
)
from manyfit.metrics.distances._tiles import Measure, memory_budget, nearest_rows, pair_matrix, slices

Array = Any

# By the names that `pairwise_distances` takes.
SKLEARN_DISTANCES = {
    "cityblock": MANHATTAN,
    "cosine": COSINE,
    "euclidean": EUCLIDEAN,
    "haversine": HAVERSINE,
    "l1": MANHATTAN,
    "l2": EUCLIDEAN,
    "manhattan": MANHATTAN,
}


def distance_measure(metric: Any, X: Array, *, same: bool, options: Mapping[str, Any]) -> Measure:
    """The measure of a `metric` of `pairwise_distances`, or Unsupported; `same` says that X is Y."""
    if not isinstance(metric, str):
        raise Unsupported("a metric that is called for each pair")
    if metric == "nan_euclidean":
        known = {"missing_values": np.nan, "squared": False, "copy": True}
        if set(options) <= set(known):
            chosen = known | dict(options)
            return nan_euclidean(float(chosen["missing_values"]), squared=chosen["squared"])
    elif metric in SKLEARN_DISTANCES:
        if metric in ("euclidean", "l2") and set(options) == {"squared"}:
            return SQUARED if options["squared"] else EUCLIDEAN
        if metric == "haversine" and X.shape[1] != 2:
            theirs.haversine_distances(np.zeros((1, X.shape[1])))
        if not options:
            return SKLEARN_DISTANCES[metric]
    else:
        return scipy_distance(metric, X, same=same, options=options)
    raise Unsupported(f"metric={metric!r} with {min(options)}")


def prepare_measure(
    metric: Any, X: Any, Y: Any, like: Array, options: Mapping[str, Any]
) -> tuple[Measure, Array, Array, list[DeferredCheck]]:
    """The measure, X and Y as arrays on one device, and the checks of their values."""
    x, y, checks = as_pair(X, Y, like)
    if metric in SET_MEASURES:
        warn_boolean_conversion(metric, X, *(() if Y is None else (Y,)))
        checks = []  # NaN counts as true
    elif metric == "nan_euclidean" and np.isnan(options.get("missing_values", np.nan)):
        check = partial(theirs.check_pairwise_arrays, Y=None, ensure_all_finite="allow-nan")
        checks = [d for a in ([x] if x is y else [x, y]) for d in finiteness_checks(a, check, allow_nan=True)]
    return distance_measure(metric, x, same=y is x, options=options), x, y, checks


def device_distances(
    like: Array,
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
        x, checks = precomputed_distances(X, Y, like)
        raise_if_any(checks if every else checks[-1:])
        return x
    if not every and metric not in (*SKLEARN_DISTANCES, "nan_euclidean", *SET_MEASURES):
        raise Unsupported(f"ensure_all_finite={ensure_all_finite!r}")
    measure, x, y, checks = prepare_measure(metric, X, Y, like, options)
    raise_if_any(checks)
    return pair_matrix(measure, x, y, same=y is x)


def precomputed_distances(X: Any, Y: Any, like: Array) -> tuple[Array, list[DeferredCheck]]:
    """Precomputed distances and their checks; the last check is that none is negative."""
    x, _, checks = as_pair(X, Y, like, precomputed=True)

    def negative() -> None:
        theirs.pairwise_distances(np.full((1, 1), -1.0), metric="precomputed")

    return x, [*checks, (array_namespace(x).any(x < 0), negative)]


def _euclidean(
    like: Array,
    X: Any,
    Y: Any = None,
    *,
    Y_norm_squared: Any = None,
    squared: bool = False,
    X_norm_squared: Any = None,
) -> Array:
    """See `sklearn.metrics.euclidean_distances`; given norms are checked for their shapes only."""
    norms = {"X_norm_squared": (X, X_norm_squared), "Y_norm_squared": (X if Y is None else Y, Y_norm_squared)}
    for name, (data, norm) in norms.items():
        rows = shape_stand_in(as_device_array(data, like))
        norm = None if norm is None else shape_stand_in(as_device_array(norm, like))
        if norm is not None and rows.ndim == 2 and norm.shape not in ((n := len(rows),), (n, 1), (1, n)):
            pair = (rows, rows[:1]) if data is X else (rows[:1], rows)
            check_shapes(theirs.euclidean_distances, *pair, **{name: norm})
    return device_distances(like, X, Y, "euclidean", squared=squared)


def _nearest(
    like: Array, X: Any, Y: Any, *, axis: int = 1, metric: Any = "euclidean", metric_kwargs: Any = None
) -> tuple[Array, Array]:
    """See `sklearn.metrics.pairwise_distances_argmin_min`."""
    if axis == 0:
        X, Y = Y, X
    measure, x, y, checks = prepare_measure(metric, X, Y, like, dict(metric_kwargs or {}))
    raise_if_any(checks)
    if metric == "braycurtis":
        measure = BRAY_CURTIS_BY_SIZES
    return nearest_rows(measure, x, y, same=y is x)


def distance_chunks(
    like: Array,
    X: Any,
    Y: Any = None,
    *,
    reduce_func: Callable[..., Any] | None = None,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
    working_memory: float | None = None,
    **options: Any,
) -> Iterator[Any]:
    """See `sklearn.metrics.pairwise_distances_chunked`; all checks come before the first chunk.

    Without `working_memory`, in MiB, a chunk has the size of the temporary arrays of other functions.
    """
    if metric == "precomputed":
        x, checks = precomputed_distances(X, Y, like)
        measure, y = None, x
    else:
        measure, x, y, checks = prepare_measure(metric, X, Y, like, options)
    raise_if_any(checks)
    bytes_of_chunk = memory_budget(x) if working_memory is None else int(working_memory * 2**20)
    step = bytes_of_chunk // (y.shape[0] * 4 * (1 if x.dtype == array_namespace(x).float32 else 2))

    def chunks() -> Iterator[Any]:
        for rows in slices(x.shape[0], step):
            chunk = x[rows, :] if measure is None else pair_matrix(measure, x, y, same=y is x, rows=rows)
            yield chunk if reduce_func is None else reduce_func(chunk, rows.start)

    return chunks()


def device_kernels(
    like: Array,
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
    x, y, checks = as_pair(X, Y, like, precomputed=metric == "precomputed")
    if metric == "precomputed":
        raise_if_any(checks)
        return x
    if filter_params:
        options = {name: value for name, value in options.items() if name in theirs.KERNEL_PARAMS[metric]}
    strange = set(options) - set(theirs.KERNEL_PARAMS[metric])
    if strange or not all(value is None or isinstance(value, Real) for value in options.values()):
        raise Unsupported(f"metric={metric!r} with {', '.join(sorted(strange)) or 'an array for a number'}")
    if "chi2" in metric:
        checks += [(array_namespace(x).any(x < 0), lambda: theirs.additive_chi2_kernel([[-1.0]]))]
        checks += [(array_namespace(x).any(y < 0), lambda: theirs.additive_chi2_kernel([[0.0]], [[-1.0]]))]
    raise_if_any(checks)
    return pair_matrix(KERNELS[metric](x.shape[1], **options), x, y, same=y is x)


def _kernel_function(metric: str) -> Callable[..., Array]:
    def compute(like: Array, X: Any, Y: Any = None, *, dense_output: bool = True, **options: Any) -> Array:
        return device_kernels(like, X, Y, metric, **options)

    return compute


# Row i of one array with row i of another


def _paired_euclidean(xp: Any, x: Array, y: Array) -> Array:
    between = x - y
    between *= between
    return xp.sqrt(xp.sum(between, axis=1))


def _paired_cosine(xp: Any, x: Array, y: Array) -> Array:
    between = normalize_rows(xp, x) - normalize_rows(xp, y)
    between *= between
    return 0.5 * xp.sum(between, axis=1)


def _paired(distance: Callable[..., Array], like: Array, X: Any, Y: Any) -> Array:
    x, y, checks = as_pair(X, Y, like, paired=True)
    raise_if_any(checks)
    xp, n = array_namespace(x), x.shape[0]
    blocks = slices(n, memory_budget(x) // (24 * x.shape[1]))
    parts = [distance(xp, x[rows, :], y[rows, :]) for rows in blocks]
    return parts[0] if len(parts) == 1 else xp.concat(parts)


PAIRED_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    theirs.paired_cosine_distances: partial(_paired, _paired_cosine),
    theirs.paired_euclidean_distances: partial(_paired, _paired_euclidean),
    theirs.paired_manhattan_distances: partial(_paired, lambda xp, x, y: xp.sum(xp.abs(x - y), axis=1)),
}


def _paired_distances(like: Array, X: Any, Y: Any, *, metric: Any = "euclidean", **unused: Any) -> Array:
    """See `sklearn.metrics.pairwise.paired_distances`."""
    if not isinstance(metric, str):
        raise Unsupported("a metric that is called for each pair")
    return PAIRED_FUNCTIONS[theirs.PAIRED_DISTANCES[metric]](like, X, Y)


PAIR_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    theirs.additive_chi2_kernel: _kernel_function("additive_chi2"),
    theirs.chi2_kernel: _kernel_function("chi2"),
    theirs.cosine_distances: partial(device_distances, metric="cosine"),
    theirs.cosine_similarity: _kernel_function("cosine"),
    theirs.euclidean_distances: _euclidean,
    theirs.haversine_distances: partial(device_distances, metric="haversine"),
    theirs.laplacian_kernel: _kernel_function("laplacian"),
    theirs.linear_kernel: _kernel_function("linear"),
    theirs.manhattan_distances: partial(device_distances, metric="manhattan"),
    theirs.nan_euclidean_distances: partial(device_distances, metric="nan_euclidean"),
    theirs.pairwise_distances: device_distances,
    theirs.pairwise_distances_chunked: distance_chunks,
    theirs.pairwise_distances_argmin: lambda like, X, Y, **options: _nearest(like, X, Y, **options)[0],
    theirs.pairwise_distances_argmin_min: _nearest,
    theirs.pairwise_kernels: device_kernels,
    theirs.polynomial_kernel: _kernel_function("polynomial"),
    theirs.rbf_kernel: _kernel_function("rbf"),
    theirs.sigmoid_kernel: _kernel_function("sigmoid"),
    theirs.paired_distances: _paired_distances,
    **PAIRED_FUNCTIONS,
}
