"""Workers that are short of memory, under Dask's nanny: no search hangs, and nothing is sent for ever."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from distributed import Client
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ShuffleSplit

from manyfit.cluster import WorkerDied, local_cluster
from manyfit.model_selection import GridSearchCV
from tests.cluster._clusters import at_once, in_seconds, meanwhile
from tests.cluster._processes import wait_for

cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["x"]))
pytestmark = [pytest.mark.slow, pytest.mark.thorough]

MB = 10**6
LIMIT = 800 * MB  # a worker takes 230 of them before it does anything
FEW_ROWS = ShuffleSplit(2, train_size=100, test_size=100, random_state=0)


class Hungry(ClassifierMixin, BaseEstimator):
    """Predicts class `value`; for one value its fit takes memory, and gives it back or not."""

    def __init__(
        self, value: int = 0, eats: int | None = None, nbytes: int = 0, leaks: str | None = None, seconds=0.0
    ) -> None:
        self.value, self.eats, self.nbytes, self.leaks, self.seconds = value, eats, nbytes, leaks, seconds

    def fit(self, X: Any, y: Any) -> Hungry:
        time.sleep(self.seconds)
        if self.value == self.eats and not self.leaks:
            food = [np.ones(5 * MB // 8) for _ in range(self.nbytes // (5 * MB))]
            time.sleep(1.0)
            del food
        elif self.value == self.eats:
            with contextlib.suppress(FileExistsError):
                Path(self.leaks).touch(exist_ok=False)  # once
                np.leaked = np.ones(self.nbytes // 8)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return self.classes_[np.full(len(X), self.value % len(self.classes_))]


def data(nbytes: int, seed: int = 0) -> tuple[Any, Any]:
    X = np.zeros((nbytes // 800, 100))
    X[:, 0] = seed
    return X, np.arange(len(X)) % 3


def search(estimator: Any, n: int = 8, **params: Any) -> GridSearchCV:
    return GridSearchCV(estimator, {"value": list(range(n))}, cv=FEW_ROWS, refit=False, **params)


def assert_as_here(found: GridSearchCV, X: Any, y: Any, n: int = 8) -> None:
    here = search(Hungry(), n, client=False).fit(X, y).cv_results_["mean_test_score"]
    scores = found.cv_results_["mean_test_score"]
    kept = ~np.isnan(scores)
    np.testing.assert_array_equal(scores[kept], here[kept])


@pytest.fixture(scope="module")
def started():
    with local_cluster(2, memory_limit=LIMIT) as client:
        client.run(lambda: __import__("manyfit.model_selection") and None)
        yield client


@pytest.fixture
def client(started):
    """Two workers, and at the end nothing of the test left on them."""
    started.wait_for_workers(2, timeout=120)
    yield started
    gc.collect()  # an error's traceback and its frame, which has the data, refer to each other
    started.wait_for_workers(2, timeout=120)
    wait_for(lambda: not any(started.processing().values()), "the end of all tasks")
    wait_for(lambda: not started.who_has(), f"end of {started.who_has()}")
    wait_for(lambda: not any(kept(started).values()), "the end of what workers keep")


def workers(client: Client) -> dict[str, Any]:
    return client.scheduler_info(n_workers=-1)["workers"]


def pids(client: Client) -> dict[str, int]:
    return client.run(os.getpid, on_error="ignore")  # those that are just being started again


def kept(client: Client) -> dict[str, int]:
    def nbytes() -> int:
        from manyfit.cluster.worker.fetch import _stores

        return sum(store.nbytes for store in _stores.values())

    return client.run(nbytes)


def fill(client: Client, address: str, part: float) -> None:
    """Let something take memory of a worker that is no search's."""

    def take(dask_worker: Any) -> None:
        wanted = part * LIMIT - dask_worker.monitor.get_process_memory()
        np.ballast = np.ones(int(wanted) // 8) if part else None

    client.run(take, workers=[address], on_error="ignore")


def occupy(client: Client) -> list[Any]:
    """Somebody's data on each worker: nothing ends its process then."""
    return [client.scatter(np.ones(3) * k, workers=[a], hash=False) for k, a in enumerate(workers(client))]


def is_paused(client: Client, address: str) -> bool:
    return workers(client)[address]["status"] == "paused"


def pause_all(client: Client) -> None:
    for address in workers(client):
        fill(client, address, 0.86)
    wait_for(lambda: all(is_paused(client, address) for address in workers(client)), "the pause")


def free_all(client: Client) -> None:
    for address in workers(client):
        fill(client, address, 0)


@pytest.mark.invariant("A worker that is short of memory loses no result and hangs no search")
def test_data_that_do_not_fit_are_an_error_in_seconds(client):
    before = pids(client)
    X, y = data(int(0.6 * LIMIT))  # with what a worker takes by itself more than Dask starts tasks with
    said = r"data of the search take 4\d\d\.\d+ MiB, and the worker tcp.* has the most"
    with in_seconds(20), pytest.raises(MemoryError, match=said):
        search(Hungry()).fit(X, y)
    X, y = data(2 * LIMIT)
    with pytest.raises(MemoryError, match=r"uses [12]\d\d.* MiB without .* limit: 762.94 MiB\). Give wor"):
        search(Hungry()).fit(X, y)
    assert pids(client) == before
    X, y = data(MB)
    assert_as_here(search(Hungry()).fit(X, y), X, y)


@pytest.mark.invariant("A worker that is short of memory loses no result and hangs no search")
def test_a_paused_worker_is_done_without(client):
    X, y = data(100 * MB)
    one, other = sorted(workers(client))
    theirs = occupy(client)
    fill(client, one, 0.86)
    wait_for(lambda: is_paused(client, one), "the pause")
    with in_seconds(20):
        found = search(Hungry(seconds=0.1)).fit(X, y)
    assert_as_here(found, X, y)
    assert is_paused(client, one)
    assert kept(client)[one] == 0
    assert kept(client)[other] > X.nbytes
    fill(client, one, 0)
    wait_for(lambda: not is_paused(client, one), "the end of the pause")
    search(Hungry(seconds=0.1)).fit(X, y)
    assert kept(client)[one] > X.nbytes
    assert len(client.gather(theirs)) == 2


def test_tasks_that_wait_for_a_paused_worker_go_to_others(client):
    X, y = data(MB)
    one, _ = sorted(workers(client))
    theirs = occupy(client)
    timer = meanwhile(1.0, fill, client, one, 0.86)
    with in_seconds(30):
        found = search(Hungry(seconds=0.4), 12).fit(X, y)
        timer.join()
    assert is_paused(client, one)
    assert_as_here(found, X, y, 12)
    fill(client, one, 0)
    assert len(client.gather(theirs)) == 2


def test_all_workers_paused_for_a_while(client):
    X, y = data(MB)
    pause_all(client)
    timer = meanwhile(3.0, free_all, client)
    found = search(Hungry()).fit(X, y)
    timer.join()
    assert_as_here(found, X, y)


def test_all_workers_paused_for_good_is_an_error(client, monkeypatch):
    monkeypatch.setattr("manyfit.cluster.pool.worker_monitor.PAUSED_S", 2.0)
    theirs = occupy(client)
    pause_all(client)
    with pytest.raises(MemoryError, match=r"All 2 workers at .* have been paused for 2 s"):
        search(Hungry()).fit(*data(MB))
    free_all(client)
    assert len(client.gather(theirs)) == 2


def test_many_searches_on_other_data(client):
    """What no search needs any more makes room: together they are more than a worker has."""
    before = pids(client)
    owned = [data(100 * MB, seed) for seed in range(8)]
    for X, y in owned:
        found = search(Hungry(), 3).fit(X, y)
        assert_as_here(found, X, y, 3)
        assert all(100 * MB <= nbytes <= LIMIT // 2 for nbytes in kept(client).values()), kept(client)
    assert pids(client) == before


def test_two_searches_at_once_that_do_not_fit_together(client):
    before = pids(client)
    found: dict[int, Any] = {}
    sets = {seed: data(220 * MB, seed) for seed in range(2)}

    def run(seed: int) -> None:
        found[seed] = search(Hungry(seconds=0.2), client=client).fit(*sets[seed])

    at_once(*(partial(run, seed) for seed in sets))
    assert pids(client) == before
    for seed, (X, y) in sets.items():
        assert_as_here(found[seed], X, y)


def test_a_worker_under_pressure_lets_go_of_what_nobody_needs(client):
    X, y = data(200 * MB)
    search(Hungry(), 2).fit(X, y)
    one, other = sorted(workers(client))
    assert kept(client)[one] >= X.nbytes
    fill(client, one, 0.75)
    wait_for(lambda: kept(client)[one] < X.nbytes, "room on the worker")
    assert kept(client)[other] >= X.nbytes
    fill(client, one, 0)


@pytest.mark.invariant("A worker that is short of memory loses no result and hangs no search")
def test_memory_that_is_lost_ends_its_process(client, tmp_path):
    """A fit has left it behind, where nothing but the end of the process gives it back."""
    before = set(pids(client).values())
    X, y = data(MB)
    leaking = Hungry(seconds=0.2, eats=3, nbytes=int(0.6 * LIMIT), leaks=str(tmp_path / "leaked"))
    with in_seconds(30):
        found = search(leaking, 12).fit(X, y)
    assert not np.isnan(found.cv_results_["mean_test_score"]).any()
    assert_as_here(found, X, y, 12)
    wait_for(lambda: len(client.nthreads()) == 2 and len(before & set(pids(client).values())) == 1, "another")


@pytest.mark.invariant("A worker that is short of memory loses no result and hangs no search")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_a_setting_that_takes_too_much_memory(error_score, client):
    """It gets the error score, or is named; all others finish."""
    X, y = data(MB)
    greedy = search(Hungry(eats=3, nbytes=2 * LIMIT), error_score=error_score)
    with in_seconds(120):
        if error_score == "raise":
            text = r"fitted \{'value': 3\} on split .* ran out of memory, so that Dask ended it"
            with pytest.raises(WorkerDied, match=text):
                greedy.fit(X, y)
        else:
            with pytest.warns(FitFailedWarning, match="ran out of memory, so that Dask ended"):
                greedy.fit(X, y)
            np.testing.assert_array_equal(np.isnan(greedy.cv_results_["mean_test_score"]), np.arange(8) == 3)
            assert_as_here(greedy, X, y)
