"""Families that iterate: at the optimum wherever they answer, and scikit-learn's where they do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn import model_selection
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor, Ridge, TweedieRegressor
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.estimators import Cost, family_of
from manyfit.folds import DensePasses, PassData, Splits
from manyfit.model_selection import GridSearchCV, cross_validate
from tests._covering import covering, spread
from tests.behaviour.iterations._optimum import Optimum  # `test_sklearn_stops.py` has the default
from tests.differential._subject import sharing_whatever_it_costs

pytestmark = pytest.mark.slow

rng = np.random.default_rng(0)
N, P = 300, 6
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + 3.0
SCORE = (X - 3.0) @ rng.normal(size=P) / 3.0
Y = (rng.random(N) < expit(SCORE)).astype(int)
THREE = np.array(["low", "middle", "high"])[np.digitize(SCORE + rng.normal(size=N), [-1.0, 1.0])]
COUNTS = rng.poisson(np.exp(0.3 * SCORE + 1.0)).astype(float)
SIZES = COUNTS + rng.random(N) + 0.1
TIGHT = {"tol": 1e-10, "max_iter": 100_000}
C = {"C": [1e-3, 1.0, 100.0]}
ALPHA = {"alpha": [0.0, 1e-3, 100.0]}
LOSSES = ["neg_log_loss", "accuracy"]
DEVIANCES = ["neg_mean_absolute_error", "neg_mean_squared_error"]


def both(estimator, grid, X=X, y=Y, *, rtol=1e-6, left=0, fit_params=None, **params):
    """Both searches, their scores compared; ours is returned."""
    params = {"refit": False, "return_train_score": True, "cv": 3, **params}
    with sharing_whatever_it_costs():
        ours = Optimum(estimator, grid, **params).fit(X, y, **(fit_params or {}))
    theirs = model_selection.GridSearchCV(estimator, grid, **params).fit(X, y, **(fit_params or {}))
    for key, expected in theirs.cv_results_.items():
        if key.startswith(("split", "mean_t")):
            assert ours.cv_results_[key].dtype == expected.dtype
            np.testing.assert_allclose(ours.cv_results_[key], expected, rtol=rtol, atol=rtol)
    assert ours.report_.fits_done == left, ours.report_
    return ours


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


def mean_gradient(kind, X, y, coef, at_zero, penalty):
    """Of scikit-learn's objective, by its definition; the second route to the certificate."""
    Z = X @ coef + at_zero
    residual = expit(Z) - y if kind == "logistic" else np.exp(Z) - y
    return np.r_[X.T @ residual / len(X) + penalty * coef, residual.mean()]


@pytest.mark.invariant("The gradient of a converged answer is as small as tol asks")
@pytest.mark.parametrize(
    ("tol", "kind", "offset"), covering([1e-2, 1e-4, 1e-8], ["logistic", "poisson"], [0.0, 1e3], strength=1)
)
def test_the_gradient_is_as_small_as_tol_asks(kind, tol, offset):
    estimator, y, name, values = {
        "logistic": (LogisticRegression(tol=tol), Y, "C", [1e-3, 1.0, 1e3]),
        "poisson": (PoissonRegressor(tol=tol), COUNTS, "alpha", [1e-6, 1e-2, 10.0]),
    }[kind]
    Z = X + offset
    splits = Splits.draw(KFold(3), Z, y, N, {})
    data = PassData(Z, y, splits.atom_groups, None, [None] * 3)
    answers = family_of(type(estimator)).fit_many(estimator, [{name: value} for value in values], data)
    for (train, _), one in zip(splits, answers, strict=True):
        assert not one.refused
        for j, value in enumerate(values):
            penalty = value if kind == "poisson" else 1.0 / (value * len(train))
            coef = one.linear.coef[:, j, 0]
            at_zero = one.linear.at_origin[j, 0] - one.linear.origin @ coef
            gradient = mean_gradient(kind, Z[train], y[train], coef, at_zero, penalty)
            assert np.abs(gradient).max() <= tol


@pytest.mark.invariant("The gradient of a converged answer is as small as tol asks")
def test_no_further_from_the_optimum_than_scikit_learn():
    """At the default tol, on data that are not scaled: scikit-learn stops early there."""
    data, target = load_breast_cancer(return_X_y=True)
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.01, 1.0, 100.0]}
    best = clone_with(estimator, tol=1e-10, max_iter=100_000)
    scores = [
        search.fit(data, target).cv_results_["mean_test_score"]
        for search in (
            Optimum(estimator, grid, scoring="neg_log_loss", refit=False),
            model_selection.GridSearchCV(estimator, grid, scoring="neg_log_loss", refit=False),
            model_selection.GridSearchCV(best, grid, scoring="neg_log_loss", refit=False),
        )
    ]
    ours, theirs, truth = scores
    assert np.all(np.abs(ours - truth) <= np.abs(theirs - truth) + 1e-9)


