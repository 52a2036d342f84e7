"""Some fifty everyday searches, each in scikit-learn and in manyfit."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Literal

from benchmarks._benchmark import register
from benchmarks._compare import largest_difference
from benchmarks._in_turn import Measured, Request, Side, side
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import at_least, at_most
from benchmarks.everyday_cases._all import CASES

SLOW = 0.95
# Rounds of a row: they suffice if the two best runs of either library are so near each other.
_ROUNDS, _MOST_ROUNDS, _NEAR = 2, 4, 1.05
# A number of jobs that took so many times the least of another in all its runs is run no more.
_CLEARLY = 1.2
# A search that looks slow is run more often: the least of a few rounds varies by as much on two cores. So is
# one whose fits scikit-learn makes one by one: both libraries take almost as long.
_ROUNDS_IN_DOUBT, _ROUNDS_ONE_BY_ONE = 12, 8
ONE_BY_ONE = "one by one"
_LIBRARIES = ("sklearn", "manyfit")
_CLOCKS: tuple[Literal["cpu", "wall"], ...] = ("cpu", "wall")
_JOBS: Sequence[int | None] = (None, -1)

Runs = dict[tuple[str, int | None], list[Measured]]

_COLUMNS = (
    Column("search", "search"),
    Column("theirs_cpu", "scikit-learn, CPU", "s"),
    Column("ours_cpu", "manyfit, CPU", "s"),
    Column("times_cpu", "times, CPU", "number"),
    Column("theirs_wall", "scikit-learn, wall", "s"),
    Column("ours_wall", "manyfit, wall", "s"),
    Column("times_wall", "times, wall", "number"),
    Column("difference", "largest difference", "gap"),
    Column("served", "served by"),
    Column("fits", "fits made of fits requested"),
)
_NOTES = (
    "Seconds are the least of several rounds, in which the libraries take turns in a process each, with one",
    f"thread for each process, and of n_jobs {' and '.join(map(str, _JOBS))}. The first requirement is about",
    "CPU seconds, workers included: other work on the machine changes them less than seconds on the wall.",
    "The C library of both keeps freed memory: whether it returns it depends on what the process did before.",
    "What looks slow by either clock runs again after all others: other work may last for all its rounds.",
)


def _measure(quick: bool, tell: Tell) -> Findings:
    runs: dict[str, Runs] = {}
    with ExitStack() as stack:
        # Their first runs, of the first case, import what they need and start workers; they are not kept.
        sides = {library: stack.enter_context(side(library)) for library in _LIBRARIES}
        _alternate(sides, next(iter(CASES)), quick)
        for name in CASES:
            tell(name)
            runs[name] = _alternate(sides, name, quick)
        # Other work on the machine may last for all rounds of a search: those in doubt run once more, later.
        for name in () if quick else [name for name in CASES if _looks_slow(runs[name])]:
            tell(f"{name} again")
            for key, found in _alternate(sides, name, quick).items():
                runs[name][key] += found
    return _findings([_row(name, runs[name]) for name in CASES])


def _alternate(sides: dict[str, Side], name: str, quick: bool) -> Runs:
    """Run a case in both libraries in turn, until the times are settled."""
    jobs = _JOBS[:1] if quick else _JOBS
    runs: Runs = {(library, n_jobs): [] for n_jobs in jobs for library in _LIBRARIES}
    for number in range(1 if quick else _ROUNDS_IN_DOUBT):
        for (library, n_jobs), found in runs.items():
            # The first round may start workers.
            if number < _ROUNDS or not _was_slower(runs, library, n_jobs):
                found.append(sides[library].run(Request(name, quick, n_jobs)))
        if number + 1 >= _ROUNDS and _is_enough(runs, number + 1):
            break
    return runs


def _is_enough(runs: Runs, n_rounds: int) -> bool:
    settled = n_rounds >= _MOST_ROUNDS or all(_is_settled(runs, library) for library in _LIBRARIES)
    if ONE_BY_ONE in runs["manyfit", None][0].kinds:
        settled = n_rounds >= _ROUNDS_ONE_BY_ONE
    return settled and not _looks_slow(runs)


def _looks_slow(runs: Runs) -> bool:
    theirs, ours = ({clock: _least(runs, library, clock) for clock in _CLOCKS} for library in _LIBRARIES)
    return any(theirs[clock] < SLOW * ours[clock] for clock in _CLOCKS)


def _was_slower(runs: Runs, library: str, n_jobs: int | None) -> bool:
    """Whether all runs so far say that another number of jobs takes clearly less, by both clocks."""
    return all(
        min(getattr(run, clock) for run in runs[library, n_jobs]) > _CLEARLY * _least(runs, library, clock)
        for clock in _CLOCKS
    )


def _is_settled(runs: Runs, library: str) -> bool:
    found = min((runs[key] for key in runs if key[0] == library), key=lambda one: min(m.cpu for m in one))
    first, second = sorted(measured.cpu for measured in found)[:2]
    return second <= _NEAR * first


def _least(runs: Runs, library: str, clock: Literal["cpu", "wall"]) -> float:
    return min(getattr(measured, clock) for key in runs if key[0] == library for measured in runs[key])


def _row(name: str, runs: Runs) -> dict[str, Any]:
    failures = [one.failure for found in runs.values() for one in found if one.failure is not None]
    if failures:
        raise RuntimeError(f"{name}: {failures[0]}")
    seconds = {
        f"{whose}_{clock}": _least(runs, library, clock)
        for whose, library in zip(("theirs", "ours"), _LIBRARIES, strict=True)
        for clock in _CLOCKS
    }
    theirs, ours = (runs[library, None][0] for library in _LIBRARIES)
    return {
        "search": name,
        **seconds,
        "times_cpu": seconds["theirs_cpu"] / seconds["ours_cpu"],
        "times_wall": seconds["theirs_wall"] / seconds["ours_wall"],
        "difference": largest_difference(ours.scores, theirs.scores),
        "served": ", ".join(ours.kinds) or "-",
        "fits": f"{ours.fits[0]} of {ours.fits[1]}" if ours.fits else "-",
        "rounds": {f"{library} n_jobs={n}": len(found) for (library, n), found in runs.items()},
    }


def _findings(rows: list[dict[str, Any]]) -> Findings:
    found: dict[str, Any] = {}
    for clock in _CLOCKS:
        times = [row[f"times_{clock}"] for row in rows]
        found[clock] = {
            "geometric_mean": statistics.geometric_mean(times),
            "median": statistics.median(times),
            "slow": {row["search"]: row[f"times_{clock}"] for row in rows if row[f"times_{clock}"] < SLOW},
        }
    notes = (*_NOTES, *(_conclusion(clock, found[clock]) for clock in _CLOCKS))
    found["n_jobs"] = [str(n_jobs) for n_jobs in _JOBS]
    alone = [row for row in rows if row["served"] == ONE_BY_ONE]
    found["one_by_one"] = {clock: _least_and_mean(alone, clock) for clock in _CLOCKS} if alone else {}
    least, mean = found["one_by_one"].get("wall", (None, None))
    slow = len(found["cpu"]["slow"])
    verdicts = [
        at_most(f"searches under {SLOW:g} times scikit-learn: none", slow, 0, "searches"),
        at_least("fits one by one, each search on the wall: 1 time", least, 1.0, "times"),
        at_least("the same, geometric mean: 1.1 times", mean, 1.1, "times"),
    ]
    return Findings(rows, _COLUMNS, found, notes, verdicts)


def _least_and_mean(rows: Sequence[dict[str, Any]], clock: str) -> tuple[float, float]:
    """How many times less searches take: the least, and the geometric mean."""
    times = [row[f"times_{clock}"] for row in rows]
    return min(times), statistics.geometric_mean(times)


def _conclusion(clock: str, found: dict[str, Any]) -> str:
    slow = ", ".join(f"{name} {times:.2f}" for name, times in found["slow"].items()) or "none"
    mean, middle = found["geometric_mean"], found["median"]
    return f"{clock}: geometric mean {mean:.3g} times, median {middle:.3g} times; under {SLOW:g}: {slow}"


register(
    Study("everyday", "some fifty everyday searches: how much faster, and how they are served", _measure)
)
