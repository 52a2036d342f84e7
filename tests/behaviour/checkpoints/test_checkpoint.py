"""A search that was interrupted goes on where it was."""

from __future__ import annotations

import re
import sqlite3
import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.svm import LinearSVC

from manyfit.model_selection import BaseSearchCV, GridSearchCV
from manyfit.model_selection.checkpoint import _search_identity as _identity
from manyfit.model_selection.checkpoint._file import Checkpoint
from manyfit.model_selection.results import _progress_bar as _progress
from manyfit.model_selection.running._engine import FITTED_BEFORE
from manyfit.model_selection.search import _evaluation as engine
from tests._same_results import LABELS, X_CLASS, X, Y
from tests.behaviour.checkpoints._exact import GRID, exactly
from tests.behaviour.iterations._optimum import Optimum
from tests.behaviour.steps._counted import FITS, STOP_AFTER, Counted


def interrupted(search, after, *data):
    STOP_AFTER[:] = [after]
    with pytest.raises(KeyboardInterrupt):
        search.fit(*data)
    STOP_AFTER.clear()
    FITS.clear()


@pytest.mark.parametrize("more", [{}, {"return_train_score": True, "scoring": "neg_mean_absolute_error"}])
def test_an_interrupted_search_goes_on(path, more):
    search = GridSearchCV(Counted(), GRID, cv=3, checkpoint=path, **more)
    interrupted(search, 5, X, Y)
    again = GridSearchCV(Counted(), GRID, cv=3, checkpoint=str(path), n_jobs=1, **more).fit(X, Y)
    # Seven are made, and the refit.
    assert [1.0, 1.5, 1.5, 1.5, 2.0, 2.0, 2.0, again.best_params_["a"]] == FITS
    report = again.report_
    assert (report.fits_requested, report.fits_done, report.fits_restored, report.fits_shared) == (
        12,
        7,
        5,
        0,
    )
    assert re.search(r"fits restored from the checkpoint +5\n", str(report))
    exactly(again, GridSearchCV(Counted(), GRID, cv=3, **more).fit(X, Y))
    FITS.clear()
    once_more = GridSearchCV(Counted(), GRID, cv=3, checkpoint=path, refit=False, **more).fit(X, Y)
    assert FITS == [] and once_more.report_.fits_restored == 12
    assert not hasattr(once_more, "partial_results_")


def test_what_was_finished_is_on_the_search(path):
    search = GridSearchCV(
        Counted(), GRID, cv=3, scoring=["r2", "neg_max_error"], refit="r2", return_train_score=True
    )
    interrupted(search, 4, X, Y)
    whole = GridSearchCV(
        Counted(), GRID, cv=3, scoring=["r2", "neg_max_error"], refit="r2", return_train_score=True
    )
    whole.fit(X, Y)
    rows = search.partial_results_
    assert [(row["params"], row["split"]) for row in rows] == [
        ({"a": 0.5}, 0), ({"a": 0.5}, 1), ({"a": 0.5}, 2), ({"a": 1.0}, 0)
    ]  # fmt: skip
    for row in rows:
        j = whole.cv_results_["params"].index(row["params"])
        for role in ("test", "train"):
            for name, value in row[f"{role}_scores"].items():
                assert value == whole.cv_results_[f"split{row['split']}_{role}_{name}"][j]
        assert row["fit_error"] is None and row["fit_time"] >= 0 <= row["score_time"]
    search.fit(X, Y)
    assert not hasattr(search, "partial_results_")


def test_an_exception_keeps_what_was_finished(path):
    grid = [{"a": [1.0, 2.0]}, {"a": [3.0], "fails": [True]}]
    search = GridSearchCV(Counted(), grid, cv=2, error_score="raise", checkpoint=path)
    with pytest.raises(ValueError, match="is refused") as caught:
        search.fit(X, Y)
    assert len(search.partial_results_) == 4
    note = f"{str(path)!r} has them too, and fit goes on from there."
    assert caught.value.__notes__[-1].endswith(f"4 finished pairs of a setting and a split. {note}")
    with pytest.raises(ValueError, match="is refused") as caught:
        search.set_params(checkpoint=None).fit(X, Y)
    assert caught.value.__notes__[-1].endswith(
        "With checkpoint= a file would keep them, and fit would go on from there."
    )
    search.set_params(checkpoint=path)
    FITS.clear()
    with pytest.raises(ValueError, match="is refused"):
        search.fit(X, Y)
    assert FITS == [3.0] and len(search.partial_results_) == 4