def clone_with(pipeline, **params):
    last = {f"logisticregression__{name}": value for name, value in params.items()}
    return make_pipeline(StandardScaler(), LogisticRegression()).set_params(**last)


@pytest.mark.invariant("A setting that does not converge is left to scikit-learn")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_does_not_converge_is_left_to_scikit_learn():
    search = Optimum(LogisticRegression(tol=1e-300), {"C": [1.0]}, refit=False, cv=4).fit(X, Y)
    assert search.report_.left_to_sklearn == {"the iterations of the shared fits did not converge": 4}


def test_separable_data():
    """The coefficients grow until the gradient is small, as scikit-learn's do."""
    Z = np.r_[np.full((20, 1), -1.0), np.full((20, 1), 1.0)]
    y = np.repeat([0, 1], 20)
    both(LogisticRegression(), {"C": [1.0, 1e8]}, X=Z, y=y, cv=4, scoring="accuracy")


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_a_class_missing_in_a_fold_is_scikit_learns_matter():
    y = np.sort(Y)
    params = {"cv": KFold(2), "scoring": "accuracy", "refit": False}
    ours = Optimum(LogisticRegression(), C, **params).fit(X, y)
    theirs = model_selection.GridSearchCV(LogisticRegression(), C, **params).fit(X, y)
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert ours.report_.fits_done == 6


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite(bad):
    Z = X.copy()
    Z[0, 0] = bad
    cv = [(np.arange(200), np.arange(200, 300))] * 5
    with pytest.raises(ValueError, match="All the 15 fits failed"):
        Optimum(LogisticRegression(), C, refit=False, cv=cv).fit(Z, Y)


def test_a_target_outside_of_the_distribution():
    with pytest.raises(ValueError, match="out of the valid range of the loss"):
        Optimum(PoissonRegressor(), ALPHA, error_score="raise").fit(X, -COUNTS)


# scikit-learn 1.8 names a penalty by its ratio.
L1 = {"l1_ratio": 1.0} if LogisticRegression().get_params()["penalty"] != "l2" else {"penalty": "l1"}
NOT_SERVED = {
    "liblinear": LogisticRegression(solver="liblinear", intercept_scaling=2.0),
    "liblinear, l1, draws": LogisticRegression(solver="liblinear", **L1),
    "l1": LogisticRegression(solver="saga", tol=1e-2, **L1),
    "warm start": LogisticRegression(warm_start=True),
    "identity": TweedieRegressor(power=0),
    "inverse gaussian": TweedieRegressor(power=3),
    "hinge": LinearSVC(loss="hinge"),
    "crammer and singer": LinearSVC(multi_class="crammer_singer"),
    "scaled intercept": LinearSVC(intercept_scaling=10.0),
    "absolute": LinearSVR(),
}


@pytest.mark.parametrize("estimator", NOT_SERVED.values(), ids=NOT_SERVED)
def test_what_is_not_served_is_said(estimator):
    grid, y = (C, Y) if hasattr(estimator, "C") else (ALPHA, SIZES)
    plan = Optimum(estimator, grid, scoring="neg_mean_absolute_error").plan(X, y)
    assert [group.kind for group in plan.groups] == ["one by one"]


def test_the_report_counts_passes_over_the_rows(monkeypatch):
    read, blocks = [], DensePasses._blocks

    def counted(self, piece, size):
        for block, B in blocks(self, piece, size):
            read.append(len(B))
            yield block, B

    monkeypatch.setattr(DensePasses, "_blocks", counted)
    search = Optimum(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, refit=False).fit(X, Y)
    assert search.report_.passes == pytest.approx(sum(read) / len(X)) and sum(read) > len(X)


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


@pytest.mark.invariant("A small memory limit does not change scores")
def test_a_small_memory_limit_gives_the_same_scores():
    """Fewer settings at a time, and diagonals for Hessians."""
    Z = StandardScaler().fit_transform(X)
    few = {"C": [0.01, 0.1, 1.0]}
    roomy = Optimum(LogisticRegression(), few, scoring="neg_log_loss", refit=False).fit(Z, THREE)
    tight = Optimum(LogisticRegression(), few, scoring="neg_log_loss", refit=False, memory_limit=20_000)
    assert tight.fit(Z, THREE).report_.fits_done == 0
    np.testing.assert_allclose(
        tight.cv_results_["mean_test_score"], roomy.cv_results_["mean_test_score"], rtol=1e-4
    )


