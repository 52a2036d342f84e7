"""What `joblib.Parallel` asks of a backend, on workers within this process."""

from __future__ import annotations

import functools
import inspect
import multiprocessing
import threading
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import dask
import joblib
import numpy as np
import pytest
from distributed import Client, get_worker
from joblib import Parallel, delayed, parallel_backend, parallel_config
from joblib.parallel import SequentialBackend, ThreadingBackend
from sklearn import config_context, get_config
from sklearn.utils.parallel import Parallel as SklearnParallel
from sklearn.utils.parallel import delayed as sklearn_delayed
from threadpoolctl import threadpool_info

from manyfit.cluster.pool.resource_queue import ResourceQueue
from manyfit.cluster.pool.task_pool import TaskPool
from manyfit.cluster.pool.tasks import Task
from manyfit.joblib_backend import ManyfitBackend
from manyfit.joblib_backend._options import Options
from manyfit.joblib_backend._parallel_call import ParallelCall, pool_options
from manyfit.joblib_backend._shared_arguments import SharedArguments
from tests._covering import spread
from tests.cluster._clusters import at_once, within, workers_with
from tests.cluster._processes import wait_for

pytestmark = pytest.mark.slow


def square(x: Any) -> Any:
    return x * x


def worker_of(_: Any) -> str:
    return get_worker().address


def in_a_task() -> bool:
    try:
        get_worker()
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------------------------------ how it is named


@pytest.mark.parametrize("context", [parallel_config, parallel_backend])
def test_by_name_in_a_context(context, two):
    with context("manyfit"):
        assert Parallel()(delayed(square)(i) for i in range(20)) == [i * i for i in range(20)]
        assert all(Parallel()(delayed(in_a_task)() for _ in range(4)))


def test_by_name_and_by_instance(two):
    backend = ManyfitBackend()
    for given in ("manyfit", backend, backend):
        parallel = Parallel(backend=given)
        assert all(parallel(delayed(in_a_task)() for _ in range(4)))
        assert parallel(delayed(square)(i) for i in range(4)) == [0, 1, 4, 9]
    with parallel_config(backend=backend):
        assert Parallel(n_jobs=2)(delayed(square)(i) for i in range(4)) == [0, 1, 4, 9]


def test_options_by_context_and_by_parallel(two):
    first, second = two.nthreads()
    with parallel_config(backend="manyfit", workers=first):
        assert set(Parallel()(delayed(worker_of)(i) for i in range(8))) == {first}
    if "backend_kwargs" in inspect.signature(Parallel).parameters:  # of joblib 1.5
        found = Parallel(backend="manyfit", workers=[second])(delayed(worker_of)(i) for i in range(8))
        assert set(found) == {second}
        parallel = Parallel(backend="manyfit", apart_bytes="1 MB", device=("torch", "cuda"), resources={})
        assert parallel(delayed(square)(i) for i in range(3)) == [0, 1, 4]
        with pytest.raises(ValueError, match="nested must be"):
            Parallel(backend="manyfit", nested="elsewhere")(delayed(square)(i) for i in range(3))


def test_nothing_taken_of_a_resource_is_no_need_of_it(two):
    """Dask would look for a worker that declares it, and wait for ever."""
    calls = [delayed(square)(i) for i in range(3)]
    with parallel_config(backend="manyfit", resources={"GPU": 0}):
        assert Parallel()(calls) == [0, 1, 4]
    with parallel_config(backend="manyfit"), dask.annotate(resources={"GPU": 0}):
        assert Parallel()(calls) == [0, 1, 4]


def test_workers_by_name_are_all_that_there_are(two):
    with parallel_config(backend="manyfit", workers=0):  # a name, of LocalCluster's
        assert joblib.effective_n_jobs(-1) == 2  # not 1, which is the caller's process
        assert len(set(Parallel()(delayed(worker_of)(i) for i in range(6)))) == 1
    with (
        parallel_config(backend="manyfit", workers="nobody", wait_for_workers_timeout=0.2),
        pytest.raises(TimeoutError, match=r"no worker among workers=\['nobody'\] after 0.2 seconds"),
    ):
        Parallel()(delayed(worker_of)(i) for i in range(6))


