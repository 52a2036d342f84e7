"""Workers, clients and schedulers that go away end a call in seconds, or it goes on without them."""

from __future__ import annotations

import os
import signal
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from distributed import Client, Future, KilledWorker, Status, Worker
from joblib import Parallel, delayed, parallel_config

from manyfit.cluster import WorkerDied, local_cluster
from manyfit.cluster.pool.placement import get_placement
from manyfit.joblib_backend._shared_arguments import SharedArguments
from tests.cluster._clusters import by_hand, in_seconds, kill, meanwhile, nothing_is_left, pids, within
from tests.cluster._processes import wait_for
from tests.joblib_backend._calls import SECONDS, fails_at, identity

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _in_seconds() -> Any:
    with in_seconds(60):
        yield


# ------------------------------------------------------------------------------------------ the cluster


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
def test_no_worker():
    with within(0), parallel_config(backend="manyfit", wait_for_workers_timeout=0.3):
        with pytest.raises(TimeoutError, match="no worker after 0.3 seconds"):
            Parallel()(delayed(identity)(i) for i in range(4))
        with (
            pytest.raises(RuntimeError, match="no active worker"),
            parallel_config(backend="manyfit", wait_for_workers_timeout=0),
        ):
            Parallel()(delayed(identity)(i) for i in range(4))


def test_no_worker_with_what_tasks_need(two):
    with (
        parallel_config(backend="manyfit", resources={"GPU": 1}, wait_for_workers_timeout=0.3),
        pytest.raises(TimeoutError, match="no worker that declares the resources 1 of GPU after 0.3"),
    ):
        Parallel()(delayed(identity)(i) for i in range(4))


def test_workers_that_leave_in_the_middle():
    with within(1) as client:
        meanwhile(0.3, client.cluster.scale, 0)
        with (
            parallel_config(backend="manyfit", wait_for_workers_timeout=1.0),
            pytest.raises(TimeoutError, match="no worker after 1 seconds"),
        ):
            Parallel(batch_size=1)(delayed(time.sleep)(0.1) for i in range(100))
        nothing_is_left(client)


def test_workers_that_come_late_are_waited_for():
    with within(0) as client:
        meanwhile(0.5, client.cluster.scale, 1)
        found = Parallel(backend="manyfit")(delayed(identity)(i) for i in range(8))
    assert found == list(range(8))


def test_nothing_waits_for_a_worker_that_takes_nothing():
    """Dask does, with what it is to send there."""

    async def pause(dask_worker: Worker) -> None:
        dask_worker.status = Status.paused

    with within(1, memory_limit=0) as client:
        (first,) = client.nthreads()
        client.run(pause)
        wait_for(lambda: client.scheduler_info()["workers"][first]["status"] == "paused", "the pause")
        with in_seconds(SECONDS), pytest.raises(ConnectionError, match="is paused"):
            get_placement(client).send({"a": np.ones(2)}, first)


@pytest.mark.thorough
def test_a_cluster_that_is_restarted_in_the_middle():
    with local_cluster(2, gpu=False) as client:
        data = np.random.default_rng(0).normal(size=50_000)
        meanwhile(1.0, client.restart)
        with in_seconds(50), parallel_config(backend="manyfit", wait_for_workers_timeout=40):
            found = Parallel(batch_size=1)(delayed(_sum)(data, i, 0.1) for i in range(40))
        assert found == [data.sum() + i for i in range(40)]


def test_a_client_that_is_closed_in_the_middle():
    said = "went away in the middle of the call of Parallel"
    with within(1) as client:
        meanwhile(0.5, client.close)
        with in_seconds(SECONDS), pytest.raises(ConnectionError, match=said):
            Parallel(backend="manyfit", batch_size=1)(delayed(time.sleep)(0.1) for i in range(100))


def test_tasks_that_others_cancel_are_handed_out_again(two):
    cancelled: list[Future] = []

    def cancel() -> None:
        cancelled.extend(Future(key, two) for key in list(two.futures))
        two.cancel(cancelled, force=True)

    timer = meanwhile(0.25, cancel)
    found = Parallel(backend="manyfit", batch_size=1)(delayed(fails_at)(i, -1) for i in range(40))
    timer.join()
    assert found == list(range(40))
    assert cancelled


def test_workers_that_died_are_named(two, monkeypatch):
    async def killed(*args: Any, **options: Any) -> None:
        raise KilledWorker("task", SimpleNamespace(address="tcp://10.0.0.7:1234"), 3)

    monkeypatch.setattr(Client, "gather", killed)
    with pytest.raises(WorkerDied, match="died each time that they ran batch_of_identity") as raised:
        Parallel(backend="manyfit")(delayed(identity)(i) for i in range(4))
    assert "tcp://10.0.0.7:1234" in str(raised.value.__cause__)


