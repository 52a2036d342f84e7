"""Settings that nest: members of ensembles, iterations of boosting, sizes of a tree, columns to select."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
    mutual_info_classif,
)
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import manyfit, searches
from benchmarks._floor import reading_work
from benchmarks._task import Data, Task

SAME = bars.same_scores(1e-12)
MEMBERS = [10, 20, 50, 100, 200]


def _data(rows: int) -> Any:
    def data(quick: bool) -> Data:
        X, y = make_classification(300 if quick else rows, 20, n_informative=8, flip_y=0.1, random_state=0)
        return X, y

    return data


def _task(
    estimator: Any, grid: Mapping[str, Any], quick_grid: Mapping[str, Any], scoring: str | None = None
) -> Any:
    return lambda quick: Task(estimator, quick_grid if quick else grid, scoring=scoring)


def _register(name: str, summary: str, rows: int, task: Any, least: float) -> None:
    register(
        Benchmark(
            name=name,
            summary=f"{summary}, {rows:,} x 20",
            task=task,
            data=_data(rows),
            contenders=searches(manyfit(), manyfit(-1)),
            bars=(bars.times_faster(least), SAME),
            work=reading_work,
            repeat=3,
        )
    )


_few = {"n_estimators": [2, 4]}
_MEMBERS = [
    ("forest", RandomForestClassifier(50, random_state=0)),
    ("logistic", make_pipeline(StandardScaler(), LogisticRegression())),
    ("bayes", GaussianNB()),
]
_register(
    "voting",
    "VotingClassifier of three members, soft, 20 weights x 5 folds",
    2_000,
    _task(
        VotingClassifier(_MEMBERS, voting="soft"),
        {"weights": [[a, b, c] for a in (1, 2, 3, 4, 5) for b, c in ((0, 1), (1, 1), (1, 2), (2, 1))]},
        {"weights": [[1, 1, 1], [2, 1, 1]]},
    ),
    5.0,
)
_register(
    "stacking",
    "StackingClassifier of three members, 6 C of its final LogisticRegression x 5 folds",
    500,
    _task(
        StackingClassifier(_MEMBERS, LogisticRegression(), cv=3),
        {"final_estimator__C": list(np.logspace(-3, 2, 6))},
        {"final_estimator__C": [0.1, 1.0]},
    ),
    3.5,
)
_register(
    "forest-prefix",
    "RandomForestClassifier, 10, 20, 50, 100 and 200 trees x 5 folds",
    2_000,
    _task(RandomForestClassifier(random_state=0), {"n_estimators": MEMBERS}, _few),
    1.6,
)
_register(
    "boosting-prefix",
    "HistGradientBoostingClassifier, 5 max_iter x 3 learning rates x 5 folds",
    5_000,
    _task(
        HistGradientBoostingClassifier(),
        {"max_iter": [20, 40, 60, 80, 100], "learning_rate": [0.03, 0.1, 0.3]},
        {"max_iter": [2, 4], "learning_rate": [0.1]},
    ),
    2.0,
)
_register(
    "adaboost",
    "AdaBoostClassifier, 10, 20, 50, 100 and 200 stumps x 5 folds",
    2_000,
    _task(AdaBoostClassifier(random_state=0), {"n_estimators": MEMBERS}, _few),
    1.6,
)
_register(
    "isolation-prefix",
    "IsolationForest, 10, 20, 50, 100 and 200 trees x 2 contaminations x 5 folds",
    2_000,
    _task(
        IsolationForest(random_state=0),
        {"n_estimators": MEMBERS, "contamination": [0.1, 0.4]},
        _few,
        "roc_auc",
    ),
    3.0,
)
_register(
    "bagging",
    "BaggingClassifier, 10, 20, 50 and 100 trees x 5 folds",
    2_000,
    _task(BaggingClassifier(random_state=0), {"n_estimators": MEMBERS[:4]}, _few),
    1.6,
)
_register(
    "pruning",
    "DecisionTreeClassifier, 20 ccp_alpha x 5 folds",
    10_000,
    _task(
        DecisionTreeClassifier(random_state=0),
        {"ccp_alpha": np.concatenate([[0.0], np.logspace(-5, -1, 19)])},
        {"ccp_alpha": [0.0, 0.01]},
    ),
    8.0,
)
_register(
    "leaves",
    "DecisionTreeClassifier, 49 max_leaf_nodes x 5 folds",
    10_000,
    _task(
        DecisionTreeClassifier(random_state=0),
        {"max_leaf_nodes": list(range(2, 100, 2))},
        {"max_leaf_nodes": [2, 5]},
    ),
    8.0,
)


def _library_task(library: str, estimator: str, **options: Any) -> Any:
    def task(quick: bool) -> Task:
        model = getattr(importlib.import_module(library), estimator)(n_jobs=1, **options)
        depths, rates = ([2], [0.3]) if quick else ([3, 4, 6], [0.03, 0.1, 0.3])
        numbers = [2, 4] if quick else [25, 50, 75, 100]
        return Task(model, {"max_depth": depths, "learning_rate": rates, "n_estimators": numbers})

    return task


_SIZES = "3 max_depth x 3 learning_rate x 4 n_estimators x 5 folds"
_register("xgboost", f"XGBClassifier, {_SIZES}", 5_000, _library_task("xgboost", "XGBClassifier"), 2.0)
_register(
    "lightgbm",
    f"LGBMClassifier, {_SIZES}",
    5_000,
    _library_task("lightgbm", "LGBMClassifier", verbose=-1),
    2.0,
)


def _register_step(
    name: str, summary: str, size: tuple[int, int], pipe: Any, grid: Any, least: float, gaps: float = 0.0
) -> None:
    rows, columns = size

    def data(quick: bool) -> Data:
        n = 100 if quick else rows
        X, y = make_classification(n, columns, n_informative=8, flip_y=0.1, random_state=0)
        X[np.random.default_rng(0).random(X.shape) < gaps] = np.nan
        return X, y

    few = {name: values[:2] for name, values in grid.items()}
    register(
        Benchmark(
            name=name,
            summary=f"{summary} x 5 folds, {rows:,} x {columns}",
            task=_task(pipe, grid, few),
            data=data,
            contenders=searches(manyfit(), manyfit(-1)),
            bars=(bars.times_faster(least), SAME),
            work=reading_work,
            repeat=3,
        )
    )


_register_step(
    "kbest",
    "SelectKBest(mutual information) > GaussianNB, 20 k",
    (600, 40),
    make_pipeline(SelectKBest(partial(mutual_info_classif, random_state=0)), GaussianNB()),
    {"selectkbest__k": list(range(2, 41, 2))},
    3.0,
)
_register_step(
    "pca-svc",
    "PCA > SVC, 20 n_components x 3 C",
    (500, 400),
    make_pipeline(PCA(svd_solver="full"), SVC()),
    {"pca__n_components": list(range(2, 41, 2)), "svc__C": [0.1, 1.0, 10.0]},
    5.0,
)
_register_step(
    "rfe-path",
    "RFE(Ridge) > GaussianNB, 10 n_features_to_select",
    (500, 60),
    make_pipeline(RFE(Ridge()), GaussianNB()),
    {"rfe__n_features_to_select": list(range(5, 55, 5))},
    2.5,
)
_register_step(
    "sfs-path",
    "SequentialFeatureSelector(GaussianNB) > GaussianNB, 4 n_features_to_select",
    (200, 12),
    make_pipeline(SequentialFeatureSelector(GaussianNB(), cv=2), GaussianNB()),
    {"sequentialfeatureselector__n_features_to_select": [1, 2, 3, 4]},
    1.3,
)
_register_step(
    "select-from-model",
    "SelectFromModel(ExtraTreesClassifier) > GaussianNB, 10 thresholds",
    (1_000, 40),
    make_pipeline(SelectFromModel(ExtraTreesClassifier(50, random_state=0)), GaussianNB()),
    {"selectfrommodel__threshold": [f"{scale / 4}*mean" for scale in range(1, 11)]},
    2.0,
)
_register_step(
    "knn-imputer",
    "KNNImputer > GaussianNB, 4 n_neighbors x 2 weights, a tenth of the numbers are gaps",
    (1_500, 20),
    make_pipeline(KNNImputer(), GaussianNB()),
    {"knnimputer__n_neighbors": [1, 2, 5, 10], "knnimputer__weights": ["uniform", "distance"]},
    1.2,
    gaps=0.1,
)
