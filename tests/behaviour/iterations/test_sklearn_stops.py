"""Where scikit-learn's solver stops before its tolerance, the scores are scikit-learn's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_regression
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.estimators import Cost, Shape, family_of
from manyfit.families.smooth.solver import _coarse_to_fine
from manyfit.folds import Unsupported
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.planning._cost_checks import require_gradient_stop
from tests._covering import covering, spread
from tests.differential._subject import sharing_whatever_it_costs

rng = np.random.default_rng(0)
N, P = 1000, 5
X = rng.normal(size=(N, P))
SCORE = X @ rng.normal(size=P)
Y = (SCORE + rng.logistic(size=N) > 0).astype(int)
COUNTS = rng.poisson(np.exp(0.3 * SCORE)).astype(float)
C = {"C": [0.01, 1.0, 100.0]}
EARLY = "scikit-learn's solver may stop before it meets tol"


def searched(cls, estimator, grid, X, y, **params):
    """A search, and how many ConvergenceWarnings it gave."""
    with warnings.catch_warnings(record=True) as caught, sharing_whatever_it_costs():
        warnings.simplefilter("always")
        search = cls(estimator, grid, **{"cv": 5, **params}).fit(X, y)
    return search, sum(issubclass(one.category, ConvergenceWarning) for one in caught)


def both_searched(estimator, grid, X, y, **params):
    """Our search and scikit-learn's, each with how many ConvergenceWarnings it gave."""
    ours = searched(GridSearchCV, estimator, grid, X, y, **params)
    return *ours, *searched(model_selection.GridSearchCV, estimator, grid, X, y, **params)


def same(ours, theirs):
    for name, expected in theirs.cv_results_.items():
        if "test" in name and "rank" not in name:
            np.testing.assert_array_equal(ours.cv_results_[name], expected)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_


@pytest.mark.parametrize("load", spread([load_breast_cancer, load_wine, load_iris], 1))
def test_scores_of_data_that_nobody_scaled_are_those_of_the_model_that_is_refitted(load):
    data, target = load(return_X_y=True)
    ours, warned, theirs, expected = both_searched(LogisticRegression(), C, data, target)
    assert expected > 1
    assert ours.report_.left_to_sklearn[EARLY] >= 10
    assert warned == expected
    assert ours.best_params_ == theirs.best_params_
    # What is shared beside them may have labels of the optimum.
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=2 / len(target)
    )


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e6, np.float64), (1.0, np.float32)], ids=["a large column", "float32"]
)
def test_a_solver_that_stops_without_a_warning_is_scikit_learns(scale, dtype):
    """The loss does not show what is left of the gradient."""
    Z = X.astype(dtype) * np.array([scale, 1, 1, 1, 1], dtype=dtype)
    model = LogisticRegression(tol=1e-5 if dtype == np.float32 else 1e-4, max_iter=10_000)
    ours, _, theirs, warned = both_searched(model, C, Z, Y, scoring="neg_log_loss")
    assert warned == 0
    same(ours, theirs)
    assert ours.report_.left_to_sklearn == {EARLY: 15}


@pytest.mark.parametrize("model", [GammaRegressor(), PoissonRegressor()], ids=["gamma", "poisson"])
def test_a_line_search_that_gives_up_without_a_warning_is_scikit_learns(model):
    """The exponential of the first step is far too large, and SciPy goes back to where it was."""
    Z, y = make_regression(300, 5, noise=10, random_state=1)
    y, Z, grid = np.exp(y / y.std()), 200.0 * Z, {"alpha": np.logspace(-2, 0, 10)}
    ours, _, theirs, warned = both_searched(model, grid, Z, y, cv=3)
    same(ours, theirs)
    assert ours.report_.left_to_sklearn == {EARLY: 30}
    if isinstance(model, GammaRegressor):
        assert warned == 0
        assert theirs.best_estimator_.n_iter_ == 1


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(dual=False)], ids=["logistic", "svc"])
def test_a_large_tol_is_scikit_learns(model):
    ours, _, theirs, _ = both_searched(model.set_params(tol=1e-2), C, X, Y)
    same(ours, theirs)
    assert "tol=0.01 leaves scores open, where 0.0001 would not" in str(GridSearchCV(model, C).plan(X, Y))
    optimum, _ = searched(GridSearchCV, model, C, X, Y, sharing="optimum")
    assert optimum.report_.fits_shared == 15


