"""The searches, their sizes, and cuML's estimators for the same problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._floor import Work, linear_passes_work, moments_work, reading_work
from benchmarks._task import Data, Task
from manyfit import estimators

FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class Case:
    """One size of a problem: its name, how many rows or repeats, how many columns, and the dtype of X."""

    size: str
    rows: int
    columns: int
    dtype: str = "float32"

    @property
    def name(self) -> str:
        """The name in the tables."""
        return f"{self.size} {self.dtype}"


@dataclass(frozen=True)
class Problem:
    """A grid search on data of several sizes, the smallest first.

    ``cuml`` makes the estimator of cuML. ``drop_in`` makes that of manyfit for data on the device, whose fits
    go on to the optimum where scikit-learn's own stop in float32; None: scikit-learn's. ``own`` says that
    manyfit gets cuML's estimator, too: it shares none of these fits, and must be as fast as other contenders
    that fit individually.
    """

    name: str
    task: Task
    cuml: Callable[[], Any]
    data: Callable[[Case], Data]
    cases: Sequence[Case]
    quick: Sequence[Case]
    work: Callable[[Task, NDArray[Any], NDArray[Any]], Work]
    own: bool = False
    drop_in: Callable[[], Any] | None = None


def _diabetes(case: Case) -> Data:
    X, y = load_diabetes(return_X_y=True)
    X, _, y, _ = train_test_split(X, y, train_size=0.8, random_state=0)
    return np.tile(X.astype(case.dtype), (case.rows, 1)), np.tile(y.astype(case.dtype), case.rows)


def _mixed(case: Case, rng: np.random.Generator) -> NDArray[Any]:
    """Mixed columns, whose spectrum falls like that of real data."""
    X = rng.standard_normal((case.rows, case.columns), dtype=case.dtype)
    mix = rng.standard_normal((case.columns, case.columns)) / case.columns**0.5
    return np.asarray(X @ mix.astype(case.dtype))


def _numbers(case: Case) -> Data:
    rng = np.random.default_rng(0)
    X = _mixed(case, rng)
    y = X @ rng.standard_normal(case.columns, dtype=X.dtype)
    return X, y + 2.0 * rng.standard_normal(case.rows, dtype=X.dtype)


def _classes(case: Case) -> Data:
    rng = np.random.default_rng(0)
    X = _mixed(case, rng)
    z = X @ rng.standard_normal(case.columns, dtype=X.dtype) / 3.0
    return X, (rng.random(case.rows) < expit(z)).astype(np.int32)


def _digits(case: Case) -> Data:
    X, y = load_digits(return_X_y=True)
    index = np.arange(case.rows) % len(X)
    noise = np.random.default_rng(0).standard_normal((case.rows, X.shape[1]), dtype=case.dtype)
    return (X / 16.0).astype(case.dtype)[index] + noise / 10.0, y[index].astype(np.int32)


def _cuml(module: str, name: str, **params: Any) -> Any:
    return getattr(import_module(f"cuml.{module}"), name)(**params)


def _logistic(cls: Any) -> Any:
    """With so many iterations that all contenders converge."""
    return cls(max_iter=1000)


def _cuml_pipeline() -> Any:
    return make_pipeline(
        _cuml("preprocessing", "StandardScaler"),
        _cuml("decomposition", "PCA"),
        _cuml("linear_model", "Ridge"),
    )


def settings_of(problem: Problem, quick: bool) -> list[dict[str, Any]]:
    """Return the settings of the grid, or two values of each parameter."""
    grid = {name: values[:2] if quick else values for name, values in problem.task.grid.items()}
    return list(ParameterGrid(grid))


_SIZES = {"28 kB": 1, "2.8 MB": 100, "28 MB": 1_000, "280 MB": 10_000, "2.8 GB": 100_000}

PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem(
            name="ridge",
            task=Task(Ridge(), {"alpha": np.logspace(-3, -1, 10)}, scoring="r2"),
            cuml=lambda: _cuml("linear_model", "Ridge"),
            data=_diabetes,
            cases=[Case(size, repeats, 10, dtype) for size, repeats in _SIZES.items() for dtype in FLOATS],
            quick=[Case("28 kB", 1, 10, dtype) for dtype in FLOATS],
            work=moments_work,
        ),
        Problem(
            name="affine-pipeline",
            task=Task(
                make_pipeline(StandardScaler(), PCA(), Ridge()),
                {"pca__n_components": list(range(5, 51, 5)), "ridge__alpha": np.logspace(-3, 3, 10)},
                scoring="r2",
            ),
            cuml=_cuml_pipeline,
            data=_numbers,
            cases=[Case("20 MB", 50_000, 50, "float64"), Case("1 GB", 1_000_000, 256)],
            quick=[Case("80 kB", 400, 50)],
            work=moments_work,
        ),
        Problem(
            name="logistic",
            task=Task(_logistic(LogisticRegression), {"C": np.logspace(-3, 2, 10)}, scoring="neg_log_loss"),
            cuml=lambda: _cuml("linear_model", "LogisticRegression", max_iter=1000),
            drop_in=lambda: _logistic(estimators.LogisticRegression),
            data=_classes,
            cases=[Case("80 MB", 100_000, 100, "float64"), Case("800 MB", 2_000_000, 100)],
            quick=[Case("16 kB", 400, 10)],
            work=linear_passes_work,
        ),
        Problem(
            name="logistic-multinomial",
            task=Task(_logistic(LogisticRegression), {"C": np.logspace(-3, 1, 6)}, scoring="neg_log_loss"),
            cuml=lambda: _cuml("linear_model", "LogisticRegression", max_iter=1000),
            drop_in=lambda: _logistic(estimators.LogisticRegression),
            data=_digits,
            cases=[Case("10 MB", 20_000, 64, "float64"), Case("128 MB", 500_000, 64)],
            quick=[Case("77 kB", 300, 64)],
            work=linear_passes_work,
        ),
        Problem(
            name="forest",
            task=Task(
                RandomForestClassifier(random_state=0), {"max_depth": [8, 12], "n_estimators": [10, 50, 100]},
                cv=3, scoring="accuracy",
            ),
            cuml=lambda: _cuml("ensemble", "RandomForestClassifier", random_state=0),
            data=_classes,
            cases=[Case("40 MB", 200_000, 50)],
            quick=[Case("4 kB", 100, 10)],
            work=reading_work,
            own=True,
        ),
        Problem(
            name="neighbours",
            task=Task(
                KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 9, 15, 25]}, cv=3, scoring="accuracy"
            ),
            cuml=lambda: _cuml("neighbors", "KNeighborsClassifier"),
            data=_digits,
            cases=[Case("26 MB", 100_000, 64)],
            quick=[Case("77 kB", 300, 64)],
            work=reading_work,
            own=True,
        ),
    )
}  # fmt: skip
