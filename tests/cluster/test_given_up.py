"""What a run waits for no longer: it ends, it holds up no later run, and nothing of it is left."""

from __future__ import annotations

import _thread
import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import numpy as np
import pytest
from distributed import Client
from joblib import Parallel, delayed, parallel_config

import manyfit.joblib_backend  # noqa: F401 - registers the backend
from manyfit.cluster.pool.held_workers import HeldWorkers
from manyfit.cluster.pool.placement import Placement, get_placement
from manyfit.cluster.pool.results import Results
from manyfit.cluster.worker._heartbeats import Heartbeats
from manyfit.cluster.worker._memory_guard import MemoryGuard, MemoryRoom, RoomWait
from manyfit.cluster.worker._store import Store
from manyfit.cluster.worker.cancelled_tasks import RunningTasks, TaskReport
from manyfit.model_selection import GridSearchCV
from tests.cluster import _awkward
from tests.cluster._awkward import Awkward
from tests.cluster._clusters import by_hand, in_seconds, within
from tests.cluster._processes import wait_for
from tests.cluster.test_never_ends import interrupted

cloudpickle.register_pickle_by_value(_awkward)

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(4_000, 5)), rng.integers(0, 3, 4_000)


@pytest.fixture
def client() -> Iterator[Client]:
    """Two workers of this process."""
    with within(2) as client:
        yield client


def search(**params: Any) -> GridSearchCV:
    return GridSearchCV(Awkward(), {"value": [0, 1, 2, 3]}, cv=2, refit=False, **params)


# ------------------------------------------------------------------------------------------ room


@pytest.mark.parametrize(("wanted", "later"), [((), False), ((False,), False), ((True, False), True)])
def test_room_comes_later_only_where_somebody_waits_for_who_has_it(
    wanted: tuple[bool, ...], later: bool
) -> None:
    limits = {"memory_limit": 100, "memory_pause_fraction": 0.8, "memory_spill_fraction": 0.7}
    monitor = SimpleNamespace(get_process_memory=lambda: 70)
    worker: Any = SimpleNamespace(
        memory_manager=SimpleNamespace(**limits), address="tcp://a:1", monitor=monitor, data={}
    )
    store = Store(100)
    with store.using(["mine"]):
        used = [store.using(["theirs"], lambda one=one: one) for one in wanted]  # type: ignore[misc]
        for one in used:
            one.__enter__()
        room = MemoryGuard(worker, store).make_room(50, "mine")
        for one in used:
            one.__exit__(None, None, None)
    assert (room.fits, room.later, room.unwanted) == (False, later, False in wanted)
    assert not MemoryGuard(worker, store).make_room(50, "mine").unwanted


def test_nobody_waits_for_room_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(
        "manyfit.cluster.worker._memory_guard.time", SimpleNamespace(monotonic=lambda: now[0])
    )

    def waits(**room: Any) -> float:
        wait, start = RoomWait(), now[0]
        while not wait.is_over(MemoryRoom(False, **room)):
            now[0] += 0.5
        return now[0] - start

    assert waits() == pytest.approx(5.0, abs=1.0)
    assert waits(unwanted=True) == pytest.approx(20.0, abs=1.0)
    assert waits(later=True) == waits(later=True, unwanted=True) == pytest.approx(600.0, abs=1.0)


