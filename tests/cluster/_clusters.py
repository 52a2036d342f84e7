"""Clusters for the tests, within this process where that will do, and what happens beside a test."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, Scheduler, SpecCluster, Worker
from distributed.utils import get_mp_context

from tests._shortcuts import PRELOADED
from tests.cluster._processes import running, wait_for


@contextmanager
def forking() -> Iterator[None]:
    """Have worker processes forked as those of joblib are: a start takes 0.4 s of a core, not 3.5 s.

    They have the environment of the first of them. How they start otherwise is tested in `test_start.py`.
    """
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload([*PRELOADED])  # in place of those that Dask has set
        yield


@contextmanager
def within(n_workers: int = 2, threads: int = 1, **options: Any) -> Iterator[Client]:
    """Workers that are threads of this process, which start at once."""
    kwargs = {"processes": False, "threads_per_worker": threads, "dashboard_address": ":0", **options}
    with LocalCluster(n_workers=n_workers, **kwargs) as cluster, Client(cluster) as client:
        yield client


@contextmanager
def workers_with(**workers: dict[str, Any]) -> Iterator[Client]:
    """Workers of these names and options, within this process."""
    spec: Any = {name: {"cls": Worker, "options": options} for name, options in workers.items()}
    scheduler: Any = {"cls": Scheduler, "options": {"protocol": "inproc://", "dashboard_address": ":0"}}
    with SpecCluster(workers=spec, scheduler=scheduler) as cluster, Client(cluster) as client:
        client.wait_for_workers(len(workers))
        yield client


@contextmanager
def by_hand(
    folder: Path,
    *options: str,
    n_workers: int = 1,
    nanny: bool = False,
    default: bool = True,
    **variables: str,
) -> Iterator[Client]:
    """Workers that the command of Dask starts, a process each; without a nanny nobody starts them again."""
    scheduler = "dask scheduler --host 127.0.0.1 --port 0 --no-dashboard --scheduler-file address.json"
    worker = "dask worker --scheduler-file address.json --nworkers 1 --nthreads 1 --no-dashboard"
    worker += "" if nanny else " --no-nanny"
    with ExitStack() as stack:
        stack.enter_context(running(scheduler, folder))
        for _ in range(n_workers):
            stack.enter_context(running(worker, folder, *options, **variables))
        file = folder / "address.json"
        wait_for(file.exists, "the scheduler")
        client = stack.enter_context(Client(scheduler_file=str(file), set_as_default=default))
        client.wait_for_workers(n_workers, timeout=60)
        yield client


def pids(client: Client) -> set[int]:
    """The processes of workers, but those that are being started again."""
    return set(client.run(os.getpid, on_error="ignore").values())


def kill(processes: Iterable[int]) -> None:
    """End processes without a word to them."""
    for pid in processes:
        os.kill(pid, signal.SIGKILL)


def meanwhile(seconds: float, action: Callable[..., Any], *args: Any) -> threading.Timer:
    """Do something in another thread after some seconds."""
    timer = threading.Timer(seconds, action, args)
    timer.daemon = True
    timer.start()
    return timer


def at_once(*calls: Callable[[], Any]) -> None:
    """Make calls in a thread each, and wait for all."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def in_seconds(most: float) -> Iterator[None]:
    """A block that takes no longer than this."""
    start = time.monotonic()
    yield
    assert time.monotonic() - start < most


def nothing_is_left(client: Client) -> None:
    """Wait until no task of a call of Parallel is on the cluster, and no future in the client."""
    scheduler = client.cluster.scheduler

    def of_calls(keys: Iterable[Any]) -> list[Any]:
        return [key for key in keys if not str(key).startswith("manyfit-")]

    wait_for(lambda: not of_calls(scheduler.tasks), f"the end of {of_calls(scheduler.tasks)}")
    wait_for(lambda: not of_calls(client.futures), "futures")
