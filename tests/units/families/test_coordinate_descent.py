"""Models with an l1 penalty: scikit-learn's solver on moments takes the steps that it takes on rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, Lasso, MultiTaskElasticNet, MultiTaskLasso

from manyfit.estimators import Shape, family_of
from manyfit.folds import Unsupported
from manyfit.model_selection import GridSearchCV
from tests._same_results import both
from tests.device.estimators._views import folded

rng = np.random.default_rng(0)
N, P = 90, 6
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + 3.0
Y = X @ (rng.normal(size=(P, 2)) * np.tile([[1.0], [0.0]], (P // 2, 1))) + rng.normal(size=(N, 2)) + 10.0
W = rng.random(N) * (np.arange(N) % 4 > 0)
ALPHAS = [1e-2, 0.3, 1.0, 1e4]
MODELS = [
    Lasso(),
    Lasso(fit_intercept=False, precompute=True, max_iter=100_000),
    Lasso(positive=True, tol=1e-8),
    ElasticNet(l1_ratio=0.3),
    MultiTaskLasso(),
    MultiTaskElasticNet(fit_intercept=False, tol=1e-7, max_iter=100_000),
]


def answers(estimator, X=X, y=Y, weights=None, alphas=ALPHAS):
    family = family_of(type(estimator))
    own = {name: getattr(estimator, name) for name in family.free}
    settings = [{**own, "alpha": alpha} for alpha in alphas]
    family.check(estimator, settings)
    (out,) = family.fit_many(estimator, settings, folded(X, y, weights))
    return out


def assert_like_sklearn(estimator, X=X, y=Y, weights=None, rtol=1e-9):
    out = answers(estimator, X, y, weights)
    q = out.linear.at_origin.shape[1]
    given = {} if weights is None else {"sample_weight": weights}
    for j, alpha in enumerate(ALPHAS):
        if j in out.refused:
            continue
        fitted = clone(estimator).set_params(alpha=alpha).fit(X, y, **given)
        coef = np.reshape(fitted.coef_, (q, -1)).T
        np.testing.assert_allclose(out.linear.coef[:, j], coef, rtol=rtol, atol=rtol * np.abs(coef).max())
        expected = fitted.predict(X)
        got = out.respond("test", folded(X, y).fold(0))["predict"][j]
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    return out


@pytest.mark.parametrize("estimator", MODELS, ids=repr)
def test_coefficients_are_those_of_scikit_learns_fit(estimator):
    assert not assert_like_sklearn(estimator).refused


@pytest.mark.parametrize("estimator", MODELS[:4], ids=repr)
def test_weights_and_one_target(estimator):
    assert not assert_like_sklearn(estimator, y=Y[:, 0], weights=W).refused
    assert not assert_like_sklearn(estimator, y=Y[:, :1]).refused


@pytest.mark.parametrize("estimator", MODELS, ids=repr)
@pytest.mark.parametrize(
    "Z",
    [
        X[:, :1],
        np.c_[X, np.full(N, 7.0)],
        np.c_[X, X[:, 0]],
        rng.normal(size=(N, 2 * N)),
        (10 * X).astype(int),
    ],
    ids=["one column", "constant column", "equal columns", "more columns than rows", "integers"],
)
def test_awkward_columns(estimator, Z):
    assert len(assert_like_sklearn(estimator, Z, rtol=1e-8).refused) < len(ALPHAS)


def test_lasso_is_optimal():
    """A second route without scikit-learn: zero is a subgradient of the objective."""
    out = answers(Lasso(tol=1e-12, max_iter=100_000), y=Y[:, 0], alphas=[0.3])
    coef, residual = out.linear.coef[:, 0, 0], Y[:, 0] - out.linear(X)[0, :, 0]
    gradient = X.T @ residual / N
    active = coef != 0
    assert active.any() and not active.all()
    np.testing.assert_allclose(gradient[active], 0.3 * np.sign(coef[active]), atol=1e-7)
    assert np.abs(gradient).max() <= 0.3 * (1 + 1e-7)
    np.testing.assert_allclose(residual.sum(), 0, atol=1e-8)


@pytest.mark.invariant("Settings whose solver does not converge are left to scikit-learn, which warns")
def test_settings_that_do_not_converge_are_left_alone():
    out = answers(Lasso(max_iter=2), alphas=[1e-3, 1e4])
    assert out.refused == {0: "the solver does not converge, of which scikit-learn warns"}
    search = GridSearchCV(Lasso(max_iter=2), {"alpha": [1e-3, 1e4]}, refit=False)
    with pytest.warns(ConvergenceWarning, match="Objective did not converge"):
        search.fit(X, Y[:, 0])
    assert search.report_.fits_done == 5


def test_folds_that_are_not_served():
    with pytest.raises(Unsupported, match="iterates in float32"):
        answers(Lasso(), X.astype(np.float32))
    with pytest.raises(Unsupported, match="a target is constant"):
        answers(Lasso(), y=np.full(N, 0.1))
    with pytest.raises(Unsupported, match="several tasks need two"):
        answers(MultiTaskLasso(), y=Y[:, 0])


@pytest.mark.parametrize(
    ("estimator", "setting", "message"),
    [
        (Lasso(selection="random", random_state=0), {}, "draws the order of the coordinates"),
        (Lasso(precompute=np.eye(P)), {}, "a Gram matrix of the user's own"),
        (Lasso(tol=0.0), {}, "rounding decides where the solver stops"),
        (Lasso(), {"alpha": 0.0}, "alpha=0.0 is not in the range"),
        (Lasso(), {"alpha": np.nan}, "alpha=nan is not in the range"),
        (ElasticNet(), {"l1_ratio": 0.0}, "l1_ratio=0.0 is not in the range"),
        (MultiTaskElasticNet(), {"l1_ratio": 0}, "l1_ratio=0 is not in the range"),
    ],
)
def test_parameters_that_are_not_served_are_named(estimator, setting, message):
    with pytest.raises(Unsupported, match=message):
        family_of(type(estimator)).check(estimator, [{"alpha": 1.0, **setting}])


@pytest.mark.parametrize("estimator", [Lasso(), MultiTaskLasso()], ids=repr)
def test_sharing_pays_for_long_data_and_not_for_wide(estimator):
    family, settings = family_of(type(estimator)), [{"alpha": 1.0}] * 10
    long = family.cost(estimator, settings, Shape(100_000, 20, 1, 5))
    wide = family.cost(estimator, settings[:2], Shape(50, 5000, 1, 5))
    assert long.shared < 0.1 * long.individual
    assert wide.shared > wide.individual


def test_small_features_of_several_tasks_keep_their_digits_beside_large_ones():
    few = np.random.default_rng(0).normal(size=(24, 30)) * np.logspace(-3.5, 3.0, 30)
    targets = few @ np.random.default_rng(1).normal(size=(30, 2))
    search = both(MultiTaskLasso(), {"alpha": [0.01, 0.1]}, few, targets, scoring="r2", cv=4, refit=False)
    assert search.report_.fits_done < 8
