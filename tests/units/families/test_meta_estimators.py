"""Meta-estimators: the family of the estimator that they hold answers, with other targets."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import BayesianRidge, Lasso, Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from manyfit.model_selection import GridSearchCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 5)) + 2.0
Z = X @ RNG.normal(size=(5, 2)) + 0.3 * RNG.normal(size=(90, 2))
SIZES = np.exp(0.2 * Z)
WEIGHTS = RNG.random(90)
ALPHAS = [0.01, 0.1, 1.0]
LOG = {"func": np.log, "inverse_func": np.exp}


def compared(model: Any, grid: dict[str, Any], y: Any, **fit_params: Any) -> GridSearchCV:
    """A search of which all scores, also those of predictions, agree with scikit-learn's."""
    scoring = ["r2", "neg_mean_absolute_error"]
    search, theirs = (
        cls(model, grid, scoring=scoring, refit=False, cv=3, return_train_score=True)
        for cls in (GridSearchCV, SklearnSearch)
    )
    theirs.fit(X, y, **fit_params)
    search.fit(X, y, **fit_params)
    for key, expected in theirs.cv_results_.items():
        if key.startswith("split"):
            np.testing.assert_allclose(search.cv_results_[key], expected, rtol=1e-9, atol=1e-12)
    return search


@pytest.mark.parametrize(
    ("model", "grid", "y", "weighted"),
    [
        (TransformedTargetRegressor(Ridge(), **LOG), {"regressor__alpha": ALPHAS}, SIZES[:, 0], True),
        (TransformedTargetRegressor(Lasso(), **LOG), {"regressor__alpha": ALPHAS}, SIZES, False),
        (
            TransformedTargetRegressor(make_pipeline(SelectKBest(f_regression, k=2), Ridge()), **LOG),
            {"regressor__ridge__alpha": ALPHAS, "regressor__selectkbest__k": [1, 3]},
            SIZES[:, 0],
            False,
        ),
        (
            TransformedTargetRegressor(Lasso()),
            {"regressor__alpha": ALPHAS, "transformer": [None, StandardScaler(), MinMaxScaler((-3, 2))]},
            Z * [1.0, 100.0],
            True,
        ),
        (MultiOutputRegressor(Ridge()), {"estimator__alpha": ALPHAS}, Z, True),
        (MultiOutputRegressor(BayesianRidge()), {"estimator__alpha_1": ALPHAS}, Z, False),
        (
            MultiOutputRegressor(make_pipeline(StandardScaler(), Lasso())),
            {"estimator__lasso__alpha": ALPHAS},
            Z,
            False,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_all_fits_are_shared(model: Any, grid: dict[str, Any], y: Any, weighted: bool) -> None:
    search = compared(model, grid, y, **({"sample_weight": WEIGHTS} if weighted else {}))
    assert search.report_.fits_done == 0, search.report_


def test_behind_steps_that_are_not_affine() -> None:
    target = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
    grid = {"transformedtargetregressor__regressor__alpha": ALPHAS}
    search = compared(make_pipeline(PolynomialFeatures(), target), grid, Z[:, 0])
    assert search.report_.fits_done == 0
    grid = {"regressor__ridge__alpha": ALPHAS}
    target = TransformedTargetRegressor(make_pipeline(PolynomialFeatures(), Ridge()), **LOG)
    search = compared(target, grid, SIZES[:, 0])
    assert search.report_.fits_done == 9  # its steps are shared, as before


@pytest.mark.parametrize(
    ("params", "y", "reason"),
    [
        ({"func": np.sort, "inverse_func": np.sort}, SIZES[:, 0], "elementwise functions"),
        ({"func": np.log, "inverse_func": np.tanh}, SIZES[:, 0], "may not be inverse to each other"),
        ({"func": np.square, "inverse_func": np.sqrt}, Z[:, 0] - 5.0, "may not be inverse to each other"),
        ({"transformer": MinMaxScaler(clip=True)}, Z[:, 0], "parameters that are not shared"),
        ({"transformer": PolynomialFeatures(1)}, Z[:, 0], "not known to be linear"),
        ({"transformer": StandardScaler()}, Z[:, 0].astype(np.float32), "in their own precision"),
        (LOG, Z[:, 0] - 5.0, "may warn of func"),
        ({}, Z[:, :1], "two dimensions for one target"),
    ],
)
def test_what_is_left_to_scikit_learn(params: dict[str, Any], y: Any, reason: str) -> None:
    model = TransformedTargetRegressor(Ridge(), check_inverse=True, **params)
    search = GridSearchCV(model, {"regressor__alpha": ALPHAS}, refit=False, cv=3)
    found = str(search.plan(X, y))
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore")  # scikit-learn's own, of the functions
        with suppress(ValueError):  # scikit-learn's own: all fits failed
            search.fit(X, y)
            found += str(search.report_.left_to_sklearn)
            assert search.report_.fits_done == 9
    assert reason in found


def test_a_step_before_a_function_does_not_read_its_targets() -> None:
    target = TransformedTargetRegressor(Ridge(), **LOG)
    grid = {"transformedtargetregressor__regressor__alpha": ALPHAS}
    search = compared(make_pipeline(SelectKBest(f_regression, k=2), target), grid, SIZES[:, 0])
    assert search.report_.fits_done == 9
    assert "SelectKBest reads targets that TransformedTargetRegressor changes" in str(
        search.plan(X, SIZES[:, 0])
    )
