"""Where a search works: where its data lie, where the configuration says, or on the host as a last resort."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import get_tags

import manyfit
from manyfit import estimators
from manyfit._compat import DEVICE_TAKES_HOST_INDICES, array_api_dispatch
from manyfit.arrays import to_host, transfers
from manyfit.exceptions import HostFallbackError, HostFallbackWarning
from manyfit.folds import Splits
from manyfit.model_selection import BaseSearchCV, GridSearchCV, cross_val_score, cross_validate
from manyfit.model_selection.job._job import Job, Options
from manyfit.model_selection.planning import _planner
from manyfit.model_selection.planning._planner import prepare
from tests._covering import covering
from tests.behaviour.metrics._crossings import here, there
from tests.device._both import alike

X, LABELS = make_classification(120, 5, random_state=0)
Y = X @ np.arange(5.0) + np.random.default_rng(0).normal(size=120)
GRID = {"alpha": [0.1, 1.0, 10.0]}


def test_host_data_are_sent_once_where_that_is_configured(gpu):
    search = GridSearchCV(Ridge(), GRID, cv=3)
    assert "shared through moments" in str(search.plan(X, Y))
    with transfers() as crossed:
        search.fit(X, Y)
    assert crossed.bytes_to_device == X.nbytes + Y.nbytes
    assert crossed.synchronisations == 1
    alike(search, GridSearchCV(Ridge(), GRID, cv=3, client=False).fit(X, Y))
    # scikit-learn's Ridge was fitted again on the host, where the user's data are: nothing came back for it.
    assert type(search.best_estimator_.coef_) is np.ndarray


class TwoRounds(BaseSearchCV):
    def __init__(self, estimator, *, cv=None, refit=True):
        super().__init__(estimator, cv=cv, refit=refit)

    def _run_search(self, evaluate_candidates):
        for alpha in (0.1, 10.0):
            evaluate_candidates([{"alpha": alpha}, {"alpha": 2 * alpha}])


@pytest.mark.invariant("Data are sent to a device once and copied to the host only with the user's knowledge")
def test_searches_in_rounds_send_once(gpu):
    search = TwoRounds(Ridge(), cv=3, refit=False)
    with transfers() as crossed:
        search.fit(X, Y)
    assert len(search.cv_results_["params"]) == 4
    assert X.nbytes <= crossed.bytes_to_device < 2 * X.nbytes


def test_what_is_no_matrix_of_numbers_stays(gpu):
    rows = X.tolist()
    with transfers() as crossed:
        search = GridSearchCV(Ridge(), GRID, cv=3).fit(rows, Y)
    assert crossed.bytes_to_device == 0
    assert search.n_features_in_ == 5


def test_data_of_a_device_come_home_once_where_that_is_configured():
    with manyfit.config_context(device="cpu"), transfers() as crossed:
        search = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=3).fit(there(X), there(LABELS))
    assert crossed.synchronisations == 2
    alike(search, GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=3).fit(X, LABELS))


@pytest.mark.invariant("Data are sent to a device once and copied to the host only with the user's knowledge")
@pytest.mark.parametrize("labels_there", [True, False])
def test_what_no_family_serves_is_fitted_on_the_host_and_says_so(labels_there):
    y = there(LABELS) if labels_there else np.array(["no", "yes"])[LABELS]
    with (
        transfers() as crossed,
        pytest.warns(HostFallbackWarning, match="SVC cannot be fitted on device") as caught,
    ):
        search = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=3).fit(there(X), y)
    assert [one.filename for one in caught] == [__file__]  # once for its fits and its refit
    assert crossed.bytes_to_host <= X.nbytes + 2 * LABELS.nbytes
    alike(search, GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=3).fit(X, LABELS))


@pytest.mark.parametrize(
    "grid", [{"C": [0.1, 1.0]}, {"kernel": ["precomputed", "linear"]}], ids=["estimators", "settings"]
)
def test_precomputed_kernels_are_cut_on_the_host(grid):
    kernel, model = X @ X.T, estimators.SVR(kernel="precomputed" if "C" in grid else "rbf")
    with manyfit.config_context(host_fallback="ignore"), transfers() as crossed:
        found = GridSearchCV(model, grid, cv=3, refit=False, error_score="raise").fit(there(kernel), there(Y))
    assert crossed.bytes_to_host == kernel.nbytes + Y.nbytes
    alike(found, GridSearchCV(model, grid, cv=3, refit=False).fit(kernel, Y))


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (LinearDiscriminantAnalysis(), {"solver": ["svd", "lsqr"]}),
        (make_pipeline(Ridge(positive=True)), {"ridge__alpha": [0.1, 1.0]}),
    ],
)
def test_settings_that_scikit_learn_cannot_fit_there_are_fitted_on_the_host(model, grid):
    """Its tag for device arrays does not depend on the solver."""
    y = LABELS if "Linear" in repr(model) else Y
    with (
        array_api_dispatch(),
        pytest.warns(HostFallbackWarning, match="support (solver='lsqr'|positive=True) on"),
    ):
        found = GridSearchCV(model, grid, refit=False, error_score="raise").fit(there(X), there(y))
    alike(found, GridSearchCV(model, grid, refit=False).fit(X, y))


@pytest.mark.skipif(
    not get_tags(LogisticRegression()).array_api_support,
    reason="older versions of scikit-learn fit LogisticRegression on the host alone",
)
@pytest.mark.parametrize("model", [LogisticRegression(), make_pipeline(MinMaxScaler(), LogisticRegression())])
def test_probabilities_of_single_fits_are_scored_there(model):
    """scikit-learn's scorers look for the class in `classes_` with NumPy."""
    options = {"scoring": ["neg_log_loss", "neg_brier_score", "accuracy"], "cv": 3}
    with array_api_dispatch():
        found = cross_validate(model, there(X), there(LABELS), error_score="raise", **options)
        scorer = manyfit.metrics.get_scorer("neg_log_loss")
        alone = scorer(model.fit(there(X), there(LABELS)), there(X), there(LABELS))
    wanted = cross_validate(model, X, LABELS, **options)
    for name in options["scoring"]:
        np.testing.assert_allclose(found[f"test_{name}"], wanted[f"test_{name}"], rtol=1e-4)
    assert float(here(alone)) == pytest.approx(scorer(clone(model).fit(X, LABELS), X, LABELS), rel=1e-4)


