"""Where the refit stops at max_iter, scikit-learn fits what was shared, and the best is chosen again."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn import model_selection
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from manyfit.families.smooth.solver import _coarse_to_fine as _path
from manyfit.families.smooth.solver._trial import Trial
from manyfit.model_selection import BaseSearchCV, GridSearchCV
from manyfit.model_selection.running._engine import FITTED_BEFORE
from manyfit.model_selection.search._audit import REFIT_STOPPED
from manyfit.model_selection.strategies import _doubts
from tests.behaviour.iterations.test_sklearn_stops import same, searched
from tests.differential._subject import sharing_whatever_it_costs

DATA, TARGET = load_breast_cancer(return_X_y=True)
GRID = {"C": [0.01, 1.0, 100.0]}
MODEL = LogisticRegression()
PAIRS = 15


@pytest.fixture
def trust(monkeypatch):
    """Let the trial trust all settings, or none on some of the splits."""

    def on_splits(refused=()):
        def trusting(problem, zero, columns, *_):
            split = problem.columns.split[columns]
            return Trial(~np.isin(split, refused), zero[split], np.ones(len(columns), dtype=int))

        monkeypatch.setattr(_path, "try_columns", trusting)
        monkeypatch.setattr(_doubts, "MOST_OPEN", np.inf)
        monkeypatch.setattr(_doubts, "MOST_LABELS_OPEN", np.inf)

    return on_splits


class Fits:
    """The C of each fit of scikit-learn's LogisticRegression, some of which a user interrupts."""

    def __init__(self):
        self.made, self._most = [], None

    def count(self, C):
        if len(self.made) == self._most:
            raise KeyboardInterrupt
        self.made.append(C)

    def clear(self):
        self.made.clear()

    @contextmanager
    def interrupted(self, after):
        self._most = after
        with pytest.raises(KeyboardInterrupt):
            yield
        self._most = None


@pytest.fixture
def fits(monkeypatch):
    counted, real = Fits(), LogisticRegression.fit

    def fit(self, X, y, sample_weight=None):
        counted.count(self.C)
        return real(self, X, y, sample_weight)

    monkeypatch.setattr(LogisticRegression, "fit", fit)
    return counted


def pair_of_searches(estimator, grid, X=DATA, y=TARGET, **params):
    """Ours and scikit-learn's, each with how many ConvergenceWarnings it gave."""
    ours = searched(GridSearchCV, estimator, grid, X, y, **params)
    params.pop("checkpoint", None)
    return *ours, *searched(model_selection.GridSearchCV, estimator, grid, X, y, **params)


def adds_up(report):
    done = report.fits_done + report.fits_shared + report.fits_restored
    assert done == report.fits_requested, report


# The checkpoint


def test_a_resumed_search_makes_none_of_the_fits_of_the_audit_again(trust, fits, tmp_path):
    trust()
    path = tmp_path / "file"
    first, _, theirs, _ = pair_of_searches(MODEL, GRID, checkpoint=path)
    fits.clear()
    again, warned = searched(GridSearchCV, MODEL, GRID, DATA, TARGET, checkpoint=path)
    assert fits.made == [again.best_params_["C"]]
    same(again, theirs)
    assert warned == 1
    assert again.report_.fits_restored == PAIRS
    assert again.report_.left_to_sklearn == {}
    assert f"0 of 15 fits shared; not shared: {FITTED_BEFORE} (15)" in str(again.report_)
    adds_up(first.report_)
    adds_up(again.report_)


@pytest.mark.invariant("A killed search continues in another process and makes only the missing fits")
@pytest.mark.parametrize("after", [1, 4, 9, 15])
def test_an_audit_that_is_interrupted_goes_on(after, trust, fits, tmp_path):
    trust()
    options = {"checkpoint": tmp_path / "file"}
    _, _, theirs, _ = pair_of_searches(MODEL, GRID)
    fits.clear()
    with fits.interrupted(after):  # the first of which is the refit
        searched(GridSearchCV, MODEL, GRID, DATA, TARGET, **options)
    fits.clear()
    search, _ = searched(GridSearchCV, MODEL, GRID, DATA, TARGET, **options)
    same(search, theirs)
    assert len(fits.made) == PAIRS - (after - 1) + 1
    report = search.report_
    assert (report.fits_done, report.fits_restored) == (PAIRS - (after - 1), after - 1)
    adds_up(report)


