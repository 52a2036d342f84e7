"""Everyday searches with the threads that BLAS and OpenMP start if nobody limits them."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from joblib import cpu_count

from benchmarks._benchmark import register
from benchmarks._compare import largest_difference
from benchmarks._in_turn import Measured, Request, side
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import at_least, at_most

# Searches of `everyday` whose fits call BLAS and loops of OpenMP in turn, and others on BLAS.
_CASES = ("poisson", "logistic-digits", "huber", "network", "kernel-ridge")
_OF_BOTH = _CASES[:2]
_SLOW = 0.9
_ROUNDS = 5
_LEAST = 2.0
# Seconds after which the threads of the other process have stopped to wait for work.
_UNTIL_IDLE = 0.3

_COLUMNS = (
    Column("search", "search"),
    Column("theirs", "scikit-learn", "s"),
    Column("ours", "manyfit", "s"),
    Column("times", "times", "number"),
    Column("theirs_in_processes", "scikit-learn, n_jobs=-1", "s"),
    Column("ours_in_processes", "manyfit, n_jobs=-1", "s"),
    Column("difference", "difference", "gap"),
    Column("of_threads", "from n_jobs=None", "gap"),
)
_NOTES = (
    "Seconds on the clock, the least of some rounds, with n_jobs=None where nothing else is said. With",
    "n_jobs=-1 joblib gives each process one thread, so that no thread waits for another. Differences are",
    "those of manyfit with n_jobs=None from scikit-learn with n_jobs=-1, then from scikit-learn with",
    "n_jobs=None: a sum on several threads is rounded otherwise than on one.",
)


def _measure(quick: bool, tell: Tell) -> Findings:
    with ExitStack() as stack:
        sides = {
            library: stack.enter_context(side(library, one_thread=False))
            for library in ("sklearn", "manyfit")
        }
        rows = []
        for name in _CASES:
            tell(name)
            runs: dict[tuple[str, int | None], list[Measured]] = {}
            for n_jobs in (None, -1):
                for _ in range(1 if quick else _ROUNDS):
                    for library, one in sides.items():
                        time.sleep(_UNTIL_IDLE)
                        found = one.run(Request(name, quick, n_jobs))
                        runs.setdefault((library, n_jobs), []).append(found)
            rows.append(_row(name, runs))
    least = min(row["times"] for row in rows if row["search"] in _OF_BOTH)
    asked = f"searches on BLAS and OpenMP, of {cpu_count()} cores: times scikit-learn"
    slow = [row["search"] for row in rows if row["times"] < _SLOW]
    verdicts = [
        at_least(asked, least, _LEAST, "times as fast"),
        at_most(f"searches under {_SLOW:g} times scikit-learn: none", len(slow), 0, "searches"),
    ]
    return Findings(rows, _COLUMNS, notes=_NOTES, verdicts=verdicts)


def _row(name: str, runs: dict[tuple[str, int | None], list[Measured]]) -> dict[str, Any]:
    failures = [one.failure for found in runs.values() for one in found if one.failure is not None]
    if failures:
        raise RuntimeError(f"{name}: {failures[0]}")
    ours = runs["manyfit", None][0]
    seconds = {key: min(one.wall for one in found) for key, found in runs.items()}
    return {
        "search": name,
        "theirs": seconds["sklearn", None],
        "ours": seconds["manyfit", None],
        "times": seconds["sklearn", None] / seconds["manyfit", None],
        "theirs_in_processes": seconds["sklearn", -1],
        "ours_in_processes": seconds["manyfit", -1],
        "difference": largest_difference(ours.scores, runs["sklearn", -1][0].scores),
        "of_threads": largest_difference(ours.scores, runs["sklearn", None][0].scores),
    }


register(Study("threads", "everyday searches with all threads of BLAS and OpenMP", _measure))
