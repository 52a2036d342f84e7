"""What `joblib.Parallel` asks of a backend by its parameters, on workers within this process."""

from __future__ import annotations

import functools
import multiprocessing
import threading
import time
from typing import Any

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn import config_context, get_config
from sklearn.utils.parallel import Parallel as SklearnParallel
from sklearn.utils.parallel import delayed as sklearn_delayed
from threadpoolctl import threadpool_info

from manyfit.joblib_backend import ManyfitBackend
from tests._covering import spread
from tests.cluster._clusters import at_once, within
from tests.joblib_backend._calls import AtATime, in_a_task, square, wait_a_bit

pytestmark = pytest.mark.slow


@pytest.mark.cases(2)
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


def test_sharedmem_is_threads_of_this_process(two):
    seen: list[int] = []
    with parallel_config(backend="manyfit"):
        Parallel(n_jobs=2, require="sharedmem")(delayed(seen.append)(i) for i in range(4))
    assert sorted(seen) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="does not support shared memory"):
        Parallel(backend="manyfit", require="sharedmem")


def test_inner_max_num_threads(one):
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
