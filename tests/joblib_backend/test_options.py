"""How the backend is named, its options, and the resources that tasks take."""

from __future__ import annotations

import inspect
import time
from typing import Any

import dask
import joblib
import pytest
from distributed import Client
from joblib import Parallel, delayed, parallel_backend, parallel_config

from manyfit.joblib_backend import ManyfitBackend
from tests.cluster._clusters import within, workers_with
from tests.joblib_backend._calls import AtATime, in_a_task, square, wait_a_bit, worker_of

pytestmark = pytest.mark.slow


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
