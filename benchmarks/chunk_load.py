"""The load of a scheduler and a client while the workers of a large cluster sum the chunks of 1 TB.

``python -m benchmarks.chunk_load`` imitates 100 workers of four slots by processes of this machine. A read
gives numbers that are never written, and one of eight stands for all, so that the cost of the tasks is
measured: the seconds that the scheduler and the client compute in a pass, the tasks, and the bytes of their
results. A task reads for the seconds that are asked for.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from typing import Any

import dask
import numpy as np
from distributed import Client

from benchmarks._large_cluster import THREADS, large_cluster
from manyfit.cluster.chunk_workers import ChunkWorkers
from manyfit.folds import ChunkRows
from manyfit.folds.rows._chunk_reduction import GROUP_READS

ATOMS = 5
# Processes answer late while hundreds of threads share few cores.
PATIENCE = "300s"


class ImitatedRows(ChunkRows):
    """Rows of float64 in reads of 32 MB, of which one of each group is made, in some seconds."""

    def __init__(self, nbytes: int, p: int, seconds: float) -> None:
        rows = max(1, 2**25 // (8 * p))
        n = nbytes // (8 * p)
        super().__init__("imitation", (n, p), np.dtype(float), [*range(0, n, rows), n], 2**30)
        self.seconds = seconds

    def read(self, start: int, stop: int) -> Any:
        """Numbers that nobody writes."""
        time.sleep(self.seconds)
        return np.empty((stop - start, self.n_columns))

    def in_turn(self, sets: Any, load: Any, reads: range | None = None) -> Iterator[Any]:
        """The first read of each group: all workers have the cores of one machine."""
        assert reads is not None
        for k in range(reads.start, min(reads.stop, self.n_reads), GROUP_READS):
            rows = slice(self.borders[k], self.borders[k + 1])
            yield rows, load(rows.start, rows.stop), [slice(0, rows.stop - rows.start)]


class Sums:
    """As large as the moments of five folds, which shuffled rows have in each chunk."""

    def __init__(self, p: int) -> None:
        self.p = p

    def __call__(self, X: Any, rows: slice, block: Any, local: Any) -> Any:
        return np.zeros((ATOMS, self.p + 1, self.p + 1))


def add(one: Any, other: Any) -> Any:
    """The sum, in place."""
    one += other
    return one


def measure(client: Client, cluster: Any, nbytes: int, p: int, seconds: float) -> dict[str, float]:
    """The cost of one pass."""
    X = ImitatedRows(nbytes, p, seconds)
    X.workers = workers = ChunkWorkers(client)
    tasks, before, start = (
        len(workers.tasks(X.n_groups, X.group_bytes)),
        cluster.cpu_seconds(),
        time.perf_counter(),
    )
    total = X.reduced(Sums(p), add)
    wall, after = time.perf_counter() - start, cluster.cpu_seconds()
    assert total.shape == (ATOMS, p + 1, p + 1)
    workers.close()
    spent = {f"{name} CPU s": after[name] - before[name] for name in after}
    return {
        "reads": X.n_reads,
        "tasks": tasks,
        "MB of results": tasks * total.nbytes / 1e6,
        "s": wall,
        **spent,
    }


def main() -> None:
    """Print a line for some numbers of columns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--terabytes", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.0, help="that a read of 32 MB takes")
    asked = parser.parse_args()
    for name in ("tcp", "connect"):  # all workers start to work on the cores of one machine
        os.environ[f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{name.upper()}"] = PATIENCE
        dask.config.set({f"distributed.comm.timeouts.{name}": PATIENCE})
    with large_cluster() as cluster:
        cluster.grow(asked.workers * THREADS)
        for p in (20, 20, 200):  # the first pass imports modules
            found = measure(cluster.client, cluster, int(asked.terabytes * 1e12), p, asked.seconds)
            print(
                f"{p} columns:",
                ", ".join(f"{name} {value:,.1f}" for name, value in found.items()),
                flush=True,
            )


if __name__ == "__main__":
    main()
