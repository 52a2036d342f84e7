"""Ctrl-C ends a search at once and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.model_selection import GridSearchCV

pytestmark = pytest.mark.skipif(
    not Path("/proc").is_dir(), reason="reads /proc for the children of a process"
)

MODULE = """
import time
from pathlib import Path
from sklearn.base import BaseEstimator

class Slow(BaseEstimator):
    def __init__(self, seconds=60.0, mark=""):
        self.seconds = seconds
        self.mark = mark

    def fit(self, X, y):
        Path(self.mark).touch()
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            time.sleep(0.02)
        return self

    def score(self, X, y):
        return 0.0
"""
SCRIPT = """
import sys
import numpy as np
from slow import Slow
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from manyfit.model_selection import GridSearchCV, cross_validate

what, n_jobs, mark = sys.argv[1], int(sys.argv[2]), sys.argv[3]
X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0)
if what == "cross_validate":
    cross_validate(Slow(mark=mark), X, y, n_jobs=n_jobs)
else:
    model = make_pipeline(StandardScaler(), Slow(mark=mark))
    GridSearchCV(model, {"slow__seconds": [60.0, 61.0, 62.0]}, n_jobs=n_jobs).fit(X, y)
"""
# A second is asked for; a loaded machine takes longer to tear down an interpreter. Fits take a minute.
ALLOWED_S = 20.0


def members(group):
    """Processes of a process group that are not zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        if int(pgrp) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


class Interrupted(BaseEstimator):
    """Is interrupted as by Ctrl-C in its fit, which would then go on for a minute."""

    def fit(self, X, y):
        signal.raise_signal(signal.SIGINT)
        time.sleep(60.0)
        return self

    def score(self, X, y):
        return 0.0


def test_sigint_ends_a_search_in_this_process():
    model = make_pipeline(StandardScaler(), Interrupted())
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(model, {"standardscaler__with_mean": [True, False]}).fit(X, y)
    assert time.monotonic() - start < ALLOWED_S


@pytest.mark.invariant("An interrupt ends a search and its processes")
@pytest.mark.parametrize(("what", "n_jobs"), [
    pytest.param("search", 1, marks=pytest.mark.thorough),
    pytest.param("search", 2, marks=pytest.mark.slow),
    pytest.param("cross_validate", 2, marks=pytest.mark.thorough),
])  # fmt: skip
def test_sigint_ends_a_search(what, n_jobs, tmp_path):
    (tmp_path / "slow.py").write_text(MODULE)
    mark = tmp_path / "started"
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, what, str(n_jobs), str(mark)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a process group of its own, which loky's workers join
    )
    try:
        assert wait_for(mark.exists, 120), "no fit began"
        if n_jobs > 1:
            assert len(members(process.pid)) > 1  # there are workers to leave behind
        start = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        took = time.monotonic() - start
        # Beside it loky's own process may say what it found gone already.
        said = [
            line
            for line in err.splitlines()
            if "resource_tracker" not in line and "warnings.warn" not in line
        ]
        assert said[-1] == "KeyboardInterrupt", err
        assert process.returncode in (1, 130, -signal.SIGINT)
        assert took < ALLOWED_S
        assert wait_for(lambda: not members(process.pid), ALLOWED_S), "processes are left behind"
    finally:
        for pid in members(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