def test_steps_of_a_setting_are_seen():
    grid = {"steps": [[("last", SVR())], [("last", Ridge())]]}
    model = make_pipeline(Ridge())
    with pytest.warns(HostFallbackWarning, match="SVR cannot be fitted on device"):
        found = GridSearchCV(model, grid, cv=3, refit=False, error_score="raise").fit(there(X), there(Y))
    alike(found, GridSearchCV(model, grid, cv=3, refit=False).fit(X, Y))


@pytest.mark.invariant("Data are sent to a device once and copied to the host only with the user's knowledge")
def test_the_host_can_be_refused():
    with manyfit.config_context(host_fallback="error"):
        with pytest.raises(HostFallbackError, match="SVC.*manyfit.estimators"):
            GridSearchCV(SVC(), {"C": [0.1, 1.0]}).fit(there(X), there(LABELS))
        search = GridSearchCV(Ridge(), GRID, refit=False).fit(there(X), there(Y))
    assert search.report_.fits_done == 0


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.thorough)])
def test_a_refusal_is_no_failed_fit(n_jobs):
    grid = [{"m": [estimators.Ridge()]}, {"m": [estimators.SVR()]}]
    search = GridSearchCV(Pipeline([("m", estimators.Ridge())]), grid, cv=3, n_jobs=n_jobs)
    with (
        manyfit.config_context(host_fallback="error"),
        pytest.raises(HostFallbackError, match="SVR|Pipeline"),  # of the search before scikit-learn 1.9
    ):
        search.fit(there(X), there(Y))


class Tries(estimators.Ridge):
    """Asks for the host at first, and when that is refused does what it is told."""

    def __init__(self, then: Any = None, solver: str = "svd") -> None:
        super().__init__(solver=solver)
        self.then = then

    def fit(self, X: Any, y: Any) -> Any:
        with pytest.raises(HostFallbackError):
            estimators.SVR().fit(X, y)
        if self.then is not None:
            raise self.then
        return super().fit(X, y)


@pytest.mark.skipif(not DEVICE_TAKES_HOST_INDICES, reason="the search is refused before scikit-learn 1.9")
def test_refusals_that_an_estimator_takes_are_its_own():
    with manyfit.config_context(host_fallback="error"):
        found = cross_val_score(Tries(), there(X), there(Y), cv=3)
        np.testing.assert_allclose(found, cross_val_score(Ridge(), X, Y, cv=3), rtol=1e-9)
        with pytest.raises(KeyboardInterrupt):
            cross_val_score(Tries(KeyboardInterrupt()), there(X), there(Y), cv=3)
        with pytest.raises(HostFallbackError, match="SVR"):
            cross_val_score(Tries(ValueError()), there(X), there(Y), cv=3)


@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_absolute_error"])
def test_scores_that_scikit_learn_refuses_are_failures(scoring):
    y = np.where(np.arange(120) == 5, np.nan, Y)
    options = {"cv": 3, "scoring": scoring, "refit": False, "error_score": -7.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = GridSearchCV(estimators.Ridge(), GRID, **options).fit(there(X), there(y))
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], [-7.0] * 3)


