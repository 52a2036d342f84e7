"""One contender on one case: first with some settings, then with all if there is time.

The first run at a size compiles kernels and loads libraries, which a process does once. It is kept apart
(`first`), and the time of a search is the median of those that follow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from joblib import cpu_count

from benchmarks._contenders import read_search
from benchmarks._limit import time_limit
from benchmarks._measure import describe
from benchmarks._task import Task
from benchmarks.gpu._contenders import Settings
from benchmarks.gpu._memory import Memory

Row = dict[str, Any]
# The labels of what a pass over X copies to the host.
OF_PASSES = {"gradients", "second derivatives"}
# Up to here, starting kernels and copying summaries takes longer than reading the data.
_FIXED_BYTES = 1e7

# Runs after the first one: at most so many, and none begins after so many seconds of them.
_RUNS, _ENOUGH = 5, 1.0


class NoTime(Exception):
    """A search would take longer than the remaining time."""


def some(settings: Settings, task: Task, parallel: bool) -> Settings:
    """Return enough settings to keep the cores busy, with the first and the last among them."""
    wanted = max(2, math.ceil(cpu_count() / task.cv)) if parallel else 2
    if wanted >= len(settings):
        return settings
    return [settings[round(j * (len(settings) - 1) / (wanted - 1))] for j in range(wanted)]


def counted_bytes(n_bytes: int) -> float:
    """Bytes that the time of a search is taken to grow with: on less data, it does not depend on them."""
    return max(float(n_bytes), _FIXED_BYTES)


def timed(
    search: Callable[[Settings], Any],
    settings: Settings,
    first: Settings,
    limit: float,
    expected: float | None = None,
    again: bool = True,
    memory: Memory | None = None,
) -> Row:
    """Return the result of one contender: seconds, number of settings, scores or the failure.

    Parameters
    ----------
    search : callable
        Called with some settings; returns the fitted search when the device is done.
    settings, first : sequence of dict
        All settings, and those of the first run.
    limit : float
        Seconds after which the first run is stopped, and all others together.
    expected : float, optional
        Seconds that one setting is expected to take.
    again : bool
        Whether runs follow the first one, as far as there is time.
    memory : Memory, optional
        Memory of the device, for the peak in the first run.
    """
    row: Row = {
        "seconds": None,
        "settings_run": 0,
        "whole": None,
        "first": None,
        "runs": 0,
        "scores": {},
        "failure": None,
        "peak": None,
    }
    why = "TooLong"
    try:
        if expected is not None and expected * len(first) > limit:
            raise NoTime(f"{expected * len(first):.0f} s for {len(first)} settings, with {limit:.0f} s left")
        with time_limit(limit):
            row["first"] = _watched(row, search, first, settings, memory)
        # What the first run spent on compiling is no reason to leave out those that are timed.
        end = time.perf_counter() + limit
        with time_limit(limit):
            if again and row["seconds"] < end - time.perf_counter():
                _run(row, search, first, settings)
            if len(first) < len(settings) and row["whole"] < end - time.perf_counter():
                first = settings
                _run(row, search, first, settings)
            if again:
                _again(row, search, first, settings, end)
    except Exception as error:
        why = describe(error)
    if row["seconds"] is None:
        row["failure"] = why
    elif again and row["runs"] == 1:
        row["failure"] = f"{why}: only the first run, {row['seconds']:.3g} s with the time to compile kernels"
        row |= {"seconds": None, "whole": None, "settings_run": 0}
    return row


def _watched(
    row: Row, search: Callable[[Settings], Any], first: Settings, settings: Settings, memory: Memory | None
) -> float:
    if memory is None:
        return _run(row, search, first, settings)
    memory.mark()
    try:
        return _run(row, search, first, settings)
    finally:
        row["peak"] = memory.peak()


def _again(
    row: Row, search: Callable[[Settings], Any], now: Settings, settings: Settings, end: float
) -> None:
    """Repeat a run while there is time, and use the median."""
    taken = [row["seconds"]]
    try:
        while len(taken) < _RUNS and sum(taken) < _ENOUGH and max(taken) < end - time.perf_counter():
            taken.append(_run(row, search, now, settings))
    finally:
        row["seconds"] = median(taken)
        row["whole"] = row["seconds"] * len(settings) / len(now)


def _run(row: Row, search: Callable[[Settings], Any], now: Settings, settings: Settings) -> float:
    start = time.perf_counter()
    fitted = search(now)
    seconds = time.perf_counter() - start
    answer = read_search(fitted)
    assert answer.splits is not None
    # At once: the time limit may end this line by line.
    row |= {
        "seconds": seconds,
        "settings_run": len(now),
        "whole": seconds * len(settings) / len(now),
        "scores": dict(zip(answer.keys, answer.splits.T.tolist(), strict=True)),
        "runs": row["runs"] + 1,
    }
    report = getattr(fitted, "report_", None)
    if report is not None:
        row |= {
            "fits_made": report.fits_done,
            "passes": report.passes,
            "to_device": report.bytes_to_device,
            "to_host": report.bytes_to_host,
            "synchronisations": report.synchronisations,
            "waits_of_passes": sum(
                report.transfers[label].to_host for label in OF_PASSES & {*report.transfers}
            ),
            "left_to_sklearn": report.left_to_sklearn,
        }
    return seconds
