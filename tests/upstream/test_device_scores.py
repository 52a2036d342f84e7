"""Searches on a device, by scorers that leave their scores there, which SciPy's switch allows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import array_api_strict
import numpy as np
import pytest
import sklearn
from sklearn import model_selection
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from manyfit import metrics
from manyfit.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("SCIPY_ARRAY_API") != "1", reason="`make upstream` sets SCIPY_ARRAY_API=1"
    ),
    pytest.mark.filterwarnings("error::UserWarning"),
]
X, Y = make_classification(120, 8, n_informative=5, n_classes=3, random_state=0)
NUMBERS = Y + X[:, 0]
NAMES = ["accuracy", "f1_macro", "neg_log_loss", "roc_auc_ovr", "matthews_corrcoef"]


def there(array: Any) -> Any:
    return array_api_strict.asarray(array, device=array_api_strict.Device("device1"))


def assert_same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.fixture(autouse=True)
def _dispatch() -> Iterator[None]:
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.thorough)])
def test_scores_of_a_cross_validation(n_jobs: int | None) -> None:
    model, scorers = LinearDiscriminantAnalysis(), {name: metrics.get_scorer(name) for name in NAMES}
    options = {"cv": StratifiedKFold(3), "error_score": "raise", "n_jobs": n_jobs}
    found = cross_validate(model, there(X), there(Y), scoring=scorers, **options)
    wanted = model_selection.cross_validate(model, X, Y, scoring=NAMES, cv=3)
    for name in NAMES:
        assert_same(found[f"test_{name}"], wanted[f"test_{name}"])


def test_scores_of_a_search_are_numbers() -> None:
    grid, r2 = {"alpha": [0.1, 10.0]}, metrics.get_scorer("r2")
    model = Ridge(solver="svd")
    theirs = model_selection.GridSearchCV(model, grid, scoring="r2", cv=KFold(3)).fit(X, NUMBERS)
    for scoring in (r2, {"score": r2}):
        search = GridSearchCV(model, grid, scoring=scoring, cv=KFold(3), refit="score", error_score="raise")
        search.fit(there(X), there(NUMBERS))
        for key in ("mean_test_score", "split1_test_score"):
            assert_same(search.cv_results_[key], theirs.cv_results_[key])
        assert search.best_params_ == theirs.best_params_
        assert isinstance(search.best_score_, float)


@pytest.mark.parametrize(("scoring", "sharing"), [("r2", "auto"), (None, "auto"), ("r2", "none")])
def test_steps_and_a_last_one_that_scikit_learn_dispatches_are_shared_where_x_lies(
    scoring: str | None, sharing: str
) -> None:
    model = make_pipeline(MinMaxScaler(), Ridge(solver="svd"))
    grid = {"minmaxscaler__feature_range": [(0, 1), (0, 2)], "ridge__alpha": [0.1, 10.0]}
    options: dict[str, Any] = {"cv": 3, "refit": False, "scoring": scoring, "sharing": sharing}
    search, wanted = (
        GridSearchCV(model, grid, error_score="raise", **options).fit(*data)
        for data in ((there(X), there(NUMBERS)), (X, NUMBERS))
    )
    assert_same(search.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
    fits = (search.report_.fits_done, search.report_.transformer_fits)
    assert fits == ((0, 6) if sharing == "auto" else (12, 0))


def test_steps_before_a_classifier_are_shared_where_x_lies() -> None:
    model = make_pipeline(MinMaxScaler(), LinearDiscriminantAnalysis())
    grid = {"lineardiscriminantanalysis__tol": [1e-4, 1e-3]}
    search = GridSearchCV(model, grid, cv=3, refit=False, scoring="accuracy", error_score="raise")
    search.fit(there(X), there(Y))
    assert (search.report_.fits_done, search.report_.transformer_fits) == (6, 3)
    wanted = model_selection.GridSearchCV(model, grid, cv=3).fit(X, Y)
    assert_same(search.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
