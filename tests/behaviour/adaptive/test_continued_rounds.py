"""Rounds of a halving search whose resource is the size of an ensemble go on from the round before."""

from __future__ import annotations

import pickle
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV as TheirGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from manyfit.families import ContinuedFits, Ensemble, FolderStore, ProcessStore
from manyfit.families.nested._continued_fits import NOT_KEPT
from manyfit.model_selection import HalvingGridSearchCV
from tests._covering import spread
from tests._same_results import LABELS, WEIGHTS, X_CLASS, X, Y, assert_same_results

MISSING = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
BOOSTING = {"max_depth": [1, None], "learning_rate": [0.03, 0.3]}
TREES = {"max_depth": [1, None], "max_features": [1, 3]}
CASES = {
    "forest": (RandomForestClassifier(random_state=0), TREES),
    "forest with bootstrap of half": (
        RandomForestClassifier(random_state=1, max_samples=0.5, class_weight={0: 2.0}),
        {"min_samples_leaf": [1, 4], "criterion": ["gini", "entropy"]},
    ),
    "extra trees": (ExtraTreesRegressor(random_state=0), TREES),
    "histograms": (HistGradientBoostingClassifier(random_state=0), BOOSTING),
    "histograms that draw": (HistGradientBoostingRegressor(random_state=0, max_features=0.5), BOOSTING),
    "histograms of the median": (
        HistGradientBoostingRegressor(random_state=0, loss="absolute_error", min_samples_leaf=3), BOOSTING,
    ),
}  # fmt: skip


