"""Fits that never end: after an interrupt their workers are free again, or a search says what holds them."""

from __future__ import annotations

import _thread
import re
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
from distributed import Client, Worker
from sklearn.model_selection import ShuffleSplit

from manyfit.cluster import local_cluster
from manyfit.cluster.worker.cancelled_tasks import GRACE_S
from manyfit.model_selection import GridSearchCV
from tests.cluster import _awkward
from tests.cluster._awkward import Awkward
from tests.cluster._clusters import by_hand, forking, meanwhile, pids
from tests.cluster._processes import wait_for

cloudpickle.register_pickle_by_value(_awkward)
pytestmark = pytest.mark.slow

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(400, 5)), rng.integers(0, 3, 400)
FOREVER_S = 1e6


def interrupted(client: Client, seconds: float = FOREVER_S, n: int = 2) -> None:
    """A search whose fits never end on `n` workers, and that is interrupted."""

    async def at_it(dask_worker: Worker) -> int:
        return len(dask_worker.state.executing)

    def interrupt() -> None:
        wait_for(lambda: sum(client.run(at_it).values()) >= n, "the fits")
        _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    grid, one_split = {"value": list(range(n))}, ShuffleSplit(1, random_state=0)
    search = GridSearchCV(Awkward(seconds=seconds), grid, cv=one_split, refit=False)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)


def search(**params: Any) -> GridSearchCV:
    return GridSearchCV(Awkward(), {"value": [0, 1, 2, 3]}, cv=2, refit=False, **params)


@pytest.fixture(scope="module")
def client():
    with forking(), local_cluster(2, gpu=False) as client:
        yield client


# A slow machine takes longer than ten seconds to start them.
WAITS = "ignore:The search waits for a worker"


@pytest.mark.invariant("A search goes on without workers that stop answering or never end a fit")
@pytest.mark.filterwarnings(WAITS)
def test_their_workers_start_again(client):
    before = pids(client)
    interrupted(client)
    start = time.monotonic()
    assert search().fit(X, Y).report_.fits_done == 8
    assert time.monotonic() - start > 0.5 * GRACE_S  # the fits had time to end by themselves
    wait_for(lambda: len(pids(client)) == 2, "both workers")
    assert not before & pids(client)


@pytest.mark.thorough
def test_a_fit_that_ends_within_the_grace_keeps_its_worker(client):
    wait_for(lambda: len(pids(client)) == 2, "both workers")
    before = pids(client)
    interrupted(client, seconds=3.0)
    time.sleep(GRACE_S)
    assert search().fit(X, Y).report_.fits_done == 8
    assert pids(client) == before


@pytest.mark.thorough
def test_a_worker_with_results_of_others_is_left_as_it_is(client):
    """Another client's data would go with its process."""
    wait_for(lambda: len(pids(client)) == 2, "both workers")
    addresses = sorted(client.nthreads())
    with Client(client.cluster, set_as_default=False) as other:
        theirs = [other.submit(int, i, workers=[address], pure=False) for i, address in enumerate(addresses)]
        assert other.gather(theirs) == [0, 1]
        before = pids(client)
        interrupted(client)
        time.sleep(2 * GRACE_S)
        assert pids(client) == before
        assert other.gather(theirs) == [0, 1]
        for one in theirs:
            one.release()
        del theirs
        wait_for(lambda: not pids(client) & before, "other processes")


@pytest.mark.thorough
def test_a_search_whose_workers_are_all_held_says_so(tmp_path: Path):
    """There is nothing to do but wait; and it can be interrupted."""
    with by_hand(tmp_path, n_workers=2) as client:
        interrupted(client, n=2)
        timer = meanwhile(2 * GRACE_S, _thread.interrupt_main)
        with (
            pytest.warns(RuntimeWarning, match=r"is busy with .* s ago .*; .* is busy with .* s ago"),
            pytest.raises(KeyboardInterrupt),
        ):
            search().fit(X, Y)
        timer.join()


@pytest.mark.thorough
@pytest.mark.invariant("A search goes on without workers that stop answering or never end a fit")
def test_without_a_nanny_a_search_goes_on_without_the_worker(tmp_path: Path):
    """One of two workers is held for ever: the other does it all.

    The search warns if a task waits for the worker that is held. The scheduler may give it none, or give the
    task to the other worker in time.
    """
    with by_hand(tmp_path, n_workers=2) as client:
        interrupted(client, n=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert search().fit(X, Y).report_.fits_done == 8
    said = [str(one.message) for one in caught if one.category is RuntimeWarning]
    assert all(re.search(r"is busy with a task that was cancelled \d+ s ago", text) for text in said)
