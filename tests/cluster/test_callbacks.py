"""Callbacks (scikit-learn 1.9 and later) hear of fits on workers what they hear of fits here."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.cluster import local_cluster
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.running.cluster import _remote_callbacks as _callbacks
from tests._callback_recorder import Deaf, Recorder
from tests.cluster._clusters import at_once, forking, within

callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")

X, Y = make_classification(120, 4, n_redundant=0, random_state=0)
GRID = {"alpha": [0.1, 1.0, 10.0]}


def unreachable():
    """On a worker: as if it were on another machine, where the sockets of this one are not."""
    from sklearn.callback import _transport

    def refuse(*args, **kwargs):
        raise ConnectionRefusedError("another machine")

    _transport.Client = refuse


def hears_nothing_more():
    from sklearn.callback import _transport

    return set(_transport._message_consumers) <= set(_transport._listeners) and not _callbacks._held_messages


@pytest.fixture(scope="module")
def elsewhere():
    with forking(), local_cluster(2) as client:
        client.run(unreachable)
        yield client


@pytest.fixture(scope="module")
def inside():
    with within(2, threads=2) as client:
        yield client


@pytest.fixture(params=["elsewhere", "inside"])
def client(request):
    return request.getfixturevalue(request.param)


def of_workers(search, client):
    """Whether the fits were made there, and nothing is left of it."""
    assert search.report_.workers == sum(client.nthreads().values())
    return all(client.run(hears_nothing_more).values()) or "inproc" in client.scheduler.address


@pytest.mark.invariant("Callbacks receive the calls that they receive in scikit-learn")
def test_a_monitor_of_a_step_has_the_scores_of_all_iterations(client):
    logs = {}
    for cls, more in ((GridSearchCV, {"client": client}), (model_selection.GridSearchCV, {})):
        monitor = callback.ScoringMonitor(scoring=["accuracy", "neg_log_loss"])
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=8).set_callbacks(monitor))
        search = cls(model, {"logisticregression__C": [0.1, 1.0]}, cv=3, refit=False, **more).fit(X, Y)
        logs[cls] = monitor.get_logs(include_lineage=True).data
        if more:
            assert of_workers(search, client)
    ours, theirs = logs.values()
    assert len(ours) == len(theirs) > 2 * 3 * 4
    for mine, other in zip(ours, theirs, strict=True):
        scores = {name: value for name, value in other.items() if isinstance(value, float)}
        assert {name: mine[name] for name in scores} == pytest.approx(scores, rel=1e-9)
        assert mine | scores == other


def test_the_progress_bar_comes_to_its_end(client, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, refit=False, client=client)
    search.set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert of_workers(search, client)
    bars = [line for line in capfd.readouterr().out.splitlines() if "GridSearchCV" in line]
    assert len(bars) == 1 + 1 + 2 * 3  # of the search twice, and of the solver of each fit
    assert all("100%" in line for line in bars)


@pytest.fixture
def counters(monkeypatch):
    """Have callbacks of this module's classes count as those of scikit-learn."""
    monkeypatch.setattr(_callbacks, "MESSAGING_MODULES", ("sklearn.callback.", __name__))


class Counter(Deaf):
    """Hears of the ends of tasks by messages, as those of scikit-learn; of the search and of its refit."""

    def __init__(self):
        self.heard = []
        self.handle = _transport().open_listener(self.heard.append, owner=self)

    def __getstate__(self):
        return {"handle": self.handle, "heard": []}

    def on_fit_task_end(self, estimator, context, **kwargs):
        _transport().send(self.handle, (context.task_name, context.task_id, threading.get_ident()))


def _transport():
    from sklearn.callback import _transport

    return _transport


@pytest.mark.invariant("Callbacks receive the calls that they receive in scikit-learn")
def test_searches_at_once_hear_each_of_its_own_fits(client, counters):
    counters = [Counter() for _ in range(3)]
    searches = [
        GridSearchCV(Ridge(), GRID, cv=3, refit=False, client=client).set_callbacks(one) for one in counters
    ]
    at_once(*(partial(search.fit, X, Y) for search in searches))
    for one in counters:
        ends = [task_id for name, task_id, _ in one.heard if name == "candidate-split-evaluation"]
        assert sorted(ends) == list(range(9))
    assert of_workers(searches[0], client)


def test_a_fit_that_fails_is_heard_as_here(client, counters):
    heard, scores = [], []
    for where in (client, False):
        counter = Counter()
        options = {"cv": 2, "refit": False, "client": where, "error_score": -1.0}
        search = GridSearchCV(Ridge(), {"alpha": [1.0, -1.0]}, **options).set_callbacks(counter)
        with pytest.warns(FitFailedWarning):
            scores.append(search.fit(X, Y).cv_results_["mean_test_score"])
        heard.append(sorted(entry[:2] for entry in counter.heard))
    assert heard[0] == heard[1]
    np.testing.assert_array_equal(*scores)


def test_a_class_of_the_users_may_keep_something_itself(inside):
    class Notes(callback.ScoringMonitor):
        def on_fit_task_end(self, *args, **kwargs):
            super().on_fit_task_end(*args, **kwargs)
            self.noted = getattr(self, "noted", 0) + 1

    notes = Notes(scoring="accuracy")
    model = LogisticRegression(max_iter=30).set_callbacks(notes)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3, refit=False, client=inside).fit(X, Y)
    assert search.report_.workers == 1
    assert notes.noted >= 6


def test_what_a_callback_keeps_itself_keeps_the_search_here(inside):
    recorder = Recorder()
    search = GridSearchCV(Ridge(), GRID, cv=3, client=inside).set_callbacks(recorder).fit(X, Y)
    assert search.report_.workers == 1
    assert recorder.ended.count("candidate-split-evaluation") == 9


class Bare(Deaf):
    """Keeps what it hears, in slots."""

    __slots__ = ("ends",)

    def __init__(self):
        self.ends = 0

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.ends += 1


def test_a_callback_without_a_dictionary_is_heard(inside):
    bare = Bare()
    search = GridSearchCV(Ridge(), GRID, cv=3, refit=False, client=inside).set_callbacks(bare).fit(X, Y)
    assert search.report_.workers == 1
    assert bare.ends >= 9


def test_callbacks_of_an_estimator_in_the_grid_are_heard(inside):
    heard = []
    for client in (inside, False):
        monitor = callback.ScoringMonitor(scoring="accuracy")
        step = LogisticRegression(max_iter=8).set_callbacks(monitor)
        grid = {"last": [step, make_pipeline(StandardScaler(), step)]}
        model = Pipeline([("first", StandardScaler()), ("last", LogisticRegression())])
        search = GridSearchCV(model, grid, cv=2, refit=False, client=client).fit(X, Y)
        assert search.report_.workers == 1
        heard.append(sum(len(log.data) for log in monitor.get_logs(select="all")))
    assert heard[0] == heard[1] > 2 * 2 * 4
