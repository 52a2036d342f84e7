"""The contenders: manyfit, scikit-learn's searches and specialised classes, dask-ml, himalaya.

Each library is imported where it is used. If one is missing, or does not work with the other installed
versions, it fails inside its own run, which keeps the failure as data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._benchmark import Answer, Contender
from benchmarks._task import Task

Array = NDArray[Any]


def setting_key(params: Mapping[str, Any]) -> str:
    """Return one text per setting, whatever the order or the container of its parameters."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    return ", ".join(f"{name}={plain[name]!r}" for name in sorted(plain))


def read_search(search: Any) -> Answer:
    """Take the scores out of a fitted search with scikit-learn's ``cv_results_``."""
    results = search.cv_results_
    names = sorted(
        (name for name in results if name.startswith("split") and name.endswith("_test_score")),
        key=lambda name: int(name.removeprefix("split").partition("_")[0]),
    )
    means = np.asarray(results["mean_test_score"], dtype=float)
    return Answer(
        best=float(np.nanmax(means)) if np.isfinite(means).any() else float("nan"),
        keys=tuple(setting_key(params) for params in results["params"]),
        means=means,
        splits=np.array([results[name] for name in names], dtype=float),
        seconds_per_fit=np.asarray(results["mean_fit_time"]) + np.asarray(results["mean_score_time"]),
        params=tuple(results["params"]),
    )


def read_manyfit(search: Any) -> Answer:
    """Take the scores out of a search of manyfit, with its report."""
    report = search.report_
    names = ("fits_requested", "fits_done", "transformer_fits", "passes", "seconds")
    return replace(read_search(search), report={name: getattr(report, name) for name in names})


def manyfit(n_jobs: int | None = None) -> Contender:
    """Return manyfit's GridSearchCV."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        from manyfit.model_selection import GridSearchCV

        search = GridSearchCV(
            task.estimator, task.grid, cv=task.cv, scoring=task.scoring, n_jobs=n_jobs, refit=False
        )
        return search.fit(X, y)

    name, peer = f"manyfit n_jobs={n_jobs}", f"scikit-learn n_jobs={n_jobs}"
    return Contender(name, "ours", fit, read_manyfit, in_process=n_jobs is None, peer=peer)


def manyfit_optimum() -> Contender:
    """Return manyfit's GridSearchCV that shares even if scikit-learn's own fits do not converge."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        from manyfit.model_selection import GridSearchCV

        search = GridSearchCV(
            task.estimator, task.grid, cv=task.cv, scoring=task.scoring, sharing="optimum", refit=False
        )
        return search.fit(X, y)

    return Contender('manyfit sharing="optimum"', "other", fit, read_manyfit, in_process=True)


def sklearn(n_jobs: int | None = None) -> Contender:
    """Return scikit-learn's GridSearchCV."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        from sklearn.model_selection import GridSearchCV

        search = GridSearchCV(
            task.estimator, task.grid, cv=task.cv, scoring=task.scoring, n_jobs=n_jobs, refit=False
        )
        return search.fit(X, y)

    name = f"scikit-learn n_jobs={n_jobs}"
    return Contender(name, "scikit-learn", fit, read_search, in_process=n_jobs is None)


def dask_ml() -> Contender:
    """Return dask-ml's GridSearchCV on its threaded scheduler."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        from dask_ml.model_selection import GridSearchCV  # type: ignore[import-untyped]

        search = GridSearchCV(
            task.estimator,
            dict(task.grid),
            cv=task.cv,
            scoring=task.scoring,
            n_jobs=-1,
            refit=False,
            scheduler="threads",
            iid=False,  # the default weights splits by their rows; scikit-learn does not
        )
        return search.fit(X, y)

    return Contender("dask-ml threads", "other", fit, read_search)


def logistic_regression_cv() -> Contender:
    """Return scikit-learn's LogisticRegressionCV, which walks along C on each fold."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        from sklearn.linear_model import LogisticRegressionCV

        model = LogisticRegressionCV(
            Cs=task.grid["C"], cv=task.cv, scoring=task.scoring, n_jobs=-1, l1_ratios=(0.0,),
            use_legacy_attributes=False,
        )  # fmt: skip
        return model.fit(X, y)

    def read(model: Any) -> Answer:
        return Answer(best=None)

    note = "the same folds and score; one refit is part of it"
    return Contender("LogisticRegressionCV n_jobs=-1", "specialised", fit, read, note=note)


def ridge_cv(cv: int | None) -> Contender:
    """Return scikit-learn's RidgeCV, with the folds of the task or with its own leave-one-out."""

    def fit(task: Task, X: Array, y: Array) -> Any:
        from sklearn.linear_model import RidgeCV

        # With folds it computes the same score. Its shortcut without folds exists only for the squared error.
        scoring = task.scoring if cv is not None else None
        return RidgeCV(alphas=task.grid["alpha"], cv=cv, scoring=scoring).fit(X, y)

    def read(model: Any) -> Answer:
        return Answer(best=float(model.best_score_) if cv is not None else None)

    if cv is None:
        note = "leave-one-out by its own shortcut: another criterion, so its score is not compared; one refit"
        return Contender("RidgeCV leave-one-out", "specialised", fit, read, note=note)
    note = "the same folds and score, tells the best score only; one refit is part of it"
    return Contender(f"RidgeCV cv={cv}", "specialised", fit, read, note=note)


def elastic_net_cv() -> Contender:
    """Return scikit-learn's ElasticNetCV, or LassoCV where the grid has no l1_ratio.

    They walk along alpha, each fit from the coefficients of the one before.
    """

    def fit(task: Task, X: Array, y: Array) -> Any:
        from sklearn.linear_model import ElasticNetCV, LassoCV

        if "l1_ratio" in task.grid:
            model = ElasticNetCV(
                l1_ratio=task.grid["l1_ratio"], alphas=task.grid["alpha"], cv=task.cv, n_jobs=-1
            )
        else:
            model = LassoCV(alphas=task.grid["alpha"], cv=task.cv, n_jobs=-1)
        return model.fit(X, y)

    def read(model: Any) -> Answer:
        return Answer(best=None)

    note = "the same folds, warm starts, the squared error; one refit is part of it"
    return Contender("LassoCV or ElasticNetCV n_jobs=-1", "specialised", fit, read, note=note)


def himalaya_ridge_cv() -> Contender:
    """Return himalaya's RidgeCV, made for many targets.

    With one target it forms (alphas, test rows, training rows) numbers, so it takes part on small data only.
    """

    def fit(task: Task, X: Array, y: Array) -> Any:
        from himalaya.ridge import RidgeCV  # type: ignore[import-untyped]
        from himalaya.scoring import r2_score  # type: ignore[import-untyped]

        model = RidgeCV(
            alphas=np.asarray(task.grid["alpha"]),
            fit_intercept=True,
            cv=task.cv,
            solver_params={"score_func": r2_score},
        )
        return model.fit(X, y)

    def read(model: Any) -> Answer:
        return Answer(best=float(np.max(model.cv_scores_)))

    note = "the same folds and score, tells the best score only; one refit is part of it"
    return Contender("himalaya RidgeCV", "specialised", fit, read, note=note)


def searches(*ours: Contender) -> tuple[Contender, ...]:
    """Return manyfit (by default in this process), scikit-learn's two searches and dask-ml's."""
    return (*(ours or (manyfit(),)), sklearn(None), sklearn(-1), dask_ml())
