"""Meta-estimators: the family of the estimator that they hold answers, with other targets."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import BayesianRidge, Lasso, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, QuantileTransformer, StandardScaler
from sklearn.svm import LinearSVC

from manyfit.estimators import Cost, family_of
from manyfit.families.meta_estimators._one_vs_rest import OneVsRestFamily
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.search._verify import stopped_early
from tests._covering import covering, spread

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
    spread(
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
        4,
    ),
)
def test_all_fits_are_shared(model: Any, grid: dict[str, Any], y: Any, weighted: bool) -> None:
    search = compared(model, grid, y, **({"sample_weight": WEIGHTS} if weighted else {}))
    assert search.report_.fits_done == 0, search.report_


def test_behind_steps_that_are_not_affine() -> None:
    target = TransformedTargetRegressor(Ridge(), transformer=StandardScaler())
    grid = {"transformedtargetregressor__regressor__alpha": ALPHAS}
    search = compared(make_pipeline(QuantileTransformer(n_quantiles=9), target), grid, Z[:, 0])
    assert search.report_.fits_done == 0
    grid = {"regressor__ridge__alpha": ALPHAS}
    target = TransformedTargetRegressor(make_pipeline(PolynomialFeatures(), Ridge()), **LOG)
    search = compared(target, grid, SIZES[:, 0])
    assert search.report_.fits_done == 0
    target = TransformedTargetRegressor(make_pipeline(QuantileTransformer(n_quantiles=9), Ridge()), **LOG)
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


# ------------------------------------------------------------------------------------- classes one by one


ROWS = RNG.normal(size=(240, 6))
SIGNAL = ROWS @ RNG.normal(size=(6, 3)) + 0.7 * RNG.normal(size=(240, 3))
THREE = np.array(["low", "middle", "high"])[SIGNAL.argmax(axis=1)]
TWO = THREE == "low"
LOGISTIC = LogisticRegression(tol=1e-8, max_iter=10_000)
LIBLINEAR = LogisticRegression(solver="liblinear", tol=1e-8)


@pytest.fixture
def whatever_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OneVsRestFamily, "cost", lambda *_: Cost(0.0, 1.0))
    monkeypatch.setattr(type(family_of(LogisticRegression)), "cost", lambda *_: Cost(0.0, 1.0))


def classified(model: Any, grid: dict[str, Any], X: Any, y: Any, scoring: Any, **tolerance: Any) -> Any:
    """A search of which all scores agree with scikit-learn's."""
    search, theirs = (
        cls(model, grid, scoring=scoring, refit=False, cv=3, return_train_score=True).fit(X, y)
        for cls in (partial(GridSearchCV, sharing="optimum"), SklearnSearch)
    )
    for key, expected in theirs.cv_results_.items():
        if key.startswith("split"):
            np.testing.assert_allclose(search.cv_results_[key], expected, **tolerance, err_msg=key)
    return search


@pytest.mark.cases(2)
@pytest.mark.usefixtures("whatever_it_costs")
@pytest.mark.parametrize(
    ("y", "model", "probabilities"),
    covering(
        {"three classes": THREE, "two classes": TWO}.items(),
        {
            "logistic": (LOGISTIC, True),
            "liblinear": (LIBLINEAR, True),
            "balanced": (clone(LOGISTIC).set_params(class_weight="balanced"), True),
            "linear svc": (LinearSVC(dual=False, tol=1e-8), False),
            "behind a step": (make_pipeline(StandardScaler(), LOGISTIC), True),
        }.items(),
        strength=1,
    ),
)
def test_one_against_the_rest(model: Any, probabilities: bool, y: Any) -> None:
    scoring = ["accuracy"]
    if probabilities:
        scoring += ["neg_log_loss", "neg_brier_score"]
        scoring.append("roc_auc" if y is TWO else "roc_auc_ovr")
    name = "logisticregression__C" if hasattr(model, "steps") else "C"
    search = classified(
        OneVsRestClassifier(model), {f"estimator__{name}": [0.01, 1.0]}, ROWS, y, scoring, atol=1e-6
    )
    assert search.report_.fits_done == 0, search.report_


@pytest.mark.usefixtures("whatever_it_costs")
def test_an_estimator_by_itself_is_no_setting_of_the_meta_estimator_beside_it() -> None:
    model, last = make_pipeline(StandardScaler(), LOGISTIC), [LOGISTIC, OneVsRestClassifier(LOGISTIC)]
    search = classified(model, {"logisticregression": last}, ROWS, THREE, "neg_log_loss", atol=1e-6)
    assert search.report_.fits_done == 0, search.report_


def test_ridge_against_the_rest_is_exact() -> None:
    grid = {"estimator__alpha": ALPHAS, "estimator__fit_intercept": [True, False]}
    for y in (THREE, TWO):
        search = classified(OneVsRestClassifier(RidgeClassifier()), grid, ROWS, y, None, rtol=1e-12)
        assert search.report_.fits_done == 0, search.report_


@pytest.mark.usefixtures("whatever_it_costs")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_liblinear_penalises_the_intercept(dtype: Any) -> None:
    X = (ROWS + 3.0).astype(dtype)
    for fit_intercept in (True, False):
        model = clone(LIBLINEAR).set_params(fit_intercept=fit_intercept, class_weight="balanced")
        scoring = ["accuracy", "neg_log_loss"]
        search = classified(model, {"C": [0.01, 1.0]}, X, TWO, scoring, atol=1e-6)
        assert search.report_.fits_done == 0, search.report_
    free = SklearnSearch(LOGISTIC, {"C": [0.01]}, scoring="neg_log_loss", cv=3).fit(X, TWO)
    assert abs(free.best_score_ - search.cv_results_["mean_test_neg_log_loss"][0]) > 1e-3


@pytest.mark.usefixtures("whatever_it_costs")
@pytest.mark.parametrize(
    ("model", "y", "reason"),
    [
        (OneVsRestClassifier(LOGISTIC, verbose=1), THREE, "verbose follows single fits"),
        (OneVsRestClassifier(Ridge()), THREE, "linear classifiers"),
        (OneVsRestClassifier(LOGISTIC), SIGNAL > 0.0, "y has several columns"),
        (OneVsRestClassifier(LOGISTIC), np.sort(TWO), "y has one class"),
        (OneVsRestClassifier(clone(LOGISTIC).set_params(solver="sag")), THREE, "solver='sag' stops"),
        (clone(LIBLINEAR).set_params(intercept_scaling=2.0), TWO, "penalty of the intercept"),
    ],
)
def test_classifiers_left_to_scikit_learn(model: Any, y: Any, reason: str) -> None:
    name = next(name for name in ("estimator__C", "estimator__alpha", "C") if name in model.get_params())
    search = GridSearchCV(model, {name: [0.1, 1.0]}, cv=KFold(3), refit=False, error_score=np.nan)
    found = str(search.plan(ROWS, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(ValueError):  # scikit-learn's own
            search.fit(ROWS, y)
    assert reason in found + str(getattr(search, "report_", ""))


def test_weights_that_one_against_the_rest_refuses() -> None:
    search = GridSearchCV(OneVsRestClassifier(RidgeClassifier()), {"estimator__alpha": [1.0]}, cv=3)
    with pytest.raises(ValueError, match="sample_weight"):
        search.fit(ROWS, THREE, sample_weight=np.ones(240))


def test_a_refit_that_stops_early_for_one_class_is_seen() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        early, enough = (
            make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression(max_iter=n)))
            for n in (2, 1000)
        )
        assert stopped_early(early.fit(ROWS, THREE))
        assert not stopped_early(enough.fit(ROWS, THREE))
