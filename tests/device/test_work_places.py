"""The plan of a search on a device: where each estimator works and why, and that it is so."""

from __future__ import annotations

import pickle
from html import escape

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.preprocessing
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import manyfit
from manyfit import estimators as E
from manyfit._compat import DEVICE_TAKES_HOST_INDICES, array_api_dispatch
from manyfit.model_selection import WorkPlace
from tests._covering import spread
from tests.behaviour.iterations._optimum import Optimum as GridSearchCV
from tests.behaviour.metrics._crossings import there
from tests.device.test_transfers import (
    ALPHAS,
    CASES,
    LABELS,
    LOGISTIC,
    QUIET,
    X,
    Y,
    fitted,
    needs_newer,
)

CS = {"svr__C": [0.1, 1.0]}
TEXTS = [" ".join(np.random.default_rng(j).choice(["red", "green", "one"], size=6)) for j in range(200)]


def planned(model, grid, y=Y, data=X, refit=False, **options):
    search = GridSearchCV(model, grid, cv=KFold(3), refit=refit, **options)
    with manyfit.config_context(host_fallback="ignore"):
        return search.plan(there(data), there(y))


def where(plan):
    return [(place.what, place.where) for place in plan.places]


@pytest.mark.cases(3)
@pytest.mark.invariant("Each step works where the plan says")
@QUIET
@needs_newer
@pytest.mark.parametrize("name", spread([name for name in CASES if name != "scikit-learn's own"], 8))
def test_it_is_as_the_plan_says(name):
    """Arrays cross for a fit where the plan has it on the host, and come to the host for no other."""
    model, grid, y, options = CASES[name]
    places = planned(model, grid, y, **options).places
    transfers = fitted(name, (there(X), there(y))).report_.transfers
    for place in places:
        who = place.what.rpartition(" ")[2]
        own = [
            one for label, one in transfers.items() if label in (f"fit of {who}", f"fit_transform of {who}")
        ]
        if place.where == "device" or "moments" in place.reason:
            assert not any(one.to_host for one in own), place
        else:
            assert any(one.to_host or one.to_device for one in own), place
        assert place.reason


@needs_newer
def test_steps_on_both_sides():
    model, grid, y, _ = CASES["a host step in the middle"]
    plan = planned(model, grid, y)
    names = ("MinMaxScaler", "SimpleImputer", "PolynomialFeatures", "Ridge")
    assert where(plan) == list(zip(names, ("device", "host", "device", "device"), strict=True))
    assert plan.groups[0].places == plan.places
    assert plan.places[1] == WorkPlace("SimpleImputer", "host", "scikit-learn supports it on the host only")
    lines = str(plan).split("where each estimator works\n")[1].splitlines()
    assert lines[1] == "   ├─ SimpleImputer: on the host, because scikit-learn supports it on the host only"
    assert len(lines) == 4 and plan._repr_html_().count("<li>") == 4
    assert escape(str(plan.places[1])) in plan._repr_html_()
    assert pickle.loads(pickle.dumps(plan.places)) == plan.places


def test_moments_and_iterations():
    ridge = make_pipeline(E.StandardScaler(), E.Ridge())
    logistic = make_pipeline(E.StandardScaler(), E.LogisticRegression())
    behind_a_step = [("moments of X and y", "device"), ("StandardScaler", "host")]
    assert where(planned(ridge, ALPHAS)) == [*behind_a_step, ("Ridge", "host")]
    assert where(planned(logistic, LOGISTIC, LABELS)) == [*behind_a_step, ("LogisticRegression", "device")]
    poisson = planned(E.PoissonRegressor(), {"alpha": [0.1, 1.0]}, LABELS + 1.0)
    assert where(poisson) == [("PoissonRegressor", "device")]


