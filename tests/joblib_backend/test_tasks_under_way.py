"""How many tasks of a call are under way, and what becomes of a call's batches."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from joblib import Parallel, delayed
from joblib.parallel import SequentialBackend

from manyfit.cluster.pool.resource_queue import ResourceQueue
from manyfit.cluster.pool.task_pool import TaskPool
from manyfit.cluster.pool.tasks import Task
from manyfit.joblib_backend._options import Options
from manyfit.joblib_backend._parallel_call import ParallelCall
from manyfit.joblib_backend._shared_arguments import SharedArguments
from tests._covering import spread
from tests.cluster._clusters import at_once, within
from tests.cluster._processes import wait_for
from tests.joblib_backend._calls import AtATime, square, wait_a_bit

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("options", "grows"),
    spread([({}, True), ({"pre_dispatch": "all"}, True), ({"pre_dispatch": 2}, False)], 1),
)
def test_a_cluster_that_grows_is_used(options, grows, monkeypatch):
    """Unless a number says how many tasks are read ahead."""
    monkeypatch.setattr("manyfit.cluster.pool.worker_monitor.CHECK_AT_LEAST_S", 0.05)
    AtATime.most = 0
    with within(1) as client:
        results = Parallel(backend="manyfit", batch_size=1, return_as="generator", **options)(
            delayed(wait_a_bit)(0.03) for _ in range(60)
        )
        next(results)
        client.cluster.scale(4)
        assert len(list(results)) == 59
    assert (AtATime.most > 2) == grows


@pytest.mark.parametrize(
    ("n_jobs", "seconds", "needs", "most"),
    [(-1, 0.0, 0, 8), (-1, 0.1, 0, 8), (-1, 0.39, 0, 8), (-1, 1.0, 0, 40), (-2, 1.0, 0, 3)]
    + [(-1, 1.0, 1, 8), (2, 1.0, 0, 2)]
    + [(4, 1.0, 0, 8), (12, 1.0, 0, 12), (99, 1.0, 0, 40), (99, 0.1, 0, 8)],
)
def test_how_many_tasks_are_under_way(n_jobs, seconds, needs, most):
    """On four slots: ten seconds of long tasks, by which a cluster grows, and no more than were asked for."""
    pool, _ = _pool(n_jobs)
    queue = _queue(pool, (("GPU", 1.0),) * needs, seconds)
    pool.hand_out()
    assert queue.running == most


def test_the_tasks_of_all_resources_count_together():
    pool, _ = _pool(-1)
    queues = [_queue(pool, resources, 0.2) for resources in ((), (("GPU", 1.0),))]
    queues[0].slots = 4  # the second queue has changed it
    pool.hand_out()
    assert [queue.running for queue in queues] == [8, 0]


def test_tasks_without_resources_use_the_workers_that_others_need():
    pool, _ = _pool(-1)
    queues = [_queue(pool, resources) for resources in ((), (("GPU", 1.0),))]
    worker = {"status": "running", "nthreads": 2, "memory_limit": 1, "metrics": {}}
    pool.monitor.workers = {"cpu": {**worker, "resources": {}}, "gpu": {**worker, "resources": {"GPU": 1}}}
    pool.monitor.assign()
    assert [queue.slots for queue in queues] == [4, 1]
    assert [queue.workers for queue in queues] == [{"cpu", "gpu"}, {"gpu"}]
    assert not any(queue.keeps_away for queue in queues)


def test_a_batch_that_is_lost_is_tried_eight_times():
    pool, maker = _pool(-1)
    maker.label = lambda task: "batch_of_abs_1_calls"
    task = Task((1,), pool.queue_for(()), tries=8)
    assert list(pool._retry(replace(task, tries=7), (), [])) == []
    with pytest.raises(RuntimeError, match="batch_of_abs_1_calls was lost or cancelled 8 times"):
        list(pool._retry(task, (), []))


def _pool(n_jobs: int) -> tuple[Any, Any]:
    """The pool of a call of Parallel without a cluster, and its maker, which it does not keep."""
    client: Any = Mock(scheduler=SimpleNamespace(address="tcp://s:1"))
    client.loop = SimpleNamespace(add_callback=lambda *a: None)
    client.submit = lambda *a, **options: Mock(key=options["key"])
    call = SimpleNamespace(function=abs, arguments=(), key="k", sent=None, priority=0)
    maker = Mock(make_call=lambda task: call)
    pool = TaskPool(client, maker, Options(n_jobs=n_jobs, no_worker_timeout=10.0))
    pool._maker = maker
    return pool, maker


def _queue(pool: TaskPool, resources: Any, seconds: float = 0.0) -> ResourceQueue:
    """A queue on four slots, of whose items one took so long."""
    queue = pool.queue_for(resources)
    for item in range(200):
        pool.add(queue, item)
    queue.slots = 4
    if seconds:
        queue.chunks.record([0], seconds)
    return queue


def test_short_tasks_are_put_together(two):
    with Parallel(backend="manyfit") as parallel:
        parallel(delayed(square)(i) for i in range(3000))
        assert parallel._backend._effective_batch_size > 10
        assert parallel.n_dispatched_batches < 1000


def test_a_call_is_closed_once(two, monkeypatch):
    """By whichever thread is the first."""
    ended: list[Any] = []
    monkeypatch.setattr(SharedArguments, "end", lambda self: ended.append(self))
    call = ParallelCall(two, Options(no_worker_timeout=10.0))
    at_once(*[call.close] * 8)
    assert len(ended) == 1


def test_each_batch_of_a_call_that_is_closed_is_released_once(two, monkeypatch):
    """Whether it is done, on a worker, in a queue or on its way."""
    counts: Counter[str] = Counter()
    for name in ("hold", "release"):
        method = getattr(SharedArguments, name)

        def counted(self: Any, packed: Any, name: str = name, method: Any = method) -> None:
            counts[name] += 1
            method(self, packed)

        monkeypatch.setattr(SharedArguments, name, counted)
    monkeypatch.setattr("manyfit.joblib_backend._parallel_call.dispatch_more", lambda callback, n: None)
    call = ParallelCall(two, Options(no_worker_timeout=10.0))
    nested = SequentialBackend(nesting_level=1), None
    closing = [threading.Timer(0.2, call.close) for _ in range(4)]
    for thread in closing:
        thread.start()
    for i in range(300):
        call.submit([(wait_a_bit, (0.01,), {})], nested, lambda result: None)
        time.sleep(0.001 * (i % 2))
    for thread in closing:
        thread.join()
    wait_for(lambda: counts["hold"] == counts["release"] == 300, "the batches' release")
    assert not call._batches
