"""The tests that need a device, one row per folder."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.gpu._place import Place, find_place
from benchmarks.gpu._rates import library_versions
from benchmarks.gpu._timed import Row

_ROOT = Path(__file__).parents[2]
# Each process compiles its own kernels, which takes most of the time of these tests.
_PROCESSES = 8
_OUTCOMES = ("failure", "error", "skipped")
_NOTHING_COLLECTED = 5


def run_tests(seconds: float, quick: bool, keep: Callable[[Row], None]) -> None:
    """Run the tests of the device's library, and pass on a row for each folder."""
    end = time.monotonic() + seconds
    place = find_place()
    about = {"device": place.name, "library": place.library, "imitated": place.imitated}
    keep({"about": {**about, "versions": library_versions()}})
    if find_spec("pytest") is None:
        keep({"folder": "tests", "failure": "pytest is not installed"})
        return
    for folder in ["tests/units/arrays"] if quick else folders():
        keep(_run(folder, place, end - time.monotonic()))


def folders() -> list[str]:
    """Return the folders whose own tests use the fixture `xp`, or one made of it, or have the mark.

    Drop-in estimators come last: they fit each of cuML's estimators, which may take the rest of the time.
    """
    found = {
        path.parent.relative_to(_ROOT).as_posix()
        for path in (_ROOT / "tests").rglob("test_*.py")
        if re.search(r"def test_\w*\([^)]*\b(xp|place|device)\b|mark\.gpu\b", path.read_text())
    }
    return sorted(found, key=lambda folder: ("estimators" in folder, folder))


def _run(folder: str, place: Place, seconds: float) -> Row:
    row: Row = {"folder": folder, "passed": 0, "failure": None, "failed_tests": []}
    if seconds <= 0:
        return {**row, "failure": "not run: no time was left"}
    # Only CuPy's tests have the mark: torch runs without a GPU, too.
    chosen = ["-m", "gpu"] if place.library == "cupy" else ["-k", place.library]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        # pytest-benchmark, if it is installed, refuses to work beside xdist.
        plugins = ["-p", "no:cacheprovider", "-p", "no:benchmark"]
        command = [sys.executable, "-m", "pytest", "-q", *plugins, f"--junitxml={report}"]
        # Not the folders within it, which have rows of their own.
        command += [*chosen, *sorted(map(str, (_ROOT / folder).glob("test_*.py")))]
        if find_spec("xdist") is not None and not place.imitated:
            command += ["-n", str(_PROCESSES)]
        start = time.monotonic()
        try:
            done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return {**row, "failure": f"not done in {seconds:.0f} s"}
        row["seconds"] = time.monotonic() - start
        if report.exists() and done.returncode in (0, 1, _NOTHING_COLLECTED):
            return row | read_report(report)
        said = (done.stdout + done.stderr).strip().splitlines() or [""]
        return {**row, "failure": f"pytest ended with {done.returncode}: {said[-1][:300]}"}


def read_report(path: Path) -> Row:
    """Return the counts and the names of failed tests, from pytest's report."""
    outcomes, failed = Counter[str](), []
    for case in ElementTree.parse(path).iter("testcase"):
        outcome = next((kind for kind in _OUTCOMES if case.find(kind) is not None), "passed")
        outcomes[outcome] += 1
        if outcome in ("failure", "error"):
            failed.append(f"{case.get('classname')}::{case.get('name')}")
    wrong = outcomes["failure"] + outcomes["error"]
    return {
        "passed": outcomes["passed"],
        "failed": wrong,
        "skipped": outcomes["skipped"],
        "failed_tests": failed,
        "failure": f"{wrong} failed, the first {failed[0]}" if wrong else None,
    }