def test_it_can_be_quiet_and_cross_validation_does_the_same():
    with manyfit.config_context(host_fallback="ignore"):
        found = cross_val_score(SVC(), there(X), there(LABELS), cv=3)
    np.testing.assert_allclose(found, cross_val_score(SVC(), X, LABELS, cv=3))


def test_without_a_gpu_that_is_an_error():
    with (
        manyfit.config_context(device="cuda"),
        pytest.raises((ImportError, RuntimeError), match="device='cuda' needs"),
    ):
        GridSearchCV(Ridge(), GRID).fit(X, Y)


@pytest.mark.parametrize(
    ("labels", "scoring"),
    covering(["there", "here", "texts"], [None, "roc_auc", ["f1_macro", "neg_log_loss"]], strength=1),
)
def test_drop_in_estimators_are_fitted_there_one_by_one(labels, scoring):
    y = {"there": there(LABELS), "here": LABELS, "texts": np.array(["no", "yes"])[LABELS]}[labels]
    options = {"cv": 3, "scoring": scoring, "refit": False, "error_score": "raise"}
    model = make_pipeline(estimators.Normalizer(), estimators.GaussianNB())
    grid = {"gaussiannb__var_smoothing": [1e-9, 1e-2]}
    with manyfit.config_context(**THERE):  # X stays where it is
        search = GridSearchCV(model, grid, **options).fit(there(X), y)
    if DEVICE_TAKES_HOST_INDICES:  # else X comes here, where naive Bayes is shared
        assert search.report_.fits_done == 6
    alike(search, GridSearchCV(model, grid, **options).fit(X, LABELS if labels != "texts" else y))


def test_steps_of_a_pipeline_are_handed_what_they_take():
    model = make_pipeline(estimators.StandardScaler(), estimators.KNeighborsClassifier())
    grid = {"kneighborsclassifier__n_neighbors": [3, 7]}
    with manyfit.config_context(host_fallback="ignore"), np.errstate(invalid="ignore"):
        search = GridSearchCV(model, grid, cv=3).fit(there(X), there(LABELS))
        predicted = search.predict(there(X))
    alike(search, GridSearchCV(model, grid, cv=3).fit(X, LABELS))
    assert type(predicted) is type(there(X))
    np.testing.assert_array_equal(here(predicted), GridSearchCV(model, grid, cv=3).fit(X, LABELS).predict(X))


WEIGHTS = np.random.default_rng(1).random(120) + 0.1
QUIET = {"host_fallback": "ignore"}
# Before 1.9 scikit-learn cannot cut rows for drop-in estimators there.
THERE = {"host_fallback": "error" if DEVICE_TAKES_HOST_INDICES else "ignore"}


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("weigh", "model"),
    covering(
        {"there": there, "list": list, "series": pd.Series}.items(),
        [Ridge(), SVR(), estimators.Ridge(), estimators.SVR()],
        strength=1,
    ),
)
def test_weights_lie_anywhere(model, weigh):
    """Also in the refit, and where nothing is shared."""
    grid = GRID if hasattr(model, "alpha") else {"C": [0.1, 1.0]}
    for sharing in ("auto", "none"):
        with manyfit.config_context(**QUIET):
            search = GridSearchCV(model, grid, cv=3, sharing=sharing, error_score="raise")
            search.fit(there(X), there(Y), sample_weight=weigh(WEIGHTS))
            found = to_host(search.predict(there(X)))
    wanted = GridSearchCV(model, grid, cv=3).fit(X, Y, sample_weight=WEIGHTS)
    alike(search, wanted)
    np.testing.assert_allclose(found, wanted.predict(X), rtol=1e-6)


@pytest.mark.skipif(not DEVICE_TAKES_HOST_INDICES, reason="before 1.9 such a search is one on the host")
def test_lists_are_cut_by_indices_that_are_no_numbers_to_python(monkeypatch):
    """As CuPy's are not, which array-api-strict's are: a list cannot be asked for the row of one."""
    monkeypatch.delattr(type(there(0)), "__index__")
    with manyfit.config_context(**QUIET):
        search = GridSearchCV(estimators.SVR(), {"C": [0.1, 1.0]}, cv=3, error_score="raise")
        search.fit(there(X), list(Y), sample_weight=list(WEIGHTS))
    alike(search, GridSearchCV(SVR(), {"C": [0.1, 1.0]}, cv=3).fit(X, Y, sample_weight=WEIGHTS))


def test_targets_of_pandas_are_fitted_beside_x():
    words = pd.Series(np.array(["no", "yes"])[LABELS], dtype="category", index=range(5, 125))
    grid = {"var_smoothing": [1e-9, 1e-2]}
    with manyfit.config_context(**THERE):
        search = GridSearchCV(estimators.GaussianNB(), grid, cv=3, error_score="raise").fit(there(X), words)
    alike(search, GridSearchCV(estimators.GaussianNB(), grid, cv=3).fit(X, words))


