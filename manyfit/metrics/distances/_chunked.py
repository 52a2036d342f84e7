"""Distances of some rows at a time to all others, on a device."""

from collections.abc import Callable, Iterator
from typing import Any

from manyfit.arrays import array_namespace
from manyfit.metrics._deferred_checks import settle
from manyfit.metrics.distances._functions import given_distances, measured
from manyfit.metrics.distances._tiles import Measure, budget, matrix

Array = Any


def chunks_of(
    there: Array,
    X: Any,
    Y: Any = None,
    *,
    reduce_func: Callable[..., Any] | None = None,
    metric: Any = "euclidean",
    n_jobs: int | None = None,
    working_memory: float | None = None,
    **options: Any,
) -> Iterator[Any]:
    """See `sklearn.metrics.pairwise_distances_chunked`; checked before the first chunk is asked for.

    Without `working_memory`, in MiB, a chunk is as large as what other functions hold on their way.
    """
    if metric == "precomputed":
        x, doubts = given_distances(X, Y, there)
        measure, y = None, x
    else:
        measure, x, y, doubts = measured(metric, X, Y, there, options)
    settle(doubts)
    bytes_of_chunk = budget(x) if working_memory is None else int(working_memory * 2**20)
    step = max(1, bytes_of_chunk // (y.shape[0] * 4 * (1 if x.dtype == array_namespace(x).float32 else 2)))
    return _chunks(measure, x, y, step, reduce_func)


def _chunks(
    measure: Measure | None, x: Array, y: Array, step: int, reduce_func: Callable[..., Any] | None
) -> Iterator[Any]:
    for start in range(0, x.shape[0], step):
        rows = slice(start, min(start + step, x.shape[0]))
        chunk = x[rows, :] if measure is None else matrix(measure, x, y, same=y is x, rows=rows)
        yield chunk if reduce_func is None else reduce_func(chunk, start)
