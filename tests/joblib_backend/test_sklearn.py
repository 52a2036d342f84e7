"""scikit-learn's own code under the backend: the results that it has under loky."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    BaggingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import manyfit.joblib_backend  # noqa: F401 - registers the backend
from tests._covering import spread

pytestmark = pytest.mark.slow

X, Y = make_classification(600, 12, n_informative=6, n_classes=3, random_state=0)
XR, YR = make_regression(600, 12, noise=1.0, random_state=0)
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
NAMED = [("tree", TREE), ("nb", GaussianNB()), ("lr", make_pipeline(StandardScaler(), LogisticRegression()))]


def _without_times(results: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in results.items() if not key.endswith("time")}


def _grid() -> Any:
    search = GridSearchCV(TREE, {"max_depth": [1, 3, 5], "min_samples_leaf": [1, 9]}, cv=3).fit(X, Y)
    results = _without_times(search.cv_results_)
    return [results[key] for key in sorted(results) if key != "params"], search.predict(X)


def _randomized() -> Any:
    search = RandomizedSearchCV(
        RandomForestRegressor(5, random_state=0), {"max_depth": range(1, 9)}, n_iter=4, cv=3, random_state=0
    )
    return search.fit(XR, YR).cv_results_["mean_test_score"]


def _forest() -> Any:
    forest = RandomForestClassifier(30, random_state=0, oob_score=True).fit(X, Y)
    return forest.predict_proba(X), forest.oob_score_, forest.feature_importances_


CASES: dict[str, Callable[[], Any]] = {
    "GridSearchCV": _grid,
    "RandomizedSearchCV of forests": _randomized,
    "cross_validate": lambda: list(
        _without_times(
            cross_validate(TREE, X, Y, cv=4, return_train_score=True, scoring=["accuracy", "f1_macro"])
        ).values()
    ),
    "cross_val_predict": lambda: cross_val_predict(TREE, X, Y, cv=4, method="predict_proba"),
    "RandomForest": _forest,
    "Bagging": lambda: BaggingRegressor(Ridge(), 12, random_state=0).fit(XR, YR).predict(XR),
    "Voting": lambda: VotingClassifier(NAMED, voting="soft").fit(X, Y).predict_proba(X),
    "Stacking": lambda: StackingClassifier(NAMED, cv=3).fit(X, Y).predict_proba(X),
    "OneVsRest": lambda: OneVsRestClassifier(TREE).fit(X, Y).predict_proba(X),
    "permutation_importance": lambda: (
        permutation_importance(TREE.fit(X, Y), X, Y, n_repeats=4, random_state=0).importances
    ),
    "learning_curve": lambda: learning_curve(TREE, X, Y, cv=3)[:3],
    "validation_curve": lambda: validation_curve(
        TREE, X, Y, param_name="max_depth", param_range=[1, 2, 3], cv=3
    ),
}


def _compare(found: Any, expected: Any, rtol: float = 0.0) -> None:
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _compare(one, other, rtol)
    else:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=0.0)


@pytest.mark.cases(2)
@pytest.mark.invariant("The joblib backend keeps joblib's contract")
@pytest.mark.parametrize("name", spread(CASES, 6))
def test_as_in_this_process(name, one):
    with parallel_config(backend="manyfit", apart_bytes=1000):
        found = CASES[name]()
    # Bagging adds up predictions by as many parts as there are jobs.
    _compare(found, CASES[name](), rtol=1e-12)


@pytest.mark.invariant("The joblib backend keeps joblib's contract")
@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_as_under_loky(name, processes):
    with parallel_config(backend="loky", n_jobs=2):
        expected = CASES[name]()
    for again in range(2):
        with parallel_config(backend="manyfit", n_jobs=(2, -1)[again]):
            _compare(CASES[name](), expected)


def test_warnings_and_errors_of_fits_are_scikit_learns(one):
    worse = GridSearchCV(LogisticRegression(), {"C": [1.0, -1.0]}, cv=2)
    with (
        parallel_config(backend="manyfit"),
        pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 4"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        worse.fit(X, Y)
    assert np.isnan(worse.cv_results_["mean_test_score"][1])
    with parallel_config(backend="manyfit"), pytest.raises(ValueError, match="The 'C' parameter"):
        GridSearchCV(LogisticRegression(), {"C": [1.0, -1.0]}, cv=2, error_score="raise").fit(X, Y)


def test_the_callers_filters_hold_in_tasks(one):
    """Warnings are errors in this test suite; and silent where that is asked."""
    short = LogisticRegression(max_iter=1)
    with parallel_config(backend="manyfit"):
        with pytest.raises(ConvergenceWarning):
            cross_validate(short, X, Y, cv=3, error_score="raise")
        # Filters belong to the process, and the worker is a thread of it: a fit that the error left
        # running must end before the filters change. The only thread takes the next task after it.
        one.submit(int, pure=False).result()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(cross_validate(short, X, Y, cv=3)["test_score"]) == 3
