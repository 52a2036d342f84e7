"""SequentialFeatureSelector against scikit-learn's: the same features, whatever decides them."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn import feature_selection
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.feature_selection import SequentialFeatureSelector
from manyfit.feature_selection._sequential import settle_best
from tests._covering import covering


def _data(n: int = 90, p: int = 7):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * np.logspace(-3, 3, p) + rng.normal(size=p) * 10
    X[:, 4] = X[:, 2]  # a tie at every step
    return X, X @ (rng.normal(size=p) / np.logspace(-3, 3, p)) + rng.normal(size=n)


def _both(estimator, X, y, **params):
    theirs = feature_selection.SequentialFeatureSelector(estimator, **copy.deepcopy(params)).fit(X, y)
    ours = SequentialFeatureSelector(estimator, **params).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    assert ours.n_features_to_select_ == theirs.n_features_to_select_
    report = ours.report_
    assert report.fits_requested == report.fits_shared + report.fits_done
    return report


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("direction", "estimator", "scoring"),
    covering(
        ["forward", "backward"],
        {
            "ridge": (Ridge(), None),
            "zero": (Ridge(0.01, fit_intercept=False), "neg_mean_squared_error"),
            "scaled": (make_pipeline(StandardScaler(), Ridge()), "neg_mean_absolute_error"),
            "ols": (LinearRegression(), "explained_variance"),
        }.items(),
        strength=1,
    ),
)
def test_features_are_scikit_learns(direction, estimator, scoring):
    X, y = _data()
    report = _both(estimator, X, y, n_features_to_select=3, direction=direction, scoring=scoring, cv=3)
    assert report.fits_shared > 0
    assert report.passes == 1.0


def test_a_frame_is_read_as_its_array():
    X, y = _data()
    frame = pd.DataFrame(X, columns=list("abcdefg"), index=np.arange(90)[::-1])
    assert _both(Ridge(), frame, pd.Series(y), n_features_to_select=2, cv=3).fits_shared > 0


@pytest.mark.parametrize("tol", [1e-4, 0.05])
def test_the_selection_ends_where_scikit_learns_does(tol):
    X, y = _data()
    _both(Ridge(), X, y, tol=tol, cv=3)


def test_classes_are_selected_for_one_fit_at_a_time():
    X, y = _data()
    report = _both(make_pipeline(StandardScaler(), RidgeClassifier()), X, y > np.median(y), cv=3)
    assert report.fits_shared > 0


@pytest.mark.parametrize(
    ("estimator", "params", "reason"),
    [
        (LogisticRegression(), {}, "converge"),
        (Ridge(), {"cv": KFold(3, shuffle=True, random_state=np.random.RandomState(0))}, "other splits"),
        (Ridge(), {"scoring": lambda model, X, y: model.coef_.sum()}, "may read the fitted estimator"),
    ],
)
def test_other_fits_are_scikit_learns(estimator, params, reason):
    X, y = _data()
    X, y = X[:, :3], (y > np.median(y)).astype(int)
    report = _both(estimator, X, y, n_features_to_select=1, **{"cv": 3, **copy.deepcopy(params)})
    assert report.fits_shared == 0
    assert reason in "".join(report.left_to_sklearn)


def test_a_constant_and_a_float32_column_are_scored_as_by_scikit_learn():
    X, y = _data()
    X[:, 0] = 3.0
    _both(
        make_pipeline(StandardScaler(), Ridge()),
        X,
        y,
        n_features_to_select=3,
        cv=ShuffleSplit(3, random_state=1),
    )
    report = _both(Ridge(), X[:, 2:5].astype(np.float32), y, n_features_to_select=1, cv=3)
    assert report.fits_shared == 0


def test_scores_that_may_tie_are_fitted():
    fitted = []

    def fit(j):
        fitted.append(j)
        return [0.5, 0.5 + 1e-12, 0.2, 0.6][j]

    scores = np.array([0.5, 0.5, 0.2, np.nan])
    assert settle_best(scores, fit) == 1
    assert fitted == [3]
    np.testing.assert_array_equal(scores, [0.5, 0.5, 0.2, 0.6])
    scores = np.array([0.5, 0.5, 0.2, 0.1])
    assert settle_best(scores, fit) == 2
    assert scores[1] > scores[0]
