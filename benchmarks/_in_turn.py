"""Two libraries in a process each, which run the same everyday search in turn.

``python -m benchmarks._in_turn LIBRARY`` is one of the processes. It reads a request from its standard input,
runs it, writes what it measured to its standard output, and ends when its standard input does.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import psutil  # type: ignore[import-untyped]
from numpy.typing import NDArray

from benchmarks.everyday_cases._all import CASES

# Threads that wait for others on a busy machine would count as CPU seconds.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Whether glibc returns freed rows to the system, and the next fit has to fault them in again (a tenth of its
# time), depends on what else the process has run before. Here neither process returns any.
_KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Request:
    """One run of a case."""

    case: str
    quick: bool
    n_jobs: int | None


@dataclass(frozen=True)
class Measured:
    """One run: seconds on the clock, of processors with the workers' own, scores, and manyfit's report.

    ``failure`` is the error of a run that raised one.
    """

    wall: float = float("inf")
    cpu: float = float("inf")
    scores: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    kinds: tuple[str, ...] = ()
    fits: tuple[int, int] | None = None
    failure: str | None = None


class Side:
    """One of the two processes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def run(self, request: Request) -> Measured:
        """Run a case once. The other process waits meanwhile."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()
        found: Measured = pickle.load(self._process.stdout)
        return found


@contextmanager
def side(library: str, *, one_thread: bool = True) -> Iterator[Side]:
    """Start the process of a library, with one thread or with those that libraries choose, and end it."""
    command = [sys.executable, "-m", "benchmarks._in_turn", library]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    own = {name: value for name, value in os.environ.items() if name not in _ONE_THREAD}
    environment = own | (_ONE_THREAD if one_thread else {}) | _KEEPS_MEMORY
    with subprocess.Popen(command, cwd=_ROOT, env=environment, **pipes) as process:
        yield Side(process)


def measure(library: Any, request: Request) -> Measured:
    """Run a case in this process."""
    case = CASES[request.case]
    X, y = case.rows(request.quick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, start = _cpu_seconds(), time.perf_counter()
        scores, report = case.call(library, X, y, request.n_jobs)
        wall = time.perf_counter() - start
    kinds = () if report is None else tuple(dict.fromkeys(group["kind"] for group in report.groups))
    fits = None if report is None else (report.fits_done, report.fits_requested)
    return Measured(wall, _cpu_seconds() - before, scores, kinds, fits)


def _cpu_seconds() -> float:
    """Return what this process and its workers have used so far."""
    workers = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return time.process_time() + float(sum(one.user + one.system for one in workers))


def _serve(library: str, requests: BinaryIO, answers: BinaryIO) -> None:
    model_selection = importlib.import_module(f"{library}.model_selection")
    while True:
        try:
            request: Request = pickle.load(requests)
        except EOFError:
            return
        try:
            found = measure(model_selection, request)
        except Exception as error:
            found = Measured(failure=f"{type(error).__name__}: {error}")
        pickle.dump(found, answers)
        answers.flush()


if __name__ == "__main__":
    from benchmarks import _in_turn  # the classes that the other process knows, under their own names

    _in_turn._serve(sys.argv[1], sys.stdin.buffer, sys.stdout.buffer)
