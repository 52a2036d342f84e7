"""Frames of numbers with gaps and of categories: columns are encoded once for all folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

from benchmarks import _bars as bars
from benchmarks._benchmark import Benchmark, register
from benchmarks._contenders import manyfit, sklearn
from benchmarks._floor import Work
from benchmarks._task import Data, Task

_NUMBERS = ["a", "b", "c"]
_CATEGORIES = ["k", "l", "m", "n"]
_LEVELS = 25


def _frame(quick: bool, n_levels: int = _LEVELS) -> tuple[pd.DataFrame, NDArray[Any]]:
    """A twentieth of the numbers is missing; the target reads numbers and categories."""
    rows = 400 if quick else 20_000
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(rows, len(_NUMBERS)))
    codes = rng.integers(n_levels, size=(rows, len(_CATEGORIES)))
    target = numbers @ rng.normal(size=len(_NUMBERS)) + rng.normal(size=rows)
    for column in codes.T:
        target += rng.normal(size=n_levels)[column]
    numbers[rng.random(numbers.shape) < 0.05] = np.nan
    levels = np.array([f"level {n}" for n in range(n_levels)], dtype=object)
    frame = pd.DataFrame(numbers, columns=_NUMBERS)
    return frame.assign(**dict(zip(_CATEGORIES, levels[codes].T, strict=True))), target


def _classes(quick: bool) -> Data:
    X, target = _frame(quick)
    return X, (target > 0).astype(int)


def _encoded(last: Any, *, sparse: bool = True) -> Pipeline:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=sparse)
    columns = make_column_transformer((numbers, _NUMBERS), (encoder, _CATEGORIES))
    return Pipeline([("columns", columns), ("last", last)])


def _ridge(sparse: bool) -> Any:
    def task(quick: bool) -> Task:
        alphas = np.logspace(-2, 3, 2 if quick else 10)
        return Task(_encoded(Ridge(), sparse=sparse), {"last__alpha": alphas}, scoring="r2")

    return task


def _bins(quick: bool) -> Task:
    """Bins of numbers beside given categories, of which the first is dropped."""
    levels = [np.array([f"level {n}" for n in range(_LEVELS)], dtype=object)] * len(_CATEGORIES)
    numbers = make_pipeline(SimpleImputer(), KBinsDiscretizer(5, quantile_method="averaged_inverted_cdf"))
    columns = make_column_transformer(
        (numbers, _NUMBERS), (OneHotEncoder(categories=levels, drop="first"), _CATEGORIES)
    )
    grid = {"last__alpha": np.logspace(-2, 3, 2 if quick else 10)}
    return Task(Pipeline([("columns", columns), ("last", Ridge())]), grid, scoring="r2")


def _logistic(scoring: str, tol: float) -> Any:
    def task(quick: bool) -> Task:
        grid = {"last__C": np.logspace(-2, 2, 2 if quick else 8)}
        return Task(_encoded(LogisticRegression(tol=tol, max_iter=1000)), grid, scoring=scoring)

    return task


def encoded_work(task: Task, X: pd.DataFrame, y: NDArray[Any]) -> Work:
    """Return the work of one pass over the frame: 8 bytes a value, and the products of a row's values.

    A row has as many values that are not zero as the frame has columns: a one-hot column is 1 for one level.
    """
    rows, columns = X.shape
    return Work(8 * rows * (columns + 1), float(rows * (columns + 1) * (columns + 2)))


def encoded_passes_work(task: Task, X: pd.DataFrame, y: NDArray[Any]) -> Work:
    """Return the work of one gradient for each setting and fold; see `linear_passes_work`."""
    rows, columns = X.shape
    return Work(8 * rows * (columns + 1), 4.0 * rows * (columns + 1) * task.settings * (task.cv - 1))


for _name, _sparse in (("mixed-ridge", True), ("mixed-ridge-dense", False)):
    register(
        Benchmark(
            name=_name,
            summary=f"impute, scale and one-hot ({'sparse' if _sparse else 'dense'}) > Ridge, 10 alphas x 5",
            task=_ridge(_sparse),
            data=_frame,
            contenders=(manyfit(), sklearn(None), sklearn(-1)),
            # Sparse rows are solved iteratively, to scikit-learn's own tolerance.
            bars=(bars.times_faster(20), bars.same_scores(1e-9)),
            work=encoded_work,
            repeat=3,
        )
    )
register(
    Benchmark(
        name="mixed-ridge-bins",
        summary="impute and bin, one-hot with given categories > Ridge, 10 alphas x 5",
        task=_bins,
        data=_frame,
        contenders=(manyfit(), sklearn(None), sklearn(-1)),
        bars=(bars.times_faster(8), bars.same_scores(1e-9)),
        work=encoded_work,
        repeat=3,
    )
)
register(
    Benchmark(
        name="mixed-ridge-levels",
        summary="impute, scale and one-hot of four columns with 400 levels > Ridge, 10 alphas x 5",
        task=_ridge(True),
        data=lambda quick: _frame(quick, 8 if quick else 400),
        contenders=(manyfit(), sklearn(None), sklearn(-1)),
        # Eigenvalues of 1,600 columns cost more than iterations on sparse rows: steps are shared, not fits.
        bars=(bars.times_faster(1.5), bars.same_scores(1e-9)),
        work=encoded_work,
        repeat=3,
    )
)
for _name, _scoring, _tol in (
    ("mixed-logistic", "neg_log_loss", 1e-4),
    ("mixed-logistic-tol", "accuracy", 1e-7),
):
    register(
        Benchmark(
            name=_name,
            summary=f"impute, scale and one-hot > LogisticRegression(tol={_tol:g}), 8 C x 5, {_scoring}",
            task=_logistic(_scoring, _tol),
            data=_classes,
            contenders=(manyfit(), sklearn(None), sklearn(-1)),
            bars=(bars.times_faster(5), bars.same_scores(1e-2 if _tol > 1e-5 else 1e-6)),
            work=encoded_passes_work,
            repeat=3,
        )
    )
