"""What families that iterate leave to scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.linear_model import LogisticRegression, PoissonRegressor, TweedieRegressor
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC, LinearSVR

from tests.behaviour.iterations._iterated import ALPHA, COUNTS, SIZES, C, X, Y, both
from tests.behaviour.iterations._optimum import Optimum  # `test_sklearn_stops.py` has the default

pytestmark = pytest.mark.slow


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
def test_a_training_part_of_one_class_is_scikit_learns_matter():
    y = np.sort(Y)
    params = {"cv": KFold(2), "scoring": "accuracy", "refit": False}
    ours = Optimum(LogisticRegression(), C, **params).fit(X, y)
    theirs = model_selection.GridSearchCV(LogisticRegression(), C, **params).fit(X, y)
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])
    assert ours.report_.left_to_sklearn == {"y has one class": 3}


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


@pytest.mark.parametrize("name", ["max_iter", "tol", "solver"])
def test_a_search_for_where_to_stop_is_not_shared(name):
    values = {"max_iter": [1, 100], "tol": [1e-1, 1e-4], "solver": ["lbfgs", "newton-cg"]}[name]
    plan = Optimum(LogisticRegression(), {"C": [0.1, 1.0], name: values}).plan(X, Y)
    assert [group.kind for group in plan.groups] == ["one by one"]
    assert f"the search varies {name}, which changes where a fit stops" in str(plan)
