"""Where the refit stops at max_iter, scikit-learn fits what was shared, and the best is chosen again."""

from __future__ import annotations

import functools
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.linear_model import LogisticRegression

from manyfit.model_selection import BaseSearchCV, GridSearchCV
from manyfit.model_selection.running._engine import FITTED_BEFORE
from manyfit.model_selection.search._verify import REFIT_STOPPED
from tests._covering import spread
from tests.behaviour.iterations.test_sklearn_stops import same, searched
from tests.behaviour.searches._audits import (
    DATA,
    GRID,
    MODEL,
    PAIRS,
    SEARCHES,
    TARGET,
    adds_up,
    ours_of,
)
from tests.differential._subject import sharing_whatever_it_costs

pytestmark = pytest.mark.slow


@contextmanager
def convergence_warnings_as_errors():
    with sharing_whatever_it_costs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)
        yield


# The checkpoint


def test_a_resumed_search_makes_none_of_the_fits_of_the_audit_again(expected, trust, fits, tmp_path):
    trust()
    first, _ = ours_of(checkpoint=tmp_path / "file")
    fits.made.clear()
    again, warned = ours_of(checkpoint=tmp_path / "file")
    assert fits.made == [again.best_params_["C"]]
    same(again, expected[0])
    assert warned == 1
    assert again.report_.fits_restored == PAIRS
    assert again.report_.left_to_sklearn == {}
    assert f"0 of 15 fits shared; not shared: {FITTED_BEFORE} (15)" in str(again.report_)
    adds_up(first.report_)
    adds_up(again.report_)


@pytest.mark.invariant("A killed search continues in another process and makes only the missing fits")
@pytest.mark.parametrize("after", spread([1, 4, 15], 2))
def test_an_audit_that_is_interrupted_goes_on(after, expected, trust, fits, tmp_path):
    trust()
    with fits.interrupted(after):  # the first of which is the refit
        ours_of(checkpoint=tmp_path / "file")
    fits.made.clear()
    search, _ = ours_of(checkpoint=tmp_path / "file")
    same(search, expected[0])
    assert len(fits.made) == PAIRS - (after - 1) + 1
    report = search.report_
    assert (report.fits_done, report.fits_restored) == (PAIRS - (after - 1), after - 1)
    adds_up(report)


def test_what_an_interrupted_audit_doubted_is_fitted_whatever_the_scores_say(expected, trust, fits, tmp_path):
    """Without a refit, too: the scores of one search are not of two kinds."""
    trust()
    with fits.interrupted(4):
        ours_of(checkpoint=tmp_path / "file")
    fits.made.clear()
    search, _ = ours_of(checkpoint=tmp_path / "file", refit=False)
    assert len(fits.made) == PAIRS - 3
    name = "mean_test_score"
    np.testing.assert_array_equal(search.cv_results_[name], expected[0].cv_results_[name])
    fits.made.clear()
    search.fit(DATA, TARGET)
    assert fits.made == []


# What is fitted, and what the report says


def test_pairs_that_scikit_learn_has_fitted_are_not_fitted_twice(expected, trust, fits, capsys):
    trust(refused=[2])
    ours, warned = ours_of(verbose=2)
    same(ours, expected[0])
    assert warned == expected[1] > 1
    report = ours.report_
    assert (report.fits_done, report.fits_shared) == (PAIRS, 0)
    assert len(fits.made) in (PAIRS + 1, PAIRS + 2)  # with one refit, or two
    (group,) = report.groups
    for left in (report.left_to_sklearn, group["left_to_sklearn"]):
        assert left[REFIT_STOPPED] == PAIRS - 3
    assert sum(group["left_to_sklearn"].values()) == PAIRS
    assert "LogisticRegression: 0 of 15 fits shared" in str(report)
    assert f"{REFIT_STOPPED} (12)" in str(report)
    assert f"{REFIT_STOPPED}: scikit-learn makes 12 fits that were shared" in capsys.readouterr().out


def test_steps_that_the_audit_fits_are_counted_and_without_a_refit_there_is_none(trust):
    trust()
    estimator, grid, _ = SEARCHES["behind other steps"]
    ours, _ = ours_of(estimator, grid)
    shared, warned = ours_of(estimator, grid, refit=False)
    assert warned == 0
    assert shared.report_.fits_shared == PAIRS
    assert ours.report_.left_to_sklearn[REFIT_STOPPED] == PAIRS
    assert ours.report_.transformer_fits > shared.report_.transformer_fits


def test_verified_scores_are_those_that_the_user_gets(trust):
    trust()
    ours, _ = ours_of(verify=PAIRS)
    report = ours.report_
    assert len(report.verification) == PAIRS
    assert report.largest_difference == 0.0
    shown = {(row["params"]["C"], row["split"]): row["shared"] for row in report.verification}
    for (C, i), score in shown.items():
        assert score == ours.cv_results_[f"split{i}_test_score"][GRID["C"].index(C)]


def test_what_was_fitted_anew_is_in_the_partial_results(expected, trust, fits):
    trust()
    search = GridSearchCV(MODEL, GRID, cv=5)
    with fits.interrupted(4), sharing_whatever_it_costs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(DATA, TARGET)
    rows = search.partial_results_
    assert len(rows) == PAIRS
    for i, row in enumerate(rows[:3]):
        assert row["test_scores"] == expected[0].cv_results_[f"split{i}_test_score"][0]


# Warnings