def test_a_search_answers_where_its_estimator_was_fitted_on_the_host():
    with manyfit.config_context(**QUIET):
        search = GridSearchCV(SVC(), {"C": [1.0]}, cv=3).fit(there(X), there(LABELS))
    wanted = SVC().fit(X, LABELS)
    with pytest.warns(HostFallbackWarning, match="SVC of a search works on the host") as caught:
        found = search.predict(there(X))
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found, wanted.predict(X))
    with manyfit.config_context(host_fallback="error"), pytest.raises(HostFallbackError, match="SVC of a"):
        search.score(there(X), there(LABELS))
    with manyfit.config_context(**QUIET):
        assert search.score(there(X), there(LABELS)) == wanted.score(X, LABELS)
    assert not hasattr(search, "predict_proba")  # as scikit-learn's


@pytest.mark.cases(2)
@pytest.mark.parametrize("scoring", ["roc_auc", "f1", ["f1", "neg_log_loss"]], ids=str)
@pytest.mark.parametrize("scaled", [False, True])
def test_scores_of_a_search_whose_labels_lie_there(scoring, scaled):
    """scikit-learn's scorers read `classes_`, which follow the labels of the refit."""
    model = estimators.GaussianNB()
    model = make_pipeline(estimators.MinMaxScaler(), model) if scaled else model
    search = GridSearchCV(model, {}, cv=3, scoring=scoring, refit="f1" if isinstance(scoring, list) else True)
    with manyfit.config_context(**THERE):
        search.fit(there(X), there(LABELS))
    wanted = get_scorer("roc_auc" if scoring == "roc_auc" else "f1")(model.fit(X, LABELS), X, LABELS)
    with manyfit.config_context(**THERE):
        for data in (X, there(X)):
            for labels in (LABELS, there(LABELS)):
                assert search.score(data, labels) == pytest.approx(wanted)
        assert type(search.predict(there(X))) is type(there(X))  # and nothing of the estimator was changed


def test_scores_are_verified_where_scikit_learn_can_fit():
    rows = np.random.default_rng(0).normal(size=(2000, 5))
    rows, y = there(rows), there((rows**3).sum(axis=1))
    with manyfit.config_context(**QUIET):
        search = GridSearchCV(LinearRegression(), {}, cv=3, refit=False, verify=3).fit(rows, y)
    assert search.report_.fits_shared == 3
    assert all(row["difference"] < 1e-9 for row in search.report_.verification)


def test_what_a_plan_reads_of_a_device_is_counted():
    Xd, yd = there(X), there(Y)
    search = GridSearchCV(Ridge(), GRID, cv=3, refit=False)
    with transfers() as crossed:
        search.plan(Xd, yd)
    assert crossed.bytes_to_host == X.nbytes + Y.nbytes
    with transfers() as crossed:
        search.fit(Xd, yd)  # which tells by it whether the plan is of these data
    assert crossed.bytes_to_host == X.nbytes + Y.nbytes + search.report_.bytes_to_host


def test_what_goes_to_a_cluster_is_not_planned_for_the_device_here(gpu, monkeypatch):
    splits = Splits.given([(np.arange(60), np.arange(60, 120))], 120)
    job = Job(Ridge(), [{"alpha": 0.1}, {"alpha": 1.0}], X, Y, splits, Options(get_scorer("r2")))
    (group,) = prepare(job).plan.groups
    places = [(place.what, place.where) for place in group.places]
    assert places == [("moments of X and y", "device"), ("Ridge", "host")]
    monkeypatch.setattr(_planner, "count_slots", lambda client: 1)
    plan = prepare(replace(job, client=object())).plan
    assert (plan.places, plan.by_sklearn) == ((), False)


def test_labels_of_the_host_are_scored_by_a_search_on_labels_there():
    model = estimators.KNeighborsClassifier()
    with manyfit.config_context(**QUIET):
        search = GridSearchCV(model, {}, cv=3, scoring="f1").fit(there(X), there(LABELS))
        found = search.score(X, LABELS)
    assert found == pytest.approx(get_scorer("f1")(model.fit(X, LABELS), X, LABELS))


def test_an_estimator_of_scikit_learns_is_advised_to_be_a_drop_in():
    """In float32 its solver stops before it meets tol, so that its fits are made on the host."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    grid = {"C": [0.1, 1.0, 10.0]}
    with manyfit.config_context(host_fallback="ignore"):
        found = GridSearchCV(LogisticRegression(), grid, cv=3).fit(there(X), y).report_
    assert any("manyfit.estimators.LogisticRegression follows" in line for line in found.advice)
    drop_in = GridSearchCV(estimators.LogisticRegression(), grid, cv=3).fit(there(X), y).report_
    assert drop_in.fits_done == 0 and not any("manyfit.estimators" in line for line in drop_in.advice)
