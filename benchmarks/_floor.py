"""The shortest time that a task could take on this machine, from rates measured in the same run."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid

from benchmarks._task import Task

# Large enough for the peak rate of the library, small enough to take moments.
_PRODUCT_SIZE = 1000


@dataclass(frozen=True)
class Work:
    """The fewest bytes and the fewest floating point operations that any known method needs.

    `seconds`: what it needs besides on one core, such as the tokens of all texts once.
    """

    bytes: int
    flops: float
    seconds: float = 0.0


@dataclass(frozen=True)
class Floor:
    """The largest of the lower bounds: reading, arithmetic, work on one core, every distinct step once."""

    bytes: int
    flops: float
    bytes_per_second: float
    flops_per_second: float
    steps_seconds: float | None
    cores: int
    work_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """The floor in seconds."""
        bounds = [
            self.bytes / self.bytes_per_second,
            self.flops / self.flops_per_second,
            self.work_seconds,
        ]
        if self.steps_seconds is not None:
            bounds.append(self.steps_seconds / self.cores)
        return max(bounds)


def moments_work(task: Task, X: NDArray[Any], y: NDArray[Any]) -> Work:
    """Return the work of first and second moments of the columns of X and y: one pass over both.

    The products of the columns are symmetric, so half of them are enough, at two operations per row.
    What follows from the moments is left out: it does not grow with the rows.
    """
    columns = X.shape[1] + 1
    return Work(X.nbytes + y.nbytes, float(X.shape[0] * columns * (columns + 1)))


def reading_work(task: Task, X: NDArray[Any], y: NDArray[Any]) -> Work:
    """Return the work of reading X and y once, for tasks whose arithmetic cannot be counted beforehand."""
    return Work(X.nbytes + y.nbytes, 0.0)


def counts_work(task: Task, X: Any, y: NDArray[Any]) -> Work:
    """Return the work of one count of each stored value, and of scores of every row for each setting.

    A score multiplies and adds each value once for each class.
    """
    scores = 2.0 * stored_values(X) * len(np.unique(y)) * task.settings
    return Work(stored_bytes(X) + y.nbytes, stored_values(X) + scores)


def class_moments_work(task: Task, X: NDArray[Any], y: NDArray[Any]) -> Work:
    """Return the work of second moments of X within classes, and of scores of every row for each setting."""
    n, columns = X.shape
    scores = 2.0 * n * columns * len(np.unique(y)) * task.settings
    return Work(X.nbytes + y.nbytes, float(n * columns * (columns + 1)) + scores)


def gaussian_work(task: Task, X: NDArray[Any], y: NDArray[Any]) -> Work:
    """Return the work of means and variances of each class, and of scores of every row for each setting.

    A value is added and its square is. For each class it is centred and squared once, and multiplied and
    added for each setting.
    """
    classes = len(np.unique(y))
    return Work(X.nbytes + y.nbytes, X.size * (3.0 + classes * (2.0 + 2.0 * task.settings)))


def kernel_work(task: Task, X: NDArray[Any], y: NDArray[Any]) -> Work:
    """Return the work of a kernel matrix, and a form of it that serves all penalties, for each other setting.

    A tridiagonal or a band form takes ``4 n^3 / 3`` operations for n training rows; one Cholesky factor for
    each penalty takes ``n^3 / 3``, and is better for fewer than four.
    """
    n, penalties = X.shape[0] * (1.0 - 1.0 / task.cv), len(task.grid["alpha"])
    matrix = n * X.shape[0] * 2.0 * X.shape[1]
    forms = task.cv * task.settings / penalties
    return Work(X.nbytes + y.nbytes, forms * (matrix + min(4, penalties) * n**3 / 3.0))


def linear_passes_work(task: Task, X: Any, y: NDArray[Any]) -> Work:
    """Return the work of one gradient for each setting and fold, the least that shows that a fit is done.

    Every stored value is multiplied once with each coefficient and once with each residual.
    """
    outputs = len(np.unique(y)) if is_classifier(task.estimator) else 1
    outputs = 1 if outputs == 2 else outputs
    training = task.settings * (task.cv - 1)
    return Work(stored_bytes(X) + y.nbytes, 4.0 * stored_values(X) * outputs * training)


def stored_values(X: Any) -> int:
    """Return the number of values that a dense or sparse matrix stores."""
    return int(X.nnz if hasattr(X, "nnz") else X.size)


def stored_bytes(X: Any) -> int:
    """Return the bytes of a dense matrix, a frame, or the parts of a CSR matrix."""
    if hasattr(X, "indptr"):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    if hasattr(X, "memory_usage"):
        return int(X.memory_usage(deep=True).sum())
    return int(X.nbytes)


def measure_floor(
    work: Work, task: Task, X: NDArray[Any], y: NDArray[Any], *, steps: bool, cores: int | None = None
) -> Floor:
    """Measure the rates of this machine and, with `steps`, every distinct step of `task` once.

    Steps are divided among `cores`, by default all.
    """
    return Floor(
        bytes=work.bytes,
        flops=work.flops,
        bytes_per_second=read_rate(work.bytes),
        flops_per_second=product_rate(),
        steps_seconds=distinct_steps_seconds(task, X, y) if steps else None,
        cores=cores or joblib.cpu_count(),
        work_seconds=work.seconds,
    )


def read_rate(n_bytes: int) -> float:
    """Return the best rate, in bytes per second, at which all cores read an array of `n_bytes`.

    The array has the size of the data and is read repeatedly. If the data fit a cache, this is the rate of
    the cache, so the rate is never too low and the floor never too high.
    """
    values = np.ones(max(n_bytes // 8, 1))
    rounds = max(5, min(200, 2**30 // values.nbytes))
    best = _best(lambda: values @ values, rounds)
    n_threads = joblib.cpu_count()
    if n_threads > 1 and values.nbytes > 2**20:  # for less, starting the threads takes longer than reading
        parts = np.array_split(values, n_threads)
        with ThreadPoolExecutor(n_threads) as pool:
            best = min(best, _best(lambda: list(pool.map(lambda part: part @ part, parts)), rounds))
    return values.nbytes / best


@functools.cache  # depends on the machine, not on the task
def product_rate() -> float:
    """Return the best rate, in operations per second, of a product of two square matrices in float64."""
    left = np.ones((_PRODUCT_SIZE, _PRODUCT_SIZE))
    return 2.0 * _PRODUCT_SIZE**3 / _best(lambda: left @ left, 5)


def distinct_steps_seconds(task: Task, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the time that every distinct step takes, fitted and applied once per split, in plain loops.

    Only calls of fit, transform and score are timed.
    """
    settings = [task.with_params(params) for params in ParameterGrid(dict(task.grid))]
    seconds = 0.0
    for train, test in task.splits(X, y):
        data: dict[tuple[str, ...], tuple[Any, Any]] = {(): (X[train], X[test])}
        for estimator in settings:
            *steps, final = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
            key: tuple[str, ...] = ()
            start = time.perf_counter()
            for step in steps:
                upstream, key = data[key], (*key, repr(step))
                if key not in data:
                    data[key] = step.fit_transform(upstream[0], y[train]), step.transform(upstream[1])
            final.fit(data[key][0], y[train]).score(data[key][1], y[test])
            seconds += time.perf_counter() - start
    return seconds


def _best(call: Callable[[], object], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
