"""Weights that metadata routing hands to the last step alone are shared; scores are always scikit-learn's."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn import config_context, model_selection
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.fixes import parse_version

from manyfit.model_selection import GridSearchCV, cross_validate
from tests import _same_results
from tests._covering import covering, spread
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y
from tests.differential._subject import sharing_whatever_it_costs

GIVEN = {"sample_weight": WEIGHTS}
OTHERS = np.random.default_rng(1).integers(0, 4, len(Y)).astype(float)
ALPHAS = [1.0, 50.0, 200.0]
both = partial(_same_results.both, cv=2)


@pytest.fixture(autouse=True)
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def r2(request):
    return get_scorer("r2").set_score_request(sample_weight=request)


def ridge(request):
    return Ridge().set_fit_request(sample_weight=request)


def scaler(request=False):
    return StandardScaler().set_fit_request(sample_weight=request)


@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize("fitted", [True, False])
def test_the_last_step_of_a_pipeline_requests_them(fitted, scored):
    given = GIVEN if fitted or scored else {}
    pipe = make_pipeline(scaler(), ridge(fitted))
    search = both(pipe, {"ridge__alpha": ALPHAS}, scoring=r2(scored), fit_params=given)
    assert search.report_.fits_done == 0
    assert search.best_estimator_[-1].coef_ is not None


def test_a_pipeline_at_the_end_of_a_pipeline():
    pipe = Pipeline([("first", scaler()), ("rest", make_pipeline(scaler(), ridge("mine")))])
    search = both(pipe, {"rest__ridge__alpha": ALPHAS}, scoring=r2(False), fit_params={"mine": WEIGHTS})
    assert search.report_.fits_done == 0


def test_a_pipeline_in_the_middle_of_a_pipeline():
    for request, n_alone in ((False, 0), (True, 6)):
        pipe = Pipeline([("first", make_pipeline(scaler(request))), ("ridge", ridge(True))])
        search = both(pipe, {"ridge__alpha": ALPHAS}, scoring=r2(False), fit_params=GIVEN)
        assert search.report_.fits_done == n_alone


def test_a_scaler_requests_them_too():
    pipe = make_pipeline(scaler(True), ridge(True))
    search = both(pipe, {"ridge__alpha": ALPHAS}, scoring=r2(True), fit_params=GIVEN)
    assert search.report_.fits_done == 6 and search.report_.transformer_fits == 2
    assert "the step 'standardscaler'" in search.report_.groups[0]["reason"]


def test_only_a_scaler_requests_them():
    pipe = make_pipeline(scaler(True), ridge(False))
    search = both(pipe, {"ridge__alpha": ALPHAS}, scoring=r2(False), fit_params=GIVEN)
    assert search.report_.fits_done == 6


@pytest.mark.parametrize("scorer", ["own", "theirs", "the same"])
def test_other_names(scorer):
    names = {"own": "for_scores", "theirs": False, "the same": "for_fits"}
    given = {"for_fits": WEIGHTS} | ({"for_scores": OTHERS} if scorer == "own" else {})
    for model, name in (
        (ridge("for_fits"), "alpha"),
        (make_pipeline(scaler(), ridge("for_fits")), "ridge__alpha"),
    ):
        search = both(model, {name: ALPHAS}, scoring=r2(names[scorer]), fit_params=given)
        assert search.report_.fits_done == 0


@pytest.mark.parametrize(
    ("requests", "n_alone"),
    spread(
        [
            (("a", "a"), 0),
            (("a", "b"), 6),
            (("a", False), 6),
            ((True, False), 6),
            ((False, True), 6),
            ((True, True), 0),
            ((False, False), 0),
        ],
        3,
    ),
)
def test_several_scorers(requests, n_alone):
    scoring = {
        name: get_scorer(name).set_score_request(sample_weight=request)
        for name, request in zip(("r2", "neg_mean_absolute_error"), requests, strict=True)
    }
    given = {"sample_weight": WEIGHTS} | {one: OTHERS for one in requests if isinstance(one, str)}
    pipe = make_pipeline(scaler(), ridge(True))
    for model, name in ((pipe, "ridge__alpha"), (ridge(True), "alpha")):
        report = both(model, {name: ALPHAS}, scoring=scoring, refit="r2", fit_params=given).report_
        assert report.fits_done == n_alone
        said = "not every scorer is given the sample_weight" in report.groups[0]["reason"]
        assert said is (n_alone > 0 and False in requests)


def test_iterations():
    model = LogisticRegression(tol=1e-8).set_fit_request(sample_weight="mine")
    scoring = get_scorer("accuracy").set_score_request(sample_weight=True)
    weights = np.random.default_rng(0).integers(1, 4, len(LABELS)).astype(float)
    with sharing_whatever_it_costs():
        search = both(
            make_pipeline(scaler(), model),
            {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]},
            X_CLASS,
            LABELS,
            scoring=scoring,
            fit_params={"mine": weights, "sample_weight": weights},
            ours={"sharing": "optimum"},
        )
    assert search.report_.fits_done == 0


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"),
    reason="a Pipeline in a search of 1.7 asks for a score request of its own",
)
def test_the_score_of_a_pipeline_itself():
    pipe = make_pipeline(scaler(), ridge(True).set_score_request(sample_weight=True))
    search = both(pipe, {"ridge__alpha": ALPHAS}, fit_params=GIVEN, return_train_score=True)
    assert search.report_.fits_done == 0


@pytest.mark.cases(2)
@pytest.mark.filterwarnings("ignore:Scoring failed:UserWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
@pytest.mark.parametrize(
    ("make", "fitted", "scored"),
    covering(
        [scaler, MinMaxScaler, partial(MinMaxScaler, clip=True), lambda: make_pipeline(scaler())],
        [True, False],
        [True, False],
        strength=1,
    ),
)
def test_the_score_of_a_pipeline_routes_weights_also_where_there_are_none(make, fitted, scored):
    """It raises where no step says whether it takes them; a Ridge without steps does not."""
    step, last = make(), ridge(fitted).set_score_request(sample_weight=scored)
    # A search of 1.7 asks for a score request of the Pipeline's own where it is given any.
    old = parse_version(sklearn.__version__) < parse_version("1.9")
    given = GIVEN if fitted and not old else {}
    search = both(make_pipeline(step, last), {"ridge__alpha": ALPHAS}, fit_params=given)
    assert np.isnan(search.cv_results_["mean_test_score"]).all() is np.bool_(not scored)
    nested = Pipeline([("first", step), ("rest", make_pipeline("passthrough", last))])
    both(nested, {"rest__ridge__alpha": ALPHAS}, fit_params=given)
    if not fitted:
        assert both(last, {"alpha": ALPHAS}).report_.fits_done == 0


@pytest.mark.parametrize("turned", [False, True])
def test_settings_with_other_requests(turned):
    """What is passed goes to the step that requests it in each setting."""
    grid = [
        {"scale": [scaler(False)], "ridge": [ridge(True), Ridge(7.0).set_fit_request(sample_weight=True)]},
        {"scale": [scaler(True)], "ridge": [ridge(False), ridge(True)]},
    ]
    pipe = Pipeline([("scale", scaler()), ("ridge", ridge(True))])
    search = both(pipe, grid[::-1] if turned else grid, scoring=r2(True), fit_params=GIVEN)
    assert search.report_.fits_done == 4


def test_last_steps_with_other_weights():
    pipe = Pipeline([("scale", scaler("mine")), ("ridge", ridge(True))])
    grid = {"scale": [scaler("mine"), scaler(False)], "ridge": [ridge(True), ridge("mine")]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the settings in which nobody requests one of the two
        search = both(pipe, grid, scoring=r2(True), fit_params=GIVEN | {"mine": OTHERS})
    assert search.report_.fits_done == 8


class Offset(RegressorMixin, BaseEstimator):
    """Takes something that is not weights."""

    def fit(self, X, y, offset=None):
        self.mean_ = float(np.mean(y)) + (0.0 if offset is None else float(np.mean(offset)))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_metadata_that_is_not_weights():
    model = Offset().set_fit_request(offset=True)
    both(model, {}, scoring=r2(False), fit_params={"offset": OTHERS})
    pipe = make_pipeline(MinMaxScaler(), model)
    both(pipe, {"minmaxscaler__clip": [True, False]}, scoring=r2(False), fit_params={"offset": OTHERS})


def test_requests_that_are_not_made_are_scikit_learns_error():
    pipe = make_pipeline(StandardScaler(), ridge(True))
    for cls in (model_selection.GridSearchCV, GridSearchCV):
        with pytest.raises(ValueError, match="All the 15 fits failed") as error:
            cls(pipe, {"ridge__alpha": ALPHAS}, scoring=r2(False)).fit(X, Y, **GIVEN)
        assert "UnsetMetadataPassedError" in str(error.value)


def test_functions_share_them():
    pipe = make_pipeline(scaler(), ridge("mine"))
    given = {"scoring": r2(True), "params": GIVEN | {"mine": OTHERS}}
    ours = cross_validate(pipe, X, Y, **given)
    theirs = model_selection.cross_validate(pipe, X, Y, **given)
    np.testing.assert_allclose(ours["test_score"], theirs["test_score"], rtol=1e-9)
