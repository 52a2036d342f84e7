"""Calls of `Parallel` within tasks."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import SequentialBackend, ThreadingBackend

from manyfit.joblib_backend import ManyfitBackend
from tests._covering import spread
from tests.cluster._clusters import within
from tests.joblib_backend._calls import in_a_task, worker_of

pytestmark = pytest.mark.slow


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
