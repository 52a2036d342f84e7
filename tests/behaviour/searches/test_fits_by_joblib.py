"""Fits that share nothing, in processes of joblib: scores, errors and lines are scikit-learn's."""

import numpy as np
import pytest
import sklearn.exceptions
import sklearn.model_selection
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

import manyfit.model_selection
from tests._covering import spread

X, Y = make_classification(200, 8, random_state=0)
GRID = {"max_depth": [1, 3, None], "min_samples_leaf": [1, 5]}
FAILING = {"max_depth": [1, -1], "min_samples_leaf": [1, 5]}
WEIGHTS = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)


def fitted(library, grid, fit_params, options):
    tree = DecisionTreeClassifier(random_state=0)
    search = library.GridSearchCV(tree, grid, n_jobs=2, refit=False, **options)
    return search.fit(X, Y, **fit_params)


@pytest.mark.parametrize(
    ("grid", "fit_params", "options"),
    spread(
        [
            (GRID, {}, {"return_train_score": True, "cv": 4}),
            (GRID, {"sample_weight": WEIGHTS}, {"scoring": ["accuracy", "roc_auc"]}),
            (GRID, {}, {"error_score": "raise", "pre_dispatch": "all"}),
            (GRID, {}, {"pre_dispatch": 3, "cv": sklearn.model_selection.TimeSeriesSplit(4)}),
        ],
        2,
    ),
)
def test_scores(grid, fit_params, options):
    ours = fitted(manyfit.model_selection, grid, fit_params, options)
    theirs = fitted(sklearn.model_selection, grid, fit_params, options)
    assert ours.report_.fits_done == ours.report_.fits_requested
    for name, values in theirs.cv_results_.items():
        if "time" not in name:
            np.testing.assert_array_equal(ours.cv_results_[name], values)


def test_failing_fits_get_the_error_score():
    with pytest.warns(sklearn.exceptions.FitFailedWarning) as warned:
        ours = fitted(manyfit.model_selection, FAILING, {}, {"error_score": -7.0})
    with pytest.warns(sklearn.exceptions.FitFailedWarning) as expected:
        theirs = fitted(sklearn.model_selection, FAILING, {}, {"error_score": -7.0})
    assert ours.cv_results_["mean_test_score"].tolist() == theirs.cv_results_["mean_test_score"].tolist()
    assert ours.cv_results_["mean_test_score"].min() == -7.0
    first, second = (str(one[0].message).partition("\n")[0] for one in (warned, expected))
    assert first == second


@pytest.mark.slow  # ends the workers
def test_an_error_is_raised():
    with pytest.raises(ValueError, match="max_depth"):
        fitted(manyfit.model_selection, FAILING, {}, {"error_score": "raise"})


def test_learning_curves_are_those_of_sklearn():
    tree = DecisionTreeClassifier(random_state=0)
    ours, theirs = (
        one.learning_curve(tree, X, Y, cv=3, n_jobs=2)
        for one in (manyfit.model_selection, sklearn.model_selection)
    )
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(found, expected)
