"""With `time_budget` a search stops between settings, and has all scores of those that it has fitted."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from manyfit.model_selection import GridSearchCV, RandomizedSearchCV
from manyfit.model_selection.running import _time_budget
from manyfit.model_selection.running._time_budget import NotMade, TimeBudget
from tests._same_results import X, Y, assert_same_results
from tests.cluster._clusters import within

CLOCK = [0.0]
GRID = {"a": list(range(40)), "seconds": [1.0]}


class Slow(BaseEstimator):
    """Its fit moves the clock of budgets on."""

    def __init__(self, a=0, seconds=1.0, fails=False):
        self.a, self.seconds, self.fails = a, seconds, fails

    def fit(self, X, y=None):
        CLOCK[0] += self.seconds
        if self.fails:
            raise ValueError("no")
        self.fitted_ = True
        return self

    def predict(self, X):
        return X[:, 0] * self.a

    def score(self, X, y):
        return -abs(self.a - 17.0) + float(X[0, 0])


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    CLOCK[0] = 0.0
    monkeypatch.setattr(_time_budget, "perf_counter", lambda: CLOCK[0])


def done(search):
    return np.flatnonzero(np.isfinite(search.cv_results_["mean_test_score"]))


@pytest.mark.invariant("An adaptive search that stops nothing gives the results of the plain search")
def test_a_budget_that_suffices_changes_nothing():
    plain = GridSearchCV(Slow(), GRID, cv=2).fit(X, Y)
    for budget in (80.0, 1e9):
        search = GridSearchCV(Slow(), GRID, cv=2, time_budget=budget).fit(X, Y)
        assert_same_results(search, plain, rtol=0)
        assert search.report_.stopped is None and search.report_ == plain.report_


def test_what_is_done_has_the_scores_of_the_plain_search():
    plain = GridSearchCV(Slow(), GRID, cv=2, return_train_score=True).fit(X, Y)
    CLOCK[0] = 0.0
    search = GridSearchCV(Slow(), GRID, cv=2, return_train_score=True, time_budget=20).fit(X, Y)
    rows = done(search)
    assert len(rows) == 10, "of two seconds each"
    for key, value in plain.cv_results_.items():
        if key == "params":
            assert search.cv_results_["params"] == value
        elif not key.endswith("_time") and not key.startswith("rank"):
            np.testing.assert_array_equal(search.cv_results_[key][rows], value[rows])
    best = rows[np.argmax(plain.cv_results_["mean_test_score"][rows])]
    assert search.best_index_ == best and search.best_estimator_.fitted_
    report = search.report_
    assert (report.fits_requested, report.fits_done, report.fits_shared) == (20, 20, 0)
    assert "10 of 40 settings have all scores, 60 fits were not made" in report.stopped
    assert f"stopped {report.stopped}" in str(report)


def test_the_order_goes_through_the_grid_and_through_draws_as_they_come():
    rows = done(GridSearchCV(Slow(), GRID, cv=2, time_budget=20).fit(X, Y))
    assert rows.min() < 10 and rows.max() >= 30 and len(set(rows // 10)) == 4
    assert sorted(TimeBudget(1, spread=True).order(40)) == list(range(40))
    CLOCK[0] = 0.0
    drawn = RandomizedSearchCV(Slow(), GRID, n_iter=30, cv=2, random_state=0, time_budget=20).fit(X, Y)
    assert done(drawn).tolist() == list(range(10))


def test_one_setting_is_fitted_in_any_case():
    search = GridSearchCV(Slow(), GRID, cv=3, time_budget=0.1).fit(X, Y)
    assert len(done(search)) == 1 and search.report_.fits_done == 3


def test_a_batch_is_expected_to_end_in_time():
    search = GridSearchCV(Slow(), {"a": range(40), "seconds": [0.01]}, cv=2, time_budget=0.4).fit(X, Y)
    assert len(done(search)) == 20
    CLOCK[0] = 0.0
    budget = TimeBudget(100, spread=False)
    sizes = []
    for batch in budget.batches([(c, i) for c in range(200) for i in range(2)], 200, 8, {}):
        sizes.append(len(batch) // 2)
        CLOCK[0] += len(batch) // 2
    assert sizes == [4, 4, 8, 10, 10, 10, 10, 10, 10, 10, 10, 4]


def test_one_cheap_setting_does_not_decide_for_all_others():
    budget = TimeBudget(20, spread=False)
    for batch in budget.batches([(c, 0) for c in range(40)], 40, 1, {}):
        CLOCK[0] += sum(0.001 if c == 0 else 5.0 for c, _ in batch)
    assert CLOCK[0] < 21, "a batch has at most as many settings as were fitted before it"


def results_of(seconds):
    return {(c, 0): {"fit_time": s, "score_time": 0.0} for c, s in enumerate(seconds)}


def test_a_batch_is_as_small_as_the_dearest_setting_asks():
    """Eight cheap settings and a dear one: another dear one fits into a tenth of the budget, and no more."""
    seconds = [0.01] * 8 + [6.0] + [0.01] * 40
    budget, sizes, found = TimeBudget(100, spread=False), [], {}
    for batch in budget.batches([(c, 0) for c in range(len(seconds))], len(seconds), 1, found):
        sizes.append(len(batch))
        CLOCK[0] += sum(seconds[c] for c, _ in batch)
        found.update({(c, 0): results_of(seconds)[c, 0] for c, _ in batch})
    assert sizes[:5] == [1, 1, 2, 4, 8] and set(sizes[5:]) == {1}


@pytest.mark.parametrize("n_workers", [1, 2])
def test_no_batch_begins_that_cannot_end_in_time(n_workers):
    """Fits take 6 s on each of two splits, and 10 s are left after the first two settings."""
    pairs = [(c, i) for c in range(9) for i in range(2)]
    found = {pair: {"fit_time": 6.0, "score_time": 0.0} for pair in pairs}
    budget, made = TimeBudget(34 if n_workers == 1 else 17, spread=False), 0
    for batch in budget.batches(pairs, 9, n_workers, found):
        made += len(batch) // 2
        CLOCK[0] += 6.0 * len(batch) / n_workers
    assert made == 2 and budget.spent < budget.seconds


def test_groups_that_share_fits_are_finished():
    search = GridSearchCV(Ridge(), {"alpha": np.logspace(-2, 2, 30)}, time_budget=1e-9).fit(X, Y)
    assert search.report_.stopped is None and search.report_.fits_done == 0
    grid = [{"a": [1], "seconds": [5.0]}]
    CLOCK[0] = 0.0
    forests = {"max_depth": list(range(1, 9)), "n_estimators": [2, 4]}
    plain = GridSearchCV(RandomForestRegressor(random_state=0), forests, cv=2).fit(X, Y)
    assert plain.report_.family_fits == 16 and grid
    original = RandomForestRegressor.fit

    @functools.wraps(original)  # or the class would not be shared
    def slow(self, *args, **kwargs):
        CLOCK[0] += 1
        return original(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RandomForestRegressor, "fit", slow)
        search = GridSearchCV(RandomForestRegressor(random_state=0), forests, cv=2, time_budget=6).fit(X, Y)
    rows = done(search)
    assert len(rows) == 6, "three groups of two settings"
    key = "split1_test_score"
    assert search.cv_results_[key][rows].tolist() == plain.cv_results_[key][rows].tolist()


def test_failed_fits_are_told_from_those_that_were_not_made():
    grid = {"a": [1, 2, 3, 4, 5], "fails": [False, True]}
    with (
        pytest.warns(FitFailedWarning, match="6 fits failed out of a total of 12"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        GridSearchCV(Slow(), grid, cv=2, time_budget=12).fit(X, Y)
    assert NotMade.like({"test_scores": {"a": 1.0}, "fit_error": "x"})["fit_error"] is None


def test_several_metrics_verification_and_no_refit():
    options = {"scoring": ["r2", "neg_max_error"], "refit": False, "verify": 3, "cv": 2}
    search = GridSearchCV(Slow(), GRID, time_budget=8, **options).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_r2"]).sum() == 4
    assert len(search.report_.verification) == 6 and search.report_.largest_difference == 0


def test_it_goes_on_from_a_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    plain = GridSearchCV(Slow(), GRID, cv=2).fit(X, Y)
    counts = []
    for budget in (20, 20, None):
        CLOCK[0] = 0.0
        search = GridSearchCV(Slow(), GRID, cv=2, time_budget=budget, checkpoint=path).fit(X, Y)
        counts.append((len(done(search)), search.report_.fits_restored))
    assert counts == [(10, 0), (20, 20), (40, 40)]
    assert_same_results(search, plain, rtol=0)


def test_shared_steps_behind_a_budget():
    pipe = make_pipeline(QuantileTransformer(n_quantiles=20), Slow())
    grid = {"slow__a": list(range(20)), "quantiletransformer__n_quantiles": [5, 20]}
    plain = GridSearchCV(pipe, grid, cv=2).fit(X, Y)
    CLOCK[0] = 0.0
    search = GridSearchCV(pipe, grid, cv=2, time_budget=40).fit(X, Y)
    rows = done(search)
    assert len(rows) == 20
    key = "mean_test_score"
    assert search.cv_results_[key][rows].tolist() == plain.cv_results_[key][rows].tolist()
    assert search.report_.transformer_fits < 40


@pytest.mark.thorough
def test_real_time_with_workers(monkeypatch):
    monkeypatch.undo()
    grid = {"max_depth": list(range(1, 200))}
    forest = RandomForestRegressor(n_estimators=10, random_state=0)
    plain = GridSearchCV(forest, {"max_depth": [1]}, cv=2).fit(X, Y)
    search = GridSearchCV(forest, grid, cv=2, n_jobs=2, time_budget=0.5).fit(X, Y)
    assert 0 < len(done(search)) < 199
    with within(2) as client:
        there = GridSearchCV(forest, grid, cv=2, client=client, time_budget=0.5, checkpoint=None).fit(X, Y)
    assert 0 < len(done(there)) < 199
    both = np.intersect1d(done(search), done(there))
    key = "mean_test_score"
    assert search.cv_results_[key][both].tolist() == there.cv_results_[key][both].tolist()
    assert np.isfinite(plain.best_score_)


@pytest.mark.parametrize("wrong", [0, -1.0, "1s"])
def test_a_budget_is_a_positive_number(wrong):
    with pytest.raises(ValueError, match="'time_budget' parameter of GridSearchCV must be"):
        GridSearchCV(Slow(), GRID, time_budget=wrong).fit(X, Y)