@pytest.mark.parametrize("kind", ["later", "unwanted"])
def test_a_search_that_waits_for_room_says_so_and_ends(
    kind: str, client: Client, watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyfit.cluster.pool.placement.LARGE", 1)
    monkeypatch.setattr("manyfit.cluster.pool.placement.WARN_ROOM_S", 0.5)
    monkeypatch.setattr("manyfit.cluster.worker._memory_guard.LATER_S", 3.0)
    monkeypatch.setattr("manyfit.cluster.worker._memory_guard.UNWANTED_WAIT_S", 3.0)
    monkeypatch.setattr("manyfit.cluster.pool.worker_monitor.CHECK_AT_LEAST_S", 0.1)
    monkeypatch.setattr(Placement, "_ask_for_room", lambda *a: MemoryRoom(False, **{kind: True}))
    looks: list[Any] = []
    watch(HeldWorkers, "update", lambda *args: looks.append(args))
    who = "tasks of other searches" if kind == "later" else "a task that was cancelled"
    with (
        pytest.warns(RuntimeWarning, match=f"wait for memory on the worker inproc.* some of it for {who}"),
        pytest.raises(MemoryError, match="Give workers more memory"),
    ):
        search().fit(X, Y)
    assert len(looks) > 5


def test_data_that_wait_for_room_go_to_a_worker_that_begins_tasks(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("manyfit.cluster.pool.placement.LARGE", 1)
    monkeypatch.setattr("manyfit.cluster.pool.worker_monitor.CHECK_AT_LEAST_S", 0.1)
    look, held = HeldWorkers.update, list[str]()

    def room_on(self: Placement, worker: str, *args: Any) -> MemoryRoom:
        held[:] = held or [worker]
        return MemoryRoom(worker not in held, later=True)

    def looked(self: HeldWorkers, *args: Any) -> None:
        look(self, *args)
        self.workers = frozenset(held)

    monkeypatch.setattr(Placement, "_ask_for_room", room_on)
    monkeypatch.setattr(HeldWorkers, "update", looked)
    with in_seconds(30):
        search().fit(X, Y)
    assert len(held) == 1


@pytest.mark.slow
@pytest.mark.thorough
def test_room_that_a_cancelled_fit_holds(tmp_path: Path) -> None:
    """The only worker has no nanny, and is held for ever."""
    large = rng.normal(size=(500_000, 90))
    with by_hand(tmp_path, "--memory-limit", "600MB") as client:
        interrupted(client, n=1)
        with (
            in_seconds(60),
            pytest.warns(RuntimeWarning, match=r"is busy with a task that was cancelled \d+ s ago"),
            pytest.warns(RuntimeWarning, match="wait for memory on the worker tcp"),
            pytest.raises(MemoryError, match="some of it for a task that was cancelled"),
        ):
            search().fit(large, rng.integers(0, 3, len(large)))


# ------------------------------------------------------------------------------------------ results


def _search_or_call(kind: str) -> None:
    if kind == "search":
        search().fit(X, Y)
    else:
        with parallel_config(backend="manyfit"):
            Parallel()(delayed(abs)(-i) for i in range(4))


@pytest.mark.parametrize("kind", ["search", "call"])
def test_results_that_are_on_their_way_at_an_interrupt(
    kind: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client fetches five messages at a time: one that never comes would be short of one for ever."""
    made: list[Results] = []

    class Noted(Results):
        def __init__(self, client: Client) -> None:
            super().__init__(client)
            made.append(self)

    monkeypatch.setattr("manyfit.cluster.pool.task_pool.Results", Noted)
    handlers = client.cluster.scheduler.handlers
    gather, asked = handlers["gather"], threading.Event()

    async def never(**arguments: Any) -> None:
        asked.set()
        await asyncio.sleep(20.0)

    handlers["gather"] = never  # as where the worker that has the result is stopped

    def interrupt() -> None:
        if asked.wait(60):
            _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        _search_or_call(kind)
    handlers["gather"] = gather
    wait_for(lambda: not made[0]._fetching, "the end of what was fetched")
    wait_for(lambda: client._gather_semaphore._value == 5, "the client's messages")
    assert client.submit(int, 7, pure=False).result(timeout=20) == 7


# ------------------------------------------------------------------------------------------ data


def test_data_whose_send_was_given_up_are_let_go_of(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """They arrive at a worker that was silent for a while, and goes on."""
    handlers = client.cluster.scheduler.handlers
    scatter, was_silent = handlers["scatter"], Heartbeats.silent.fget  # type: ignore[attr-defined]
    goes_on, arrived, silent = asyncio.Event(), threading.Event(), list[str]()

    async def late(**arguments: Any) -> Any:
        first = not silent
        silent.extend(arguments["workers"] if first else ())
        if first:
            await goes_on.wait()
        done = await scatter(**arguments)
        if first:
            arrived.set()
        return done

    handlers["scatter"] = late
    monkeypatch.setattr(Heartbeats, "silent", property(lambda self: was_silent(self) | set(silent)))
    monkeypatch.setattr(Heartbeats, "silence", lambda self, address: 30.0 * (address in silent))
    data, target = X.copy(), Y.copy()
    search().fit(data, target)
    client.cluster.loop.add_callback(goes_on.set)
    assert arrived.wait(20)
    del data, target
    gc.collect()
    wait_for(lambda: not get_placement(client)._sent, "the end of what was sent")
    wait_for(lambda: not client.who_has(), f"the end of {client.who_has()}")


# ------------------------------------------------------------------------------------------ looks


def test_a_silent_worker_is_silent_while_somebody_looks() -> None:
    """Two threads of a client look, its loop does, and each reads what the others found."""
    heartbeats, seen = Heartbeats(), list[frozenset[str]]()
    heard = {f"w{i}": {"last_seen": 100.0} for i in range(8)} | {"gone": {"last_seen": 0.0}}
    heartbeats.update(heard)

    class InTheMiddle(dict[str, Any]):
        def items(self) -> Any:
            for one in super().items():
                seen.append(heartbeats.silent if heartbeats.silence("gone") else frozenset())
                yield one

    heartbeats.update(InTheMiddle(heard))
    assert seen == [frozenset({"gone"})] * 9


def test_an_answer_that_comes_while_somebody_looks_counts() -> None:
    answered: list[threading.Thread] = []

    class Answers:
        loop = SimpleNamespace(add_callback=lambda *a: None)

        async def run(self, function: Any, workers: list[str], on_error: str) -> dict[str, TaskReport]:
            return {workers[0]: TaskReport((), {}, False, False)}

    class Now(float):
        def __rsub__(self, other: float) -> float:
            if not answered:
                answered.append(threading.Thread(target=lambda: asyncio.run(stuck._ask_one("b"))))
                answered[0].start()
                answered[0].join(0.2)  # it may have to wait
            return other - float(self)

    stuck = HeldWorkers(Answers())
    now, report = time.monotonic(), TaskReport((), {}, False, False)
    stuck._reports = {"a": (Now(now), report), "c": (now, report)}
    stuck.update({one: {"last_seen": 1.0, "status": "running"} for one in "abc"})
    answered[0].join(20)
    assert stuck._reports.keys() == {"a", "b", "c"}


def test_a_silent_worker_that_is_removed_between_two_questions(client: Client) -> None:
    assert HeldWorkers(client)._on_silent(["tcp://127.0.0.1:1"], []) == (set(), frozenset())


# ------------------------------------------------------------------------------------------ actors


@pytest.mark.parametrize("actors", [{}, {"actor-1": object()}])
def test_a_worker_with_an_actor_of_others_is_left_as_it_is(
    actors: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("manyfit.cluster.worker._memory_guard.os._exit", ended.append)
    monkeypatch.setattr("manyfit.cluster.worker._memory_guard.LOST_S", -1.0)
    state = SimpleNamespace(actors=actors, executing_count=0)
    manager = SimpleNamespace(memory_limit=100, memory_pause_fraction=0.8, memory_spill_fraction=0.7)
    worker: Any = SimpleNamespace(
        nanny="tcp://a:2", address="tcp://a:1", data={"manyfit-array": 1}, state=state, memory_manager=manager
    )
    assert RunningTasks(worker)._may_end() is not bool(actors)
    MemoryGuard(worker, Store(100))._end_if_lost(True)
    assert ended == [1] * (not actors)
