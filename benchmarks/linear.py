"""Linear models whose fits follow from moments: penalties with an l1 part, classes, and many folds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import ElasticNet, Lasso, Ridge, RidgeClassifier

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import elastic_net_cv, ridge_cv, searches
from benchmarks._floor import moments_work
from benchmarks._task import Data, Task


def _sparse_coefficients(n: int, p: int) -> Data:
    """Correlated columns, a fifth of which the target reads."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) @ (np.eye(p) + 0.05 * rng.normal(size=(p, p)))
    return X, X @ (rng.normal(size=p) * (rng.random(p) < 0.2)) + 5.0 * rng.normal(size=n)


def _many_columns(quick: bool) -> Data:
    return _sparse_coefficients(200, 10) if quick else _sparse_coefficients(20_000, 200)


def _lasso(quick: bool) -> Task:
    return Task(Lasso(), {"alpha": np.logspace(-2, 0.7, 3 if quick else 50)}, scoring="r2")


def _elastic_net(quick: bool) -> Task:
    ratios = [0.5, 1.0] if quick else [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0]
    grid = {"alpha": np.logspace(-2, 0.7, 2 if quick else 25), "l1_ratio": ratios}
    return Task(ElasticNet(), grid, scoring="r2")


def _classes(quick: bool) -> Data:
    X, y = make_classification(
        300 if quick else 50_000, 20 if quick else 100, n_informative=10, n_classes=5, random_state=0
    )
    return X, y


def _ridge_classifier(quick: bool) -> Task:
    return Task(RidgeClassifier(), {"alpha": np.logspace(-2, 3, 2 if quick else 20)}, scoring="accuracy")


def _ridge(folds: int) -> Callable[[bool], Task]:
    return lambda quick: Task(Ridge(), {"alpha": [1.0]}, cv=folds, scoring="r2")


def _long(quick: bool) -> Data:
    return _sparse_coefficients(200, 10) if quick else _sparse_coefficients(100_000, 500)


register(
    Benchmark(
        name="lasso-path",
        summary="Lasso, 50 alphas x 5 folds, r2, 20,000 x 200",
        task=_lasso,
        data=_many_columns,
        contenders=(*searches(), elastic_net_cv()),
        bars=(bars.times_faster(50), bars.not_slower_than_best("specialised"), bars.same_scores(1e-9)),
        work=moments_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="elastic-net",
        summary="ElasticNet, 8 l1_ratio x 25 alphas x 5 folds, r2, 20,000 x 200",
        task=_elastic_net,
        data=_many_columns,
        contenders=(*searches(), elastic_net_cv()),
        bars=(bars.times_faster(50), bars.not_slower_than_best("specialised"), bars.same_scores(1e-9)),
        work=moments_work,
        repeat=1,
    )
)
register(
    Benchmark(
        name="ridge-classifier",
        summary="RidgeClassifier, 20 alphas x 5 folds, accuracy, 5 classes, 50,000 x 100",
        task=_ridge_classifier,
        data=_classes,
        contenders=searches(),
        bars=(bars.times_faster(20), bars.same_scores(1e-9)),
        work=moments_work,
        repeat=3,
    )
)
for _folds in (5, 100):
    register(
        Benchmark(
            name=f"many-folds-{_folds}",
            summary=f"Ridge, one alpha x {_folds} folds, r2, 100,000 x 500",
            task=_ridge(_folds),
            data=_long,
            contenders=(*searches(), ridge_cv(_folds)),
            bars=(bars.same_scores(1e-9),),
            work=moments_work,
            repeat=3,
        )
    )
