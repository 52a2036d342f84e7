"""A task pool whose workers, tasks or scheduler are lost: each is answered once, with its cause."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from distributed import CancelledError, KilledWorker

import manyfit.joblib_backend  # noqa: F401 - registers the backend
from manyfit.cluster.inspection.scheduler_info import SchedulerLost
from manyfit.cluster.pool.resource_queue import ResourceQueue
from manyfit.cluster.pool.task_pool import TaskPool
from manyfit.cluster.pool.tasks import Task

# ------------------------------------------------------------------------------------------ suspects


class _Future:
    status = "pending"

    def __init__(self, key: str) -> None:
        self.key = key

    def release(self) -> None:
        pass


def _make_pool(*workers: str) -> tuple[Any, list[_Future], list[_Future]]:
    """Make a pool with a suspect on each of these workers, of which b exists; collect what it cancels."""
    cancelled: list[_Future] = []
    scheduler = SimpleNamespace(address="tcp://s:1")
    client: Any = Mock(scheduler=scheduler, status="running")
    client.loop.add_callback = lambda *a: None
    client.cancel = lambda futures, **options: cancelled.extend(futures)
    client.sync = lambda coroutine, **options: asyncio.run(_ignoring_result(coroutine))
    queue = ResourceQueue()
    pool: Any = TaskPool(client, Mock(), queues=[queue])
    pool._maker = Mock()
    pool.monitor.workers = {"b": {}}
    pool.monitor.held.keys = frozenset("0123")
    pool.monitor.count_deaths = lambda key: 1
    queue.running = len(workers)
    futures = [_Future(str(i)) for i in range(len(workers))]
    items = ("item",)  # of the task and its copies
    tasks = [Task(items, queue, suspect=True, only=(worker,)) for worker in workers]
    pool._running.update(zip(futures, tasks, strict=True))
    return pool, futures, cancelled


async def _ignoring_result(coroutine: Any) -> None:
    with contextlib.suppress(TypeError):  # the client's cancel above is no coroutine
        await coroutine()


@pytest.mark.parametrize(("workers", "goes_on"), [("ab", True), ("ac", False), ("a", False)])
def test_a_suspect_whose_worker_is_gone_is_answered_once(workers: str, goes_on: bool) -> None:
    pool, futures, cancelled = _make_pool(*workers)
    pool._take_back()
    (queue,) = pool.queues
    assert cancelled == (futures[:1] if goes_on else futures)
    assert len(queue.suspects) == 1 - goes_on
    assert queue.running == len(pool._running) == goes_on
    assert all(task.deaths == 1 for task in pool._running.values())


def test_a_suspect_that_is_lost_is_answered_once() -> None:
    """Its copy is on a worker that does not answer, and may answer later."""
    pool, futures, cancelled = _make_pool("b", "a")
    task = pool._forget(futures[0])
    assert list(pool._retry(task, (), [futures[1]])) == []
    assert cancelled == [futures[1]]
    assert len(pool.queues[0].suspects) == 1
    assert not pool._running


@pytest.mark.parametrize("stops", [False, True])
def test_a_task_of_a_pool_that_is_stopped_is_not_sent_again(stops: bool) -> None:
    """Another thread stops it meanwhile."""
    pool, futures, _ = _make_pool("b")
    pool._running[futures[0]] = Task(("item",), pool.queues[0], tries=1)
    task = pool._forget(futures[0])
    stopped: list[bool] = []

    def make_call(task: Task) -> Any:
        stopped.extend([pool.stop()] if stops else [])
        return SimpleNamespace(function=abs, arguments=(), key="k", sent=None, priority=0)

    pool._maker.make_call = make_call
    pool._client.submit = lambda *args, **options: _Future("k")
    assert list(pool._retry(task, (), [])) == []
    assert (stopped, len(pool._running)) == (([True], 0) if stops else ([], 1))
    assert pool.stop() is not stops
    assert not pool.stop()
    assert not pool.is_waiting


@pytest.mark.parametrize("way", ["_lose", "_retry", "_take_back"])
def test_items_of_a_task_that_is_lost_are_suspects(way: str) -> None:
    pool, futures, _ = _make_pool("a")
    if way == "_take_back":
        pool._take_back()
    else:
        task = pool._forget(futures[0])
        results = pool._lose(replace(task, suspect=False)) if way == "_lose" else pool._retry(task, (), [])
        assert list(results) == []
    assert [task.items for task in pool.queues[0].suspects] == [("item",)]


@pytest.mark.parametrize("cause", [None, KilledWorker("task", Mock(address="tcp://10.0.0.7:1"), 3)])
def test_a_loss_has_its_cause(cause: Exception | None) -> None:
    pool, futures, _ = _make_pool("b")
    ((_, lost),) = pool._lose(pool._forget(futures[0]), cause)
    assert lost.error.__cause__ is cause


@pytest.mark.parametrize("status", ["running", "connecting", "closed"])
def test_the_scheduler_is_blamed_only_without_a_connection(status: str) -> None:
    pool, _, _ = _make_pool("b")
    pool._client.status = status
    for error in (ConnectionError("no route to a worker"), CancelledError(), ValueError("wrong")):
        explained = pool.explain(error)
        if status == "running":
            assert explained is error
        else:
            assert isinstance(explained, SchedulerLost)
            assert explained.__cause__ is error


def test_a_question_that_the_scheduler_cannot_get_is_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection for questions may break before the client notices anything."""

    def broken(client: Any) -> Any:
        raise OSError("the connection is closed")

    monkeypatch.setattr("manyfit.cluster.pool.worker_monitor.get_workers", broken)
    pool, _, _ = _make_pool("b")
    with pytest.raises(SchedulerLost, match="went away in the middle of the search"):
        pool.check_workers()
