"""Peak memory of a fresh process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks._benchmark import all_benchmarks
from benchmarks._measure import run
from benchmarks._memory import measure_memory
from benchmarks._result import Memory

ROOT = Path(__file__).parents[2]

# 80 MB come and go before the start and must not count, 40 MB after it must
ALLOCATE = """
import os
import numpy as np
from benchmarks import _memory
np.ones(10_000_000).sum()
start = _memory._start()
np.ones(5_000_000).sum()
print(_memory._high_water_marks()[os.getpid()] - start[os.getpid()])
"""


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="sets back a mark that Linux keeps")
def test_only_what_comes_after_the_start_counts():
    done = subprocess.run(
        [sys.executable, "-c", ALLOCATE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert 39e6 <= int(done.stdout) < 50e6  # the kernel counts pages in batches


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["mixed-ridge", "text-nb"])
def test_frames_and_texts_are_measured(name):
    benchmark = all_benchmarks()[name]
    contender = next(c for c in benchmark.contenders if c.name == "scikit-learn n_jobs=None")
    found = measure_memory(benchmark, contender, benchmark.data(True), quick=True)
    assert found.traced > 0


@pytest.mark.thorough
def test_measured_in_a_fresh_process_and_failures_kept():
    benchmark = all_benchmarks()["ridge-28kB"]
    known = next(c for c in benchmark.contenders if c.name == "scikit-learn n_jobs=None")
    unknown = replace(known, name="unknown")  # the fresh process does not find it
    benchmark = replace(benchmark, contenders=(known, unknown), bars=())
    found, failed = run(benchmark, repeat=1, quick=True).rows
    assert isinstance(found.memory, Memory)
    assert found.memory.traced > 0
    assert found.memory.workers == 0
    assert found.memory.total == found.memory.resident
    assert failed.memory is None
    assert "StopIteration" in failed.memory_failure
    assert failed.median is not None  # its time still counts
