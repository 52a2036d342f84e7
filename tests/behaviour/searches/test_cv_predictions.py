"""Out-of-fold predictions of a search are those of scikit-learn's ``cross_val_predict``."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score, cross_validate
from tests.behaviour.iterations._optimum import Optimum

IRIS, CODES = (one[::2] for one in load_iris(return_X_y=True))
NAMES = np.array(["a", "b", "c"])[CODES]
DIABETES, NUMBERS = (one[:80] for one in load_diabetes(return_X_y=True))
SHUFFLED = KFold(4, shuffle=True, random_state=0)
NEIGHBOURS, TREE = KNeighborsClassifier(), DecisionTreeClassifier(random_state=0)
SCALED = make_pipeline(StandardScaler(), LogisticRegression())
CASES = {
    "moments": (Ridge(), {"alpha": [0.1, 1.0]}, "predict", 5),
    "rows left out": (Ridge(), {"alpha": [0.1, 1.0]}, "predict", LeaveOneOut()),
    "iterations": (SCALED, {"logisticregression__C": [0.1, 1.0]}, "predict_proba", SHUFFLED),
    "neighbours": (NEIGHBOURS, {"n_neighbors": [3, 5]}, "predict", SHUFFLED),
    "each row": (NEIGHBOURS, {"n_neighbors": [3, 5]}, "predict_proba", LeaveOneOut()),
    "forests": (RandomForestClassifier(random_state=0), {"n_estimators": [4, 8]}, "predict_proba", 3),
    "steps": (make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 5.0]}, "decision_function", 3),
    "one by one": (TREE, {"max_depth": [1, 3]}, "predict", SHUFFLED),
}


def data_of(estimator):
    return (DIABETES, NUMBERS) if isinstance(estimator, Ridge) else (IRIS, NAMES)


def assert_equal(found, expected):
    if expected.dtype.kind in "OU":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.cases(3)
@pytest.mark.invariant("Out-of-fold predictions are those of cross_val_predict")
@pytest.mark.parametrize("case", CASES)
def test_predictions_are_those_of_cross_val_predict(case):
    estimator, grid, method, cv = CASES[case]
    X, y = data_of(estimator)
    search = GridSearchCV(estimator, grid, cv=cv, return_predictions=method, scoring=scoring_of(estimator))
    search.fit(X, y)
    expected = cross_val_predict(search.best_estimator_, X, y, cv=cv, method=method)
    assert_equal(search.cv_predictions_, expected)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "R.2 score is not well-defined|Scoring failed")
        validated = cross_validate(search.best_estimator_, X, y, cv=cv, return_predictions=method)
    assert_equal(validated["predictions"], expected)


def test_those_of_the_best_setting_are_scikit_learns_also_where_scores_are_of_the_optimum():
    options = {"cv": SHUFFLED, "return_predictions": "predict_proba"}
    search = Optimum(SCALED, CASES["iterations"][1], **options).fit(IRIS, NAMES)
    assert search.report_.fits_shared == 8
    expected = cross_val_predict(search.best_estimator_, IRIS, NAMES, cv=SHUFFLED, method="predict_proba")
    assert_equal(search.cv_predictions_, expected)


def test_fits_that_give_predictions_print_no_lines_again(capsys):
    GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3, return_predictions=True, verbose=2).fit(
        DIABETES, NUMBERS
    )
    assert capsys.readouterr().out.count("[CV] END") == 6


def scoring_of(estimator):
    return "neg_mean_squared_error" if isinstance(estimator, Ridge) else None


@pytest.mark.cases(2)
@pytest.mark.parametrize("case", ["moments", "neighbours", "each row", "one by one"])
def test_those_of_all_settings(case):
    estimator, grid, method, cv = CASES[case]
    X, y = data_of(estimator)
    search = GridSearchCV(
        estimator, grid, cv=cv, return_predictions=("all", method), refit=False, scoring=scoring_of(estimator)
    ).fit(X, y)
    assert "predictions" in search.report_.seconds and search.report_.seconds["predictions"] < 0.5
    for params, found in zip(search.cv_results_["params"], search.cv_predictions_, strict=True):
        expected = cross_val_predict(estimator.set_params(**params), X, y, cv=cv, method=method)
        assert_equal(found, expected)


def test_shared_fits_have_the_predictions_already(monkeypatch):
    """No fit is made for predictions that the scores have read."""
    search = GridSearchCV(NEIGHBOURS, {"n_neighbors": [1, 4]}, cv=3, return_predictions=True, refit=False)
    fits = []
    fit = KNeighborsClassifier.fit

    @functools.wraps(fit)  # or the class would not be shared
    def counted(self, X, y):
        fits.append(1)
        return fit(self, X, y)

    monkeypatch.setattr(KNeighborsClassifier, "fit", counted)
    search.fit(IRIS, NAMES)
    assert len(fits) == 3 == search.report_.fits_done


def test_other_splits_have_their_rows_beside_the_predictions():
    cv = ShuffleSplit(3, test_size=0.4, random_state=0)
    search = RandomizedSearchCV(TREE, {"max_depth": [1, 2]}, n_iter=2, cv=cv, return_predictions=True)
    search.fit(IRIS, NAMES)
    splits = list(cv.split(IRIS))
    assert len(search.cv_predictions_) == len(splits)
    for (rows, found), (train, test) in zip(search.cv_predictions_, splits, strict=True):
        np.testing.assert_array_equal(rows, test)
        fitted = TREE.set_params(**search.best_params_).fit(IRIS[train], NAMES[train])
        np.testing.assert_array_equal(found, fitted.predict(IRIS[test]))


def test_a_fold_without_a_class_has_a_column_for_it():
    cv, grid = KFold(3), {"n_neighbors": [1, 4]}
    asked = {"cv": cv, "return_predictions": "predict_proba"}
    with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
        search = GridSearchCV(NEIGHBOURS, grid, **asked).fit(IRIS, NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cross_val_predict(search.best_estimator_, IRIS, NAMES, cv=cv, method="predict_proba")
    np.testing.assert_array_equal(search.cv_predictions_, expected)


def test_random_fits_are_those_that_were_scored():
    model = DecisionTreeClassifier(max_features=1, splitter="random")
    search = GridSearchCV(model, {"max_depth": [2, 3]}, cv=SHUFFLED, return_predictions=True).fit(IRIS, NAMES)
    for i, (_, test) in enumerate(SHUFFLED.split(IRIS)):
        score = accuracy_score(NAMES[test], search.cv_predictions_[test])
        assert score == search.cv_results_[f"split{i}_test_score"][search.best_index_]


def test_memory_limit_and_checkpoint(tmp_path):
    grid = {"n_neighbors": [1, 4]}
    expected = GridSearchCV(NEIGHBOURS, grid, return_predictions=True).fit(IRIS, NAMES).cv_predictions_
    small = GridSearchCV(NEIGHBOURS, grid, return_predictions=True, memory_limit="5kB").fit(IRIS, NAMES)
    np.testing.assert_array_equal(small.cv_predictions_, expected)
    with pytest.raises(ValueError, match="would need 1.17 kiB, more than memory_limit=0.98 kiB"):
        GridSearchCV(NEIGHBOURS, grid, return_predictions="all", memory_limit=1000).fit(IRIS, NAMES)
    for _ in range(2):  # the second one reads its scores from the file
        kept = GridSearchCV(NEIGHBOURS, grid, return_predictions=True, checkpoint=tmp_path / "scores")
        np.testing.assert_array_equal(kept.fit(IRIS, NAMES).cv_predictions_, expected)


def test_a_setting_that_fails_has_none():
    with pytest.warns(UserWarning, match="Scoring failed|non-finite"):
        search = GridSearchCV(NEIGHBOURS, {"n_neighbors": [3, 70]}, return_predictions="all").fit(IRIS, NAMES)
    assert search.cv_predictions_[1] is None and len(search.cv_predictions_[0]) == len(IRIS)


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_a_setting_that_is_out_of_a_race_has_none():
    options = {"cv": SHUFFLED, "race": 0.2, "return_predictions": "all", "refit": False}
    search = GridSearchCV(TREE, {"max_depth": [1, 3]}, **options).fit(IRIS, NAMES)
    assert [one["candidate"] for one in search.report_.dropped] == [0]
    assert search.cv_predictions_[0] is None and len(search.cv_predictions_[1]) == len(IRIS)


@pytest.mark.parametrize("given", ["transform", ("all", "fit"), ("best", "predict"), ()])
def test_other_values_are_refused(given):
    with pytest.raises(ValueError, match="return_predictions should be False, True, 'all', one of 'predict'"):
        GridSearchCV(NEIGHBOURS, {"n_neighbors": [3]}, return_predictions=given).fit(IRIS, NAMES)


def test_what_needs_a_best_setting_or_a_search():
    search = GridSearchCV(
        TREE, {"max_depth": [1]}, scoring=["accuracy", "f1_macro"], refit=False, return_predictions=True
    )
    with pytest.raises(ValueError, match="needs a best setting"):
        search.plan(IRIS, NAMES)  # so that no fit is made for nothing
    search.set_params(scoring=lambda *args: {"a": 1.0, "b": 0.0})  # scores that are known after the fits
    with pytest.raises(ValueError, match="needs a best setting"):
        search.fit(IRIS, NAMES)
    assert search.cv_results_["mean_test_a"] == 1.0
    with pytest.raises(ValueError, match="cross_validate has one setting"):
        cross_validate(TREE, IRIS, NAMES, return_predictions="all")
    with pytest.raises(TypeError, match="return_predictions"):
        cross_val_score(TREE, IRIS, NAMES, return_predictions=True)


@pytest.mark.thorough
def test_processes_of_joblib_record_predictions():
    search = GridSearchCV(TREE, {"max_depth": [1, 3]}, cv=SHUFFLED, n_jobs=2, return_predictions="all")
    found = search.fit(IRIS, NAMES).cv_predictions_
    for params, own in zip(search.cv_results_["params"], found, strict=True):
        expected = cross_val_predict(TREE.set_params(**params), IRIS, NAMES, cv=SHUFFLED)
        np.testing.assert_array_equal(own, expected)


class Unfit(LinearSVC):
    def fit(self, X, y):
        raise AssertionError("it was fitted")


@pytest.mark.parametrize("model", [Unfit(), make_pipeline(StandardScaler(), Unfit())])
def test_predictions_that_no_setting_has_are_refused_before_the_fits(model):
    search = GridSearchCV(model, {}, return_predictions="predict_proba", error_score="raise")
    with pytest.raises(AttributeError, match="return_predictions='predict_proba' calls .* this "):
        search.fit(IRIS, NAMES)


@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_predictions_that_parameters_hide_are_refused_by_the_first_fit(error_score):
    model = SGDClassifier(random_state=0)  # with another loss it has probabilities
    options = {"return_predictions": "predict_proba", "error_score": error_score}
    with pytest.raises(AttributeError, match="calls predict_proba, which this SGDClassifier does not have"):
        GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3, **options).fit(IRIS, NAMES)


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_method_that_a_model_has_only_once_it_is_fitted(in_pipeline):
    """A stack has the methods of its last model, which it makes in fit."""
    model = StackingClassifier([("tree", TREE), ("bayes", GaussianNB())], cv=2)
    assert not hasattr(model, "predict_proba")
    grid = {"tree__max_depth": [1, 2]}
    if in_pipeline:
        model, grid = make_pipeline(StandardScaler(), model), {"stackingclassifier__tree__max_depth": [1, 2]}
    search = GridSearchCV(model, grid, cv=3, return_predictions="predict_proba").fit(IRIS, NAMES)
    expected = cross_val_predict(search.best_estimator_, IRIS, NAMES, cv=3, method="predict_proba")
    assert_equal(search.cv_predictions_, expected)