def test_partial_results_of_a_search_in_rounds():
    class Rounds(BaseSearchCV):
        def __init__(self, estimator, cv=None):
            super().__init__(estimator, cv=cv)

        def _run_search(self, evaluate_candidates):
            evaluate_candidates([{"a": 1.0}])
            evaluate_candidates([{"a": 2.0}])

    search = Rounds(Counted(), cv=2)
    interrupted(search, 3, X, Y)
    assert [(row["params"]["a"], row["split"]) for row in search.partial_results_] == [(1, 0), (1, 1), (2, 0)]


def test_a_search_in_rounds_takes_no_checkpoint(path):
    class Rounds(GridSearchCV):
        def _run_search(self, evaluate_candidates):
            evaluate_candidates([{"a": 1.0}])

    with pytest.raises(ValueError, match="Rounds, which chooses settings by a method of its own"):
        Rounds(Counted(), GRID, checkpoint=path).fit(X, Y)
    assert FITS == [] and not path.exists()


def test_failed_fits_are_restored_as_scikit_learn_reports_them(path):
    grid = [{"a": [1.0]}, {"a": [2.0, 3.0], "fails": [True]}]

    def fit():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search = GridSearchCV(Counted(), grid, cv=2, checkpoint=path).fit(X, Y)
        return search, [w for w in caught if w.category is FitFailedWarning]

    first, said = fit()
    FITS.clear()
    second, said_again = fit()
    assert FITS == [1.0] and second.report_.fits_restored == 6
    assert len(said) == len(said_again) == 1 and str(said[0].message) == str(said_again[0].message)
    assert "a = 3.0 is refused" in str(said[0].message)
    exactly(second, first)
    assert np.isnan(second.cv_results_["mean_test_score"][1:]).all()


CASES = {
    "moments": (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0, 10.0]}, X, Y),
    "shared iterations": (LogisticRegression(), {"C": [0.1, 1.0]}, X_CLASS, LABELS),
    "shared in folds": (make_pipeline(PowerTransformer(), Ridge()), {"ridge__alpha": [0.1, 1.0]}, X, Y),
    "shared steps": (
        make_pipeline(StandardScaler(), LinearSVC(loss="hinge", random_state=0, max_iter=10_000)),
        {"linearsvc__C": [0.1, 1.0]},
        X_CLASS,
        LABELS,
    ),
}


@pytest.mark.cases(2)
@pytest.mark.invariant("A killed search continues in another process and makes only the missing fits")
@pytest.mark.filterwarnings(
    "ignore:.* tasks which were still being processed"
)  # joblib's, where it is stopped
@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", CASES)
def test_every_kind_of_group(kind, n_jobs, path, monkeypatch):
    """Interrupted at each of its results, a search comes to the same numbers."""
    estimator, grid, data, targets = CASES[kind]
    params = {"cv": 3, "n_jobs": n_jobs, "return_train_score": True}
    whole = Optimum(estimator, grid, **params).fit(data, targets)
    assert {group["kind"] for group in whole.report_.groups} == {kind}
    add, left = engine.ResultSink.add, [2]

    def stops(self, results, **options):
        add(self, results, **options)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(engine.ResultSink, "add", stops)
    search = Optimum(estimator, grid, **params, checkpoint=path)
    with pytest.raises(KeyboardInterrupt):
        search.fit(data, targets)
    n_kept = len(search.partial_results_)
    assert 0 < n_kept < whole.report_.fits_requested
    monkeypatch.setattr(engine.ResultSink, "add", add)
    search.fit(data, targets)
    # Groups that are answered together are restored whole or not at all.
    assert search.report_.fits_restored == (0 if kind in ("moments", "shared iterations") else n_kept)
    exactly(search, whole)
    search.fit(data, targets)
    assert search.report_.fits_restored == whole.report_.fits_requested and search.report_.passes == 0
    exactly(search, whole)


