"""Families that iterate answer as scikit-learn does, for all steps, splits, weights and kinds of data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import model_selection
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.metrics import make_scorer
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.estimators import Cost, family_of
from manyfit.model_selection import GridSearchCV, cross_validate
from tests._covering import covering, spread
from tests.behaviour.iterations._iterated import (
    ALPHA,
    COUNTS,
    DEVIANCES,
    SIZES,
    THREE,
    TIGHT,
    C,
    N,
    X,
    Y,
    both,
    rng,
)
from tests.behaviour.iterations._optimum import Optimum  # `test_sklearn_stops.py` has the default
from tests.differential._subject import sharing_whatever_it_costs

pytestmark = pytest.mark.slow
LOSSES = ["neg_log_loss", "accuracy"]
LOGISTIC = {
    "plain": LogisticRegression(**TIGHT),
    "no intercept": LogisticRegression(fit_intercept=False, **TIGHT),
    "balanced": LogisticRegression(class_weight="balanced", **TIGHT),
    "newton": LogisticRegression(solver="newton-cholesky", **TIGHT),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("estimator", "y"),
    covering(LOGISTIC.items(), {"two classes": Y, "three classes": THREE}.items(), strength=1),
)
def test_logistic_regression(estimator, y):
    search = both(estimator, C, y=y, scoring=LOSSES)
    assert search.plan(X, y).groups[0].kind == "shared iterations"


def test_class_weights_by_name():
    weights = {"low": 1.0, "middle": 3.0, "high": 0.5}
    both(LogisticRegression(class_weight=weights, **TIGHT), C, y=THREE, scoring=LOSSES)


MODELS = {
    "poisson": (PoissonRegressor(**TIGHT), COUNTS),
    "poisson, no intercept": (PoissonRegressor(fit_intercept=False, **TIGHT), COUNTS),
    "gamma": (GammaRegressor(**TIGHT), SIZES),
    "tweedie": (TweedieRegressor(power=1.5, **TIGHT), COUNTS),
    "poisson, large": (PoissonRegressor(**TIGHT), 1e4 * COUNTS),
}


@pytest.mark.parametrize(("estimator", "y"), spread(MODELS.items(), 3))
def test_generalised_linear_models(estimator, y):
    both(estimator, ALPHA, y=y, scoring=DEVIANCES)


# Tighter than that, liblinear stops at what rounding leaves of its objective.
LIBLINEAR = {"tol": 1e-8, "max_iter": 100_000, "dual": False}
MACHINES = {
    "two classes": (LinearSVC(**LIBLINEAR), Y),
    "three classes": (LinearSVC(**LIBLINEAR), THREE),
    "no intercept": (LinearSVC(fit_intercept=False, **LIBLINEAR), Y),
    "balanced": (LinearSVC(class_weight="balanced", **LIBLINEAR), Y),
    "balanced, three classes": (LinearSVC(class_weight="balanced", **LIBLINEAR), THREE),
    "weights by name": (LinearSVC(class_weight={"low": 5.0, "middle": 0.2, "high": 1.0}, **LIBLINEAR), THREE),
}


@pytest.fixture
def always_shared(monkeypatch):
    """Also where scikit-learn takes fewer operations, as with several classes on so few rows."""
    monkeypatch.setattr(type(family_of(LinearSVC)), "cost", lambda *_: Cost(0.0, 1.0))


@pytest.mark.cases(2)
@pytest.mark.invariant("Iterating families treat steps, splits and weights as scikit-learn does")
@pytest.mark.usefixtures("always_shared")
@pytest.mark.parametrize(
    ("estimator", "y", "weighted"),
    covering(MACHINES.items(), {"": False, "weighted": True}.items(), strength=1),
)
def test_linear_svc(estimator, y, weighted):
    scoring = {
        "accuracy": "accuracy",
        "hinge": make_scorer(mean_decision, response_method="decision_function"),
    }
    weights = {"sample_weight": rng.integers(0, 3, N) * rng.random(N)} if weighted else None
    search = both(estimator, C, y=y, scoring=scoring, fit_params=weights, rtol=1e-5)
    assert search.plan(X, y).groups[0].kind == "shared iterations"


def mean_decision(y, decisions, sample_weight=None):
    """A score that each decision value shows in."""
    return float(np.mean(decisions * np.arange(1, decisions.size + 1).reshape(decisions.shape)))


@pytest.mark.parametrize(("fit_intercept", "epsilon"), covering([True, False], [0.0, 0.5], strength=1))
def test_linear_svr(epsilon, fit_intercept):
    loss = "squared_epsilon_insensitive"
    model = LinearSVR(loss=loss, epsilon=epsilon, fit_intercept=fit_intercept, **LIBLINEAR)
    both(model, C, y=SIZES, scoring=DEVIANCES, rtol=1e-5)
    both(make_pipeline(StandardScaler(), model), {"linearsvr__C": [0.01, 1.0]}, y=SIZES, scoring=DEVIANCES)


CHAINS = {
    "scaler": [StandardScaler()],
    "scaler without mean": [StandardScaler(with_mean=False)],
    "scaler, pca": [StandardScaler(), PCA(3)],
    "whitened": [PCA(4, whiten=True)],
    "not affine": [PolynomialFeatures(2), StandardScaler()],
    "min and max": [MinMaxScaler()],
    "min and max, clipped": [MinMaxScaler(clip=True)],
}


@pytest.mark.cases(3)
@pytest.mark.invariant("Iterating families treat steps, splits and weights as scikit-learn does")
@pytest.mark.parametrize(("fit_intercept", "steps"), covering([True, False], CHAINS.items(), strength=1))
def test_behind_steps(steps, fit_intercept):
    model = LogisticRegression(fit_intercept=fit_intercept, **TIGHT)
    grid = {"logisticregression__C": [0.01, 1.0]}
    both(make_pipeline(*steps, model), grid, scoring=LOSSES)


SPLITTERS = {
    "folds": StratifiedKFold(4),
    "shuffled": ShuffleSplit(3, random_state=0),
    "growing": TimeSeriesSplit(3),
    "repeated rows": [(np.r_[0:200, 0:50], np.arange(200, 300)), (np.arange(100, 300), np.arange(50))],
}


@pytest.mark.cases(2)
@pytest.mark.invariant("Iterating families treat steps, splits and weights as scikit-learn does")
@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
def test_any_splits(cv):
    both(LogisticRegression(class_weight="balanced", **TIGHT), C, cv=cv, scoring=LOSSES)


@pytest.mark.invariant("Iterating families treat steps, splits and weights as scikit-learn does")
@pytest.mark.parametrize(
    ("estimator", "grid", "y", "scoring"),
    spread(
        [
            (LogisticRegression(**TIGHT), C, THREE, "neg_log_loss"),
            (LogisticRegression(class_weight="balanced", **TIGHT), C, Y, "neg_log_loss"),
            (PoissonRegressor(**TIGHT), ALPHA, COUNTS, "neg_mean_absolute_error"),
        ],
        2,
    ),
)
def test_sample_weights(estimator, grid, y, scoring):
    weights = rng.integers(0, 4, N) * rng.random(N)
    # scikit-learn itself comes to about 1e-5 here: it also stops where its objective no longer falls.
    both(estimator, grid, y=y, scoring=scoring, fit_params={"sample_weight": weights}, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "y"),
    spread(
        {
            "csr_matrix": (sp.csr_matrix, Y),
            "csr_array": (sp.csr_array, Y),
            "csc_array": (sp.csc_array, Y),
            "csr_array-three classes": (sp.csr_array, THREE),
        }.items(),
        2,
    ),
)
def test_sparse(make, y):
    Z = make(np.where(np.abs(X) > 4.0, X, 0.0))
    both(LogisticRegression(**TIGHT), {"C": [0.01, 1.0]}, X=Z, y=y, scoring=LOSSES)


@pytest.mark.invariant("Sparse X is never made dense")
def test_many_hashed_features_need_no_square_matrix():
    """2^20 features: a matrix of them would be 8 TiB."""
    own, rows = np.random.default_rng(0), np.repeat(np.arange(150), 52)
    Z = sp.csr_array((own.random(rows.size), (rows, own.integers(0, 2**20, rows.size))), shape=(150, 2**20))
    y = np.asarray(Z[:, : 2**19].sum(axis=1) > Z[:, 2**19 :].sum(axis=1)).ravel().astype(int)
    search = Optimum(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, refit=False, memory_limit="200MB")
    assert search.fit(Z, y).report_.fits_done == 0
    tight = LogisticRegression(tol=1e-8, max_iter=1000)
    used = np.unique(Z.indices)  # the others make no difference to scikit-learn, but take it half a minute
    theirs = model_selection.GridSearchCV(tight, search.param_grid, cv=3).fit(Z[:, used], y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.02
    )


def test_families_of_several_kinds_in_one_search():
    """Moments and passes have data of their own, and scorers that each can serve."""
    models = [Ridge(), PoissonRegressor(**TIGHT)]
    grid = [{"ridge": [model], "ridge__alpha": [0.1, 1.0]} for model in models]
    pipeline = make_pipeline(StandardScaler(), Ridge())
    search = both(pipeline, grid, y=COUNTS, scoring=DEVIANCES)
    assert {group.kind for group in search.plan(X, COUNTS).groups} == {"moments", "shared iterations"}


def test_machines_answer_float32_in_float64():
    """R2 of this target is 0 in float64, and minus billions in float32, where its mean is not its value."""
    target = np.full(len(X), 0.1, dtype=np.float32)
    model = LinearSVR(loss="squared_epsilon_insensitive", dual=False)
    theirs, ours = (
        cls(model, {"C": [1e-3]}, cv=2).fit(X.astype(np.float32), target)
        for cls in (model_selection.GridSearchCV, GridSearchCV)
    )
    assert theirs.best_score_ == ours.best_score_ == 0.0


def test_float32_has_scikit_learns_dtype():
    Z = X.astype(np.float32)
    estimator = LogisticRegression(tol=1e-5, max_iter=10_000)
    both(estimator, {"C": [0.01, 1.0]}, X=Z, scoring=LOSSES, rtol=2e-3)


def test_cross_validate_too():
    iris, target = load_iris(return_X_y=True)
    model = LogisticRegression(**TIGHT)
    ours = cross_validate(model, iris, target, scoring="neg_log_loss")["test_score"]
    theirs = model_selection.cross_validate(model, iris, target, scoring="neg_log_loss")["test_score"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_texts_of_pandas():
    labels = pd.Series(np.where(Y, "good", "bad"))
    for dtype in ("string", "str", "object"):
        both(LogisticRegression(**TIGHT), {"C": [0.1]}, pd.DataFrame(X), labels.astype(dtype), scoring=LOSSES)
    missing = labels.astype("string")
    missing[0] = pd.NA
    assert Optimum(LogisticRegression(), C).plan(X, missing).groups[0].kind == "one by one"


def test_a_vectorizer_gives_sparse_rows():
    words = np.array([f"w{i}" for i in range(400)])
    texts = [" ".join(words[rng.zipf(1.4, 30) % 400]) for _ in range(N // 3)]
    model = make_pipeline(CountVectorizer(), LogisticRegression(**TIGHT))
    with sharing_whatever_it_costs():
        both(model, {"logisticregression__C": [0.01, 1.0]}, texts, Y[: N // 3], scoring=LOSSES)


def test_sparse_rows_that_may_not_be_written_to():
    """Those of a vectorizer with unsorted indices: sums would sort them in place."""
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 60, 20)) for _ in range(40)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(**TIGHT))
    with sharing_whatever_it_costs():
        both(model, {"logisticregression__C": [0.1, 10.0]}, texts, Y[:40], scoring=LOSSES)
