"""Ridge and LinearRegression from moments have scikit-learn's coefficients."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from manyfit.estimators import Shape, family_of
from manyfit.folds import Unsupported
from tests.device.estimators._views import folded

rng = np.random.default_rng(0)
N, P = 90, 5
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + 3.0
Y = X @ rng.normal(size=(P, 2)) + rng.normal(size=(N, 2)) + 10.0
W = rng.random(N) * (np.arange(N) % 4 > 0)
ALPHAS = [0.0, 1e-3, 1.0, 1e4]


def answers(estimator, X=X, y=Y, weights=None, alphas=ALPHAS):
    family = family_of(type(estimator))
    settings = [{"alpha": a} for a in alphas] if "alpha" in family.free else [{}]
    family.check(estimator, settings)
    (out,) = family.fit_many(estimator, settings, folded(X, y, weights))
    return out


def assert_like(linear, j, fitted, X, rtol=1e-9):
    q = linear.at_origin.shape[1]
    coef = np.asarray(fitted.coef_).reshape(q, -1).T
    np.testing.assert_allclose(linear.coef[:, j], coef, rtol=rtol, atol=rtol * np.abs(coef).max())
    intercept = linear.at_origin[j] - linear.origin @ linear.coef[:, j]
    np.testing.assert_allclose(
        intercept, np.ravel(fitted.intercept_) + np.zeros(q), rtol=rtol, atol=rtol * (1 + np.abs(Y).max())
    )
    np.testing.assert_allclose(
        linear(X)[j].reshape(len(X), -1), fitted.predict(X).reshape(len(X), -1), rtol=1e-8
    )


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("model", [Ridge(solver="svd"), LinearRegression()], ids=repr)
def test_coefficients_are_sklearns(model, q, intercept, weights):
    y = Y[:, 0] if q == 1 else Y
    model = clone(model).set_params(fit_intercept=intercept)
    out = answers(model, y=y, weights=weights)
    assert not out.refused
    for j, alpha in enumerate(ALPHAS if isinstance(model, Ridge) else [None]):
        fitted = clone(model).set_params(**({} if alpha is None else {"alpha": alpha}))
        assert_like(out.linear, j, fitted.fit(X, y, sample_weight=weights), X)


def test_ridge_is_optimal():
    """A second route without scikit-learn: the gradient of the objective is zero."""
    out = answers(Ridge(), alphas=[2.5])
    coef = out.linear.coef[:, 0]
    residual = Y - out.linear(X)[0]
    np.testing.assert_allclose(X.T @ residual, 2.5 * coef, atol=1e-8)
    np.testing.assert_allclose(residual.sum(axis=0), 0, atol=1e-8)


def test_more_columns_than_rows():
    Z = rng.normal(size=(20, 40))
    out = answers(Ridge(), Z, Y[:20], alphas=[0.0, 1.0])
    assert list(out.refused) == [0]
    assert_like(out.linear, 1, Ridge(alpha=1.0, solver="svd").fit(Z, Y[:20]), Z)


@pytest.mark.invariant("Settings whose equations lose too many digits are left to scikit-learn")
def test_ill_conditioned_settings_are_left_alone():
    Z = np.c_[X, X[:, 0]]
    out = answers(Ridge(), Z)
    assert set(out.refused) == {0}
    assert out.refused[0] == "the normal equations are (nearly) singular"


@pytest.mark.invariant("Decisions that depend on rounding are left to scikit-learn")
def test_linear_regression_leaves_a_doubtful_rank_to_sklearn():
    with pytest.raises(Unsupported, match=r"the columns are \(nearly\) linearly dependent: the rank decides"):
        answers(LinearRegression(), np.c_[X, X[:, 0]])
    with pytest.raises(Unsupported, match="rank decides"):
        answers(LinearRegression(), X[:3], Y[:3])


def test_answers_of_a_few_settings():
    out = answers(Ridge())
    part = out.subset([2, 0])
    np.testing.assert_array_equal(part.linear.coef, out.linear.coef[:, [2, 0]])
    data = folded(X, Y)
    np.testing.assert_array_equal(part.respond("test", data.fold(0))["predict"][0], out.linear(X)[2])
    one = answers(Ridge(), y=Y[:, 0]).respond("train", folded(X, Y[:, 0]).fold(0))["predict"]
    assert one.shape == (len(ALPHAS), N)


@pytest.mark.parametrize(
    ("estimator", "alpha", "message"),
    [
        (Ridge(solver="lsqr"), 1.0, "solver='lsqr' iterates over rows"),
        (Ridge(solver="sag"), 1.0, "solver='sag' iterates"),
        (Ridge(positive=True), 1.0, "positive=True is a constrained problem"),
        (LinearRegression(positive=True), 1.0, "positive=True is a constrained problem"),
        (Ridge(), -1.0, "alpha=-1.0 is not in the range"),
        (Ridge(), np.array([1.0, 2.0]), "is not one number of a usual type"),
        (Ridge(), np.nan, "alpha=nan is not in the range"),
        (Ridge(), np.inf, "alpha=inf is not in the range"),
        (Ridge(), True, "alpha=True is not one number of a usual type"),
        (Ridge(), "1", "alpha='1' is not one number of a usual type"),
        (Ridge(), None, "alpha=None is not one number of a usual type"),
    ],
)
def test_what_is_not_served_is_named(estimator, alpha, message):
    with pytest.raises(Unsupported, match=message):
        family_of(type(estimator)).check(estimator, [{"alpha": alpha}])


def test_sharing_pays_for_long_data_and_not_for_wide():
    family = family_of(Ridge)
    long = family.cost(Ridge(), [{"alpha": 1.0}] * 10, Shape(100_000, 20, 1, 5))
    wide = family.cost(Ridge(), [{"alpha": 1.0}] * 2, Shape(50, 5000, 1, 5))
    assert long.shared < 0.1 * long.individual
    assert wide.shared > wide.individual


def warns(alpha, Z, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Ridge(alpha).fit(Z, y)
    return any(issubclass(w.category, LinAlgWarning) for w in caught)


def test_what_sklearn_warns_of_is_left_to_it():
    """float32 knows no more than 1e-7 of a condition, which a Cholesky solver estimates and warns of."""
    Z = np.c_[X, X[:, 0] + 1e-5 * rng.normal(size=N)].astype(np.float32)
    y = Y[:, 0].astype(np.float32)
    alphas = np.logspace(-6, 2, 33)
    warned = {j for j, alpha in enumerate(alphas) if warns(alpha, Z, y)}
    left = set(answers(Ridge(), Z, y, alphas=alphas).refused)
    assert warned and warned <= left < set(range(len(alphas)))
    assert not answers(Ridge(solver="svd"), Z, y, alphas=alphas).refused