def test_a_client_of_another_cluster(two):
    with within(1) as other, two.as_current():
        addresses = set(other.nthreads())
        with parallel_config(backend="manyfit", client=other):
            assert set(Parallel()(delayed(worker_of)(i) for i in range(4))) == addresses
        assert not set(Parallel(backend="manyfit")(delayed(worker_of)(i) for i in range(4))) & addresses


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ({"client": 3}, TypeError, "client should be a distributed.Client"),
        ({"nested": "everywhere"}, ValueError, "nested must be 'inline' or 'cluster'"),
        ({"apart_bytes": "much"}, ValueError, "much"),
        ({"scatter": []}, TypeError, "scatter"),
        ({"resources": "GPU"}, TypeError, "resources must be a mapping"),
        ({"resources": {"GPU": -1}}, ValueError, r"resources\['GPU'\] must be a number"),
        ({"resources": {"GPU": None}}, ValueError, r"resources\['GPU'\] must be a number"),
        ({"workers": []}, ValueError, "workers must be names"),
        ({"workers": [None]}, ValueError, "workers must be names"),
        ({"apart_bytes": -1}, ValueError, "apart_bytes must be a number that is not negative"),
        ({"wait_for_workers_timeout": None}, ValueError, "wait_for_workers_timeout must be a number"),
        ({"wait_for_workers_timeout": float("nan")}, ValueError, "wait_for_workers_timeout must be a number"),
    ],
)
def test_wrong_options(wrong, error, match, two):
    with pytest.raises(error, match=match):
        parallel_config(backend="manyfit", **wrong)


def test_no_client_is_an_error_that_says_what_to_do(monkeypatch):
    def none() -> Any:
        raise ValueError("no client")

    monkeypatch.setattr(Client, "current", none)
    with pytest.raises(ValueError, match=r"no Dask client: create one first.*local_cluster\(\)"):
        parallel_config(backend="manyfit")
    with pytest.raises(ValueError, match="there is no Dask client"):
        Parallel(backend="manyfit")
    with pytest.raises(ValueError, match="there is no Dask client"):
        ManyfitBackend()


def test_a_closed_client_is_an_error():
    with within(1) as client:
        pass
    with pytest.raises(ValueError, match="client is 'closed'"):
        parallel_config(backend="manyfit", client=client)


# ------------------------------------------------------------------------------------------ n_jobs


class AtATime:
    """Counts how many run at a time; workers of this process share it through its name."""

    now = most = 0
    lock = threading.Lock()

    @classmethod
    def run(cls, seconds: float) -> None:
        with cls.lock:
            cls.now += 1
            cls.most = max(cls.most, cls.now)
        time.sleep(seconds)
        with cls.lock:
            cls.now -= 1


def wait_a_bit(seconds: float) -> None:
    from tests.joblib_backend.test_contract import AtATime

    AtATime.run(seconds)


@pytest.mark.invariant("The joblib backend keeps joblib's contract")
@pytest.mark.parametrize(
    ("n_jobs", "most"),
    spread([(2, 2), (3, 3), (4, 4), (7, 4), (-1, 4), (None, 4), (-2, 3), (-4, 1), (-9, 1)], 4),
)
def test_n_jobs_limits_tasks_at_a_time(n_jobs, most, four):
    AtATime.most = 0
    Parallel(n_jobs, backend="manyfit", batch_size=1, pre_dispatch="all")(
        delayed(wait_a_bit)(0.1) for _ in range(12)
    )
    assert AtATime.most == most


@pytest.fixture(scope="module")
def four():
    with within(2, threads=2) as client:
        yield client


@pytest.mark.invariant("The joblib backend keeps joblib's contract")
@pytest.mark.parametrize("n_jobs", [None, -1, 2, 5, -2])
def test_one_slot_is_a_cluster(n_jobs, one):
    with parallel_config(backend="manyfit", n_jobs=n_jobs):
        assert all(Parallel()(delayed(in_a_task)() for _ in range(4)))


@pytest.mark.invariant("The joblib backend keeps joblib's contract")
def test_n_jobs_1_is_here(two):
    with parallel_config(backend="manyfit"):
        here = Parallel(n_jobs=1)(delayed(threading.get_ident)() for _ in range(4))
        assert set(here) == {threading.get_ident()}
    with parallel_config(backend="manyfit", n_jobs=1):
        assert not any(Parallel()(delayed(in_a_task)() for _ in range(4)))


def test_effective_n_jobs(two):
    with parallel_config(backend="manyfit"):
        assert [joblib.effective_n_jobs(n) for n in (1, 2, 7, -1)] == [1, 2, 7, 2]
        with pytest.raises(ValueError, match="n_jobs == 0"):
            Parallel(n_jobs=0)(delayed(square)(i) for i in range(2))


# ------------------------------------------------------------------------------------------ parameters


@pytest.mark.parametrize("return_as", ["generator", "generator_unordered"])
def test_generators(return_as, two):
    results = Parallel(backend="manyfit", return_as=return_as)(delayed(square)(i) for i in range(50))
    assert next(results) in range(2500)
    assert len(list(results)) == 49