def options(model, **more):
    size = "max_iter" if "max_iter" in model.get_params() else "n_estimators"
    return {
        "resource": size, "max_resources": 8, "min_resources": 2, "factor": 2, "cv": 2,
        "return_train_score": False, **more,
    }  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_a_fit_that_goes_on_is_the_longer_fit_to_the_bit(kind):
    model, grid = CASES[kind]
    (own, *_), size = zip(*grid.values(), strict=True), options(model)["resource"]
    model = clone(model).set_params(**dict(zip(grid, own, strict=True)))
    data = (X_CLASS, LABELS) if hasattr(model, "predict_proba") else (MISSING, Y)
    fits, method = (
        ContinuedFits(ProcessStore(10**6)),
        "predict_proba" if hasattr(model, "predict_proba") else "predict",
    )
    for n in (2, 5, 17):
        fits.next_round()
        found = fits.fit(clone(model).set_params(**{size: n}), *data)
        whole = clone(model).set_params(**{size: n}).fit(*data)
        np.testing.assert_array_equal(getattr(found, method)(data[0]), getattr(whole, method)(data[0]))
    assert fits.counts.members == 2 + 5


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", spread(CASES, 3))
def test_scores_are_scikit_learns(kind):
    model, grid = CASES[kind]
    data = (X_CLASS, LABELS) if hasattr(model, "predict_proba") else (MISSING, Y)
    ours = HalvingGridSearchCV(model, grid, **options(model)).fit(*data)
    theirs = TheirGrid(clone(model), grid, **options(model)).fit(*data)
    assert ours.n_candidates_ == [4, 2, 1] and ours.n_resources_ == [2, 4, 8]
    exact = hasattr(model, "predict_proba")  # R2 is rounded in another way, with one round or several
    assert_same_results(ours, theirs, rtol=0 if exact else 1e-12, atol=0)
    # On each of two splits two models kept 2 members, and one of them 4.
    assert ours.report_.members_kept == 2 * (2 * 2 + 4)
    assert "6 fits went on from the round before, and did not make 16 trees or iterations again." in str(
        ours.report_
    )
    assert re.search(r"trees and iterations of earlier rounds +16\b", str(ours.report_))
    # Fits on a frame go on, too; the last one of boosting does not know the bins of the others as its rows.
    frame, y = pd.DataFrame(data[0]), pd.Series(data[1])
    again = HalvingGridSearchCV(model, grid, **options(model)).fit(frame, y)
    assert again.report_.members_kept == (8 if kind.startswith("histograms") else 16)
    assert_same_results(again, ours, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (RandomForestClassifier(), "random_state is not an integer"),
        (RandomForestClassifier(random_state=0, class_weight="balanced"), "class_weight='balanced' warns"),
        (RandomForestClassifier(random_state=0, oob_score=True), "oob_score=True is a score of all trees"),
        (GradientBoostingRegressor(random_state=0), "rounds its sums in another way"),
        (HistGradientBoostingClassifier(random_state=0, early_stopping=True), "early_stopping=True may end"),
    ],
    ids=["random", "class_weight", "oob_score", "gradient boosting", "early stopping"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores:UserWarning")
def test_what_does_not_go_on_and_why(model, why):
    search = HalvingGridSearchCV(model, {"max_depth": [1, 2]}, **options(model))
    lines = search.plan(X_CLASS, LABELS).rounds
    report = search.fit(X_CLASS, LABELS).report_
    assert report.members_kept == 0 and list(report.fitted_anew.values()) == [2]
    for text in (lines[1], *report.fitted_anew, str(report)):
        assert why in text
    assert lines[1].startswith("fits of later rounds do not go on")


def test_a_plan_says_which_settings_go_on():
    forest = RandomForestClassifier(random_state=0)
    search = HalvingGridSearchCV(forest, {"max_depth": [1, 2, 3, None]}, **options(forest))
    assert "fits of all settings go on" in search.plan(X_CLASS, LABELS).rounds[1]
    search.param_grid = {"class_weight": [None, "balanced"], "max_depth": [1, 2]}
    line = search.plan(X_CLASS, LABELS).rounds[1]
    assert "fits of 2 of 4 settings go on" in line and line.endswith("warns of warm_start (2)")
    search.set_params(param_grid={"n_estimators": [2, 3]}, resource="max_depth")
    assert (
        "max_depth of RandomForestClassifier is no number of trees" in search.plan(X_CLASS, LABELS).rounds[1]
    )


def test_weights_pipelines_workers_and_rows():
    forest, grid = CASES["forest"]
    weights = np.resize(WEIGHTS, len(LABELS)) + 1
    ours = HalvingGridSearchCV(forest, grid, **options(forest))
    theirs = TheirGrid(forest, grid, **options(forest))
    ours.fit(X_CLASS, LABELS, sample_weight=weights)
    assert_same_results(ours, theirs.fit(X_CLASS, LABELS, sample_weight=weights), rtol=0, atol=0)
    assert ours.report_.members_kept == 16
    pipe = make_pipeline(QuantileTransformer(n_quantiles=10), forest)
    behind = {f"randomforestclassifier__{name}": values for name, values in grid.items()}
    given = options(forest, resource="randomforestclassifier__n_estimators")
    theirs = TheirGrid(pipe, behind, **given).fit(X_CLASS, LABELS)
    for n_jobs, frame in ((None, False), (2, False), (None, True)):
        data = (pd.DataFrame(X_CLASS) if frame else X_CLASS), LABELS
        ours = HalvingGridSearchCV(pipe, behind, n_jobs=n_jobs, **given).fit(*data)
        assert_same_results(ours, theirs, rtol=0, atol=0)
        assert ours.report_.members_kept == 16
        assert isinstance(ours.best_estimator_[0].quantiles_, np.ndarray)
    weighted = HalvingGridSearchCV(pipe, behind, **given)
    weighted.fit(X_CLASS, LABELS, randomforestclassifier__sample_weight=weights)
    assert weighted.report_.members_kept == 0, "parameters of fit are for the steps of the pipeline"
    rows = HalvingGridSearchCV(forest.set_params(n_estimators=2), grid, cv=3, random_state=0)
    assert rows.fit(X_CLASS, LABELS).report_.members_kept == 0, "rounds of more rows have other trees"


def test_models_are_kept_for_the_next_round_and_as_memory_allows():
    forest = RandomForestClassifier(2, random_state=0)
    larger = clone(forest).set_params(n_estimators=5)
    for memory, rounds, kept in ((10**6, 1, 2), (10**6, 2, 0), (10, 1, 0)):
        fits = ContinuedFits(ProcessStore(memory))
        fits.fit(clone(forest), X_CLASS, LABELS)
        for _ in range(rounds):
            fits.next_round()
        model = fits.fit(clone(larger), X_CLASS, LABELS)
        assert fits.counts.members == kept and len(model.estimators_) == 5 and not model.warm_start
        whole = clone(larger).fit(X_CLASS, LABELS)
        np.testing.assert_array_equal(model.predict_proba(X_CLASS), whole.predict_proba(X_CLASS))
    other = np.array(LABELS)
    other[0] = 1 - other[0]
    fits = ContinuedFits(ProcessStore(10**6))
    fits.fit(clone(forest), X_CLASS, LABELS)
    fits.next_round()
    fits.fit(clone(larger), X_CLASS, other)
    assert fits.counts.members == 0, "other labels"


def test_a_model_that_is_too_large_leaves_the_space_to_smaller_ones():
    store = ProcessStore(10)
    for name, n_bytes in (("large", 99), ("small", 9), ("too much", 2)):
        store.keep(name, Ensemble(1, {}), n_bytes)
    store.next_round()
    assert [store.take(name).size for name in ("large", "small", "too much")] == [0, 1, 0]
    assert store.take("never made") is None


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_setting_that_shared_its_fit_cannot_go_on_alone(n_jobs):
    """Trees that are cut (`ccp_alpha`) share the fit of whole ones, which the last round does not make."""
    forest, grid = RandomForestClassifier(random_state=3), {"ccp_alpha": [0, 0.1]}
    with parallel_config("threading"):
        search = HalvingGridSearchCV(forest, grid, n_jobs=n_jobs, **options(forest)).fit(X_CLASS, LABELS)
        little = clone(search).set_params(memory_limit=100, param_grid={"max_depth": [1, 2]})
        little.fit(X_CLASS, LABELS)
    assert search.best_params_["ccp_alpha"] == 0.1
    ((why, n),) = search.report_.fitted_anew.items()
    assert n == 2 and why.startswith("the round before answered this setting by a fit that it shared")
    assert list(little.report_.fitted_anew) == [NOT_KEPT]


@pytest.mark.parametrize("kind", ["forest", "histograms"])
def test_rounds_of_joblibs_workers_go_on(kind):
    model, grid = CASES[kind]
    ours = HalvingGridSearchCV(model, grid, n_jobs=2, **options(model)).fit(X_CLASS, LABELS)
    theirs = TheirGrid(clone(model), grid, **options(model)).fit(X_CLASS, LABELS)
    assert_same_results(ours, theirs, rtol=0, atol=0)
    assert ours.report_.members_kept == 16


def test_a_folder_keeps_models_for_the_next_round_as_memory_allows(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    forest = RandomForestClassifier(2, random_state=0)
    larger = clone(forest).set_params(n_estimators=5)
    for memory, rounds, kept in ((10**6, 1, 2), (10**6, 2, 0), (10, 1, 0)):
        with FolderStore(memory) as store:
            ContinuedFits(store).fit(clone(forest), X_CLASS, LABELS)
            for _ in range(rounds):
                store.next_round()
            again = ContinuedFits(pickle.loads(pickle.dumps(store)))
            again.fit(clone(larger), X_CLASS, LABELS)
            assert again.counts.members == kept
            assert any(tmp_path.rglob("*"))
        assert not [*tmp_path.iterdir()]
    with FolderStore(10**6) as store:
        ContinuedFits(store).fit(clone(forest), X_CLASS, LABELS)
        (cut,) = (path for path in tmp_path.rglob("*") if path.is_file())
        cut.write_bytes(cut.read_bytes()[:50])
        store.next_round()
        again = ContinuedFits(store)
        again.fit(clone(larger), X_CLASS, LABELS)
        assert again.counts.members == 0


def test_a_search_goes_on_without_a_folder_for_its_models(monkeypatch, tmp_path):
    model, grid = CASES["forest"]
    search = HalvingGridSearchCV(model, grid, n_jobs=2, **options(model))
    with FolderStore(10**6) as store:
        shutil.rmtree(store._folder)  # as a service that cleans up does
        store.next_round()
        ContinuedFits(store).fit(clone(model), X_CLASS, LABELS)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with parallel_config("threading"):
        found = search.fit(X_CLASS, LABELS)
    assert_same_results(found, TheirGrid(model, grid, **options(model)).fit(X_CLASS, LABELS), rtol=0, atol=0)
    assert found.report_.members_kept == 0
