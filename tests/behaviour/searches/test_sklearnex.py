"""Fits made one by one by scikit-learn-intelex, for which classes that count their fits stand in."""

from __future__ import annotations

import pickle
import sys
import types
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVR
from sklearn.utils._param_validation import InvalidParameterError

from manyfit.model_selection import (
    BaseSearchCV,
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from manyfit.model_selection.running._sklearnex_check import TOLERANCE
from tests._covering import covering
from tests._same_results import LABELS, X_CLASS, X, Y, assert_same_results
from tests.behaviour.searches._sklearnex_stand_in import FAR, FITS, MODULES, NEAR
from tests.cluster._clusters import within

GRID = {"C": [1.0, 10.0, 100.0], "epsilon": [0.1, 1.0]}
ALONE = {"cv": 3, "sharing": "none"}


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch):
    for name, classes in MODULES.items():
        module = types.ModuleType(name)
        vars(module).update(classes)
        monkeypatch.setitem(sys.modules, name, module)
    FITS.clear()


def both(estimator, grid, X=X, y=Y, **options):
    """The same search by scikit-learn-intelex and by scikit-learn."""
    options = {**ALONE, **options}
    ours = GridSearchCV(estimator, grid, engine="sklearnex", **options).fit(X, y)
    return ours, GridSearchCV(estimator, grid, **options).fit(X, y)


def test_scores_are_within_the_tolerance_and_counted():
    ours, theirs = both(SVR(), GRID, return_train_score=True)
    assert_same_results(ours, theirs, atol=2 * NEAR)
    assert (ours.cv_results_["mean_test_score"] > theirs.cv_results_["mean_test_score"]).all()
    report = ours.report_
    assert (report.fits_done, report.engine_fits, report.engine_compared) == (18, 18, 2)
    assert NEAR / 2 < report.engine_difference < 2 * NEAR
    assert FITS == {"rbf": 18 + 2}
    assert "fits made by scikit-learn-intelex" in str(report) and "between the two" in str(report)
    assert theirs.report_.engine_fits == 0 and "intelex" not in str(theirs.report_)


def test_the_refit_is_scikit_learns():
    ours, theirs = both(SVR(), GRID)
    assert type(ours.best_estimator_) is SVR
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_the_plan_names_it():
    plan = GridSearchCV(SVR(), GRID, engine="sklearnex", **ALONE).plan(X, Y)
    assert "6 settings fitted one by one by scikit-learn-intelex" in str(plan)
    assert "settings by scikit-learn-intelex" in plan._repr_html_()
    (group,) = plan.groups
    assert group.only({0, 2}).by_sklearnex == (0, 2)
    assert "intelex" not in str(GridSearchCV(SVR(), GRID, **ALONE).plan(X, Y))
    assert not FITS


def test_a_kind_of_settings_with_wrong_scores_is_left_to_scikit_learn():
    grid = {"kernel": ["rbf", "sigmoid"], "C": [1.0, 10.0]}
    with pytest.warns(UserWarning, match="not used for 2 settings of SVR.*'sigmoid'.*differs by 1.0e-01"):
        ours = GridSearchCV(SVR(), grid, engine="sklearnex", **ALONE).fit(X, Y)
    theirs = GridSearchCV(SVR(), grid, **ALONE).fit(X, Y)
    wrong = ours.cv_results_["param_kernel"] == "sigmoid"
    for i in range(3):
        mine, other = (s.cv_results_[f"split{i}_test_score"] for s in (ours, theirs))
        np.testing.assert_array_equal(mine[wrong], other[wrong])
        np.testing.assert_allclose(mine[~wrong] - other[~wrong], NEAR, rtol=1e-3)
    assert FITS == {"rbf": 6 + 2, "sigmoid": 2}
    assert ours.report_.engine_fits == 6 and ours.report_.engine_compared == 4
    assert ours.report_.engine_difference == pytest.approx(FAR)
    assert any("'sigmoid'" in line for line in ours.report_.advice)


def test_large_scores_are_compared_relatively():
    def scorer(estimator, X, y):
        return 1e6 * (1 + (TOLERANCE / 2 if "stand_in" in type(estimator).__module__ else 0))

    ours = GridSearchCV(SVR(), GRID, engine="sklearnex", scoring=scorer, **ALONE).fit(X, Y)
    assert ours.report_.engine_fits == 18 and ours.report_.engine_difference == pytest.approx(TOLERANCE / 2)


class OwnSVR(SVR):
    pass


