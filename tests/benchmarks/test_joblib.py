"""The benchmarks of joblib's backends, at a size that takes moments."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks import _on_joblib as through
from benchmarks._benchmark import all_benchmarks
from benchmarks._large_cluster import ROOT

NAMES = [name for name in all_benchmarks() if name.startswith("joblib-")]


def test_what_goes_wrong_is_kept():
    assert through.under("no such backend", print).startswith("ValueError: Invalid backend")
    assert isinstance(through.under("sequential", print), float)


def test_verdicts_compare_rounds():
    rows = [
        {"what": "calls", "backend": through.OURS, "rounds": [1.0, 2.0, 9.0]},
        {"what": "calls", "backend": through.DASK, "rounds": [1.0, 4.0, 6.0]},
    ]
    assert through.not_slower(rows, "calls", through.DASK, 1.0).met
    assert not through.not_slower(rows, "calls", through.DASK, 0.9).met
    rows[1]["rounds"] = []
    assert through.not_slower(rows, "calls", through.DASK, 1.0).met is None


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_runs_as_it_is(name, tmp_path):
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=250)
    assert done.stdout.startswith(name)
    (found,) = json.loads(out.read_text())["results"]
    assert {row["backend"] for row in found["rows"]} == set(through.BACKENDS)
    assert not any(row["failure"] for row in found["rows"])
    assert len(found["verdicts"]) >= 1
