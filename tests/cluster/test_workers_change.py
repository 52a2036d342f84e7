"""A search waits for no single worker, and workers may join or leave."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from distributed import Client, Event, Status, Worker

from manyfit.model_selection import GridSearchCV
from tests.cluster._awkward import Awkward
from tests.cluster._clusters import in_seconds, within, workers_with
from tests.cluster._placement import X, Y, scores, search
from tests.cluster._processes import wait_for

pytestmark = pytest.mark.slow


# ------------------------------------------------------------------------------------------ workers


@pytest.mark.invariant("A search waits for no single worker, and workers may join or leave")
def test_a_paused_worker_is_not_waited_for(three):
    first = min(three.nthreads())

    async def pause(dask_worker: Worker) -> None:
        dask_worker.status = Status.paused

    three.run(pause, workers=[first])
    wait_for(lambda: three.scheduler_info(n_workers=-1)["workers"][first]["status"] == "paused")
    with in_seconds(10):
        search().fit(X, Y)


@pytest.mark.invariant("A search waits for no single worker, and workers may join or leave")
def test_a_busy_worker_is_not_waited_for(three):
    go_on = Event("go on")
    first = min(three.nthreads())
    busy = three.submit(lambda: Event("go on").wait(60), workers=[first], pure=False)
    wait_for(lambda: any(three.processing().values()))
    try:
        search(20, seconds=0.01).fit(X, Y)
        assert not busy.done()
    finally:
        go_on.set()


@pytest.mark.invariant("A search waits for no single worker, and workers may join or leave")
def test_workers_that_leave_are_no_deaths():
    """As those of a cluster that grows and shrinks do."""
    with workers_with(w0={"nthreads": 1}, w1={"nthreads": 1}) as client:
        stop, cluster = threading.Event(), client.cluster

        def churn() -> None:
            for i in range(2, 40):
                if stop.wait(0.2):
                    return
                cluster.worker_spec[f"w{i}"] = {"cls": Worker, "options": {"nthreads": 1}}
                cluster.sync(cluster._correct_state)
                # As `Adaptive` does; without it the scheduler only sees that a worker is gone.
                client.retire_workers([cluster.workers[f"w{i - 2}"].address])
                cluster.worker_spec.pop(f"w{i - 2}")
                cluster.sync(cluster._correct_state)

        thread = threading.Thread(target=churn)
        thread.start()
        try:
            found = search(6, seconds=0.1).fit(X, Y)
        finally:
            stop.set()
            thread.join()
    assert not np.isnan(scores(found)).any()


@pytest.mark.invariant("A search waits for no single worker, and workers may join or leave")
def test_a_cluster_grows_with_the_search():
    with within(1) as client:
        client.cluster.adapt(minimum=1, maximum=4, interval="100ms", target_duration="1s")
        most = [0]
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.1):
                most[0] = max(most[0], len(client.nthreads()))

        thread = threading.Thread(target=watch)
        thread.start()
        search(20, seconds=0.2).fit(X, Y)
        done.set()
        thread.join()
    assert most[0] == 4


def test_an_asynchronous_client_is_refused():
    async def main() -> None:
        async with Client(processes=False, asynchronous=True, dashboard_address=":0") as client:
            with pytest.raises(TypeError, match="client is asynchronous"):
                GridSearchCV(Awkward(), {"value": [0]}, client=client).fit(X, Y)

    asyncio.run(main())


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_leaves_the_client_behind(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        """
import os
import numpy as np
from distributed import Client
from sklearn.tree import DecisionTreeClassifier
from manyfit.model_selection import GridSearchCV, cross_validate
X, y = np.random.default_rng(0).normal(size=(600, 5)), np.arange(600) % 2
search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2)
with Client(n_workers=1, processes=False, dashboard_address=":0"):
    search.fit(X, y)
    child = os.fork()
    if child == 0:
        search.fit(X, y)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    ended = subprocess.run([sys.executable, str(script)], timeout=60, capture_output=True, text=True)
    assert ended.stdout.strip() == "7", ended.stderr


def test_tasks_that_wait_on_a_paused_worker_go_to_others(three):
    """The worker is paused for good when it has one that runs and one that waits."""
    stop = threading.Event()

    async def pause(dask_worker: Worker) -> str | None:
        states = [task.state for key, task in dask_worker.state.tasks.items() if "one_by_one" in str(key)]
        if "executing" not in states or "ready" not in states:
            return None
        dask_worker.status = Status.paused
        return str(dask_worker.address)

    found: list[str] = []

    def until_one_is_paused() -> None:
        while not found and not stop.wait(0.02):
            for address in three.nthreads():
                paused = three.run(pause, workers=[address])[address]
                if paused:
                    found.append(paused)
                    return

    thread = threading.Thread(target=until_one_is_paused)
    thread.start()
    there = search(16, seconds=0.3).fit(X, Y)
    stop.set()
    thread.join()
    assert found
    np.testing.assert_array_equal(scores(there), scores(search(16, client=False).fit(X, Y)))


def test_a_fit_that_ends_its_process_is_an_error(three):
    class Ends(Awkward):
        def fit(self, X: Any, y: Any) -> Ends:
            raise SystemExit(3)

    with pytest.raises(RuntimeError, match=r"A fit on the worker .* ended with SystemExit\(3\)"):
        GridSearchCV(Ends(), {"value": [0]}, cv=2).fit(X, Y)


def test_data_are_sent_again_where_a_worker_was_just_lost(three, watch, monkeypatch):
    failures = [OSError("the worker is gone")]

    def fail(*args: Any, **kwargs: Any) -> None:
        if failures:
            raise failures.pop()

    watch(Client, "scatter", fail)
    assert not np.isnan(scores(search().fit(X, Y))).any()
    assert not failures
    monkeypatch.setattr("manyfit.cluster.pool.item_run.CHECK_S", 0.01)
    failures.extend([OSError("the worker is gone")] * 1000)
    with pytest.raises(RuntimeError, match="could not send its data to the cluster at inproc"):
        search().fit(X.copy(), Y)