ESTIMATORS = {
    "logistic": (LogisticRegression(), C, Y),
    "behind affine steps": (
        make_pipeline(StandardScaler(), PCA(3), LogisticRegression()), {"logisticregression__C": C["C"]}, Y
    ),
    "behind others": (
        make_pipeline(MinMaxScaler(clip=True), LogisticRegression()), {"logisticregression__C": C["C"]}, Y
    ),
    "no intercept": (LogisticRegression(fit_intercept=False), C, Y),
    "newton-cg": (LogisticRegression(solver="newton-cg"), C, Y),
    "newton-cholesky": (LogisticRegression(solver="newton-cholesky"), C, Y),
    "poisson": (PoissonRegressor(), {"alpha": [1e-3, 1.0]}, COUNTS),
    "linear svc": (LinearSVC(dual=False), C, Y),
    "linear svr": (LinearSVR(loss="squared_epsilon_insensitive", dual=False), C, SCORE),
}  # fmt: skip


CVS = [KFold(3), TimeSeriesSplit(3), ShuffleSplit(3, random_state=0)]


@pytest.mark.cases(3)
@pytest.mark.parametrize(("name", "cv"), covering(ESTIMATORS, CVS, strength=1))
def test_what_converges_well_is_shared(name, cv):
    estimator, grid, y = ESTIMATORS[name]
    ours, warned, theirs, expected = both_searched(estimator, grid, X, y, cv=cv)
    assert warned == expected == 0
    assert ours.report_.fits_done == 0, ours.report_
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=2 / 250
    )


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LogisticRegression(max_iter=4), Y), (LogisticRegression(solver="newton-cholesky", max_iter=2), Y),
     (LinearSVC(dual=False, max_iter=2), Y), (PoissonRegressor(max_iter=3), COUNTS)],
    ids=["lbfgs", "newton", "liblinear", "poisson"],
)  # fmt: skip
def test_few_iterations_are_scikit_learns(estimator, y):
    grid = C if hasattr(estimator, "C") else {"alpha": [1e-3, 1e-2]}
    ours, warned, theirs, expected = both_searched(estimator, grid, X, y)
    same(ours, theirs)
    assert warned == expected > 0


@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        (LogisticRegression(solver="saga", random_state=0), "solver='saga' stops where coefficients change"),
        (LogisticRegression(solver="sag", random_state=0), "solver='sag' stops where coefficients change"),
        (LinearSVC(dual=True, random_state=0), "dual=True solves the dual problem here"),
        (
            LinearSVR(loss="squared_epsilon_insensitive", dual=True, random_state=0),
            "dual=True solves the dual",
        ),
    ],
)
def test_solvers_that_do_not_stop_by_the_gradient_are_scikit_learns(estimator, why):
    with sharing_whatever_it_costs():
        plan = GridSearchCV(estimator, C).plan(X, Y)
        assert why in str(plan)
        assert GridSearchCV(estimator, C, sharing="optimum").plan(X, Y).groups[0].kind == "shared iterations"
    assert plan.groups[0].kind == "one by one"


def test_dual_that_is_chosen_by_the_shape():
    wide = rng.normal(size=(40, 60))
    model = LinearSVC(random_state=0, dual="auto")
    with sharing_whatever_it_costs():
        assert "dual='auto' solves the dual" in str(GridSearchCV(model, C).plan(wide, Y[:40]))
        assert GridSearchCV(model, C).plan(X, Y).groups[0].kind == "shared iterations"


def test_a_split_with_rows_on_another_scale_is_asked_for_itself():
    """The first split does not train on the rows that the others find hard."""
    data = rng.normal(size=(300, 6))
    target = (data[:, 0] + rng.normal(size=300) > 0).astype(int)
    data[:60] *= np.array([1, 1e2, 1e3, 1, 1e2, 1e3])
    grid, options = {"C": [1e-4, 1e-2, 1.0, 100.0]}, {"cv": KFold(5), "refit": False}
    model = LogisticRegression(max_iter=40)
    ours, warned, theirs, expected = both_searched(model, grid, data, target, **options)
    assert warned == expected > 10
    for i in range(1, 5):
        name = f"split{i}_test_score"
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])