@pytest.mark.parametrize(
    ("y", "scoring"),
    covering(
        {"two classes": Y, "three classes": THREE}.items(),
        ["accuracy", "neg_log_loss", ["roc_auc_ovr", "f1_macro"]],
        strength=1,
    ),
)
def test_settings_that_tol_leaves_as_good_as_the_best_are_named(y, scoring):
    """A rough tolerance leaves all scores open, a fine one tells them apart."""
    grid, refit = {"C": [0.5, 0.51, 0.52, 1e-4]}, scoring if isinstance(scoring, str) else scoring[0]
    named = []
    for tol in (1e-9, 0.3):
        model = LogisticRegression(tol=tol, max_iter=1000)
        with sharing_whatever_it_costs():
            search = Optimum(model, grid, scoring=scoring, refit=refit).fit(X, y)
        assert search.report_.fits_done == 0
        named.append([one["C"] for one in search.report_.as_good_as_best])
        assert search.best_params_["C"] not in named[-1]
    assert named[0] == []
    assert len(named[1]) >= 2
    assert "settings as good as the best within tol" in str(search.report_)


@pytest.mark.invariant("A split learns nothing from its test rows")
def test_nothing_of_the_test_rows_is_left_in_a_split():
    """A column that is zero in a training part has a coefficient of zero, however wide `tol` is."""
    Z = np.c_[np.zeros(N), X[:, 0]]
    Z[:60, 0] = 30.0 * (2 * Y[:60] - 1)
    grid = {"C": [1.0, 1e4]}
    both(
        LogisticRegression(tol=1e-2, max_iter=1000), grid, X=Z, cv=KFold(5), scoring="neg_log_loss", rtol=1e-2
    )
    splits = Splits.draw(KFold(5), Z, Y, N, {})
    data = PassData(Z, Y, splits.atom_groups, None, [None] * 5)
    estimator = LogisticRegression(tol=1e-2)
    first = next(
        iter(family_of(LogisticRegression).fit_many(estimator, [{"C": C_} for C_ in grid["C"]], data))
    )
    np.testing.assert_allclose(first.linear.coef[0], 0.0, atol=1e-6)


@pytest.mark.invariant("A split learns nothing from its test rows")
@pytest.mark.parametrize(
    ("make", "estimator"),
    covering(
        {"sparse": sp.csr_array, "dense": np.asarray}.items(),
        [LogisticRegression(), LinearSVC(tol=1e-2)],
        strength=1,
    ),
)
def test_labels_that_nothing_tells_are_not_known(make, estimator):
    """More features than rows: training rows leave directions open in which test rows would tell theirs."""
    own = np.random.default_rng(0)
    Z, y = make(own.poisson(0.05, size=(200, 400)) * 1.0), own.integers(0, 2, 200)
    with sharing_whatever_it_costs():
        search = Optimum(estimator, {"C": [1.0, 1e6]}, refit=False).fit(Z, y)
    assert search.report_.fits_done == 0
    assert np.all(np.abs(search.cv_results_["mean_test_score"] - 0.5) < 0.15)


@pytest.mark.invariant("A split learns nothing from its test rows")
@pytest.mark.parametrize("make", [sp.csr_array, np.asarray], ids=["sparse", "dense"])
def test_features_that_no_training_row_has(make):
    """Each row has one of its own: without an intercept a prediction is zero, and not a little more."""
    y = np.random.default_rng(0).integers(0, 3, 30)
    with sharing_whatever_it_costs():
        both(LinearSVC(dual=False, fit_intercept=False), C, X=make(np.eye(30)), y=y, cv=3)
        both(LinearSVC(dual=False, fit_intercept=False), C, X=make(np.eye(30)), y=y % 2, cv=3)


def test_steps_that_keep_other_numbers_of_columns_on_each_split():
    Z = X[:90].copy()
    Z[:30, 0] *= 5.0
    model = make_pipeline(PCA(0.8), GammaRegressor(**TIGHT))
    sizes = {model[0].fit(Z[train]).n_components_ for train, _ in KFold(3).split(Z)}
    assert len(sizes) > 1
    both(model, {"gammaregressor__alpha": [0.01, 1.0]}, X=Z, y=SIZES[:90], cv=3, scoring=DEVIANCES)


@pytest.mark.parametrize("name", ["max_iter", "tol", "solver"])
def test_a_search_for_where_to_stop_is_not_shared(name):
    values = {"max_iter": [1, 100], "tol": [1e-1, 1e-4], "solver": ["lbfgs", "newton-cg"]}[name]
    plan = Optimum(LogisticRegression(), {"C": [0.1, 1.0], name: values}).plan(X, Y)
    assert [group.kind for group in plan.groups] == ["one by one"]
    assert f"the search varies {name}, which changes where a fit stops" in str(plan)


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
