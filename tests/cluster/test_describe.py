"""What is said of a cluster's workers; tests/cluster/test_start.py and test_by_hand.py describe real ones."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from distributed import Client, LocalCluster

from manyfit.cluster import ClusterDescription, _describe, describe, local_cluster
from manyfit.cluster._describe import WorkerDescription
from tests.cluster._clusters import forking

SAME = {
    "python": "3.12.1",
    "dask": "2026.8.0",
    "distributed": "2026.8.0",
    "manyfit": "1.0",
    "scikit-learn": "1.9",
}
OLD = {**SAME, "scikit-learn": "1.7.2", "manyfit": None}


def worker(name: str, versions: dict = SAME, **fields) -> WorkerDescription:
    usual = {"device": None, "device_memory": None, "memory_limit": 2**30, "threads": 2, "slots": 2, **fields}
    return WorkerDescription(
        name=name, address=f"tcp://10.0.0.{name}:1", host=f"10.0.0.{name}", versions=versions, **usual
    )


def cluster(*workers: WorkerDescription, scheduler: dict = SAME) -> ClusterDescription:
    return ClusterDescription("tcp://10.0.0.5:8786", workers, SAME, scheduler)


def test_it_prints_as_a_table():
    described = cluster(
        worker("1"),
        worker("12", device="Imitated 1", device_memory=80 * 2**30, memory_limit=0, threads=1, slots=1),
    )
    assert str(described).splitlines() == [
        "Cluster at tcp://10.0.0.5:8786: 2 workers, 3 slots",
        "worker  address            device      device memory  memory limit  threads  slots",
        "1       tcp://10.0.0.1:1   CPU         -              1.00 GiB      2        2",
        "12      tcp://10.0.0.12:1  Imitated 1  80.00 GiB      none          1        1",
    ]


def test_versions_that_differ_are_named():
    described = cluster(
        worker("1"), worker("2", OLD), worker("3", OLD), scheduler={**SAME, "dask": "2026.7.1"}
    )
    assert described.differences == (
        "dask is 2026.7.1 on the scheduler, and 2026.8.0 here",
        "manyfit is not installed on worker 2, worker 3, and 1.0 here",
        "scikit-learn is 1.7.2 on worker 2, worker 3, and 1.9 here",
    )
    assert str(described).splitlines()[-3:] == list(described.differences)
    assert cluster(worker("1")).differences == ()


def test_many_workers_are_not_all_named():
    (line, _) = cluster(*(worker(str(i), OLD) for i in range(40))).differences
    assert line == "manyfit is not installed on worker 0, worker 1 and 38 more, and 1.0 here"


def test_no_workers():
    assert str(cluster()) == "Cluster at tcp://10.0.0.5:8786: 0 workers, 0 slots"


def test_workers_stand_in_the_order_of_their_numbers():
    names = [w.name for w in sorted((worker(n) for n in ["10", "b", "9", "a"]), key=_describe._by_name)]
    assert names == ["9", "10", "a", "b"]


@pytest.mark.parametrize("value", [None, "tcp://127.0.0.1:8786", object()])
def test_what_is_no_client(value):
    with pytest.raises(TypeError, match=f"client must be a distributed.Client, not {type(value).__name__}"):
        describe(value)


def test_an_asynchronous_client():
    async def ask() -> None:
        async with (
            LocalCluster(n_workers=1, processes=False, asynchronous=True, dashboard_address=":0") as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            with pytest.raises(TypeError, match="asynchronous"):
                describe(client)

    asyncio.run(ask())


def test_a_worker_that_does_not_answer_and_a_closed_client(monkeypatch):
    """The others are described all the same."""
    with forking(), local_cluster(1) as client:
        (pid,) = client.run(os.getpid).values()
        whole = describe(client)
        assert whole.differences == () and len(whole.workers[0].versions) == 7
        monkeypatch.setattr(_describe, "TIMEOUT_S", 1.0)
        os.kill(pid, signal.SIGSTOP)
        try:
            described = describe(client)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert described.differences == ("the versions on worker 0 are not known: no answer in 1 s",)
        assert described.slots == 1
    with pytest.raises(ValueError, match="the client is closed"):
        describe(client)
