"""Successive halving with the trees of a forest as the resource, beside the full grid."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from benchmarks import _bars as bars
from benchmarks._benchmark import Answer, Benchmark, Contender, register
from benchmarks._contenders import read_manyfit, read_search
from benchmarks._floor import reading_work
from benchmarks._task import Data, Task

_MOST_TREES = 54
_NOTE = "all settings with all trees: other rows than those of halving, so that scores are not compared"
GRID = {"max_depth": [4, 8, None], "min_samples_leaf": [1, 4, 16], "max_features": [2, 5, 10]}


def _data(quick: bool) -> Data:
    X, y = make_classification(300 if quick else 1_000, 20, n_informative=8, flip_y=0.1, random_state=0)
    return X, y


def _task(quick: bool) -> Task:
    return Task(
        RandomForestClassifier(_MOST_TREES, random_state=0), {"max_depth": [2, 4, None]} if quick else GRID
    )


def _halving(task: Task, n_jobs: int | None) -> dict[str, Any]:
    return {
        "estimator": task.estimator, "param_grid": task.grid, "resource": "n_estimators", "cv": task.cv,
        "max_resources": _MOST_TREES, "return_train_score": False, "refit": False, "n_jobs": n_jobs,
    }  # fmt: skip


def _ours(task: Task, X: Any, y: Any) -> Any:
    from manyfit.model_selection import HalvingGridSearchCV

    return HalvingGridSearchCV(**_halving(task, None)).fit(X, y)


def _theirs(task: Task, X: Any, y: Any) -> Any:
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    return HalvingGridSearchCV(**_halving(task, None)).fit(X, y)


def _full_grid(task: Task, X: Any, y: Any) -> Any:
    from manyfit.model_selection import GridSearchCV

    return GridSearchCV(task.estimator, task.grid, cv=task.cv, refit=False).fit(X, y)


def _time_only(search: Any) -> Answer:
    """The full grid has settings that halving has not, and none of its early rounds."""
    return Answer(best=None)


register(
    Benchmark(
        name="halving-forest",
        summary=f"RandomForestClassifier, 27 settings x 5, 2 to {_MOST_TREES} trees by halving, 1,000 x 20",
        task=_task,
        data=_data,
        contenders=(
            Contender("manyfit HalvingGridSearchCV", "ours", _ours, read_manyfit),
            Contender("scikit-learn HalvingGridSearchCV", "scikit-learn", _theirs, read_search),
            Contender("manyfit GridSearchCV, all trees", "other", _full_grid, _time_only, note=_NOTE),
        ),
        bars=(bars.times_faster(0.8), bars.same_scores(1e-12)),
        work=reading_work,
        repeat=2,
    )
)
