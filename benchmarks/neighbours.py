"""Nearest neighbours and kernel ridge regression: one query, or one decomposition, holds all settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import searches
from benchmarks._floor import reading_work
from benchmarks._task import Data, Task


def _digits(quick: bool) -> Data:
    X, y = load_digits(return_X_y=True)
    return (X[:300], y[:300]) if quick else (X, y)


def _noisy_digits(quick: bool) -> Data:
    X, y = _digits(quick)
    repeats = 1 if quick else 6
    X, y = np.tile(X, (repeats, 1)), np.tile(y, repeats)
    return X + np.random.default_rng(0).normal(scale=0.5, size=X.shape), y


def _neighbors_task(quick: bool) -> Task:
    numbers = [1, 3, 8] if quick else list(range(1, 31))
    return Task(KNeighborsClassifier(), {"n_neighbors": numbers, "weights": ["uniform", "distance"]})


def _numbers(quick: bool) -> Data:
    rng, n = np.random.default_rng(0), 150 if quick else 3_000
    X = rng.normal(size=(n, 20))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def _kernel_task(quick: bool) -> Task:
    grid: dict[str, Any] = {"alpha": np.logspace(-1, 2, 8 if quick else 20), "gamma": [0.01, 0.05, 0.2]}
    return Task(KernelRidge(kernel="rbf"), grid)


register(
    Benchmark(
        name="knn",
        summary="KNeighborsClassifier, 30 n_neighbors x 2 weights x 5 folds, digits 6 times with noise",
        task=_neighbors_task,
        data=_noisy_digits,
        contenders=searches(),
        bars=(bars.times_faster(30), bars.same_scores(0.0)),
        work=reading_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="knn-ties",
        summary="KNeighborsClassifier, 30 n_neighbors x 2 weights x 5 folds, digits: many equal distances",
        task=_neighbors_task,
        data=_digits,
        contenders=searches(),
        bars=(bars.times_faster(15), bars.same_scores(0.0)),
        work=reading_work,
        repeat=5,
    )
)
register(
    Benchmark(
        name="kernel-ridge",
        summary="KernelRidge, 20 alphas x 3 gammas x 5 folds, 3,000 x 20",
        task=_kernel_task,
        data=_numbers,
        contenders=searches(),
        bars=(bars.times_faster(6), bars.same_scores(1e-9)),
        work=reading_work,
        repeat=1,
    )
)
