"""Halving searches give scikit-learn's results, and what our other searches add."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy.stats import loguniform, randint
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold
from sklearn.model_selection import HalvingGridSearchCV as TheirGrid
from sklearn.model_selection import HalvingRandomSearchCV as TheirRandom
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from manyfit.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    SearchCurveDisplay,
    cheapest_within,
)
from tests._callback_recorder import Recorder
from tests._covering import covering
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y, assert_same_results
from tests.behaviour.steps._counted import FITS, STOP_AFTER, Counted

ALPHAS = {"alpha": np.logspace(-2, 3, 8)}
TREES = {"max_depth": [1, 2, 4, None], "min_samples_leaf": [1, 5]}
GRIDS = {
    "moments": (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": ALPHAS["alpha"]}),
    "shared steps": (
        make_pipeline(MinMaxScaler(clip=True), DecisionTreeRegressor(random_state=0)),
        {f"decisiontreeregressor__{name}": values for name, values in TREES.items()},
    ),
    "one by one": (DecisionTreeRegressor(random_state=0), TREES),
}


@pytest.fixture(autouse=True)
def _nothing_counted():
    yield
    FITS.clear()
    STOP_AFTER.clear()


def attributes(search):
    return {
        name: value
        for name, value in vars(search).items()
        if name.endswith("s_") and name not in ("cv_results_", "best_params_", "report_", "classes_")
    }


def same(ours, theirs, fit_params=None, data=(X, Y), rtol=1e-9):
    """Fit both, and compare results and attributes; returns ours."""
    ours.fit(*data, **(fit_params or {}))
    theirs.fit(*data, **(fit_params or {}))
    assert_same_results(ours, theirs, rtol=rtol)
    assert attributes(ours) == attributes(theirs) and "n_resources_" in attributes(ours)
    assert repr(ours.best_params_) == repr(theirs.best_params_)
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=rtol)
    return ours


ELIMINATES = {"factor": 2, "aggressive_elimination": True, "min_resources": 20, "max_resources": 40}


@pytest.mark.cases(2)
@pytest.mark.parametrize(("kind", "more"), covering(GRIDS, [{}, ELIMINATES], strength=1))
def test_rows_as_the_resource(kind, more):
    model, grid = GRIDS[kind]
    options = {"random_state": 0, "cv": 3, **more}
    search = same(HalvingGridSearchCV(model, grid, **options), TheirGrid(clone(model), grid, **options))
    assert search.report_.fits_requested == 3 * sum(search.n_candidates_)
    if kind == "moments":
        assert search.report_.fits_done == 0


def test_a_parameter_as_the_resource():
    forest = RandomForestClassifier(random_state=0)
    options = {"resource": "n_estimators", "max_resources": 18, "cv": 2, "return_train_score": False}
    grid = {"max_depth": [1, 2, None], "min_samples_split": [2, 10, 40]}
    data = X_CLASS, LABELS
    search = same(HalvingGridSearchCV(forest, grid, **options), TheirGrid(forest, grid, **options), data=data)
    assert (search.n_candidates_, search.n_resources_) == ([9, 3, 1], [2, 6, 18])
    assert search.best_estimator_.n_estimators == 18


def test_drawn_settings():
    space = {"max_depth": randint(1, 9), "min_impurity_decrease": loguniform(1e-4, 1e-1)}
    tree, options = DecisionTreeClassifier(random_state=0), {"random_state": 3, "cv": 3, "n_candidates": 9}
    data = X_CLASS, LABELS
    same(HalvingRandomSearchCV(tree, space, **options), TheirRandom(tree, space, **options), data=data)


def test_groups_and_weights():
    groups = np.arange(len(Y)) % 7
    options = {"random_state": 0, "cv": GroupKFold(3)}
    tree = DecisionTreeRegressor(random_state=0)
    given = {"groups": groups, "sample_weight": WEIGHTS + 1}
    same(HalvingGridSearchCV(tree, TREES, **options), TheirGrid(tree, TREES, **options), given)


def test_routed_metadata():
    with sklearn.config_context(enable_metadata_routing=True):
        tree = DecisionTreeRegressor(random_state=0).set_fit_request(sample_weight=True)
        tree.set_score_request(sample_weight=True)
        options = {"random_state": 0, "cv": GroupKFold(3)}
        given = {"groups": np.arange(len(Y)) % 7, "sample_weight": WEIGHTS + 1}
        same(HalvingGridSearchCV(tree, TREES, **options), TheirGrid(tree, TREES, **options), given)


@pytest.mark.invariant("An adaptive search that stops nothing gives the results of the plain search")
def test_one_round_is_the_plain_search():
    forest = RandomForestClassifier(random_state=0)
    grid = {"max_depth": [1, 2, None]}
    halving = HalvingGridSearchCV(
        forest, grid, resource="n_estimators", min_resources=7, max_resources=7, cv=3
    ).fit(X_CLASS, LABELS)
    plain = GridSearchCV(
        forest, {**grid, "n_estimators": [7]}, cv=3, return_train_score=True
    ).fit(X_CLASS, LABELS)  # fmt: skip
    for i in range(3):
        for kind in ("train", "test"):
            key = f"split{i}_{kind}_score"
            assert halving.cv_results_[key].tolist() == plain.cv_results_[key].tolist()
    assert halving.best_params_ == plain.best_params_ and halving.best_score_ == plain.best_score_


def test_fits_that_fail_rank_last_or_raise():
    grid, options = {"alpha": [-1.0, 0.1, 1.0, 10.0]}, {"random_state": 0, "cv": 3, "factor": 2}
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="non-finite"):
        search = same(HalvingGridSearchCV(Ridge(), grid, **options), TheirGrid(Ridge(), grid, **options))
    assert np.isnan(search.cv_results_["mean_test_score"]).any() and search.best_params_["alpha"] > 0
    with pytest.raises(ValueError, match="alpha"):
        HalvingGridSearchCV(Ridge(), grid, error_score="raise", **options).fit(X, Y)


def test_it_prints_scikit_learns_lines(capsys):
    options = {"random_state": 0, "cv": 3, "verbose": 1}
    HalvingGridSearchCV(Ridge(), ALPHAS, **options).fit(X, Y)
    ours = capsys.readouterr().out
    TheirGrid(Ridge(), ALPHAS, **options).fit(X, Y)
    assert ours == capsys.readouterr().out != ""


def test_callbacks_hear_what_they_hear_in_scikit_learn():
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")
    heard = []
    for cls in (HalvingGridSearchCV, TheirGrid):
        recorder = Recorder()
        search = cls(Ridge(), ALPHAS, cv=3, random_state=0)
        search.set_callbacks(recorder).fit(X, Y)
        heard.append((sorted(recorder.begun), sorted(recorder.ended)))
    assert heard[0] == heard[1] and "halving-iteration" in heard[0][0]


GRID = {"a": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]}
ROUNDS = {"cv": 2, "factor": 2, "random_state": 0, "min_resources": 20}


def test_an_interrupted_search_goes_on(tmp_path):
    path = tmp_path / "halving.checkpoint"
    whole = HalvingGridSearchCV(Counted(), GRID, **ROUNDS).fit(X, Y)
    made = len(FITS) - 1  # but for the refit
    assert whole.n_candidates_ == [6, 3, 2] and made == 22
    for stop, restored in ((5, 5), (10, 15), (1, 16)):  # in the first, the second and again the second round
        FITS.clear()
        STOP_AFTER[:] = [stop]
        search = HalvingGridSearchCV(Counted(), GRID, checkpoint=path, **ROUNDS)
        with pytest.raises(KeyboardInterrupt):
            search.fit(X, Y)
        assert len(search.partial_results_) == restored
        STOP_AFTER.clear()
    FITS.clear()
    again = HalvingGridSearchCV(Counted(), GRID, checkpoint=path, **ROUNDS).fit(X, Y)
    assert len(FITS) == made - 16 + 1 and again.report_.fits_restored == 16
    assert_same_results(again, whole, rtol=0, atol=0)
    FITS.clear()
    HalvingGridSearchCV(Counted(), GRID, checkpoint=path, refit=False, **ROUNDS).fit(X, Y)
    assert not FITS


def test_a_checkpoint_belongs_to_one_search(tmp_path):
    path = tmp_path / "halving.checkpoint"
    HalvingGridSearchCV(Counted(), GRID, checkpoint=path, **ROUNDS).fit(X, Y)
    with pytest.raises(ValueError, match="belongs to another search"):
        HalvingGridSearchCV(Counted(), GRID, checkpoint=path, **{**ROUNDS, "factor": 3}).fit(X, Y)
    with pytest.raises(ValueError, match="random_state of the search is None, so that its settings or rows"):
        HalvingGridSearchCV(Counted(), GRID, cv=2, checkpoint=path).fit(X, Y)
    with pytest.raises(ValueError, match="belongs to another search"):
        GridSearchCV(Counted(), GRID, cv=2, checkpoint=path).fit(X, Y)


def test_the_plan_has_all_rounds_and_changes_nothing():
    search = HalvingGridSearchCV(DecisionTreeRegressor(random_state=0), TREES, random_state=0, verbose=1)
    before = set(vars(search))
    plan = search.plan(X, Y)
    assert set(vars(search)) == before
    search.fit(X, Y)
    sizes = zip(search.n_candidates_, search.n_resources_, strict=True)
    line = f"settings with n_samples: {', '.join(f'{n} with {rows}' for n, rows in sizes)}"
    assert any(line in one for one in plan.rounds) and line in str(plan) and line in plan._repr_html_()
    assert plan.n_candidates == 8 and plan.fits_requested == 40
    assert not any("saves nothing" in one for one in plan.rounds)


def test_the_plan_says_where_the_full_grid_costs_no_more():
    halving = HalvingGridSearchCV(Ridge(), ALPHAS, cv=4, random_state=0)
    (said,) = [line for line in halving.plan(X, Y).rounds if "saves nothing" in line]
    assert "all 8 settings on all rows take 1 pass over X and no fit" in said
    grid = GridSearchCV(Ridge(), ALPHAS, cv=4).fit(X, Y).report_
    assert (grid.fits_done, grid.passes) == (0, 1.0) and halving.fit(X, Y).report_.passes >= 1
    few = HalvingGridSearchCV(Ridge(), ALPHAS, cv=4, random_state=0, max_resources=40)
    assert not any("saves nothing" in line for line in few.plan(X, Y).rounds), "they read 60 of 80 rows"
    iterated = HalvingGridSearchCV(LogisticRegression(), {"C": [0.1, 1.0, 10.0]}, random_state=0)
    assert not any("saves nothing" in line for line in iterated.plan(X_CLASS, LABELS).rounds)


def test_a_ready_choice_reads_the_last_round_only():
    options = {"random_state": 0, "cv": 4, "factor": 3}
    for sign in (1.0, -1.0):  # one of the two is not the best score
        choice = cheapest_within(1e9, cost=lambda params, sign=sign: sign * params["alpha"])
        search = HalvingGridSearchCV(Ridge(), ALPHAS, refit=choice, **options).fit(X, Y)
        last = np.flatnonzero(search.cv_results_["iter"] == search.n_iterations_ - 1)
        assert len(last) > 1
        assert search.best_index_ == last[np.argmin(sign * search.cv_results_["param_alpha"][last])]
        assert search.best_score_ == search.cv_results_["mean_test_score"][search.best_index_]
    theirs = TheirGrid(Ridge(), ALPHAS, refit=lambda results: 0, **options)
    same(HalvingGridSearchCV(Ridge(), ALPHAS, refit=lambda results: 0, **options), theirs)


def test_advice_is_on_the_last_round():
    search = HalvingGridSearchCV(Ridge(), ALPHAS, random_state=0, factor=2, cv=3).fit(X, Y)
    n = search.n_candidates_[-1] - 1
    noise = [line for line in search.report_.advice if "noise" in line]
    assert all(f"of {n} other settings" in line for line in noise)
    assert not any(line.startswith("n_resources") for line in search.report_.advice)


def test_displays_and_copies():
    options = {"resource": "max_iter", "max_resources": 27}
    search = HalvingGridSearchCV(Ridge(solver="lsqr"), ALPHAS, cv=KFold(3), **options)
    copy = clone(search).set_params(sharing="none", memory_limit="1MB")
    assert copy.get_params()["sharing"] == "none"
    SearchCurveDisplay.from_search(search.fit(X, Y))
    assert_same_results(copy.fit(X, Y), search, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.thorough
def test_jobs():
    model, grid = GRIDS["shared steps"]
    options = {"random_state": 0, "cv": 3}
    same(HalvingGridSearchCV(model, grid, n_jobs=2, **options), TheirGrid(clone(model), grid, **options))
