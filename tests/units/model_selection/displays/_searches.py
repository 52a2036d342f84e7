"""Searches for the tests of displays: real ones, and made-up results with scores that are easy to check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.datasets import make_regression
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from manyfit.model_selection import GridSearchCV

X, Y = make_regression(80, 6, noise=30.0, random_state=0)
PIPELINE = make_pipeline(PCA(), Ridge())
GRID = {"pca__n_components": [2, 4, 6], "ridge__alpha": [0.01, 1.0, 100.0, 1e4]}


def fitted(grid: Any = None, search: type = GridSearchCV, estimator: Any = PIPELINE, **options: Any) -> Any:
    """A search of GRID, or of another grid, with 4 splits."""
    return search(estimator, GRID if grid is None else grid, cv=4, **options).fit(X, Y)


def with_results(params: list[dict[str, Any]], folds: Any, **more: Any) -> Any:
    """A search with these scores; `more` adds columns of `cv_results_`."""
    folds = np.asarray(folds, dtype=float)
    results = {f"split{i}_test_score": folds[:, i] for i in range(folds.shape[1])}
    results |= {"mean_test_score": folds.mean(axis=1), "params": params}
    results |= {"mean_fit_time": np.arange(1.0, len(folds) + 1), "mean_score_time": np.full(len(folds), 0.5)}
    return SimpleNamespace(cv_results_={**results, **more})


def row_of(search: Any, **params: Any) -> int:
    """The only row of `cv_results_` with these parameters."""
    (row,) = (i for i, one in enumerate(search.cv_results_["params"]) if params.items() <= one.items())
    return row


def folds_of(search: Any, row: int, kind: str = "test", metric: str = "score") -> list[float]:
    results = search.cv_results_
    return [results[f"split{i}_{kind}_{metric}"][row] for i in range(search.n_splits_)]


def legend_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]