def test_what_an_interrupted_audit_doubted_is_fitted_whatever_the_scores_say(trust, fits, tmp_path):
    """Without a refit, too: the scores of one search are not of two kinds."""
    trust()
    path = tmp_path / "file"
    theirs, _ = searched(model_selection.GridSearchCV, MODEL, GRID, DATA, TARGET)
    fits.clear()
    with fits.interrupted(4):
        searched(GridSearchCV, MODEL, GRID, DATA, TARGET, checkpoint=path)
    fits.clear()
    search, _ = searched(GridSearchCV, MODEL, GRID, DATA, TARGET, checkpoint=path, refit=False)
    assert len(fits.made) == PAIRS - 3
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    fits.clear()
    search.fit(DATA, TARGET)
    assert fits.made == []


# What is fitted, and what the report says


def test_pairs_that_scikit_learn_has_fitted_are_not_fitted_twice(trust, fits):
    trust(refused=[2])
    theirs, _ = searched(model_selection.GridSearchCV, MODEL, GRID, DATA, TARGET)
    fits.clear()
    ours, _ = searched(GridSearchCV, MODEL, GRID, DATA, TARGET)
    same(ours, theirs)
    report = ours.report_
    assert report.left_to_sklearn[REFIT_STOPPED] == PAIRS - 3
    assert (report.fits_done, report.fits_shared) == (PAIRS, 0)
    assert len(fits.made) in (PAIRS + 1, PAIRS + 2)  # with one refit, or two


def test_groups_say_what_became_of_them(trust):
    trust(refused=[2])
    ours, _ = searched(GridSearchCV, MODEL, GRID, DATA, TARGET)
    (group,) = ours.report_.groups
    assert group["left_to_sklearn"][REFIT_STOPPED] == PAIRS - 3
    assert sum(group["left_to_sklearn"].values()) == PAIRS
    assert "decided for LogisticRegression: 0 of 15 fits shared" in str(ours.report_)
    assert f"{REFIT_STOPPED} (12)" in str(ours.report_)


def test_steps_that_the_audit_fits_are_counted(trust):
    trust()
    model = make_pipeline(MinMaxScaler((0, 500)), MODEL)
    grid = {"logisticregression__C": [0.1, 1.0, 100.0]}
    ours, _ = searched(GridSearchCV, model, grid, DATA, TARGET)
    shared, _ = searched(GridSearchCV, model, grid, DATA, TARGET, refit=False)
    assert shared.report_.fits_shared == PAIRS
    assert ours.report_.left_to_sklearn[REFIT_STOPPED] == PAIRS
    assert ours.report_.transformer_fits > shared.report_.transformer_fits


def test_verified_scores_are_those_that_the_user_gets(trust):
    trust()
    ours, _ = searched(GridSearchCV, MODEL, GRID, DATA, TARGET, verify=PAIRS)
    report = ours.report_
    assert len(report.verification) == PAIRS
    assert report.largest_difference == 0.0
    shown = {(row["params"]["C"], row["split"]): row["shared"] for row in report.verification}
    for (C, i), score in shown.items():
        assert score == ours.cv_results_[f"split{i}_test_score"][GRID["C"].index(C)]


