"""Peak memory of one contender, in a process of its own.

A process that made the data, or ran another contender, cannot measure this one: it reuses freed memory, and
on Linux a child starts with its parent's value of ``ru_maxrss``. The fresh process therefore reads the data
from a file, loads all code and starts all threads and workers with a tiny search, returns free memory to
the system, and resets the high-water mark.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import tracemalloc
import warnings
from collections.abc import Mapping
from pathlib import Path

import joblib
import psutil  # type: ignore[import-untyped]

from benchmarks._benchmark import Benchmark, Contender, all_benchmarks
from benchmarks._result import Memory
from benchmarks._task import Data

_ROOT = Path(__file__).resolve().parents[1]
_TIMEOUT = 1800.0


def measure_memory(benchmark: Benchmark, contender: Contender, data: Data, *, quick: bool) -> Memory:
    """Run `contender` in a fresh process on `data` and return its peaks.

    Raises
    ------
    RuntimeError
        If the process fails; the message is the last line that it wrote.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, values in zip(("X", "y"), data, strict=True):
            joblib.dump(values, Path(folder) / name)
        command = [sys.executable, "-m", "benchmarks._memory", benchmark.name, contender.name, folder]
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [*command, "--quick"] if quick else command,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
        )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(lines[-1])
    return Memory(**json.loads(done.stdout.strip().splitlines()[-1]))


def _peaks(benchmark: Benchmark, contender: Contender, folder: Path, *, quick: bool) -> Memory:
    """Measure in this process."""
    with benchmark.around():
        return _peaks_within(benchmark, contender, folder, quick=quick)


def _peaks_within(benchmark: Benchmark, contender: Contender, folder: Path, *, quick: bool) -> Memory:
    task = benchmark.task(quick)
    contender.fit(benchmark.task(True), *benchmark.data(True))
    X, y = joblib.load(folder / "X"), joblib.load(folder / "y")
    start = _start()
    contender.fit(task, X, y)
    marks = _high_water_marks()
    workers = sum(mark - start.get(pid, 0) for pid, mark in marks.items() if pid != os.getpid())
    resident = marks[os.getpid()] - start[os.getpid()]

    gc.collect()
    tracemalloc.start()
    contender.fit(task, X, y)
    _, traced = tracemalloc.get_traced_memory()
    return Memory(resident=max(resident, 0), workers=max(workers, 0), traced=traced)


def _start() -> Mapping[int, int]:
    """Reset the high-water marks of this process and its workers, and return their resident bytes."""
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
    resident = {}
    for process in _processes():
        resident[process.pid] = process.memory_info().rss
        marker = Path(f"/proc/{process.pid}/clear_refs")
        if marker.exists():
            marker.write_text("5")
    return resident


def _high_water_marks() -> Mapping[int, int]:
    marks = {}
    for process in _processes():
        status = Path(f"/proc/{process.pid}/status")
        if status.exists():
            lines = status.read_text().splitlines()
            marks[process.pid] = int(next(x for x in lines if x.startswith("VmHWM")).split()[1]) * 1024
        elif process.pid == os.getpid():
            unit = 1 if sys.platform == "darwin" else 1024
            marks[process.pid] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return marks


def _processes() -> list[psutil.Process]:
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def main() -> None:
    """Print the peaks of one contender as JSON, in the fresh process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._memory", description=__doc__)
    parser.add_argument("benchmark")
    parser.add_argument("contender")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    benchmark = all_benchmarks()[asked.benchmark]
    assert isinstance(benchmark, Benchmark)
    contender = next(c for c in benchmark.contenders if c.name == asked.contender)
    warnings.simplefilter("ignore")
    print(json.dumps(vars(_peaks(benchmark, contender, asked.folder, quick=asked.quick))))


if __name__ == "__main__":
    main()
