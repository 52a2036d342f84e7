"""Nearest neighbours and kernels: one query, one decomposition or one kernel matrix serves all settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import LeaveOneOut
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import manyfit, searches
from benchmarks._floor import kernel_work, reading_work
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


def _left_out_task(quick: bool) -> Task:
    numbers = [1, 3, 8] if quick else list(range(1, 11))
    return Task(KNeighborsClassifier(), {"n_neighbors": numbers}, cv=LeaveOneOut())


def _radius_task(quick: bool) -> Task:
    radii = [18.0, 24.0] if quick else [float(radius) for radius in np.linspace(12, 30, 15)]
    model = RadiusNeighborsClassifier(outlier_label=0)
    return Task(model, {"radius": radii, "weights": ["uniform", "distance"]})


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
        contenders=searches(manyfit(), manyfit(-1)),
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
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(15), bars.same_scores(0.0)),
        work=reading_work,
        repeat=5,
    )
)
register(
    Benchmark(
        name="knn-loo",
        summary="KNeighborsClassifier, 10 n_neighbors, each of 600 rows left out, 20 columns",
        task=_left_out_task,
        data=lambda quick: _classes(600, 20, quick),
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(20), bars.same_scores(0.0)),
        work=reading_work,
        repeat=1,
    )
)
register(
    Benchmark(
        name="radius",
        summary="RadiusNeighborsClassifier, 15 radii x 2 weights x 5 folds, digits: many rows at a radius",
        task=_radius_task,
        data=_digits,
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(5), bars.same_scores(0.0)),
        work=reading_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="kernel-ridge",
        summary="KernelRidge, 20 alphas x 3 gammas x 5 folds, 3,000 x 20",
        task=_kernel_task,
        data=_numbers,
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(6), bars.same_scores(1e-9)),
        work=kernel_work,
        repeat=1,
    )
)


def _classes(n: int, p: int, quick: bool) -> Data:
    n = 200 if quick else n
    X, y = make_classification(n, p, n_informative=10, n_classes=3, flip_y=0.1, random_state=0)
    return X.astype(np.float64), y


def _svc_task(quick: bool) -> Task:
    gammas = [0.002, 0.005, 0.02, 0.05]
    return Task(SVC(), {"C": np.logspace(-1, 2, 6), "gamma": gammas[:2] if quick else gammas})


def _wide_svc_task(quick: bool) -> Task:
    return Task(SVC(), {"C": [0.1, 1.0, 10.0], "gamma": [0.001, 0.003]})


register(
    Benchmark(
        name="svc",
        summary="SVC, 6 C x 4 gammas x 5 folds, 5,000 x 50",
        task=_svc_task,
        data=lambda quick: _classes(5_000, 50, quick),
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(1.5), bars.same_scores(0.0)),
        work=reading_work,
        repeat=1,
    )
)


def _categories(quick: bool) -> Data:
    """Fifty columns of codes, of which a one-hot encoder makes sparse rows."""
    rng, (n, kinds) = np.random.default_rng(0), (200, 10) if quick else (2_000, 100)
    X = rng.integers(0, kinds, size=(n, 50))
    effects = rng.normal(size=(50, kinds))[np.arange(50), X].sum(axis=1)
    return X, (effects + rng.normal(size=n) > 0).astype(int)


def _sparse_svc_task(quick: bool) -> Task:
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), SVC())
    return Task(model, {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.01, 0.1]})


register(
    Benchmark(
        name="svc-sparse",
        summary="OneHotEncoder and SVC, 3 C x 2 gammas x 5 folds, 2,000 x 50 codes, 5,000 sparse columns",
        task=_sparse_svc_task,
        data=_categories,
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(3), bars.same_scores(0.0)),
        work=reading_work,
        repeat=1,
    )
)
register(
    Benchmark(
        name="svc-wide",
        summary="SVC, 3 C x 2 gammas x 5 folds, 3,000 x 400",
        task=_wide_svc_task,
        data=lambda quick: _classes(3_000, 400, quick),
        contenders=searches(manyfit(), manyfit(-1)),
        bars=(bars.times_faster(3), bars.same_scores(0.0)),
        work=reading_work,
        repeat=1,
    )
)
