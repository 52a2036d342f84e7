"""Two pipelines: one that moments answer as a whole, and one that ends in a support vector machine."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import manyfit, searches
from benchmarks._floor import moments_work, reading_work
from benchmarks._task import Data, Task


def _affine_task(quick: bool) -> Task:
    components = (2, 10) if quick else tuple(range(5, 51, 5))
    alphas = np.logspace(-3, 3, 2 if quick else 10)
    estimator = make_pipeline(StandardScaler(), PCA(), Ridge())
    return Task(estimator, {"pca__n_components": components, "ridge__alpha": alphas})


def _mixed_normals(quick: bool) -> Data:
    rows, columns = (500, 10) if quick else (50_000, 50)
    rng = np.random.default_rng(0)
    # Mixed columns have a falling spectrum, like real data; PCA would find nothing in independent columns.
    X = rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns)) + rng.normal(size=columns)
    y = X @ rng.normal(size=columns) + 10.0 * rng.normal(size=rows)
    return X, y


def _svc_task(quick: bool) -> Task:
    grid = {
        "pca__n_components": (8, 16) if quick else (16, 32, 48),
        "svc__C": (1.0, 10.0) if quick else (0.1, 1.0, 10.0, 100.0),
        "svc__gamma": (0.01,) if quick else (0.001, 0.003, 0.01),
    }
    return Task(make_pipeline(StandardScaler(), PCA(), SVC()), grid)


def _digits(quick: bool) -> Data:
    X, y = load_digits(return_X_y=True)
    return (X[:200], y[:200]) if quick else (X, y)


AFFINE = register(
    Benchmark(
        name="affine-pipeline",
        summary="StandardScaler > PCA > Ridge, 10 n_components x 10 alphas x 5 folds, 50,000 x 50",
        task=_affine_task,
        data=_mixed_normals,
        contenders=searches(),
        bars=(
            bars.times_faster(200),
            bars.cost_in_fits(1),
            bars.peak_memory(0.3),
            bars.same_scores(1e-9),
        ),
        work=moments_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="svc-pipeline",
        summary="StandardScaler > PCA(3 sizes) > SVC(4 C x 3 gamma) x 5 folds, digits",
        task=_svc_task,
        data=_digits,
        contenders=searches(manyfit(None), manyfit(-1)),
        bars=(
            bars.not_slower_than_best("scikit-learn", "other"),
            # one StandardScaler, and one PCA for each size
            bars.fitted_once_per_split("StandardScaler", "PCA", distinct=4),
            bars.same_scores(1e-9),
        ),
        work=reading_work,
        repeat=5,
        separate_steps=True,
    )
)
