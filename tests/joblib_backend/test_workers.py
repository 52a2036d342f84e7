"""Which workers a call of Parallel gives its tasks to, and what it says where there are none."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client
from joblib import Parallel, delayed, parallel_config

from manyfit.cluster.inspection.versions import Versions
from manyfit.cluster.pool import worker_monitor
from manyfit.cluster.pool.held_workers import HeldWorkers
from manyfit.cluster.pool.options import PoolOptions
from manyfit.cluster.pool.resource_queue import ResourceQueue
from manyfit.cluster.pool.worker_monitor import WorkerMonitor
from tests.cluster._clusters import within


def test_no_worker_is_not_one_that_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    now, queue = [0.0], ResourceQueue((), [1])
    workers = {"tcp://a:1": {"status": "paused", "last_seen": 1.0, "nthreads": 1, "resources": {}}}
    monkeypatch.setattr(worker_monitor, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("manyfit.cluster.pool.held_workers.call_soon_in_loop", lambda *a: None)
    monkeypatch.setattr(Versions, "require", lambda *a, **kw: None)
    options = PoolOptions(no_worker_timeout=60.0, isolates=False)

    class OfNobody:
        scheduler, status = SimpleNamespace(address="tcp://s:1"), "running"

    for found, error in (({}, TimeoutError), (workers, MemoryError)):
        monkeypatch.setattr(worker_monitor, "get_workers", lambda client, found=found: found)
        monitor = WorkerMonitor(OfNobody(), [queue], options)
        with pytest.raises(error):  # noqa: PT012 - it is updated again and again
            for _ in range(100):
                now[0] += 1.0
                monitor.update()


def _slow(i: int) -> int:
    time.sleep(0.05)
    return i


@pytest.mark.parametrize("leaves", [False, True])
def test_named_workers_that_begin_no_tasks_are_given_none(
    leaves: bool, watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there is no other of those that were named."""
    with within(3) as client:
        held, able, other = sorted(client.nthreads())
        update, given = HeldWorkers.update, list[Any]()

        def updated(self: HeldWorkers, workers: Any, *args: Any) -> None:
            update(self, workers, *args)
            self.workers = frozenset({held}) if able in workers else frozenset()

        def noted(self: Client, *args: Any, **kwargs: Any) -> None:
            given.append((kwargs["workers"], kwargs["allow_other_workers"]))
            if leaves and len(given) == 5:
                client.retire_workers([able])

        monkeypatch.setattr(HeldWorkers, "update", updated)
        watch(Client, "submit", noted)
        with parallel_config(backend="manyfit", workers=[held, able]):
            found = Parallel(batch_size=1)(delayed(_slow)(i) for i in range(12))
        assert found == list(range(12))
        assert given[0] == ([able], False)
        assert all(not others and other not in workers for workers, others in given)
        assert any(held in workers for workers, _ in given) == leaves
