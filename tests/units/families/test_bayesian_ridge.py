"""BayesianRidge from moments has scikit-learn's coefficients, at the same iteration."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from manyfit.estimators import family_of
from manyfit.folds import Unsupported
from manyfit.model_selection import GridSearchCV
from tests.device.estimators._views import folded

rng = np.random.default_rng(0)
N, P = 90, 6
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + 3.0
Y = X @ rng.normal(size=P) + 3.0 * rng.normal(size=N) + 10.0
W = rng.random(N) * (np.arange(N) % 4 > 0)
FAMILY = family_of(BayesianRidge)
SETTINGS = [
    {},
    {"alpha_1": 1.0, "lambda_2": 3.0},
    {"alpha_init": 0.1, "lambda_init": 1e3},
    {"lambda_1": 0.0, "lambda_2": 0.0, "alpha_1": 0.0, "alpha_2": 0.0},
]


def answers(estimator, X=X, y=Y, weights=None, settings=SETTINGS):
    own = {name: getattr(estimator, name) for name in FAMILY.free}
    given = [{**own, **setting} for setting in settings]
    FAMILY.check(estimator, given)
    (out,) = FAMILY.fit_many(estimator, given, folded(X, y, weights))
    return out


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("params", [{}, {"fit_intercept": False}, {"max_iter": 2}, {"tol": 1e-10}], ids=str)
@pytest.mark.parametrize(
    "Z",
    [X, X[:, :1], np.c_[X, np.full(N, 7.0)], np.c_[X, X[:, 0]], (10 * X).astype(int)],
    ids=["plain", "one column", "constant column", "equal columns", "integers"],
)
def test_coefficients_are_scikit_learns(Z, params, weights):
    out = answers(BayesianRidge(**params), Z, weights=weights)
    assert not out.refused
    for j, setting in enumerate(SETTINGS):
        fitted = BayesianRidge(**params, **setting).fit(Z, Y, weights)
        np.testing.assert_allclose(out.linear(Z)[j, :, 0], fitted.predict(Z), rtol=1e-9)


def test_more_columns_than_rows():
    Z = rng.normal(size=(40, 60))
    out = answers(BayesianRidge(lambda_init=1e3, max_iter=1), Z, Y[:40], settings=[{}])
    fitted = BayesianRidge(lambda_init=1e3, max_iter=1).fit(Z, Y[:40])
    assert not out.refused
    np.testing.assert_allclose(out.linear(Z)[0, :, 0], fitted.predict(Z), rtol=1e-9)


@pytest.mark.invariant("Settings whose equations lose too many digits are left to scikit-learn")
def test_small_residuals_are_left_alone():
    y = X @ np.arange(1.0, P + 1)
    assert answers(BayesianRidge(), y=y).refused[0] == "the residuals are too small beside y"


@pytest.mark.invariant("Settings whose equations lose too many digits are left to scikit-learn")
def test_digits_that_an_early_iteration_loses_are_not_made_up_for():
    """The last penalty is large, but the first hardly is beside squares of 1e10."""
    Z = rng.normal(size=(6, 11)) + 1e5
    out = answers(BayesianRidge(fit_intercept=False), Z, Y[:6], settings=[{}])
    assert out.refused[0].startswith("rounding of the normal equations")


def test_columns_of_one_value():
    out = answers(BayesianRidge(), np.full((N, 2), 3.0), settings=[{}])
    fitted = BayesianRidge().fit(np.full((N, 2), 3.0), Y)
    assert not out.refused
    np.testing.assert_allclose(out.linear(X[:, :2])[0, :, 0], fitted.predict(X[:, :2]), rtol=1e-12)


def test_folds_that_are_not_served():
    with pytest.raises(Unsupported, match="iterates in float32"):
        answers(BayesianRidge(), X.astype(np.float32))
    with pytest.raises(Unsupported, match="y has two dimensions"):
        answers(BayesianRidge(), y=Y[:, None])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"verbose": True}, "verbose follows single fits"),
        ({"alpha_1": -1.0}, "alpha_1=-1.0 is not in the range"),
        ({"lambda_init": 0.0}, "lambda_init=0.0 is not in the range"),
    ],
    ids=str,
)
def test_parameters_that_are_not_served_are_named(params, message):
    with pytest.raises(Unsupported, match=message):
        answers(BayesianRidge(**params))


def test_a_search_makes_no_fits():
    grid = {"alpha_1": [1e-6, 1.0], "lambda_1": [1e-6, 10.0]}
    search = GridSearchCV(BayesianRidge(), grid, scoring=["r2", "neg_mean_absolute_error"], refit=False)
    shared, alone = (
        search.fit(X, Y),
        GridSearchCV(BayesianRidge(), grid, scoring=search.scoring, refit=False, sharing="none").fit(X, Y),
    )
    assert shared.report_.fits_done == 0
    for name in ("mean_test_r2", "mean_test_neg_mean_absolute_error"):
        np.testing.assert_allclose(shared.cv_results_[name], alone.cv_results_[name], rtol=1e-10)