def test_unordered_results_come_as_they_are_done(two):
    seconds = [0.5] + [0.0] * 5
    found = Parallel(backend="manyfit", return_as="generator_unordered", batch_size=1)(
        delayed(lambda s: time.sleep(s) or s)(s) for s in seconds
    )
    assert next(found) == 0.0
    assert sorted(found) == [0.0] * 4 + [0.5]


@pytest.mark.invariant("The joblib backend keeps joblib's contract")
def test_two_generators_of_one_backend_at_once(two):
    """To give up one does not stop the other."""
    with parallel_config(backend="manyfit"):
        first = Parallel(return_as="generator", batch_size=1)(delayed(square)(i) for i in range(30))
        second = Parallel(return_as="generator", batch_size=1)(delayed(square)(i) for i in range(30, 60))
        assert next(first) == 0
        assert next(second) == 900
        with pytest.warns(UserWarning, match="tasks"):
            first.close()
        assert list(second) == [i * i for i in range(31, 60)]


def test_timeout(two):
    start = time.monotonic()
    with pytest.raises(multiprocessing.TimeoutError):
        Parallel(backend="manyfit", timeout=0.2, batch_size=1)(delayed(time.sleep)(1.0) for _ in range(20))
    assert time.monotonic() - start < 3
    assert Parallel(backend="manyfit", timeout=20)(delayed(square)(i) for i in range(4)) == [0, 1, 4, 9]


def test_pre_dispatch_bounds_what_is_read_ahead(two):
    read: list[int] = []

    def tasks() -> Any:
        for i in range(12):
            read.append(i)
            yield delayed(time.sleep)(0.1)

    results = Parallel(backend="manyfit", pre_dispatch=3, batch_size=1, return_as="generator")(tasks())
    assert len(read) == 3
    list(results)
    assert len(read) == 12
    assert Parallel(backend="manyfit", pre_dispatch="all")(delayed(square)(i) for i in range(9))[-1] == 64


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
    options = Options(n_jobs, (), None, 0, 0, None, None, 10.0, None)
    pool = TaskPool(client, maker, pool_options(options))
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


def test_sharedmem_is_threads_of_this_process(two):
    seen: list[int] = []
    with parallel_config(backend="manyfit"):
        Parallel(n_jobs=2, require="sharedmem")(delayed(seen.append)(i) for i in range(4))
    assert sorted(seen) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="does not support shared memory"):
        Parallel(backend="manyfit", require="sharedmem")


def test_inner_max_num_threads(two):
    def threads() -> set[int]:
        np.ones((2, 2)) @ np.ones((2, 2))
        time.sleep(0.05)
        return {library["num_threads"] for library in threadpool_info()}

    before = threads()
    with parallel_config(backend="manyfit", inner_max_num_threads=3):
        found = Parallel(batch_size=1)(delayed(threads)() for _ in range(6))
    assert set().union(*found) == {3}
    assert threads() == before != {3}


def test_verbose(two, capsys):
    Parallel(backend="manyfit", verbose=60)(delayed(square)(i) for i in range(4))
    told = capsys.readouterr().out
    assert "Using backend ManyfitBackend with 2 concurrent workers" in told
    assert "Done   4 out of   4" in told


def test_reuse_as_a_context_manager(two):
    with Parallel(backend="manyfit") as parallel:
        for _ in range(3):
            assert parallel(delayed(square)(i) for i in range(8)) == [i * i for i in range(8)]
        with pytest.raises(ZeroDivisionError):
            parallel(delayed(divmod)(1, i) for i in range(8))
        assert parallel(delayed(square)(i) for i in range(8)) == [i * i for i in range(8)]


def test_a_call_is_closed_once(two, monkeypatch):
    """By whichever thread is the first."""
    ended: list[Any] = []
    monkeypatch.setattr(SharedArguments, "end", lambda self: ended.append(self))
    call = ParallelCall(two, Options(-1, (), None, 0, 0, None, None, 10.0, None), lambda argument: False)
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
    call = ParallelCall(two, Options(-1, (), None, 0, 0, None, None, 10.0, None), lambda argument: False)
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


def test_nothing_to_do(two):
    assert Parallel(backend="manyfit")([]) == []
    assert list(Parallel(backend="manyfit", return_as="generator")(iter(()))) == []


@pytest.mark.invariant("The joblib backend keeps joblib's contract")
def test_calls_from_several_threads_at_once(two):
    found: dict[int, Any] = {}
    shared = ManyfitBackend()

    def call(i: int) -> None:
        backend = shared if i % 2 else "manyfit"
        found[i] = Parallel(backend=backend)(delayed(square)(i * j) for j in range(40))

    at_once(*(functools.partial(call, i) for i in range(6)))
    assert found == {i: [(i * j) ** 2 for j in range(40)] for i in range(6)}


