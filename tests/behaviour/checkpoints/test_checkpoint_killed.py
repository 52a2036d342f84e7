"""A search whose process is killed goes on in another one; two processes may run it at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.behaviour.searches.test_interrupt import wait_for

pytestmark = pytest.mark.thorough

MODULE = """
import os
import time
import numpy as np
from sklearn.base import BaseEstimator

class Slow(BaseEstimator):
    def __init__(self, a=1.0):
        self.a = a

    def fit(self, X, y):
        time.sleep(float(os.environ["SECONDS"]))
        self.mean_ = float(np.mean(X[:, 0])) * self.a
        with open(os.environ["FITS"], "a") as file:
            file.write(f"{self.a} {float(X.sum())}\\n")
        return self

    def score(self, X, y):
        return float(np.sin(self.mean_ + X[0, 0]))
"""
SCRIPT = """
import json, sys
import numpy as np
from slow import Slow
from manyfit.model_selection import GridSearchCV

n_jobs, path = int(sys.argv[1]), sys.argv[2] or None
X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0)
search = GridSearchCV(Slow(), {"a": np.linspace(0.1, 2.0, 12)}, cv=5, n_jobs=n_jobs, checkpoint=path)
search.refit = False
search.fit(X, y)
report = search.report_
results = {key: [repr(v) for v in value] for key, value in search.cv_results_.items() if "time" not in key}
print(json.dumps([results, report.fits_done, report.fits_restored]))
"""
N_FITS = 60


def start(tmp_path, n_jobs, path, fits, seconds=0.1):
    (tmp_path / "slow.py").write_text(MODULE)
    root = str(Path(__file__).parents[2])
    found = {"PYTHONPATH": os.pathsep.join([str(tmp_path), root])}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(n_jobs), str(path)],
        env={**os.environ, **found, "FITS": str(fits), "SECONDS": str(seconds)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def outcome(process):
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    return json.loads(out)


def lines(file):
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.invariant("A killed search continues in another process and makes only the missing fits")
@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_killed_search_goes_on(n_jobs, tmp_path):
    whole, _, _ = outcome(start(tmp_path, 1, "", tmp_path / "other", 0.0))
    path, first, second = tmp_path / "search.checkpoint", tmp_path / "first", tmp_path / "second"
    process = start(tmp_path, n_jobs, path, first)
    try:
        assert wait_for(lambda: len(lines(first)) >= 25, 120)
        time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()
    assert len(lines(first)) < N_FITS
    results, done, restored = outcome(start(tmp_path, n_jobs, path, second))
    assert results == whole
    assert done + restored == N_FITS and len(lines(second)) == done
    # How much was not written yet depends on the disk; that rule has a test with a clock of its own.
    assert restored > 0
    made = set(lines(first)) | set(lines(second))
    assert len(made) == N_FITS
    results, done, restored = outcome(start(tmp_path, 1, path, second))
    assert (results, done, restored) == (whole, 0, N_FITS)


def test_killed_again_and_again(tmp_path):
    """Whatever it is doing when it is killed, the file stays good, and the search comes to its end."""
    path, fits = tmp_path / "search.checkpoint", tmp_path / "fits"
    for n in (2, 9, 20):
        process = start(tmp_path, 1, path, fits)
        before = len(lines(fits))
        wait_for(lambda n=n, b=before, p=process: len(lines(fits)) >= b + n or p.poll() is not None, 120)
        ended = process.poll()
        process.kill()
        assert ended is None, process.communicate()
        process.communicate()
    results, _, restored = outcome(start(tmp_path, 1, path, fits))
    whole, _, _ = outcome(start(tmp_path, 1, "", tmp_path / "other", 0.0))
    assert results == whole and restored > 0


@pytest.mark.invariant("A killed search continues in another process and makes only the missing fits")
def test_two_processes_at_once(tmp_path):
    path = tmp_path / "search.checkpoint"
    both = [start(tmp_path, 1, path, tmp_path / f"fits{j}") for j in range(2)]
    (one, *_), (two, *_) = map(outcome, both)
    results, done, restored = outcome(start(tmp_path, 1, path, tmp_path / "last"))
    assert one == two == results and (done, restored) == (0, N_FITS)
