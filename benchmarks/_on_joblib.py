"""Calls of joblib through its backends, in turn: manyfit's, joblib's own for Dask, and joblib's processes."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import joblib

from benchmarks import _on_workers as on
from benchmarks._limit import time_limit
from benchmarks._measure import describe
from benchmarks._verdict import Verdict, at_most

OURS, DASK, LOKY = "manyfit", "dask", "loky"
# joblib's own backend for Dask comes last: if it is stopped, the tasks that it has sent still run.
BACKENDS = (OURS, LOKY, DASK)
MOST_SECONDS = 120.0


def spin(seconds: float) -> float:
    """Use a processor for so many seconds."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return seconds


def under(backend: str, call: Callable[[], Any]) -> float | str:
    """The seconds of a call under a backend with two tasks at a time, or the text of its error."""
    import manyfit.joblib_backend  # noqa: F401 - registers the backend

    start = time.perf_counter()
    try:
        with (
            warnings.catch_warnings(),
            time_limit(MOST_SECONDS),
            joblib.parallel_config(backend=backend, n_jobs=on.WORKERS),
        ):
            warnings.simplefilter("ignore")
            call()
    except Exception as error:
        return describe(error)
    return time.perf_counter() - start


def race(
    what: str, call: Callable[[], Any], rounds: int, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """A row for each backend: the median of some rounds, after a first round that does not count."""
    seconds: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
    failures: dict[str, str] = {}
    for turn in range(rounds + 1):
        for backend in BACKENDS:
            if backend in failures:
                continue
            tell(f"{what}, {backend}, round {turn} of {rounds}")
            taken = under(backend, call)
            if isinstance(taken, str):
                failures[backend] = taken
            elif turn:
                seconds[backend].append(taken)
    return [
        {
            "what": what,
            "backend": backend,
            "seconds": statistics.median(seconds[backend]) if seconds[backend] else None,
            "rounds": seconds[backend],
            "failure": failures.get(backend, ""),
        }
        for backend in BACKENDS
    ]


def not_slower(rows: Sequence[dict[str, Any]], what: str, other: str, most: float) -> Verdict:
    """Limit manyfit's time as a multiple of another backend's, at the median of the rounds."""
    ours, theirs = (
        next(row for row in rows if row["what"] == what and row["backend"] == backend)
        for backend in (OURS, other)
    )
    pairs = list(zip(ours["rounds"], theirs["rounds"], strict=False))
    got = statistics.median(one / two for one, two in pairs) if pairs else None
    return at_most(f"{what}: at most {most:g} times as long as {other}", got, most, "times as long")
