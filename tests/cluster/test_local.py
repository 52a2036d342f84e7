"""Tasks run in order, here or in joblib's workers."""

from __future__ import annotations

import os
import threading
import time

import joblib
import pytest

from manyfit.model_selection.job import _joblib_tasks
from manyfit.model_selection.job._joblib_tasks import joblib_workers, run_tasks, run_tasks_unordered
from manyfit.model_selection.results._progress_bar import Progress


def double(x):
    return 2 * x, os.getpid(), threading.get_ident()


def fail(x):
    if x == 2:
        raise ValueError(f"task {x}")
    return x


def pause(x):
    time.sleep(0.01)
    return x


def run(task, n, n_jobs):
    return list(run_tasks(task, [(i,) for i in range(n)], n_jobs, "2*n_jobs"))


@pytest.mark.invariant("Results arrive in order, and a reader that stops also stops the tasks")
@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_results_come_in_order(n_jobs):
    assert [r[0] for r in run(double, 7, n_jobs)] == [0, 2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("n", [1, 2, 4, 9])
def test_results_come_as_tasks_end(backend, n):
    with joblib.parallel_config(backend):
        found = list(run_tasks_unordered(double, [(i,) for i in range(n)], 2, "2*n_jobs", 1))
    assert sorted(one for one, *_ in found) == [2 * i for i in range(n)]


def test_a_reader_is_woken_when_a_task_ends(monkeypatch):
    woken = []

    class Recorded(threading.Event):
        def wait(self, timeout=None):
            woken.append(super().wait(60.0))
            return woken[-1]

    monkeypatch.setattr(_joblib_tasks, "Event", Recorded)
    found = list(run_tasks_unordered(pause, [(i,) for i in range(12)], 2, "2*n_jobs", 1))
    assert sorted(found) == list(range(12))
    assert all(woken)


def test_an_error_ends_results_that_come_as_tasks_end():
    with joblib.parallel_config("threading"), pytest.raises(ValueError, match="task 2"):
        list(run_tasks_unordered(fail, [(i,) for i in range(20)], 2, "2*n_jobs", 1))


def test_one_worker_is_this_thread():
    assert {r[1:] for r in run(double, 3, None)} == {(os.getpid(), threading.get_ident())}


def test_two_workers_are_other_processes():
    assert os.getpid() not in {r[1] for r in run(double, 4, 2)}


@pytest.mark.invariant("The user's joblib context takes effect")
def test_the_users_context_counts():
    assert joblib_workers(None) == 1 and joblib_workers(2) == 2
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert joblib_workers(None) == 3 and joblib_workers(2) == 2
        assert {r[1] for r in run(double, 4, None)} == {os.getpid()}
        assert threading.get_ident() not in {r[2] for r in run(double, 8, None)}


def test_a_single_task_needs_no_worker():
    assert [r[1] for r in run(double, 1, 2)] == [os.getpid()]


def test_no_tasks():
    assert run(double, 0, 2) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_reach_the_caller(n_jobs):
    with pytest.raises(ValueError, match="task 2"):
        run(fail, 6, n_jobs)


@pytest.mark.invariant("Results arrive in order, and a reader that stops also stops the tasks")
@pytest.mark.filterwarnings("ignore:.*tasks which were still being processed")  # joblib says what it stopped
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_whoever_stops_reading_stops_the_tasks(n_jobs):
    results = run_tasks(double, [(i,) for i in range(20)], n_jobs, "2*n_jobs")
    assert next(results)[0] == 0
    results.close()
    with pytest.raises(StopIteration):
        next(results)


def test_a_backend_that_does_not_stream():
    with joblib.parallel_config(backend="multiprocessing"):
        assert [r[0] for r in run(double, 4, 2)] == [0, 2, 4, 6]


@pytest.mark.parametrize(("verbose", "shown"), [(0, False), (1, True), (2, False)])
def test_the_bar_is_shown_where_asked_for(verbose, shown, capsys):
    with Progress(4, verbose) as bar:
        bar.done(4)
    assert ("fits" in capsys.readouterr().err) is shown