def test_the_refit_warns_where_it_is_kept(trust):
    """Of one setting the best is the best whatever the audit finds."""
    trust()
    ours, warned = ours_of(grid={"C": [1.0]})
    theirs, expected = searched(model_selection.GridSearchCV, MODEL, {"C": [1.0]}, DATA, TARGET)
    same(ours, theirs)
    assert warned == expected == 6


def test_warnings_of_a_refit_that_fails_are_shown(trust, fits):
    trust()
    with pytest.warns(ConvergenceWarning), fits.interrupted(1), sharing_whatever_it_costs():
        GridSearchCV(MODEL, GRID, cv=5).fit(DATA, TARGET)


def test_a_refit_whose_warning_is_an_error_is_audited(trust):
    """The refit of the best shared setting raises; with scikit-learn's scores another one is the best."""
    trust()
    params = {"param_grid": {"C": [1e-9, 1.0, 100.0]}, "cv": 5, "refit": best_known, "scoring": "accuracy"}
    with convergence_warnings_as_errors():
        ours, theirs = (
            cls(MODEL, **params).fit(DATA, TARGET) for cls in (GridSearchCV, model_selection.GridSearchCV)
        )
    assert ours.best_params_ == theirs.best_params_ == {"C": 1e-9}
    assert ours.report_.left_to_sklearn == {REFIT_STOPPED: PAIRS}
    for name in ("mean_test_score", "split0_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])


def best_known(results):
    return int(np.nanargmax(results["mean_test_score"]))


def test_an_error_of_the_refit_is_raised_where_it_is_kept(trust):
    trust()
    search = GridSearchCV(MODEL, GRID, cv=5, refit=the_first, scoring="accuracy")
    with convergence_warnings_as_errors(), pytest.raises(ValueError, match="All the 15 fits failed"):
        search.fit(DATA, TARGET)


# Until it is stable


def test_the_next_winner_is_audited_too(trust):
    """Each intercept is a group of its own; scores of a group that does not win stay as they are."""
    trust()
    grid = {"fit_intercept": [True, False], **GRID}
    ours, warned = ours_of(grid=grid)
    theirs, expected = searched(model_selection.GridSearchCV, MODEL, grid, DATA, TARGET)
    same(ours, theirs)
    assert warned == expected
    assert ours.report_.left_to_sklearn == {REFIT_STOPPED: 2 * PAIRS}
    assert [sum(group["left_to_sklearn"].values()) for group in ours.report_.groups] == [PAIRS, PAIRS]


class Rounds(BaseSearchCV):
    """Asks for settings in rounds."""

    def __init__(self, estimator, rounds, cv=None):
        super().__init__(estimator, cv=cv)
        self.rounds = rounds

    def _run_search(self, evaluate_candidates):
        for candidates in self.rounds:
            evaluate_candidates(candidates)


@pytest.mark.parametrize("best_comes_last", [False, True])
def test_the_round_of_the_winner_is_audited(best_comes_last, expected, trust):
    trust()
    theirs, _ = expected
    worse, better = [{"C": 1e-9}, {"C": 2e-9}], [{"C": 1.0}, {"C": 100.0}, {"C": 0.01}]
    rounds = [worse, better] if best_comes_last else [better, worse]
    ours, _ = searched(Rounds, MODEL, rounds, DATA, TARGET)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    for i in range(5):
        found = dict(zip(ours.cv_results_["param_C"], ours.cv_results_[f"split{i}_test_score"], strict=True))
        np.testing.assert_array_equal(
            [found[C] for C in GRID["C"]], theirs.cv_results_[f"split{i}_test_score"]
        )
    left = [group["left_to_sklearn"] for group in ours.report_.groups]
    assert left == ([{}, {REFIT_STOPPED: PAIRS}] if best_comes_last else [{REFIT_STOPPED: PAIRS}, {}])
    assert (ours.report_.fits_done, ours.report_.fits_shared) == (PAIRS, 10)


# Fits of the audit that fail


def fails_at(monkeypatch, value):
    real = LogisticRegression.fit

    @functools.wraps(real)  # or the class would not be shared
    def fit(self, X, y, sample_weight=None):
        if value == self.C:
            raise ValueError("is refused")
        return real(self, X, y, sample_weight)

    monkeypatch.setattr(LogisticRegression, "fit", fit)


def the_first(results):
    """Never the setting whose fits fail."""
    return 0


def test_a_fit_of_the_audit_that_fails_is_a_failure_of_the_search(trust, monkeypatch):
    trust()
    fails_at(monkeypatch, 100.0)
    scoring, messages = {"scoring": "accuracy", "refit": the_first}, []
    for cls in (GridSearchCV, model_selection.GridSearchCV):
        with sharing_whatever_it_costs(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search = cls(MODEL, {"C": [10.0, 100.0]}, cv=5, **scoring).fit(DATA, TARGET)
        failed = [str(one.message) for one in caught if issubclass(one.category, FitFailedWarning)]
        messages.append([text.splitlines()[1] for text in failed])
        assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert messages[0] == messages[1] and "5 fits failed out of a total of 10" in messages[0][0]


def test_a_fit_of_the_audit_that_fails_raises_if_it_is_to(trust, monkeypatch):
    trust()
    fails_at(monkeypatch, 100.0)
    search = GridSearchCV(MODEL, {"C": [10.0, 100.0]}, cv=5, error_score="raise", refit=the_first)
    with sharing_whatever_it_costs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="is refused"):
            search.fit(DATA, TARGET)
    assert len(search.partial_results_) == 10
