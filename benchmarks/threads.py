"""Everyday searches with the threads that BLAS and OpenMP start if nobody limits them."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from typing import Any

from joblib import cpu_count

from benchmarks._benchmark import register
from benchmarks._compare import largest_difference
from benchmarks._in_turn import Measured, Request, Side, side
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import at_least, at_most
from benchmarks.everyday_cases._all import CASES

# Searches whose fits call BLAS and loops of OpenMP in turn, and others on BLAS. They run with processes, too.
_OF_BOTH = ("poisson", "logistic-digits")
IN_PROCESSES = (*_OF_BOTH, "huber", "network", "kernel-ridge")
_ROUNDS = 3
_LEAST, _SLOW = 2.0, 0.95
# Seconds after which the threads of the other process have stopped waiting for work.
_UNTIL_IDLE = 0.3

_COLUMNS = (
    Column("search", "search"),
    Column("theirs", "scikit-learn", "s"),
    Column("ours", "manyfit", "s"),
    Column("times", "times", "number"),
    Column("theirs_in_processes", "scikit-learn, n_jobs=-1", "s"),
    Column("ours_in_processes", "manyfit, n_jobs=-1", "s"),
    Column("of_threads", "difference", "gap"),
    Column("difference", "from n_jobs=-1", "gap"),
)
_NOTES = (
    "Seconds on the clock, the least of some rounds, with n_jobs=None where nothing else is said. With",
    "n_jobs=-1 joblib gives each process one thread, so that no thread waits for another. Differences are",
    "those of manyfit with n_jobs=None from scikit-learn with n_jobs=None, and from scikit-learn with",
    "n_jobs=-1: a sum on several threads is rounded otherwise than on one.",
)

Runs = dict[tuple[str, int | None], list[Measured]]


def _measure(quick: bool, tell: Tell) -> Findings:
    rows = []
    with ExitStack() as stack:
        sides = {one: stack.enter_context(side(one, one_thread=False)) for one in ("sklearn", "manyfit")}
        _run(sides, next(iter(CASES)), None, quick)  # imports what the libraries need
        for name in IN_PROCESSES if quick else CASES:
            tell(name)
            runs: Runs = {}
            for n_jobs in (None, -1) if name in IN_PROCESSES else (None,):
                for _ in range(1 if quick else _ROUNDS):
                    for library, found in _run(sides, name, n_jobs, quick).items():
                        runs.setdefault((library, n_jobs), []).append(found)
            rows.append(_row(name, runs))
    times = {row["search"]: row["times"] for row in rows}
    slow = {name: one for name, one in times.items() if one < _SLOW}
    found = {"geometric_mean": statistics.geometric_mean(times.values()), "slow": slow}
    least = min(times[name] for name in _OF_BOTH)
    verdicts = [
        at_least(f"fits on BLAS and OpenMP, {cpu_count()} cores", least, _LEAST, "times as fast"),
        at_most(f"searches under {_SLOW:g} times scikit-learn: none", len(slow), 0, "searches"),
    ]
    told = ", ".join(f"{name} {one:.2f}" for name, one in slow.items()) or "none"
    mean = f"geometric mean {found['geometric_mean']:.3g} times; under {_SLOW:g}: {told}"
    return Findings(rows, _COLUMNS, found, (*_NOTES, mean), verdicts)


def _run(sides: dict[str, Side], name: str, n_jobs: int | None, quick: bool) -> dict[str, Measured]:
    found = {}
    for library, one in sides.items():
        time.sleep(_UNTIL_IDLE)
        found[library] = one.run(Request(name, quick, n_jobs))
        if found[library].failure is not None:
            raise RuntimeError(f"{name}: {found[library].failure}")
    return found


def _seconds(runs: Runs, library: str, n_jobs: int | None) -> float:
    return min(one.wall for one in runs[library, n_jobs])


def _row(name: str, runs: Runs) -> dict[str, Any]:
    ours, theirs = _seconds(runs, "manyfit", None), _seconds(runs, "sklearn", None)
    scores = {key: found[0].scores for key, found in runs.items()}
    in_processes = ("sklearn", -1) in runs
    return {
        "search": name,
        "theirs": theirs,
        "ours": ours,
        "times": theirs / ours,
        "theirs_in_processes": _seconds(runs, "sklearn", -1) if in_processes else None,
        "ours_in_processes": _seconds(runs, "manyfit", -1) if in_processes else None,
        "of_threads": largest_difference(scores["manyfit", None], scores["sklearn", None]),
        "difference": largest_difference(scores["manyfit", None], scores["sklearn", -1])
        if in_processes
        else None,
    }


register(Study("threads", "everyday searches with all threads of BLAS and OpenMP", _measure))