@needs_newer
def test_parts_are_named_by_their_paths():
    inner = E.FeatureUnion([("a", E.SimpleImputer()), ("b", E.MinMaxScaler())])
    parts = [("imp", make_pipeline(E.MinMaxScaler(), E.SimpleImputer()), [0, 1]), ("inner", inner, [2])]
    parts += [("none", "drop", [0]), ("same", "passthrough", [3])]
    assert where(planned(make_pipeline(E.ColumnTransformer(parts), E.SVR()), CS)) == [
        ("imp: MinMaxScaler", "device"),
        ("imp: SimpleImputer", "host"),
        ("inner__a: SimpleImputer", "host"),
        ("inner__b: MinMaxScaler", "device"),
        ("inner: FeatureUnion", "device"),
        ("ColumnTransformer", "device"),
        ("SVR", "host"),
    ]


@needs_newer
def test_a_frame_keeps_what_follows_on_the_host():
    frame = E.MinMaxScaler().set_output(transform="pandas")
    plan = planned(make_pipeline(frame, E.PolynomialFeatures(), E.Ridge()), ALPHAS)
    assert where(plan) == [(name, "host") for name in ("MinMaxScaler", "PolynomialFeatures", "Ridge")]
    assert plan.places[0].reason == "its output is set to pandas"
    assert plan.places[1].reason == "MinMaxScaler gives it a frame, which stays on the host"


@needs_newer
def test_a_sparse_matrix_keeps_what_follows_on_the_host():
    union = E.FeatureUnion([("imp", E.SimpleImputer()), ("tf", E.TfidfTransformer())])
    for first, last in ((E.OneHotEncoder(), "OneHotEncoder"), (union, "TfidfTransformer")):
        plan = planned(make_pipeline(first, E.MaxAbsScaler(), E.SVR()), CS)
        assert [place.where for place in plan.places[-2:]] == ["host", "host"]
        assert plan.places[-1].reason == f"{last} gives it a sparse matrix, which stays on the host"


def test_who_cannot_be_fitted_on_a_device():
    model, grid, y, _ = CASES["scikit-learn's own"]
    plan = planned(model, grid, y)
    assert where(plan) == [("PolynomialFeatures", "host"), ("SVR", "host")]
    why = "PolynomialFeatures and SVR cannot be fitted on a device"
    assert {place.reason for place in plan.places} == {why}


class Stranger(RegressorMixin, BaseEstimator):
    """A user's own estimator: nobody but its author knows what it takes."""

    def __init__(self, size=1):
        self.size = size

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


@needs_newer
def test_who_is_not_drop_in():
    model = make_pipeline(
        sklearn.preprocessing.PolynomialFeatures(), sklearn.linear_model.Ridge(solver="svd")
    )
    with array_api_dispatch():
        plan = planned(model, {"ridge__alpha": [0.1, 1.0]}, sharing="none")
    served = "scikit-learn's array API dispatch supports it"
    assert plan.places == tuple(WorkPlace(who, "device", served) for who in ("PolynomialFeatures", "Ridge"))
    plan = planned(Stranger(), {"size": [1, 2]})
    own = "it is not scikit-learn's, and is given what X is"
    assert plan.places == (WorkPlace("Stranger", "device", own),)


@pytest.mark.skipif(DEVICE_TAKES_HOST_INDICES, reason="fitted where they lie since scikit-learn 1.9")
def test_an_older_scikit_learn_is_the_reason():
    (place,) = planned(E.SVR(), {"C": [0.1, 1.0]}).places
    assert place.reason == "SVR cannot be fitted on a device by a search with scikit-learn before 1.9"


@needs_newer
def test_a_family_that_reads_rows_of_the_host_is_the_reason():
    model = make_pipeline(E.StandardScaler(), GaussianNB())
    with array_api_dispatch():
        plan = planned(model, {"gaussiannb__var_smoothing": [1e-9, 1e-3]}, LABELS)
    assert "shared fits of GaussianNB read rows of the host" in str(plan)


def test_a_precomputed_kernel_is_the_reason():
    plan = planned(E.KernelRidge(kernel="precomputed"), {"alpha": [0.1, 1.0]}, data=X @ X.T)
    why = "of a precomputed kernel" if DEVICE_TAKES_HOST_INDICES else "with scikit-learn before 1.9"
    (place,) = plan.places
    assert place.reason == f"KernelRidge cannot be fitted on a device by a search {why}"


