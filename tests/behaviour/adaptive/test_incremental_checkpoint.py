"""An incremental search that was interrupted continues from its checkpoint, with the same answer."""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import (
    HalvingGridSearchCV,
    HyperbandSearchCV,
    IncrementalSearchCV,
    SuccessiveHalvingSearchCV,
)
from manyfit.model_selection.checkpoint import _models
from manyfit.model_selection.checkpoint._models import ModelCheckpoint, Trained, UnwrittenModels
from tests._covering import spread
from tests._same_results import LABELS, X_CLASS
from tests.behaviour.adaptive.test_incremental import ALPHAS, SGD, SPACE

CALLS: list[float] = []
STOP_AT: list[int] = []  # a call, and then Ctrl-C


class Counted(SGDClassifier):
    """Counts its calls, and stops where it is told to."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        CALLS.append(self.alpha)
        if STOP_AT and len(CALLS) == STOP_AT[0]:
            raise KeyboardInterrupt
        return super().partial_fit(X, y, classes, sample_weight)


@pytest.fixture(autouse=True)
def _nothing_counted():
    yield
    CALLS.clear()
    STOP_AT.clear()


def assert_same_search(one, other):
    def stripped(search):
        return [{k: v for k, v in row.items() if "time" not in k} for row in search.history_]

    np.testing.assert_equal(stripped(one), stripped(other))
    for name in other.cv_results_:
        if "time" not in name:
            np.testing.assert_array_equal(one.cv_results_[name], other.cv_results_[name])
    assert one.best_params_ == other.best_params_ and one.best_score_ == other.best_score_
    np.testing.assert_array_equal(one.best_estimator_.coef_, other.best_estimator_.coef_)


@pytest.mark.parametrize(("at", "cv"), spread([(30, None), (5, None), (69, None), (100, 2)], 1))
def test_a_search_that_is_interrupted_continues(tmp_path, at, cv):
    options = {"max_iter": 9, "random_state": 0, "cv": cv}
    whole = HyperbandSearchCV(Counted(random_state=0), SPACE, **options).fit(X_CLASS, LABELS)
    n_calls = len(CALLS)
    CALLS.clear()
    STOP_AT.append(at)
    search = HyperbandSearchCV(Counted(random_state=0), SPACE, checkpoint=tmp_path / "c", **options)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X_CLASS, LABELS)
    CALLS.clear()
    STOP_AT.clear()
    search.fit(X_CLASS, LABELS)
    assert_same_search(search, whole)
    assert len(CALLS) <= n_calls - at + 9, "no more than the calls of the model that was interrupted"
    report = search.report_
    assert report.fits_restored + report.fits_done == report.fits_requested == 17 * (cv or 1)


@pytest.fixture
def chunked(tmp_path, monkeypatch):
    """A search in chunks, its X and its answer, all calls and those of a pass; models are written at once."""
    monkeypatch.setattr(_models, "MODELS_SHARE", np.inf)
    search = SuccessiveHalvingSearchCV(
        Counted(random_state=0), SPACE, 2, n_initial_iter=3, max_iter=3, random_state=0, memory_limit=3000,
        cv=KFold(2), checkpoint=tmp_path / "c",
    )  # fmt: skip
    X = da.from_array(X_CLASS, chunks=(25, X_CLASS.shape[1]))
    whole = clone(search).set_params(checkpoint=None).fit(X, LABELS)
    n_of_pass = len(CALLS) // 3 - X.numblocks[0]  # the best setting makes three calls on all rows at the end
    return search, X, whole, len(CALLS), n_of_pass


def interrupt_and_go_on(search, X, at):
    """The search after an interrupt, with the number of calls that it has made after it."""
    CALLS.clear()
    STOP_AT.append(at)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, LABELS)
    CALLS.clear()
    STOP_AT.clear()
    return clone(search).fit(X, LABELS), len(CALLS)


def test_an_interrupt_in_the_first_round_in_chunks_keeps_the_passes_before_it(chunked):
    search, X, whole, n_calls, n_of_pass = chunked
    again, n_more = interrupt_and_go_on(search, X, 2 * n_of_pass + 2)  # in the last pass
    assert n_more == n_calls - 2 * n_of_pass
    assert_same_search(again, whole)


def test_models_that_were_trained_after_a_failed_write_are_not_written_as_before_it(chunked, monkeypatch):
    search, X, whole, n_calls, n_of_pass = chunked
    write, failures = UnwrittenModels.write, []

    def fail_once(models, file):
        if not failures:
            failures.append(len(CALLS))
            raise sqlite3.OperationalError("database is locked")
        write(models, file)

    monkeypatch.setattr(UnwrittenModels, "write", fail_once)
    with pytest.warns(RuntimeWarning, match="models of the last round are not in the file yet"):
        again, n_more = interrupt_and_go_on(search, X, n_of_pass + n_of_pass // 2)
    assert failures == [n_of_pass], "after the first pass; the second one was interrupted"
    assert n_more == n_calls
    assert_same_search(again, whole)


def test_a_failed_write_forgets_only_what_is_trained_in_place(tmp_path):
    models, file = UnwrittenModels(tmp_path / "c"), sqlite3.connect(tmp_path / "c", isolation_level=None)
    models.put({("a", 0): Trained("scored", 1)})
    with (
        pytest.raises(sqlite3.Error),
        models.writing({("a", 0): Trained("live", 2), ("b", 0): Trained("live", 2)}),
    ):
        models.write(file)  # it has no table
    file.execute(_models._TABLE)
    models.write(file)
    assert file.execute("SELECT name, calls FROM models").fetchall() == [("a", 1)]
    file.close()


@pytest.mark.parametrize(("written", "calls"), [(0, 12), (1, 10), (2, 6)])
def test_a_search_that_is_killed_goes_on_from_the_models_of_its_last_writing(
    tmp_path, monkeypatch, written, calls
):
    """Scores of a round are written when it ends, models only now and then."""
    options = {"max_iter": 9, "random_state": 0, "checkpoint": tmp_path / "c"}
    search = HyperbandSearchCV(Counted(random_state=0), SPACE, **options)
    whole = clone(search).set_params(checkpoint=None).fit(X_CLASS, LABELS)
    CALLS.clear()
    rounds, plain = [], ModelCheckpoint.keep_models

    def keep_models(checkpoint, names):
        plain(checkpoint, names)
        rounds.append(len(CALLS))
        monkeypatch.setattr(_models, "MODELS_SHARE", np.inf)
        if len(rounds) > written:  # nothing is written from now on, as of a process that is killed
            monkeypatch.setattr(UnwrittenModels, "write", lambda models, file: None)
        if len(rounds) == 3:
            raise SystemExit

    monkeypatch.setattr(ModelCheckpoint, "keep_models", keep_models)
    with pytest.raises(SystemExit):
        search.fit(X_CLASS, LABELS)
    monkeypatch.undo()
    assert rounds == [0, 51, 63], "calls before each round"
    CALLS.clear()
    search.fit(X_CLASS, LABELS)
    assert_same_search(search, whole)
    assert len(CALLS) == calls, "of the last round, and of its models since they were written"


def test_models_are_written_within_their_share_of_the_time(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_models.time, "perf_counter", lambda: now[0])
    models, wanted = UnwrittenModels(tmp_path / "c"), {("a", 0): Trained(SGD, 1), ("b", 0): Trained(SGD, 1)}

    def takes_two_seconds(one):
        now[0] += 2
        return b""

    monkeypatch.setattr(_models.pickle, "dumps", takes_two_seconds)
    monkeypatch.setattr(_models, "transaction", lambda file: nullcontext())

    class File:
        def executemany(self, query, rows):
            self.names = [row[0] for row in rows]

    assert not models.is_due() and not models.is_due(wanted)
    now[0] = 1.0
    assert models.is_due(wanted)
    models.put(wanted)
    models.write(File())
    assert not models.is_due(), "all is written"
    models.put(wanted)
    now[0] = 79.0
    assert not models.is_due(), "4 s of 79 s, and 4 s more"
    now[0] = 81.0
    assert models.is_due()
    models.drop_others(["b"])
    file = File()
    models.write(file)
    assert file.names == ["b"]


def test_a_finished_search_is_restored_without_a_call(tmp_path):
    options = {"max_iter": 3, "random_state": 0, "checkpoint": tmp_path / "c"}
    search = IncrementalSearchCV(Counted(random_state=0), ALPHAS, "grid", **options)
    first = search.fit(X_CLASS, LABELS).best_estimator_
    CALLS.clear()
    again = IncrementalSearchCV(**search.get_params(deep=False)).fit(X_CLASS, LABELS)
    assert not CALLS and again.report_.fits_done == 0 and again.report_.fits_restored == 5
    np.testing.assert_array_equal(again.best_estimator_.coef_, first.coef_)
    longer = IncrementalSearchCV(**search.get_params(deep=False) | {"max_iter": 5}).fit(X_CLASS, LABELS)
    assert len(CALLS) == 2 * 5
    alone = IncrementalSearchCV(**longer.get_params(deep=False) | {"checkpoint": None}).fit(X_CLASS, LABELS)
    assert_same_search(longer, alone)


def test_models_that_cannot_be_read_are_trained_again(tmp_path):
    path = tmp_path / "c"
    search = IncrementalSearchCV(SGD, ALPHAS, "grid", max_iter=3, random_state=0, checkpoint=path)
    first = search.fit(X_CLASS, LABELS).best_estimator_
    with sqlite3.connect(path) as file:
        file.execute("UPDATE models SET model = x'00'")
        file.execute("DELETE FROM results WHERE before = 10 AND setting = '2'")
    file.close()
    again = IncrementalSearchCV(**search.get_params(deep=False)).fit(X_CLASS, LABELS)
    np.testing.assert_array_equal(again.best_estimator_.coef_, first.coef_)
    assert again.cv_results_["test_score"].tolist() == search.cv_results_["test_score"].tolist()


def test_models_that_have_ended_leave_the_file(tmp_path):
    path = tmp_path / "c"
    HyperbandSearchCV(SGD, SPACE, max_iter=9, random_state=0, checkpoint=path).fit(X_CLASS, LABELS)
    with sqlite3.connect(path) as file:
        (n,) = file.execute("SELECT count(*) FROM models").fetchone()
    file.close()
    assert n < 17


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"estimator": MultinomialNB()}, "estimator"),
        ({"parameters": {"alpha": [1.0, 2.0]}}, "settings"),
        ({"fits_per_score": 2}, "calls of partial_fit"),
        ({"random_state": 1}, "folds"),
        ({"scoring": "f1_macro"}, "scorers"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_file_of_another_search_is_refused(tmp_path, changed, named):
    given = {"max_iter": 3, "random_state": 0, "checkpoint": tmp_path / "c"}
    search = IncrementalSearchCV(SGD, ALPHAS, "grid", **given).fit(abs(X_CLASS), LABELS)
    with pytest.raises(ValueError, match=f"belongs to another search(.|\n)*- {named}"):
        search.set_params(**changed).fit(abs(X_CLASS), LABELS)


def test_a_random_search_has_no_checkpoint(tmp_path):
    for given in ({}, {"random_state": 0, "estimator": SGDClassifier()}):
        search = IncrementalSearchCV(SGD, ALPHAS, "grid", max_iter=2, checkpoint=tmp_path / "c")
        with pytest.raises(ValueError, match="random_state of the"):
            search.set_params(**given).fit(X_CLASS, LABELS)


def test_a_search_that_draws_nothing_needs_no_random_state(tmp_path):
    options = {"max_iter": 2, "cv": KFold(2), "checkpoint": tmp_path / "c"}
    IncrementalSearchCV(Counted(random_state=0), ALPHAS, "grid", **options).fit(X_CLASS, LABELS)
    CALLS.clear()
    IncrementalSearchCV(Counted(random_state=0), ALPHAS, "grid", **options).fit(X_CLASS, LABELS)
    assert len(CALLS) == 2, "of the best setting, on all rows"
    with pytest.raises(ValueError, match="random_state of the search is None"):
        IncrementalSearchCV(SGD, ALPHAS, 5, **options).fit(X_CLASS, LABELS)
    halving = HalvingGridSearchCV(
        DecisionTreeClassifier(random_state=0), {"min_samples_leaf": [1, 2, 9]}, resource="max_depth",
        max_resources=9, cv=KFold(2), checkpoint=tmp_path / "h",
    )  # fmt: skip
    halving.fit(X_CLASS, LABELS)
    with pytest.raises(ValueError, match="random_state of the search is None"):
        halving.set_params(resource="n_samples", max_resources="auto").fit(X_CLASS, LABELS)


class Unpicklable(SGDClassifier):
    """Holds a lambda, as models with functions of a user do."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        self.function_ = lambda: None
        return super().partial_fit(X, y, classes, sample_weight)


def test_models_that_cannot_be_pickled_are_named_once(tmp_path):
    options = {"max_iter": 3, "random_state": 0}
    search = IncrementalSearchCV(Unpicklable(), ALPHAS, "grid", checkpoint=tmp_path / "c", **options)
    search.set_params(estimator__random_state=0)
    with pytest.warns(RuntimeWarning, match="gets no models of Unpicklable, only their scores") as warned:
        search.fit(X_CLASS, LABELS)
    assert len(warned) == 1
    with pytest.warns(RuntimeWarning, match="gets no models of Unpicklable"):
        longer = search.set_params(max_iter=4).fit(X_CLASS, LABELS)
    assert_same_search(
        longer, IncrementalSearchCV(SGD, ALPHAS, "grid", **options | {"max_iter": 4}).fit(X_CLASS, LABELS)
    )