def test_arguments_that_cannot_be_sent_again_are_no_fault_of_the_scheduler(two, monkeypatch):
    def no_route(*args: Any) -> None:
        raise ConnectionError("no route to the worker")

    monkeypatch.setattr(SharedArguments, "send_again", no_route)
    timer = meanwhile(0.25, lambda: two.cancel([Future(key, two) for key in list(two.futures)], force=True))
    with pytest.raises(ConnectionError, match="no route to the worker"):
        Parallel(backend="manyfit", batch_size=1)(delayed(fails_at)(i, -1) for i in range(100))
    timer.join()


class _OfNowhere:
    def __reduce__(self) -> Any:
        return __import__, ("there_is_no_such_module",)


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
def test_what_the_worker_cannot_import(two):
    said = "there_is_no_such_module"
    with in_seconds(SECONDS), pytest.raises(ModuleNotFoundError, match=said) as raised:
        Parallel(backend="manyfit")(delayed(identity)(_OfNowhere()) for i in range(20))
    assert "client.upload_file" in " ".join(raised.value.__notes__)


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
@pytest.mark.thorough
def test_a_function_that_the_worker_cannot_import(processes, tmp_path, monkeypatch):
    (tmp_path / "mine_alone.py").write_text("def of_mine(x):\n    return x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import mine_alone  # type: ignore[import-not-found]

    with in_seconds(3 * SECONDS), pytest.raises(ModuleNotFoundError, match="mine_alone") as raised:
        Parallel(backend="manyfit")(delayed(mine_alone.of_mine)(i) for i in range(20))
    assert "client.upload_file" in " ".join(raised.value.__notes__)


# ------------------------------------------------------------------------------------------ processes


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_goes_away(tmp_path):
    with by_hand(tmp_path, nanny=True, default=False) as client, in_seconds(30):
        meanwhile(2.0, kill, [client.run_on_scheduler(os.getpid)])
        with (
            parallel_config(backend="manyfit", client=client),
            pytest.raises(ConnectionError, match="The scheduler at .* went away"),
        ):
            Parallel()(delayed(time.sleep)(0.5) for _ in range(100))


def dies(at: int, i: int) -> int:
    if i == at:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return i


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
@pytest.mark.thorough
def test_a_task_that_kills_its_worker():
    said = "died each time that they ran batch_of_dies_1_calls"
    with local_cluster(2, gpu=False), in_seconds(30):
        with pytest.raises(WorkerDied, match=said) as raised:
            Parallel(backend="manyfit", batch_size=1)(delayed(dies)(3, i) for i in range(40))
        assert "tcp://" in str(raised.value.__cause__)


@pytest.mark.thorough
def test_a_worker_that_is_killed_from_outside():
    """Its tasks go to the others, and nothing is lost."""
    with local_cluster(2, gpu=False) as client:
        data = np.random.default_rng(0).normal(size=50_000)
        for n_killed in (1, 2):
            timer = meanwhile(1.0, kill, sorted(pids(client))[:n_killed])
            found = Parallel(backend="manyfit", batch_size=1)(delayed(_sum)(data, i, 0.1) for i in range(60))
            timer.join()
            assert found == [data.sum() + i for i in range(60)]
            wait_for(lambda: len(pids(client)) == 2, "both workers")


def _sum(data: Any, i: int, seconds: float) -> float:
    time.sleep(seconds)
    return data.sum() + i


@pytest.mark.invariant("The joblib backend never hangs and runs nothing after an error")
@pytest.mark.thorough
def test_a_task_that_takes_more_memory_than_there_is():
    with (
        local_cluster(1, gpu=False, memory_limit="400 MB"),
        in_seconds(40),
        pytest.raises(WorkerDied, match="it ran out of memory"),
    ):
        Parallel(backend="manyfit")(delayed(_hoard)() for _ in range(2))


def _hoard() -> float:
    held = []
    for _ in range(1000):
        held.append(np.ones(2_000_000))
        time.sleep(0.02)
    return held[0][0]


@pytest.mark.thorough
def test_data_for_which_no_worker_has_room():
    with (
        local_cluster(1, gpu=False, memory_limit="400 MB"),
        pytest.raises(MemoryError, match="Give workers more memory"),
    ):
        Parallel(backend="manyfit")(delayed(np.sum)(np.ones(60_000_000)) for _ in range(2))