def test_what_a_group_leaves_alone_is_not_fitted_again(path, monkeypatch):
    """A fold with a constant target is scikit-learn's; a group that runs again finds its fit."""
    y = Y.copy()
    y[:20] = 1.0
    options = {"cv": 4, "checkpoint": path, "refit": False, "return_train_score": True}
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, **options).fit(X, y)
    assert search.report_.fits_done == 2
    identity = seen(search, X, y)
    rows = [pair for pair in Checkpoint(path, identity).stored if pair[1] == 1]
    forget(path, [(identity.name_of(c), i) for c, i in rows])
    search.fit(X, y)
    assert (search.report_.fits_restored, search.report_.fits_done, search.report_.fits_shared) == (2, 0, 6)
    search.fit(X, y)
    assert search.report_.fits_restored == 8
    (group,) = search.report_.groups  # knows which of them shared work had answered
    assert group["left_to_sklearn"] == {FITTED_BEFORE: 2}


def seen(search, X, y):
    """The identity that a search has."""
    found, identity = [], _identity.identity

    def note(job, own, before, **options):
        found.append(identity(job, own, before, **options))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_identity, "identity", note)
        with pytest.raises(KeyboardInterrupt):
            search.fit(X, y)
    return found[0]


def forget(path, pairs):
    with sqlite3.connect(path) as file:
        file.executemany("DELETE FROM results WHERE setting = ? AND split = ?", pairs)
    file.close()


def test_scores_of_every_kind_of_metric(path):
    scoring = {
        "own": make_scorer(mean_absolute_error, greater_is_better=False),
        "options": make_scorer(mean_absolute_error, multioutput="uniform_average"),
        "integer": make_scorer(lambda y, p: len(y)),
        "truth": make_scorer(lambda y, p: bool(p[0] > 0)),
        "single": make_scorer(lambda y, p: np.float32(p[0])),
    }
    search = GridSearchCV(Counted(), GRID, cv=2, scoring=scoring, refit="own", checkpoint=path).fit(X, Y)
    again = GridSearchCV(Counted(), GRID, cv=2, scoring=scoring, refit="own", checkpoint=path).fit(X, Y)
    assert again.report_.fits_restored == 8
    exactly(again, search)


def test_a_bar_with_columns(path, capsys, monkeypatch):
    notes = []
    monkeypatch.setattr(_progress.Progress, "note", lambda self, *texts: notes.append(texts))
    GridSearchCV(Counted(), GRID, cv=2, verbose=1, checkpoint=path, refit=False).fit(X, Y)
    assert len(notes) == 8 and notes[0] == ("", "", "settings 0/4")
    assert notes[1][1].startswith("best ") and notes[1][2] == "settings 1/4"
    search = GridSearchCV(Counted(), GRID, cv=2, verbose=1, checkpoint=path).fit(X, Y)
    assert notes[-1] == ("saved 8 fits", f"best {search.best_score_:.4g}", "settings 4/4")
    assert "which has 8 of these fits" in capsys.readouterr().out
    notes.clear()
    X2, y2 = make_regression(60, 4, random_state=0)
    GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=3, verbose=1).fit(X2, y2)
    assert notes[-1][0] == "saved 6 fits" and notes[-1][2] == "settings 2/2"


def test_the_bar_draws_its_columns(monkeypatch):
    drawn = []
    monkeypatch.setattr(sys, "stderr", type("Err", (), {
        "write": lambda self, text: drawn.append(text), "flush": lambda self: None, "encoding": "utf-8",
    })())  # fmt: skip
    GridSearchCV(Counted(), GRID, cv=2, verbose=1, refit=False).fit(X, Y)
    assert any("8/8, best" in text and "settings 4/4 [" in text for text in drawn)


def test_without_a_checkpoint_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(_identity, "identity", None)  # called, it would fail
    GridSearchCV(Counted(), GRID, cv=KFold(2, shuffle=True)).fit(X, Y)


@pytest.mark.parametrize("value", [3, True, 1.5, b"x", ["a"]])
def test_a_bad_parameter_is_named(value):
    with pytest.raises(ValueError, match="The 'checkpoint' parameter of GridSearchCV must be"):
        GridSearchCV(Counted(), GRID, checkpoint=value).fit(X, Y)