def test_scikit_learns_configuration_and_filters_come_along(two):
    with parallel_config(backend="manyfit"), config_context(assume_finite=True, working_memory=7):
        found = SklearnParallel()(sklearn_delayed(get_config)() for _ in range(4))
    assert [(c["assume_finite"], c["working_memory"]) for c in found] == [(True, 7)] * 4


# ------------------------------------------------------------------------------------------ nested calls


def kind() -> tuple[str, int]:
    parallel = Parallel()
    return type(parallel._backend).__name__, parallel._effective_n_jobs()


def inner(n_jobs: Any) -> list[tuple[bool, str]]:
    return Parallel(n_jobs=n_jobs)(delayed(lambda: (in_a_task(), worker_of(0)))() for _ in range(4))


def test_nested_calls_are_of_the_task(two):
    with parallel_config(backend="manyfit"):
        assert Parallel()(delayed(kind)() for _ in range(2)) == [("ThreadingBackend", 1)] * 2
        for sequential in Parallel()(delayed(inner)(None) for _ in range(3)):
            assert len(set(sequential)) == 1


def test_the_backend_by_name_in_a_task_is_the_task_itself(one):
    def by_name() -> Any:
        return Parallel(backend="manyfit")(delayed(threading.get_ident)() for _ in range(3)), (
            threading.get_ident()
        )

    for idents, own in Parallel(backend="manyfit")(delayed(by_name)() for _ in range(3)):
        assert set(idents) == {own}


def nested_calls(depth: int, width: int = 3) -> int:
    if depth == 0:
        return 1
    return sum(Parallel()(delayed(nested_calls)(depth - 1, width) for _ in range(width)))


@pytest.mark.invariant("The joblib backend keeps joblib's contract")
@pytest.mark.parametrize("depth", spread([3, 2, 1], 1))
def test_nested_calls_on_the_cluster_do_not_deadlock(depth, one):
    """Not even where there is one slot, which the outer task has."""
    with parallel_config(backend="manyfit", nested="cluster"):
        assert Parallel()(delayed(nested_calls)(depth) for _ in range(4)) == [3**depth] * 4


def test_nested_calls_on_the_cluster_use_all_of_it(two):
    with parallel_config(backend="manyfit", nested="cluster"):
        (found,) = Parallel()(delayed(inner)(-1) for _ in range(1))
        kinds = Parallel()(delayed(kind)() for _ in range(2))
    assert len({address for _, address in found}) == 2
    assert kinds == [("ManyfitBackend", 2)] * 2


def test_nested_calls_of_tasks_with_resources_are_of_the_task():
    with (
        within(1, resources={"GPU": 1}),
        parallel_config(backend="manyfit", nested="cluster", resources={"GPU": 1}),
    ):
        assert Parallel()(delayed(nested_calls)(2) for _ in range(3)) == [9] * 3
        assert Parallel()(delayed(kind)() for _ in range(1)) == [("ThreadingBackend", 1)]


def test_levels_of_nesting(two):
    backend = ManyfitBackend(nesting_level=0)
    assert isinstance(backend.get_nested_backend()[0], ThreadingBackend)
    assert isinstance(ManyfitBackend(nesting_level=1).get_nested_backend()[0], SequentialBackend)


# ------------------------------------------------------------------------------------------ resources


def test_resources_are_where_they_are_declared():
    with workers_with(cpu={"nthreads": 2}, gpu={"nthreads": 2, "resources": {"GPU": 1}}) as client:
        gpu = next(a for a, info in client.scheduler_info()["workers"].items() if info["resources"])
        AtATime.most = 0
        with parallel_config(backend="manyfit", resources={"GPU": 1}):
            assert joblib.effective_n_jobs(-1) == 2
            assert set(Parallel()(delayed(worker_of)(i) for i in range(8))) == {gpu}
            Parallel(batch_size=1)(delayed(wait_a_bit)(0.02) for _ in range(8))
        assert AtATime.most == 1
        with parallel_config(backend="manyfit"), dask.annotate(resources={"GPU": 1}):
            assert set(Parallel()(delayed(worker_of)(i) for i in range(8))) == {gpu}
        found = Parallel(backend="manyfit", batch_size=1)(delayed(_slow_worker_of)(None) for i in range(12))
        assert len(set(found)) == 2
        # An estimator that says so by a parameter.
        found = Parallel(backend="manyfit")(delayed(_slow_worker_of)(_Boosted("cuda")) for _ in range(6))
        assert set(found) == {gpu}


def _slow_worker_of(_: Any) -> str:
    time.sleep(0.05)
    return worker_of(0)


class _Boosted:
    def __init__(self, device: str) -> None:
        self.device = device

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"device": self.device}