@pytest.mark.parametrize(
    ("estimator", "grid", "data"),
    [
        (RandomForestRegressor(5, random_state=0), {"max_depth": [2, 3]}, (X, Y)),
        (OwnSVR(), {"C": [1.0, 2.0]}, (X, Y)),
        (KNeighborsRegressor(), {"n_neighbors": [2, 3]}, (X, Y)),
        (GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, (X_CLASS, LABELS)),
        (make_pipeline(StandardScaler(), OwnSVR()), {"ownsvr__C": [1.0, 2.0]}, (X, Y)),
        (SVR(), {"C": [1.0, 2.0], "wrong": [1]}, (X, Y)),
    ],
)
def test_what_draws_or_has_no_class_of_its_own_is_scikit_learns(estimator, grid, data):
    ours = GridSearchCV(estimator, grid, engine="sklearnex", **ALONE)
    assert "intelex" not in str(ours.plan(*data))
    if "wrong" not in grid:
        theirs = GridSearchCV(estimator, grid, **ALONE).fit(*data)
        assert_same_results(ours.fit(*data), theirs, rtol=0, atol=0)
        assert ours.report_.engine_compared == 0
    assert not FITS


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_machine_that_draws_for_its_probabilities_is_scikit_learns():
    grid = {"probability": [False, True], "random_state": [0]}
    ours, theirs = both(SVC(), grid, X_CLASS, LABELS)
    assert_same_results(ours, theirs, rtol=0, atol=0)
    assert FITS == {"classes": 3 + 1} and ours.report_.engine_fits == 3


@pytest.mark.parametrize(
    ("estimator", "grid", "sharing"),
    covering(
        [
            (make_pipeline(StandardScaler(), SVR()), {"svr__C": [1.0, 10.0]}),
            (
                make_pipeline(StandardScaler(), TransformedTargetRegressor(SVR())),
                {"transformedtargetregressor__regressor__C": [1.0, 10.0]},
            ),
            (
                make_pipeline(StandardScaler(), KNeighborsRegressor()),
                {"kneighborsregressor": [SVR(), SVR(C=3.0)]},
            ),
        ],
        ["none", "auto"],
        strength=1,
    ),
)
def test_predictors_in_composites_and_values_of_the_grid(estimator, grid, sharing):

    def scorer(estimator, X, y):  # which reads the estimator: families answer nothing
        return float(np.mean((estimator.predict(X) - y) ** 2)) ** -0.5

    ours, theirs = both(estimator, grid, sharing=sharing, scoring=scorer)
    assert_same_results(ours, theirs, rtol=0, atol=0)
    n = 3 * len(ours.cv_results_["params"])
    assert ours.report_.engine_fits == n and FITS["rbf"] == n + ours.report_.engine_compared
    assert ours.report_.transformer_fits == theirs.report_.transformer_fits
    assert (sharing == "auto") == (ours.report_.transformer_fits > 0)


