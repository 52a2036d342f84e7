"""What worker processes of `local_cluster` are started with."""

from __future__ import annotations

import os

import dask
import pytest

from manyfit.cluster import _local_cluster as _start


@pytest.mark.parametrize(
    ("given", "threads", "expected"), [("2", 3, 2), ("8", 3, 3), ("2,4", 3, 2), ("", 3, 3), ("x", 3, 3)]
)
def test_fewer_threads_in_the_environment_count(monkeypatch, given, threads, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with _start._worker_environment(threads):
        from distributed.nanny import Nanny  # what a nanny would give to a worker

        given_on = Nanny("tcp://127.0.0.1:1").pre_spawn_env
    assert given_on["OMP_NUM_THREADS"] == str(expected) and given_on["MKL_NUM_THREADS"] == str(threads)
    assert os.environ["OMP_NUM_THREADS"] == given and "MKL_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("own", [None, "33ms"])
@pytest.mark.parametrize("name", ["distributed.admin.tick.interval", "distributed.worker.profile.interval"])
def test_dask_looks_less_often_unless_it_is_told_how_often(name, own):
    with dask.config.set({} if own is None else {name: own}):
        before = dask.config.get(name, None)
        with _start._worker_environment(1):
            from distributed.nanny import Nanny  # what a nanny gives to a worker

            given = dask.config.get(name, config=Nanny("tcp://127.0.0.1:1").config)
        if own:
            assert given == dask.config.get(name) == own
        else:
            assert dask.config.get(name) == before or before is None
            assert dask.utils.parse_timedelta(given) > dask.utils.parse_timedelta(dask.config.get(name))
