"""scikit-learn's own tests of its searches and functions in a process in which manyfit is installed.

Nothing is replaced in them: they run scikit-learn's own classes and functions.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = [f"sklearn.model_selection.tests.{name}" for name in ("test_search", "test_validation")]
SHORT = "test_pickle or correct_score_results or test_validation_curve or groups"


def outcomes(folder: Path, *options: str, installed: bool) -> dict:
    """What comes of scikit-learn's tests in a process of their own."""
    out, ini = folder / f"outcomes-{installed}.json", folder / "pytest.ini"
    ini.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ini), "-p", "no:cacheprovider"]
    command += ["-p", "tests.upstream._installed_plugin", *options, "--pyargs", *MODULES]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SCIPY_ARRAY_API": "1"}
    env |= {"MANYFIT_TEST_OUTCOMES": str(out), "MANYFIT_TEST_INSTALL": str(int(installed))}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(out.read_text())


def test_a_selection_passes_while_manyfit_is_installed(tmp_path):
    found = outcomes(tmp_path, "-k", SHORT, installed=True)
    assert len(found["outcomes"]) > 5 and set(found["outcomes"].values()) == {"passed"}
    assert found["served"] > 5


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.invariant("scikit-learn's own tests have the same outcomes while manyfit is installed")
def test_all_outcomes_are_those_without_manyfit(tmp_path):
    found, expected = (outcomes(tmp_path, installed=installed) for installed in (True, False))
    assert found["outcomes"] == expected["outcomes"]
    assert len(expected["outcomes"]) > 250 and found["served"] > 200 and expected["served"] == 0
    assert any("data of the type" in why for why in found["left"])