@pytest.mark.parametrize("quick", [0, 2**20], ids=["one split first", "all splits at once"])
def test_no_pair_is_tried_twice_and_each_split_for_a_slow_setting(monkeypatch, quick):
    tried, try_columns = [], _coarse_to_fine.try_columns

    def watched(problem, zero, columns, *rest):
        tried.append(columns)
        return try_columns(problem, zero, columns, *rest)

    monkeypatch.setattr(_coarse_to_fine, "try_columns", watched)
    monkeypatch.setattr(_coarse_to_fine, "QUICK_ENTRIES", quick)
    ours, *_ = searched(GridSearchCV, LogisticRegression(max_iter=1000), C, X, Y)
    assert ours.report_.fits_shared == 15
    pairs = np.concatenate(tried)
    assert len(np.unique(pairs)) == len(pairs) < 15
    assert len(tried[0]) == (7 if quick else 3)
    # Three settings on each of five splits: all on one of them, the smallest penalty on all.
    np.testing.assert_array_equal(np.sort(pairs[pairs % 3 == 2]), [2, 5, 8, 11, 14])


@pytest.mark.parametrize("max_iter", [1000, 10**9])
def test_a_tolerance_that_nothing_meets_ends_soon(max_iter):
    model = LogisticRegression(tol=1e-300, max_iter=max_iter)
    ours, _, theirs, _ = both_searched(model, C, X, Y)
    same(ours, theirs)
    assert ours.report_.passes < 50


def test_the_optimum_is_an_option():
    data, target = load_breast_cancer(return_X_y=True)
    options = {"sharing": "optimum", "refit": False}
    ours, warned = searched(GridSearchCV, LogisticRegression(), C, data, target, **options)
    assert warned == 0
    assert ours.report_.fits_done == 0
    tight = LogisticRegression(solver="newton-cholesky", tol=1e-8)
    optimum, _ = searched(model_selection.GridSearchCV, tight, C, data, target)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], optimum.cv_results_["mean_test_score"], atol=2 / len(target)
    )


def test_little_gain_is_not_worth_a_changed_digit(monkeypatch):
    data = rng.normal(size=(N, 20))
    search = GridSearchCV(LogisticRegression(), {"C": [0.01, 0.1, 1.0]}, cv=5)
    assert "sharing would take longer" in str(search.plan(data, Y))  # a few milliseconds a fit
    monkeypatch.setattr(family_of(LogisticRegression), "cost", lambda *_: Cost(2.0, 3.0))
    assert "expected to be 1.5 times as fast, and is not done below 2 times" in str(search.plan(data, Y))
    assert search.fit(data, Y).report_.fits_shared == 0
    with sharing_whatever_it_costs():
        assert search.fit(data, Y).report_.fits_shared > 10


def test_a_score_that_tol_leaves_open_is_scikit_learns():
    """Where classes can be told apart and C is large, `tol` leaves labels near the middle open."""
    data = rng.normal(size=(100, 60))
    target = (data[:, 0] > 0).astype(int)
    grid = {"C": [1e5]}
    ours, _, theirs, _ = both_searched(LogisticRegression(), grid, data, target)
    open_ = ours.report_.left_to_sklearn["tol leaves its score open"]
    names = [f"split{i}_test_score" for i in range(5)]
    differ = [ours.cv_results_[name] != theirs.cv_results_[name] for name in names]
    assert open_ >= 3 and np.sum(differ) <= 5 - open_
    optimum, _ = searched(GridSearchCV, LogisticRegression(), grid, data, target, sharing="optimum")
    assert optimum.report_.fits_done == 0


def test_a_tolerance_above_the_default_leaves_scores_open():
    family, shape = family_of(LogisticRegression), Shape(200, 5, 1, 3, 2)
    require_gradient_stop(family, LogisticRegression(tol=1e-4), shape)
    with pytest.raises(Unsupported, match="tol=0.0002 leaves scores open, where 0.0001 would not"):
        require_gradient_stop(family, LogisticRegression(tol=2e-4), shape)
