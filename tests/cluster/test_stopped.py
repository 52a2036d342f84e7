"""A worker that is stopped, not dead: its connections stay, and it answers nothing. Nobody waits for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import cloudpickle
import numpy as np
import pytest
from distributed import Client
from joblib import Parallel, delayed, parallel_config

import manyfit.joblib_backend  # noqa: F401 - registers the backend
from manyfit.cluster import local_cluster
from manyfit.cluster.inspection.scheduler_info import get_workers
from manyfit.cluster.pool import worker_monitor
from manyfit.cluster.pool.resource_queue import memory_left
from manyfit.model_selection import GridSearchCV
from tests.cluster import _awkward
from tests.cluster._awkward import Awkward, fits
from tests.cluster._clusters import forking, in_seconds, meanwhile
from tests.cluster._processes import wait_for

cloudpickle.register_pickle_by_value(_awkward)
pytestmark = pytest.mark.slow

rng = np.random.default_rng(0)
SMALL = rng.normal(size=(3_000, 5)), rng.integers(0, 3, 3_000)
# Before so much is sent to a worker, it is asked for room: 48 MB.
LARGE = np.ones((300_000, 20))
# Less than the scheduler's worker-ttl of five minutes, after which Dask itself gives a worker up.
LIMIT_S = 150.0


@pytest.fixture(scope="module")
def started() -> Iterator[Client]:
    with forking(), local_cluster(2, gpu=False) as client:
        yield client


@pytest.fixture
def client(started: Client) -> Iterator[Client]:
    started.wait_for_workers(2, timeout=120)
    with started.as_current():
        yield started


def first_receiver(client: Client) -> str:
    """The worker that data are sent to: the one with the most memory left."""
    workers = get_workers(client)
    return max(sorted(workers), key=lambda one: memory_left(workers[one]))


@contextmanager
def stopped(client: Client, address: str, after: float = 0.0) -> Iterator[None]:
    """The process of a worker is stopped, and goes on at the end."""
    pid = client.run(os.getpid, workers=[address])[address]
    timer = meanwhile(after, os.kill, pid, signal.SIGSTOP)
    if not after:
        timer.join()
    try:
        yield
    finally:
        timer.cancel()
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: address in client.run(os.getpid, workers=[address], on_error="ignore"), "the worker")


def _search(folder: Any, seconds: float = 0.05) -> GridSearchCV:
    estimator = Awkward(seconds=seconds, folder=str(folder))
    return GridSearchCV(estimator, {"value": list(range(10))}, cv=2, refit=False)


@pytest.mark.invariant("A search goes on without workers that stop answering or never end a fit")
@pytest.mark.parametrize(
    "after", [pytest.param(0.0, marks=pytest.mark.thorough), pytest.param(0.7, id="in the middle")]
)
def test_a_search_goes_on_without_it(after, client, tmp_path):
    """What it was at is done by the other worker, and so is what it has."""
    X, y = SMALL
    expected = _search(tmp_path, 0.0).set_params(client=False).fit(X, y).cv_results_["mean_test_score"]
    before = len(fits(tmp_path))
    with stopped(client, first_receiver(client), after), in_seconds(LIMIT_S):
        found = _search(tmp_path, 0.2).fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(found, expected)
    assert len(fits(tmp_path)) >= before + 20


@pytest.mark.thorough
def test_a_search_does_not_send_its_data_there(client, tmp_path):
    y = np.arange(len(LARGE)) % 2
    with stopped(client, first_receiver(client)), in_seconds(LIMIT_S):
        search = GridSearchCV(Awkward(folder=str(tmp_path)), {"value": [0, 1]}, cv=2, refit=False)
        search.fit(LARGE, y)
    assert len({name.split("-")[0] for name in fits(tmp_path)}) == 1


def where(x: Any, i: int, seconds: float) -> tuple[int, float, int]:
    time.sleep(seconds)
    return i, float(np.sum(x)), os.getpid()


@pytest.mark.invariant("A search goes on without workers that stop answering or never end a fit")
@pytest.mark.parametrize("timeout", [None, pytest.param(LIMIT_S, marks=pytest.mark.thorough)])
def test_a_call_of_parallel_goes_on_without_it(timeout, client):
    """Also where it is to be sent the data, which the caller's thread does."""
    address = first_receiver(client)
    pid = client.run(os.getpid)[address]
    with stopped(client, address), parallel_config(backend="manyfit"), in_seconds(LIMIT_S):
        found = Parallel(timeout=timeout)(delayed(where)(LARGE, i, 0.0) for i in range(4))
    assert [(i, total) for i, total, _ in found] == [(i, LARGE.sum()) for i in range(4)]
    assert pid not in {of for _, _, of in found}


@pytest.mark.thorough
def test_a_call_of_parallel_that_it_has_begun(client):
    data = np.random.default_rng(0).normal(size=50_000)
    stop = stopped(client, first_receiver(client), after=1.0)
    with stop, parallel_config(backend="manyfit"), in_seconds(LIMIT_S):
        found = Parallel(batch_size=1)(delayed(where)(data, i, 0.2) for i in range(30))
    assert [(i, total) for i, total, _ in found] == [(i, data.sum()) for i in range(30)]


def test_workers_that_are_all_stopped_are_waited_for_with_a_word(monkeypatch, watch, client):
    """There is no other way, and they may go on: here as soon as it is said."""
    monkeypatch.setattr("manyfit.cluster.pool.held_workers.WARN_SILENT_S", 4.0)
    addresses = sorted(client.nthreads())
    with stopped(client, addresses[0]), stopped(client, addresses[1]):
        pids = [worker.process.pid for worker in client.cluster.workers.values()]
        go_on = [partial(os.kill, pid, signal.SIGCONT) for pid in pids]
        watch(worker_monitor, "_warn", lambda text: [one() for one in go_on])
        with pytest.warns(RuntimeWarning, match="has not answered for .* client.restart.. restarts"):
            GridSearchCV(Awkward(), {"value": [0, 1]}, cv=2, refit=False).fit(*SMALL)
