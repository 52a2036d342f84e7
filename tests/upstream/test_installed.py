"""scikit-learn's own tests of its searches and functions while manyfit is installed.

Nothing is replaced in them: they run scikit-learn's own classes and functions.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import manyfit
from manyfit.installation._ledger import recorded
from tests.upstream._aim import copied

ROOT = Path(__file__).parent.parent.parent
MODULES = [f"sklearn.model_selection.tests.{name}" for name in ("test_search", "test_validation")]
SELECTED = {
    "test_search": ("test_grid_search_groups", "test_grid_search_correct_score_results", "test_pickle"),
    "test_validation": (
        "test_cross_val_score_predict_groups",
        "test_validation_curve",
        "test_validation_curve_clone_estimator",
        "test_validation_curve_cv_splits_consistency",
    ),
}


def outcomes(folder: Path, *, installed: bool) -> dict:
    """What comes of scikit-learn's tests in a process of their own."""
    out, ini = folder / f"outcomes-{installed}.json", folder / "pytest.ini"
    ini.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ini), "-p", "no:cacheprovider"]
    command += ["-p", "tests.upstream._installed_plugin", "--pyargs", *MODULES]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SCIPY_ARRAY_API": "1"}
    env |= {"MANYFIT_TEST_OUTCOMES": str(out), "MANYFIT_TEST_INSTALL": str(int(installed))}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(out.read_text())


def test_a_selection_passes_while_manyfit_is_installed():
    found = []
    for module, tests in SELECTED.items():
        place = f"sklearn.model_selection.tests.{module}"
        own = copied(place, f"{place}_as_it_is", {})  # other modules here aim it at our classes
        with manyfit.installed(), recorded() as entries:
            for test in tests:
                getattr(own, test)()
        found += entries
    assert len(found) > 5


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.invariant("scikit-learn's own tests have the same outcomes while manyfit is installed")
def test_all_outcomes_are_those_without_manyfit(tmp_path):
    found, expected = (outcomes(tmp_path, installed=installed) for installed in (True, False))
    assert found["outcomes"] == expected["outcomes"]
    assert len(expected["outcomes"]) > 250 and found["served"] > 200 and expected["served"] == 0
    assert any("data of the type" in why for why in found["left"])
