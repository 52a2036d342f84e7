"""Clusters for the tests of the joblib backend: within this process where that will do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, LocalCluster

from tests.cluster._processes import wait_for


@contextmanager
def within(n_workers: int, threads: int = 1, **options: Any) -> Iterator[Client]:
    """Workers that are threads of this process, which start at once."""
    kwargs = {"processes": False, "threads_per_worker": threads, "dashboard_address": ":0", **options}
    with LocalCluster(n_workers=n_workers, **kwargs) as cluster, Client(cluster) as client:
        yield client


def nothing_is_left(client: Client) -> None:
    """Wait until no task of a call is on the cluster, and no future in the client."""
    scheduler = client.cluster.scheduler

    def ours() -> list[Any]:
        return [key for key in scheduler.tasks if not str(key).startswith("manyfit-")]

    wait_for(lambda: not ours(), f"the end of {ours()}")
    wait_for(lambda: not [k for k in client.futures if not str(k).startswith("manyfit-")], "futures")


def soon(what: Callable[[], Any], name: str = "what was waited for") -> Any:
    """What `what` returns as soon as that is true."""
    return wait_for(what, name)