def test_what_was_fitted_anew_is_in_the_partial_results(trust, fits):
    trust()
    search = GridSearchCV(MODEL, GRID, cv=5)
    theirs, _ = searched(model_selection.GridSearchCV, MODEL, GRID, DATA, TARGET)
    fits.clear()
    with fits.interrupted(4), sharing_whatever_it_costs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(DATA, TARGET)
    rows = search.partial_results_
    assert len(rows) == PAIRS
    exact = [
        row["test_scores"] == theirs.cv_results_[f"split{row['split']}_test_score"][j // 5]
        for j, row in enumerate(rows)
    ]
    assert all(exact[:3])


def test_the_audit_is_said_and_its_fits_are_printed(trust, capsys):
    trust(refused=[2])
    searched(GridSearchCV, MODEL, GRID, DATA, TARGET, verbose=2)
    printed = capsys.readouterr().out
    assert f"{REFIT_STOPPED}: scikit-learn makes 12 fits that were shared" in printed


# Warnings


@pytest.mark.parametrize("refused", [(), (2,)])
def test_only_fits_whose_numbers_are_kept_warn(refused, trust):
    trust(refused)
    ours, warned, theirs, expected = pair_of_searches(MODEL, GRID)
    same(ours, theirs)
    assert warned == expected > 1


def test_the_refit_warns_where_it_is_kept(trust):
    """Of one setting the best is the best whatever the audit finds."""
    trust()
    ours, warned, theirs, expected = pair_of_searches(MODEL, {"C": [1.0]})
    same(ours, theirs)
    assert warned == expected == 6


def test_warnings_of_a_refit_that_fails_are_shown(trust, fits):
    trust()
    with pytest.warns(ConvergenceWarning), fits.interrupted(1), sharing_whatever_it_costs():
        GridSearchCV(MODEL, GRID, cv=5).fit(DATA, TARGET)


def test_a_refit_whose_warning_is_an_error_is_audited(trust):
    """The refit of the best shared setting raises; with scikit-learn's scores another one is the best."""
    trust()
    grid, found = {"C": [1e-9, 1.0, 100.0]}, []
    for cls in (GridSearchCV, model_selection.GridSearchCV):
        with sharing_whatever_it_costs(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", ConvergenceWarning)
            found.append(cls(MODEL, grid, cv=5, refit=best_known, scoring="accuracy"))
            found[-1].fit(DATA, TARGET)
    assert found[0].best_params_ == found[1].best_params_ == {"C": 1e-9}
    assert found[0].report_.left_to_sklearn == {REFIT_STOPPED: PAIRS}
    for name in ("mean_test_score", "split0_test_score"):
        np.testing.assert_array_equal(found[0].cv_results_[name], found[1].cv_results_[name])


def best_known(results):
    return int(np.nanargmax(results["mean_test_score"]))


def test_an_error_of_the_refit_is_raised_where_it_is_kept(trust):
    trust()
    search = GridSearchCV(MODEL, GRID, cv=5, refit=the_first, scoring="accuracy")
    with sharing_whatever_it_costs(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ValueError, match="All the 15 fits failed"):
            search.fit(DATA, TARGET)


# Until it is stable


def test_the_next_winner_is_audited_too(trust):
    """Each intercept is a group of its own; scores of a group that does not win stay as they are."""
    trust()
    grid = {"fit_intercept": [True, False], **GRID}
    ours, warned, theirs, expected = pair_of_searches(MODEL, grid)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    assert ours.report_.left_to_sklearn == {REFIT_STOPPED: 2 * PAIRS}
    same(ours, theirs)
    assert warned == expected
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
def test_the_round_of_the_winner_is_audited(best_comes_last, trust):
    trust()
    worse, better = [{"C": 1e-9}, {"C": 2e-9}], [{"C": 1.0}, {"C": 100.0}, {"C": 0.01}]
    rounds = [worse, better] if best_comes_last else [better, worse]
    ours, _ = searched(Rounds, MODEL, rounds, DATA, TARGET)
    theirs, _ = searched(model_selection.GridSearchCV, MODEL, GRID, DATA, TARGET)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    for i in range(5):
        found = dict(zip(ours.cv_results_["param_C"], ours.cv_results_[f"split{i}_test_score"], strict=True))
        expected = theirs.cv_results_[f"split{i}_test_score"]
        np.testing.assert_array_equal([found[C] for C in GRID["C"]], expected)
    left = [group["left_to_sklearn"] for group in ours.report_.groups]
    assert left == ([{}, {REFIT_STOPPED: PAIRS}] if best_comes_last else [{REFIT_STOPPED: PAIRS}, {}])
    assert (ours.report_.fits_done, ours.report_.fits_shared) == (PAIRS, 10)


def test_without_a_refit_there_is_no_audit(trust):
    trust()
    ours, warned = searched(GridSearchCV, MODEL, GRID, DATA, TARGET, refit=False)
    assert warned == 0
    assert ours.report_.fits_shared == PAIRS


# Every kind of search


def first_of_the_best(results):
    return int(np.argmax(results["mean_test_accuracy"]))


def least_loss(results):
    return int(np.argmax(results["mean_test_neg_log_loss"]))


SEVERAL = ["accuracy", "neg_log_loss"]
SEARCHES = {
    "several metrics": (MODEL, GRID, {"scoring": SEVERAL, "refit": "neg_log_loss"}),
    "refit is a function": (MODEL, GRID, {"scoring": SEVERAL, "refit": first_of_the_best}),
    "refit is another function": (MODEL, GRID, {"scoring": SEVERAL, "refit": least_loss}),
    "errors are raised": (MODEL, GRID, {"error_score": "raise"}),
    "training scores": (MODEL, GRID, {"return_train_score": True}),
    "behind affine steps": (
        make_pipeline(StandardScaler(with_std=False), MODEL), {"logisticregression__C": GRID["C"]}, {}
    ),
    "behind other steps": (
        make_pipeline(MinMaxScaler((0, 500)), MODEL),
        {"logisticregression__C": GRID["C"]},
        {},
    ),
    "in nested pipelines": (
        make_pipeline(make_pipeline(StandardScaler(with_std=False), MODEL)),
        {"pipeline__logisticregression__C": GRID["C"]},
        {},
    ),
    "two jobs": (MODEL, GRID, {"n_jobs": 2}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize(("estimator", "grid", "params"), SEARCHES.values(), ids=SEARCHES)
def test_scores_are_scikit_learns(estimator, grid, params, trust, tmp_path):
    trust()
    path = tmp_path / "file"
    ours, warned, theirs, expected = pair_of_searches(estimator, grid, **params, checkpoint=path)
    results_are_equal(ours, theirs)
    if "n_jobs" not in params:  # other processes warn for themselves
        assert warned == expected > 1
    assert ours.report_.fits_done == PAIRS
    assert ours.report_.left_to_sklearn == {REFIT_STOPPED: PAIRS}
    again, _ = searched(GridSearchCV, estimator, grid, DATA, TARGET, **params, checkpoint=path)
    results_are_equal(again, theirs)
    assert again.report_.fits_restored == PAIRS


def results_are_equal(ours, theirs):
    for name, expected in theirs.cv_results_.items():
        if name.startswith(("split", "mean_test", "mean_train", "rank")):
            np.testing.assert_array_equal(ours.cv_results_[name], expected)
    assert ours.best_params_ == theirs.best_params_
    assert getattr(ours, "best_score_", None) == getattr(theirs, "best_score_", None)


def test_weights_reach_the_fits_of_the_audit(trust):
    trust()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(TARGET))
    found = []
    for cls in (GridSearchCV, model_selection.GridSearchCV):
        with sharing_whatever_it_costs(), pytest.warns(ConvergenceWarning):
            found.append(cls(MODEL, GRID, cv=5).fit(DATA, TARGET, sample_weight=weights))
    same(*found)
    assert found[0].report_.left_to_sklearn == {REFIT_STOPPED: PAIRS}


# Fits of the audit that fail


def fails_at(monkeypatch, value):
    real = LogisticRegression.fit

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


# On workers


@pytest.fixture(scope="module")
def inside():
    """Workers in this process, which trust as it does."""
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.mark.parametrize("kind", ["several metrics", "errors are raised", "behind other steps"])
@pytest.mark.parametrize("refused", [(), (2,)])
def test_workers_make_the_fits_of_the_audit(kind, refused, inside, trust, fits, tmp_path):
    trust(refused)
    estimator, grid, params = SEARCHES[kind]
    path = tmp_path / "file"
    theirs, _ = searched(model_selection.GridSearchCV, estimator, grid, DATA, TARGET, **params)
    fits.clear()
    params = {**params, "checkpoint": path}
    ours, _ = searched(GridSearchCV, estimator, grid, DATA, TARGET, **params, client=inside)
    results_are_equal(ours, theirs)
    report = ours.report_
    assert sum(report.left_to_sklearn.values()) == report.fits_done == PAIRS
    assert len(fits.made) in (PAIRS + 1, PAIRS + 2)
    assert "0 of 15 fits shared" in str(report)
    adds_up(report)
    for client in (inside, False):
        fits.clear()
        again, _ = searched(GridSearchCV, estimator, grid, DATA, TARGET, **params, client=client)
        results_are_equal(again, theirs)
        assert len(fits.made) == 1
        assert again.report_.fits_restored == PAIRS
