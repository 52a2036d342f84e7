"""Workers of a Dask cluster that read the chunks of an X and sum them, a task for some consecutive chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import cloudpickle
import numpy as np

from manyfit.cluster.pool.run import client_for, count_slots, release_arrays, run_on_cluster
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.cluster.worker.task_context import still_wanted, task_context
from manyfit.folds import ChunkRows, Node, ReadSums, Workers, check_blas_threads

# Tasks of a pass for each slot of the cluster, at least, where chunks are enough.
TASKS_PER_SLOT = 4
# A task of fewer bytes of X, which all settings and folds read, takes longer to send than to sum.
LEAST_BYTES = 2**20
# What describes X takes at most so many bytes, or this part of X; more has some of its rows inside.
SENT_BYTES, SENT_PARTS = 2**20, 16


class ChunkWorkers(Workers):
    """The workers of a client. Each pass is a run of tasks, and none of them holds more than two reads."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._kept: dict[str, int] = {}

    def run(self, sums: ReadSums, tasks: Sequence[range]) -> Iterator[tuple[list[Node], int]]:
        """See `Workers`. A task that dies with its worker runs on another one."""
        results = run_on_cluster(
            self.client,
            _sum_groups,
            tasks,
            sums,
            name=lambda groups: f"sum_chunks-{type(sums.work).__name__.strip('_')}",
            fuse=lambda groups: False,
            inputs=lambda groups, tries: sums.inputs(groups),
            kept=self._kept,
        )
        for _, result in results:
            if isinstance(result, WorkerLost):
                raise result.error
            yield result

    @property
    def n_slots(self) -> int:
        return count_slots(self.client)

    def tasks(self, n_groups: int, group_bytes: int) -> list[range]:
        return cut_groups(n_groups, self.n_slots, max(1, -(-LEAST_BYTES // max(group_bytes, 1))))

    def close(self) -> None:
        """Release y, weights and folds on the workers."""
        if self.client.status == "running":
            release_arrays(self.client, self._kept)


def cut_groups(n_groups: int, n_slots: int, least: int = 1) -> list[range]:
    """Groups of reads for each task: 1, 2, 4 or more, at least so many; each slot gets `TASKS_PER_SLOT`."""
    size = 1
    while size < min(least, n_groups):
        size *= 2
    while -(-n_groups // (2 * size)) >= TASKS_PER_SLOT * n_slots:
        size *= 2
    return [range(start, min(start + size, n_groups)) for start in range(0, n_groups, size)]


def _sum_groups(groups: range, sums: ReadSums) -> tuple[list[Node], int]:
    """On a worker: the sums of some groups of reads."""
    with check_blas_threads(_stop_if_unwanted):
        return sums.nodes(groups, task_context().inputs)


def _stop_if_unwanted() -> None:
    if not still_wanted():
        raise InterruptedError("the search was cancelled")


@contextmanager
def chunk_workers(X: Any, client: Any = None) -> Iterator[None]:
    """Within it, the workers of a client read and sum the chunks of X, if they can.

    `client` is as in `client_for`; it is not looked at inside of another such block for X.
    """
    if not isinstance(X, ChunkRows) or X.original.is_placed:
        yield
        return
    X, client = X.original, client_for(client)
    X.read_here = "" if client is None else X.why_not_on_workers() or _look_on_workers(X, client)
    X.is_placed = True
    workers = None if client is None or X.read_here else ChunkWorkers(client)
    X.workers = workers
    try:
        yield
    finally:
        X.workers, X.is_placed = None, False
        if workers is not None:
            workers.close()


def _look_on_workers(X: ChunkRows, client: Any) -> str:
    """The reason why some worker cannot read X, or reads other rows than this process; empty if all can."""
    try:
        pickled = cloudpickle.dumps(X)
    except Exception as error:
        return f"it cannot be sent to workers: {type(error).__name__}: {error}"
    if len(pickled) > max(SENT_BYTES, X.nbytes // SENT_PARTS):
        return f"it would be sent to workers in {len(pickled):,} bytes"
    if not X.in_files:
        return ""
    if not count_slots(client):
        return "no worker has started that could open its file"
    own = _some_rows(X)
    for worker, found in client.run(_rows_on_worker, pickled, on_error="return").items():
        if isinstance(found, Exception):
            return f"the worker {worker} cannot open it: {type(found).__name__}: {found}"
        if own != found:
            return f"the worker {worker} finds other rows under its name"
    return ""


def _some_rows(X: ChunkRows) -> list[str]:
    """The first, the middle and the last row of an X in files, as texts."""
    n = X.shape[0]
    rows = (X.load_frame(row, row + 1) for row in (0, n // 2, n - 1))
    return [repr(np.asarray(one, dtype=object).tolist()) for one in rows]


def _rows_on_worker(pickled: bytes) -> list[str]:
    return _some_rows(cloudpickle.loads(pickled))
