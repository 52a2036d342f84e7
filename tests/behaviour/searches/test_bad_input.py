"""Bad input raises what scikit-learn's search raises, and says what is the matter."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from manyfit import metrics
from manyfit import model_selection as ours
from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
from tests._same_results import LABELS, X_CLASS, X, Y, assert_same_results
from tests._search_fixtures import RANDOM_LASSO

ALPHAS, C = {"alpha": [0.1, 1.0]}, {"C": [0.1, 1.0]}
NAN, INF = X.copy(), X.copy()
NAN[3, 1], INF[3, 1] = np.nan, np.inf
Y_NAN = Y.copy()
Y_NAN[70] = np.nan
PIPE = make_pipeline(StandardScaler(), PCA(), Ridge())
PIPE_GRID = {"pca__n_components": [2], "ridge__alpha": [0.1, 1.0]}

CASES = {
    "an empty list": (Ridge(), {"alpha": []}, X, Y, {}, "need a non-empty sequence|alpha"),
    "no grid": (Ridge(), [], X, Y, {}, "No fits were performed"),
    "a scalar": (Ridge(), {"alpha": 1.0}, X, Y, {}, "alpha"),
    "a text": (Ridge(), {"alpha": "auto"}, X, Y, {}, "alpha"),
    "unknown parameter": (Ridge(), {"beta": [1, 2]}, X, Y,
        {}, "Invalid parameter 'beta' for estimator Ridge"),
    "unknown in a step": (PIPE, {"ridge__beta": [1]}, X, Y,
        {}, "Invalid parameter 'beta' for estimator Ridge"),
    "unknown step": (PIPE, {"lasso__alpha": [1]}, X, Y, {}, "Invalid parameter 'lasso'"),
    "bad value": (Ridge(), {"alpha": [-1.0]}, X, Y,
        {}, "The 'alpha' parameter of Ridge must be .*Got -1.0 instead"),
    "bad value in a step": (PIPE, {"pca__n_components": ["some"]}, X, Y,
        {}, "'n_components' parameter of PCA.*'some'"),
    "steps of three parts": (Pipeline([("a", StandardScaler(), 1), ("b", Ridge())]),
        {"verbose": [False]}, X, Y, {}, "All the 5 fits failed"),
    "a step that is an array": (Pipeline([("a", X), ("b", Ridge())]),
        {"verbose": [False]}, X, Y, {}, "All the 5 fits failed"),
    "one name for two steps": (Pipeline([("a", StandardScaler()), ("a", Ridge())]),
        {"verbose": [False]}, X, Y, {"refit": False}, "Names provided are not unique"),
    "the name of a parameter for a step": (Pipeline([("memory", StandardScaler()), ("a", Ridge())]),
        {"a__alpha": [0.1, 1.0]}, X, Y, {"refit": False}, "conflict with constructor arguments"),
    "one name for two transformers": (
        make_pipeline(ColumnTransformer([("a", StandardScaler(), [0]), ("a", PCA(), [1, 2])]), Ridge()),
        {"ridge__alpha": [0.1, 1.0]}, X, Y, {"refit": False}, "Names provided are not unique"),
    "one name in a union": (make_pipeline(FeatureUnion([("a", PCA()), ("a", StandardScaler())]), Ridge()),
        {"ridge__alpha": [0.1, 1.0]}, X, Y, {"refit": False}, "Names provided are not unique"),
    "a range in reverse": (make_pipeline(MinMaxScaler((1, 0)), Ridge()),
        {"ridge__alpha": [0.1, 1.0]}, X, Y, {"refit": False}, "Minimum of desired feature range"),
    "too many components": (PIPE, {"pca__n_components": [77]}, X, Y,
        {}, "n_components=77 must be between 0 and"),
    "NaN": (Ridge(), ALPHAS, NAN, Y, {}, "Input X contains NaN"),
    "infinity": (Ridge(), ALPHAS, INF, Y, {}, "Input X contains infinity"),
    "NaN in a pipeline": (PIPE, PIPE_GRID, NAN, Y, {}, "Input X contains NaN"),
    "infinity in a pipeline": (PIPE, PIPE_GRID, INF, Y, {}, "Input X contains infinity"),
    "NaN in y": (Ridge(), ALPHAS, X, Y_NAN, {}, "Input y contains NaN"),
    "lengths": (Ridge(), ALPHAS, X, Y[:-1], {}, "inconsistent numbers of samples: .*80.*79"),
    "lengths of weights": (Ridge(), ALPHAS, X, Y,
        {"fit": {"sample_weight": Y[:5] ** 2}}, "inconsistent|sample_weight"),
    "no y": (Ridge(), ALPHAS, X, None, {}, "requires y to be passed|target y is None|All the 10 fits failed"),
    "strings": (Ridge(), ALPHAS, X.astype(str).astype(object) + "a", Y,
        {}, "could not convert string to float"),
    "complex": (Ridge(), ALPHAS, X + 1j, Y, {}, "Complex data not supported"),
    "complex y": (Ridge(), ALPHAS, X, Y + 1j, {}, "[Cc]omplex"),
    "objects": (Ridge(), ALPHAS, np.full(X.shape, {}, dtype=object), Y,
        {}, "must be a string or a real number"),
    "one dimension": (Ridge(), ALPHAS, X[:, 0], Y, {}, "Expected 2D array, got 1D array"),
    "three dimensions": (Ridge(), ALPHAS, X[:, :, None], Y, {}, "dim 3|3 dim|Found array with"),
    "no columns": (Ridge(), ALPHAS, X[:, :0], Y, {}, "Found array with 0 feature"),
    "text y": (Ridge(), ALPHAS, X, np.array(["a", "b"] * 40), {}, "could not convert|Unknown label|dtype"),
    "one class": (LogisticRegression(), {"C": [1.0]}, X_CLASS, np.repeat([0, 1, 2], 30),
        {"cv": KFold(3), "scoring": "roc_auc"}, None),
    "one class in training": (LogisticRegression(),
        {"C": [1.0]}, X_CLASS[:60], np.repeat([0, 1], 30), {"cv": KFold(2)}, "at least 2 classes"),
    "too many folds": (Ridge(), ALPHAS, X[:3], Y[:3], {"cv": 5}, "greater than the number of samples"),
    "index out of range": (Ridge(), ALPHAS, X, Y,
        {"cv": [([0, 1], [80])]}, "out of bounds|out of range|out-of-bounds"),
    "index as a float": (Ridge(), ALPHAS, X, Y,
        {"cv": [(np.array([0.0, 1.0]), np.array([3.0]))]}, "No valid specification|index"),
    "indices of two dimensions": (Ridge(), ALPHAS, X, Y,
        {"cv": [(np.arange(40).reshape(20, 2), np.arange(40, 80))]}, "dim"),
    "slices": (RANDOM_LASSO, ALPHAS, X, Y, {"cv": [(slice(0, 40), slice(40, 80))]}, "String indexing"),
    "index out of range of an iterated fit": (LogisticRegression(), C, X_CLASS, LABELS,
        {"cv": [(np.arange(60), [90])]}, "out of bounds|out of range|out-of-bounds"),
    "slices of an iterated fit": (LogisticRegression(), C, X_CLASS, LABELS,
        {"cv": [(slice(0, 60), slice(60, 90))]}, "String indexing"),
    "no splits of classes": (RidgeClassifier(), ALPHAS, X_CLASS, LABELS,
        {"cv": []}, "No fits were performed"),
    "equal names": (Ridge(), ALPHAS, pd.DataFrame(X, columns=["a", "b", "c", "d", "a"]), Y,
        {}, "uplicate"),
    "no splits": (Ridge(), ALPHAS, X, Y, {"cv": []}, "No fits were performed"),
    "empty training set": (Ridge(), ALPHAS, X, Y, {"cv": [([], [1, 2])]}, None),
    "unknown scorer": (Ridge(), ALPHAS, X, Y, {"scoring": "best"}, "'best'"),
    "scorer of probabilities": (Ridge(), ALPHAS, X, Y, {"scoring": "neg_log_loss"}, None),
    "unknown fit parameter": (Ridge(), ALPHAS, X, Y, {"fit": {"colour": 1}}, "colour"),
    "refit unknown": (Ridge(), ALPHAS, X, Y,
        {"scoring": ["r2", "explained_variance"], "refit": "mse"}, "refit"),
}  # fmt: skip


def outcome(cls, case):
    """The exception, if any, the warnings, and the search."""
    estimator, grid, data, y, params, _ = case
    params = dict(params)
    fit = params.pop("fit", {})
    search = cls(estimator, grid, **params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            search.fit(data, *(() if y is None else (y,)), **fit)
            error = None
        except Exception as raised:
            error = raised
    return error, [w.category for w in caught], search


@pytest.mark.invariant("Bad input raises scikit-learn's exceptions")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_same_exception(case):
    (ours, warned, search), (theirs, expected, reference) = (
        outcome(cls, case) for cls in (GridSearchCV, model_selection.GridSearchCV)
    )
    assert type(ours) is type(theirs), (ours, theirs)
    # Each kind of warning as often as from scikit-learn.
    assert sorted(c.__name__ for c in warned) == sorted(c.__name__ for c in expected)
    if theirs is None:
        assert_same_results(search, reference)
        return
    with pytest.raises(type(theirs), match=case[-1]):
        raise ours


@pytest.mark.parametrize("estimator", [Ridge(), RANDOM_LASSO, PIPE])
@pytest.mark.parametrize("bad", [NAN, INF], ids=["NaN", "infinity"])
def test_bad_rows_fail_only_where_they_train(estimator, bad):
    """A split that does not train on the row is fitted; scored on it, it gets the error score."""
    name = next(n for n in estimator.get_params() if n.endswith("alpha"))
    cv = [
        (np.arange(10, 50), np.arange(50, 80)),
        (np.arange(50), np.arange(50, 80)),
        (np.arange(20, 60), np.arange(20)),
    ]
    found = []
    for cls in (GridSearchCV, model_selection.GridSearchCV):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(cls(estimator, {name: [0.1, 1.0]}, cv=cv, refit=False).fit(bad, Y))
        found.append(sorted(w.category.__name__ for w in caught))
        # The text of a failed score is its own traceback, not that of an attempt before it.
        assert not any("During handling of the above exception" in str(w.message) for w in caught)
    assert_same_results(found[0], found[2])
    assert found[1] == found[3]
    assert np.isfinite(found[0].cv_results_["split0_test_score"]).all()


def test_a_randomized_search_over_an_empty_list():
    with pytest.raises(ValueError):
        RandomizedSearchCV(Ridge(), {"alpha": []}, n_iter=2).fit(X, Y)


def test_features_whose_squares_overflow_in_float32():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for cls in (GridSearchCV, model_selection.GridSearchCV):
            with pytest.raises(ValueError, match="All the 10 fits failed"):
                cls(Ridge(), ALPHAS).fit((X * 1e25).astype(np.float32), Y)


@pytest.mark.parametrize("scoring", [metrics.r2_score, {"a": metrics.r2_score}, metrics.r2_score.many])
def test_a_metric_of_ours_is_no_scorer(scoring):
    """As scikit-learn refuses its own, which it tells by their module."""
    search = GridSearchCV(Ridge(), ALPHAS, scoring=scoring, refit=False)
    drawn = RandomizedSearchCV(Ridge(), ALPHAS, scoring=scoring, refit=False, n_iter=2)
    given = (Ridge(), X, Y)
    curve = {"param_name": "alpha", "param_range": [1.0]}
    calls = [
        lambda: search.fit(X, Y),
        lambda: search.plan(X, Y),
        lambda: drawn.fit(X, Y),
        lambda: ours.cross_validate(*given, scoring=scoring),
    ]
    if not isinstance(scoring, dict):
        calls += [
            lambda: ours.cross_val_score(*given, scoring=scoring),
            lambda: ours.learning_curve(*given, scoring=scoring),
            lambda: ours.validation_curve(*given, **curve, scoring=scoring),
        ]
    for call in calls:
        with pytest.raises(ValueError, match=r"a metric function rather than a scorer.*make_scorer"):
            call()