@pytest.mark.parametrize("options", [{}, {"error_score": "raise"}, {"n_jobs": 2}, {"verbose": 2}])
def test_a_fit_that_fails_is_made_again_by_scikit_learn(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours, theirs = both(NuSVR(), {"C": [1.0, 2.0, 3.0]}, **options)
    assert_same_results(ours, theirs, rtol=0, atol=0)
    assert ours.report_.engine_fits == 6 and ours.report_.fits_done == 9


def test_a_comparison_that_fails_leaves_all_to_scikit_learn():
    with pytest.warns(UserWarning, match="because a fit or score failed"):
        ours, theirs = both(NuSVR(), {"C": [2.0, 3.0]})
    assert_same_results(ours, theirs, rtol=0, atol=0)
    assert ours.report_.engine_fits == 0 and ours.report_.engine_difference == 0.0


def test_processes_of_joblib():
    ours, theirs = both(SVR(), GRID, n_jobs=2)
    assert_same_results(ours, theirs, atol=2 * NEAR)
    assert ours.report_.engine_fits == 18
    assert FITS == {"rbf": 2}  # the others in other processes


def test_a_cluster():
    with within(1) as client:
        ours, theirs = both(SVR(), GRID, client=client)
    assert_same_results(ours, theirs, atol=2 * NEAR)
    assert ours.report_.engine_fits == 18
    assert (ours.cv_results_["mean_test_score"] > theirs.cv_results_["mean_test_score"]).all()


def test_it_has_to_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearnex", None)
    search = GridSearchCV(SVR(), GRID, engine="sklearnex")
    with pytest.raises(ImportError, match="pip install scikit-learn-intelex"):
        search.fit(X, Y)
    with pytest.raises(ImportError, match="or set engine=None"):
        search.plan(X, Y)


def test_other_engines_are_refused():
    with pytest.raises(InvalidParameterError, match="The 'engine' parameter"):
        GridSearchCV(SVR(), GRID, engine="cuml").fit(X, Y)


def test_a_checkpoint_is_of_one_engine(tmp_path):
    path = tmp_path / "search"
    options = {**ALONE, "checkpoint": path}
    first = GridSearchCV(SVR(), GRID, engine="sklearnex", **options).fit(X, Y)
    FITS.clear()
    again = GridSearchCV(SVR(), GRID, engine="sklearnex", **options).fit(X, Y)
    assert_same_results(again, first, rtol=0, atol=0)
    assert not FITS and again.report_.fits_restored == 18 and again.report_.engine_compared == 0
    with pytest.raises(ValueError, match="engine"):
        GridSearchCV(SVR(), GRID, **options).fit(X, Y)


def test_verify_compares_with_scikit_learn():
    search = GridSearchCV(SVR(), GRID, engine="sklearnex", verify=4, **ALONE).fit(X, Y)
    differences = [row["difference"] for row in search.report_.verification]
    np.testing.assert_allclose(differences, [NEAR] * 4, rtol=1e-3)


def test_it_is_a_parameter_like_others():
    search = GridSearchCV(SVR(), GRID, engine="sklearnex", **ALONE)
    assert clone(search).get_params()["engine"] == "sklearnex"
    assert pickle.loads(pickle.dumps(search.fit(X, Y))).report_.engine_fits == 18
    assert search.set_params(engine=None).fit(X, Y).report_.engine_fits == 0


def test_random_settings_and_searches_of_ones_own():
    drawn = RandomizedSearchCV(SVR(), GRID, n_iter=4, random_state=0, engine="sklearnex", **ALONE).fit(X, Y)
    assert drawn.report_.engine_fits == 12

    class Rounds(BaseSearchCV):
        engine = "sklearnex"
        sharing = "none"

        def __init__(self, estimator):
            super().__init__(estimator, cv=3)

        def _run_search(self, evaluate_candidates):
            for C in (1.0, 10.0):
                evaluate_candidates([{"C": C}])

    report = Rounds(SVR()).fit(X, Y).report_
    assert (report.engine_fits, report.engine_compared) == (6, 2)
    assert 0 < report.engine_difference < TOLERANCE


def test_settings_of_a_family_are_not_compared():
    wide = np.random.default_rng(0).normal(size=(240, 400))
    y = wide[:, 0] + wide[:, 1] ** 2
    search = GridSearchCV(SVR(), {"C": [0.1, 1.0, 10.0]}, engine="sklearnex", cv=3)
    assert all(group.strategy.shares_fits for group in search.plan(wide, y).groups)
    search.fit(wide, y)
    assert search.report_.fits_shared == 9 and search.report_.engine_compared == 0 and not FITS


def test_metadata_requests_survive():
    weights = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    with config_context(enable_metadata_routing=True):
        model = SVR().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = [
            GridSearchCV(model, GRID, engine=engine, **ALONE).fit(X, Y, sample_weight=weights)
            for engine in ("sklearnex", None)
        ]
    assert_same_results(*found, atol=2 * NEAR)
    assert found[0].report_.engine_fits == 18


def test_callbacks_follow_fits_of_scikit_learn():
    search = GridSearchCV(SVR(), GRID, engine="sklearnex", **ALONE)
    if not hasattr(search, "set_callbacks"):  # they came with scikit-learn 1.9
        assert search.fit(X, Y).report_.engine_fits == 18
        return
    from tests._callback_recorder import Recorder

    recorder = Recorder()
    search.set_callbacks(recorder).fit(X, Y)
    assert recorder.begun.count("candidate-split-evaluation") == 18
    assert search.report_.engine_fits == 0 and not FITS


def test_functions_of_validation_take_the_engine():
    theirs = cross_val_score(SVR(), X, Y, cv=3)
    assert not FITS
    ours = cross_validate(SVR(), X, Y, cv=3, engine="sklearnex")["test_score"]
    assert FITS == {"rbf": 3 + 1}
    np.testing.assert_allclose(ours, theirs, atol=2 * NEAR)
    assert (ours > theirs).all()
    np.testing.assert_array_equal(cross_val_score(SVR(), X, Y, cv=3, engine="sklearnex"), ours)
    validation_curve(SVR(), X, Y, param_name="C", param_range=[1.0, 2.0], cv=3, engine="sklearnex")
    learning_curve(SVR(), X, Y, train_sizes=[0.5, 1.0], cv=3, engine="sklearnex")
    assert FITS["rbf"] > 4 + 4 + 6
    with pytest.raises(ValueError, match="engine of cross_val_score should be 'sklearnex' or None; got 'x'"):
        cross_val_score(SVR(), X, Y, engine="x")
