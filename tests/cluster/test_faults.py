"""What goes wrong on a cluster: processes are really killed, and no result is lost."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from typing import Any

import cloudpickle
import dask
import numpy as np
import pytest
from distributed import Client
from sklearn.exceptions import FitFailedWarning

from manyfit.cluster import WorkerDied, local_cluster
from manyfit.model_selection import GridSearchCV
from tests.cluster import _awkward
from tests.cluster._awkward import Awkward, fits
from tests.cluster._clusters import by_hand, forking, in_seconds, kill, meanwhile, pids, within
from tests.cluster._processes import wait_for

cloudpickle.register_pickle_by_value(_awkward)
pytestmark = pytest.mark.slow

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(6_000, 5)), rng.integers(0, 3, 6_000)
VALUES = {"value": list(range(12))}


def search(estimator: Any, **params: Any) -> GridSearchCV:
    return GridSearchCV(estimator, VALUES, cv=2, refit=False, **params)


@pytest.fixture(scope="module")
def expected():
    return search(Awkward(), client=False).fit(X, Y).cv_results_["mean_test_score"]


@pytest.fixture(scope="module")
def started():
    with forking(), local_cluster(2) as client:
        yield client


@pytest.fixture
def client(started):
    """Two workers, which earlier tests may have killed, and at the end nothing of the test left on them."""
    started.wait_for_workers(2, timeout=120)
    yield started
    wait_for(lambda: not any(started.processing().values()), "the end of all tasks")
    wait_for(lambda: not [k for k in started.who_has() if "-array-" not in k], f"end of {started.who_has()}")


@pytest.mark.invariant("No fault of a cluster loses a result, hangs a search or leaves anything behind")
@pytest.mark.parametrize("n_killed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_workers_killed_in_the_middle(n_killed, client, expected, tmp_path):
    """With all of them goes the last holder of the data."""
    processes = sorted(pids(client))[:n_killed]
    meanwhile(0.5, kill, processes)
    found = search(Awkward(seconds=0.1, folder=str(tmp_path))).fit(X, Y)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], expected)
    assert len(fits(tmp_path)) >= 24
    assert not set(processes) & pids(client)


def configured() -> list[Any]:
    names = ("distributed.admin.tick.interval", "distributed.worker.profile.interval")
    return [*map(dask.config.get, names), os.environ.get("MALLOC_TRIM_THRESHOLD_")]


@pytest.mark.thorough
def test_a_worker_that_is_started_again_is_configured_as_before(client):
    before = client.run(configured)
    killed = pids(client)
    with dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}):  # as outside of these tests
        kill(killed)
        wait_for(lambda: len(pids(client) - killed) == 2, "two others")
    assert list(client.run(configured).values()) == list(before.values()) == [["200ms", "50ms", None]] * 2


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_a_setting_that_raises_is_tried_once(client, expected, tmp_path):
    with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 24"):
        found = search(Awkward(raises=3, folder=str(tmp_path))).fit(X, Y)
    scores = found.cv_results_["mean_test_score"]
    assert np.isnan(scores[3])
    np.testing.assert_array_equal(np.delete(scores, 3), np.delete(expected, 3))
    assert sum(name.endswith("-3") for name in fits(tmp_path)) == 2
    with pytest.raises(ValueError, match="no such value"):
        search(Awkward(raises=3), error_score="raise").fit(X, Y)


class Unwilling(float):
    def __reduce__(self) -> Any:
        raise TypeError("this score cannot be pickled")


def _unwilling(estimator: Any, data: Any, target: Any) -> float:
    return Unwilling(1.0)


def _with_a_lock(estimator: Any, data: Any, target: Any, lock: Any = threading.Lock()) -> float:  # noqa: B008
    return 1.0


@pytest.mark.invariant("No fault of a cluster loses a result, hangs a search or leaves anything behind")
def test_what_cannot_be_pickled_is_an_error_in_seconds(client):
    cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["x"]))
    for failing, said in (
        (search(Awkward(holds=threading.Lock())), "cannot pickle"),
        (search(Awkward(), scoring=_with_a_lock), "cannot pickle"),
        (search(Awkward(), scoring=_unwilling), "this score cannot be pickled"),
    ):
        with in_seconds(10), pytest.raises(TypeError, match=said):
            failing.fit(X, Y)


@pytest.mark.invariant("No fault of a cluster loses a result, hangs a search or leaves anything behind")
def test_a_lost_device_ends_its_process(client, expected, tmp_path):
    """Every call would fail in the process that is in this state; another one does the fit."""
    before = pids(client)
    found = search(Awkward(loses=3, folder=str(tmp_path))).fit(X, Y)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], expected)
    wait_for(lambda: len(client.nthreads()) == 2, "the worker in its place")
    assert len(before & pids(client)) == 1


@pytest.mark.invariant("No fault of a cluster loses a result, hangs a search or leaves anything behind")
def test_an_interrupt_stops_the_workers_too(client, tmp_path):
    meanwhile(1.0, _thread.interrupt_main)
    with in_seconds(5), pytest.raises(KeyboardInterrupt):
        search(Awkward(seconds=0.4, folder=str(tmp_path))).fit(X, Y)
    wait_for(lambda: not any(client.processing().values()), "the end of all tasks")
    n = len(fits(tmp_path))
    assert n < 20
    time.sleep(1.0)
    assert len(fits(tmp_path)) <= n + 2  # each worker may have begun one before it heard of it
    np.testing.assert_equal(search(Awkward()).fit(X, Y).report_.fits_done, 24)


def test_an_interrupt_of_a_terminal_is_left_to_the_client(client, expected, tmp_path):
    """It comes to every process that the terminal started; workers that went by it would be missed."""
    processes = pids(client)

    def interrupt() -> None:
        for pid in processes:
            os.kill(pid, signal.SIGINT)

    meanwhile(0.5, interrupt)
    found = search(Awkward(seconds=0.1, folder=str(tmp_path))).fit(X, Y)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], expected)
    assert processes == pids(client)
    assert len(fits(tmp_path)) == 24


def test_a_module_that_a_worker_lacks_is_an_error_that_says_where(client, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text(
        "from sklearn.linear_model import Ridge\nclass Mine(Ridge):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with pytest.raises(ModuleNotFoundError, match="only_here") as raised:
        GridSearchCV(only_here.Mine(), {"alpha": [1.0, 2.0]}, cv=2, refit=False).fit(X, Y)
    assert any(address in "".join(raised.value.__notes__) for address in client.nthreads())


def test_no_worker_is_waited_for_aloud(monkeypatch, expected):
    monkeypatch.setattr("manyfit.cluster.pool.worker_monitor.NO_WORKER_S", 0.3)
    said = "The search waits for a worker at .* Start one, or interrupt"
    with within(0) as client:
        meanwhile(2.0, client.cluster.scale, 1)
        with pytest.warns(RuntimeWarning, match=said):
            found = search(Awkward(), client=client).fit(X, Y)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], expected)


@pytest.mark.invariant("No fault of a cluster loses a result, hangs a search or leaves anything behind")
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_goes_away_is_an_error_in_seconds(tmp_path):
    with by_hand(tmp_path, nanny=True, default=False) as client, in_seconds(30):
        meanwhile(2.0, kill, [client.run_on_scheduler(os.getpid)])
        with pytest.raises(ConnectionError, match="The scheduler at .* went away"):
            search(Awkward(seconds=1.0), client=client).fit(X, Y)


WAITS = "ignore:The search waits for a worker"  # a slow machine takes longer than ten seconds to start one


@pytest.mark.thorough
@pytest.mark.filterwarnings(WAITS, "ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("ours", [True, False])
def test_a_setting_that_kills_its_worker_at_once(ours, tmp_path):
    """On a cluster that Dask starts it closes workers that are not back in time; none is left then."""
    grid = {"value": [0, 1, 2, 3]}
    cluster = local_cluster if ours else _dask_alone
    with cluster(2) as client:
        killer = GridSearchCV(Awkward(exits=2), grid, cv=2, refit=False, client=client)
        with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 8"):
            scores = killer.fit(X, Y).cv_results_["mean_test_score"]
        np.testing.assert_array_equal(np.isnan(scores), [False, False, True, False])
        client.wait_for_workers(2, timeout=120)


def _dask_alone(n_workers: int) -> Client:
    return Client(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")


@pytest.mark.thorough
@pytest.mark.filterwarnings(WAITS)
def test_workers_that_nobody_starts_again_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("manyfit.cluster.pool.worker_monitor.NO_WORKER_LEFT_S", 5.0)
    said = "nothing starts others. .* Start workers with a nanny"
    with by_hand(tmp_path, default=False) as client, pytest.raises(WorkerDied, match=said):
        search(Awkward(exits=2), client=client).fit(X, Y)


@pytest.mark.invariant("No fault of a cluster loses a result, hangs a search or leaves anything behind")
@pytest.mark.thorough
@pytest.mark.filterwarnings(WAITS, "ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_a_setting_that_kills_its_worker(error_score, expected):
    """It gets the error score, or is named; all others finish."""
    with local_cluster(3) as client:
        killer = search(Awkward(kills=3), client=client, error_score=error_score)
        if error_score == "raise":
            with pytest.raises(WorkerDied, match=r"died each time that it fitted \{'value': 3\} on split"):
                killer.fit(X, Y)
        else:
            with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 24"):
                scores = killer.fit(X, Y).cv_results_["mean_test_score"]
            assert np.isnan(scores[3])
            np.testing.assert_array_equal(np.delete(scores, 3), np.delete(expected, 3))
