"""The number of slots that one client and one scheduler keep busy with fits that sleep."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._large_cluster import THREADS, LargeCluster, large_cluster
from benchmarks._study import Column, Findings, Tell
from benchmarks._timed import Sleeps

_COLUMNS = (
    Column("seconds_a_fit", "a fit", "s"),
    Column("slots", "slots", "number"),
    Column("workers", "workers", "number"),
    Column("fits", "fits", "number"),
    Column("seconds", "time", "s"),
    Column("busy", "busy", "number"),
    Column("client_cpu", "client CPU", "s"),
    Column("scheduler_cpu", "scheduler CPU", "s"),
    Column("workers_cpu", "workers CPU", "s"),
)
BUSY = 0.9
# Seconds per fit, fits per slot, and the numbers of slots to try.
_LADDERS: dict[float, tuple[int, Sequence[int]]] = {
    0.1: (100, (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)),
    1.0: (20, (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)),
}
_QUICK: dict[float, tuple[int, Sequence[int]]] = {0.05: (10, (4, 8))}
_TRIES, _FOLDS = 2, 5
_NOTE = (
    "busy: the sum of the sleeps over slots x time of the search, its beginning and its end included;\n"
    "CPU: processor time, of a fit.\n"
    "Scheduler, client and workers share the cores of this machine: with more, there would be more slots"
)


def measure_slots(quick: bool, tell: Tell) -> Findings:
    """Increase the slots until they are not busy enough; each number has two tries."""
    rows: list[dict[str, Any]] = []
    found: dict[str, int] = {}
    for seconds, (per_slot, ladder) in (_QUICK if quick else _LADDERS).items():
        found[f"{seconds:g}"] = 0
        with large_cluster() as cluster:
            for slots in ladder:
                tell(f"{slots} slots, fits of {seconds:g} s")
                cluster.grow(slots)
                _search(cluster.client, seconds, slots)  # the first search after new workers joined
                busy = _tries(cluster, seconds, per_slot, rows)
                if busy < BUSY:
                    break
                found[f"{seconds:g}"] = slots
    notes = [
        f"{slots} slots are {BUSY:.0%} busy with fits of {seconds} s" for seconds, slots in found.items()
    ]
    return Findings(rows, _COLUMNS, found=found, notes=[_NOTE, *notes])


def _tries(cluster: LargeCluster, seconds: float, per_slot: int, rows: list[dict[str, Any]]) -> float:
    best = 0.0
    for _ in range(_TRIES):
        n_fits, before = per_slot * cluster.slots, cluster.cpu_seconds()
        taken = _search(cluster.client, seconds, n_fits)
        busy = n_fits * seconds / (cluster.slots * taken)
        cpu = {who: (now - before[who]) / n_fits for who, now in cluster.cpu_seconds().items()}
        row = {"seconds_a_fit": seconds, "slots": cluster.slots, "workers": cluster.slots // THREADS}
        row |= {"fits": n_fits, "seconds": taken, "busy": busy}
        rows.append(row | {f"{who}_cpu": each for who, each in cpu.items()})
        best = max(best, busy)
        if best >= BUSY:
            break
    return best


def _search(client: Any, seconds: float, n_fits: int) -> float:
    """The seconds of a search with so many fits, a multiple of five."""
    from manyfit.model_selection import GridSearchCV

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.normal(size=200)
    grid = {"value": np.linspace(0.0, 1.0, max(1, n_fits // _FOLDS))}
    search = GridSearchCV(Sleeps(seconds), grid, cv=_FOLDS, refit=False, client=client)
    start = time.perf_counter()
    search.fit(X, y)
    return time.perf_counter() - start
