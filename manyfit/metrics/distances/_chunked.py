"""Distances of a block of rows at a time to all others, on a device."""

from collections.abc import Callable, Iterator
from typing import Any

from manyfit.arrays import array_namespace
from manyfit.metrics._deferred_checks import raise_if_any
from manyfit.metrics.distances._functions import precomputed_distances, prepare_measure
from manyfit.metrics.distances._tiles import Measure, memory_budget, pair_matrix

Array = Any


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
    step = max(1, bytes_of_chunk // (y.shape[0] * 4 * (1 if x.dtype == array_namespace(x).float32 else 2)))
    return _chunks(measure, x, y, step, reduce_func)


def _chunks(
    measure: Measure | None, x: Array, y: Array, step: int, reduce_func: Callable[..., Any] | None
) -> Iterator[Any]:
    for start in range(0, x.shape[0], step):
        rows = slice(start, min(start + step, x.shape[0]))
        chunk = x[rows, :] if measure is None else pair_matrix(measure, x, y, same=y is x, rows=rows)
        yield chunk if reduce_func is None else reduce_func(chunk, start)
