"""RFECV against scikit-learn's: the same eliminations, whatever decides them."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn import feature_selection
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import GroupKFold, ShuffleSplit

from manyfit.feature_selection import RFECV
from manyfit.feature_selection._rfecv import eliminate
from manyfit.folds import Unsupported


def _data(p: int = 6):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, p)) * rng.uniform(0.1, 10, p) + 5.0
    return X, X[:, :3] @ rng.normal(size=3) + rng.normal(size=80)


def _both(estimator, X, y, *, groups=None, **params):
    given = {} if groups is None else {"groups": groups}
    theirs = feature_selection.RFECV(estimator, **copy.deepcopy(params)).fit(X, y, **given)
    ours = RFECV(estimator, **params).fit(X, y, **given)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.ranking_, theirs.ranking_)
    np.testing.assert_array_equal(ours.estimator_.coef_, theirs.estimator_.coef_)
    assert list(ours.cv_results_) == list(theirs.cv_results_)
    for name, found in theirs.cv_results_.items():
        np.testing.assert_allclose(ours.cv_results_[name], found, rtol=1e-9, atol=1e-11, err_msg=name)
    return ours.report_


@pytest.mark.parametrize(
    ("estimator", "params"),
    [
        (Ridge(), {}),
        (LinearRegression(), {"step": 0.4, "cv": 3}),
        (
            Ridge(fit_intercept=False),
            {"scoring": "neg_mean_absolute_error", "cv": ShuffleSplit(3, random_state=0)},
        ),
        (Ridge(100.0), {"step": 2, "min_features_to_select": 2, "cv": 3, "n_jobs": 2}),
        (Ridge(), {"cv": GroupKFold(3), "groups": np.arange(80) % 7}),
    ],
)
def test_eliminations_are_scikit_learns(estimator, params):
    report = _both(estimator, *_data(), **params)
    assert report.fits_shared == report.fits_requested
    assert report.fits_done == 0


def test_two_passes_serve_all_fits():
    assert _both(Ridge(), *_data()).passes == 2.0


def test_a_frame_is_read_as_its_array():
    X, y = _data()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(f=np.arange(80))
    assert _both(Ridge(), frame, pd.Series(y, index=np.arange(80)[::-1]), cv=3).fits_done == 0


def test_several_targets():
    X, y = _data()
    _both(Ridge(), X, np.column_stack([y, -2.0 * y + X[:, 4]]), cv=3)


def test_features_that_tie_are_left_to_scikit_learn():
    X, y = _data()
    X[:, 1] = X[:, 0]
    report = _both(Ridge(), X, y, cv=3)
    assert report.left_to_sklearn == {"rounding decides which feature is eliminated": report.fits_requested}


def test_features_without_effect_tie_in_the_number_that_is_best():
    X, y = _data(4)
    X[:, 3] = 1.0
    report = _both(Ridge(), X, y, cv=3)
    assert report.fits_shared == 0


@pytest.mark.parametrize(
    ("estimator", "params", "reason"),
    [
        (Lasso(0.1), {}, "one by one"),
        (Ridge(), {"importance_getter": lambda model: model.coef_}, "no coefficients"),
        (Ridge(), {"cv": iter([(np.arange(40), np.arange(40, 80))])}, "only once"),
    ],
)
def test_other_fits_are_scikit_learns(estimator, params, reason):
    X, y = _data(3)
    if "cv" in params:
        theirs = feature_selection.RFECV(estimator, cv=[(np.arange(40), np.arange(40, 80))]).fit(X, y)
        ours = RFECV(estimator, **params).fit(X, y)
        np.testing.assert_array_equal(ours.ranking_, theirs.ranking_)
        report = ours.report_
    else:
        report = _both(estimator, X, y, cv=3, **params)
    assert reason in "".join(report.left_to_sklearn)


def test_an_elimination_within_the_error_of_coefficients_is_refused():
    def fit(error):
        return lambda features: (np.array([1.0, 1.1, 3.0])[features], np.full(len(features), error))

    assert eliminate(3, 1, 1, fit(0.0)).rankings[-1].tolist() == [3, 2, 1]
    with pytest.raises(Unsupported, match="rounding decides"):
        eliminate(3, 1, 1, fit(0.06))