def test_the_refit():
    plain, ours = sklearn.linear_model.Ridge(), E.Ridge()
    alphas = {"alpha": [0.1, 1.0]}
    plan = planned(plain, alphas, refit=True)
    assert plan.refit_places == (WorkPlace("Ridge", "host", "Ridge cannot be fitted on a device"),)
    assert "└─ in the refit, Ridge: on the host, because Ridge cannot be fitted on a device" in str(plan)
    plan = planned(ours, alphas, refit=True)
    assert plan.refit_places == (WorkPlace("Ridge", "device", "manyfit fits it"),)
    assert planned(ours, alphas).refit_places == ()
    alone = planned(ours, alphas, refit=True, sharing="none")
    assert not DEVICE_TAKES_HOST_INDICES or "in the refit" not in str(alone)  # where the other fits are made


def test_data_that_are_fetched_or_lie_on_the_host():
    alphas = {"alpha": [0.1, 1.0]}
    with manyfit.config_context(device="cpu"):
        (place,) = planned(E.Ridge(), alphas).places
    assert str(place) == "Ridge: on the host, because device='cpu' is set"
    plan = GridSearchCV(E.Ridge(), alphas, cv=3).plan(X, Y)
    assert plan.places == plan.refit_places == () and "where each" not in str(plan)
    plan = GridSearchCV(E.Ridge(), alphas, cv=3).plan(X, there(Y))
    assert {(place.where, place.reason) for place in plan.places} == {("host", "X lies on the host")}


def test_data_that_are_sent(gpu):
    plan = GridSearchCV(E.Ridge(), {"alpha": [0.1, 1.0]}, cv=3, refit=False).plan(X, Y)
    assert where(plan) == [("moments of X and y", "device"), ("Ridge", "host")]


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_texts_stay_on_the_host(device, crossed):
    model = make_pipeline(E.HashingVectorizer(n_features=64), E.LogisticRegression())
    search = GridSearchCV(model, LOGISTIC, cv=3, refit=False)
    with manyfit.config_context(device=device):
        assert search.plan(TEXTS, LABELS[:200]).places == ()
        search.fit(TEXTS, LABELS[:200])
    assert crossed == [] and search.report_.transfers == {}


@QUIET
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_settings_that_cannot_be_fitted_are_planned_all_the_same():
    model = make_pipeline(E.PolynomialFeatures(), E.SVR(max_iter=20))
    grid = {"polynomialfeatures__degree": ["two", 2], "svr__C": [-1.0, 1.0]}
    search = GridSearchCV(model, grid, cv=3, refit=False)
    with manyfit.config_context(host_fallback="ignore"):
        assert search.plan(there(X), there(Y)).places
        with pytest.warns(FitFailedWarning, match="9 fits failed"):
            search.fit(there(X), there(Y))
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, True, True, False]


@QUIET
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.filterwarnings("ignore:The following error was raised:DeprecationWarning")  # of 3, before 1.8
@pytest.mark.parametrize(
    "parts",
    [None, "parts", 5, [("a",)], [("a", E.SimpleImputer())], [("a", 3, [0])],
     [("a", E.SimpleImputer(), [99])], [("a", E.SimpleImputer(), np.array([[0, 1]]))],
     [("a", make_pipeline(3, E.MinMaxScaler()), [0])]],
    ids=repr,
)  # fmt: skip
def test_parts_that_a_fit_refuses_are_planned_all_the_same(parts):
    columns = E.ColumnTransformer([("imp", E.SimpleImputer(), [0, 1])])
    grid = {"columntransformer__transformers": [parts, [("good", E.SimpleImputer(), [0])]]}
    search = GridSearchCV(make_pipeline(columns, E.SVR(max_iter=20)), grid, cv=2, refit=False)
    with manyfit.config_context(host_fallback="ignore"):
        assert search.plan(there(X), there(Y)).places
        with pytest.warns(FitFailedWarning, match="2 fits failed"):
            search.fit(there(X), there(Y))
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]
