"""Type checkers know the names that are made at run time, and what searches are."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from importlib.util import find_spec

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

from manyfit import _compat
from tests.docstrings import rooms
from tests.stubs import MODULES, ROOT, formatted, names_of, path_of, stub

pytestmark = pytest.mark.skipif(find_spec("mypy") is None, reason="only the newest environment has mypy")

newest = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version(_compat.TESTED[-1]),
    reason="the stubs are those of the newest scikit-learn",
)

SEARCHES = """
from manyfit.model_selection import GridSearchCV, Plan, RandomizedSearchCV, Report

search = GridSearchCV(object(), {}, sharing="auto")
plan: Plan = search.plan([[1.0]], [1.0])
fitted: GridSearchCV = search.fit([[1.0]], [1.0])
drawn: RandomizedSearchCV = RandomizedSearchCV(object(), {}, sharing="exact").fit([[1.0]])
report: Report = fitted.report_
best: float = fitted.best_score_
reveal_type(fitted)
"""
MISTAKES = """
import manyfit
from manyfit import metrics, model_selection
from manyfit.estimators import Rigde
from manyfit.metrics import roc_auc_scores, roc_auc_score
from manyfit.model_selection import GridSearch

model_selection.GridSearchCV(object(), {}, sharing="all")
roc_auc_score([0, 1])
metrics.nothing
manyfit.nothing
model_selection.nothing
"""


METRICS = (
    "from manyfit.metrics import roc_auc_score\nroc_auc_score([0], [1], average=None)\nroc_auc_score.many"
)


def every_public_name() -> str:
    lines = []
    for room in [*rooms(), "manyfit.metrics.cluster", "manyfit.metrics.pairwise", "manyfit.exceptions"]:
        alias = room.replace(".", "_")
        names = importlib.import_module(room).__all__
        lines += [
            f"import {room} as {alias}",
            *(f"from {room} import {name} as {alias}_{name}" for name in names),
        ]
        lines += [f"{alias}.{name}" for name in names]
    lines += ["import manyfit", *(f"manyfit.{room.rpartition('.')[2]}.__name__" for room in rooms())]
    return "\n".join(lines)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What mypy says about scripts of a user, a line each."""
    folder = tmp_path_factory.mktemp("scripts")
    scripts = {"names": every_public_name(), "metrics": METRICS, "searches": SEARCHES, "mistakes": MISTAKES}
    for name, text in scripts.items():
        (folder / f"{name}.py").write_text(text)
    # With manyfit's own options, which are strict about what a module exports: what `make lint` knows of its
    # modules need not be found out again.
    mypy = [sys.executable, "-m", "mypy", *(str(folder / f"{name}.py") for name in scripts)]
    done = subprocess.run(mypy, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr == ""
    lines = [line.rpartition(f"{folder.name}/")[2] for line in done.stdout.splitlines()]
    return {name: [line for line in lines if line.startswith(f"{name}.py:")] for name in scripts}


def test_every_public_name_is_known(said):
    assert said["names"] == []


def test_metrics_are_functions_with_many(said):
    assert said["metrics"] == []


def test_searches(said):
    assert said["searches"] == [
        'searches.py:10: note: Revealed type is "manyfit.model_selection._search.GridSearchCV"'
    ]


def test_mistakes_are_found(said):
    lines = [int(line.split(":")[1]) for line in said["mistakes"] if ": error:" in line]
    assert sorted(set(lines)) == [4, 5, 6, 8, 9, 10, 11, 12], said["mistakes"]


@newest
@pytest.mark.parametrize("name", MODULES)
def test_stubs_are_those_of_the_modules(name):
    assert path_of(name).read_text() == formatted(stub(name)), "python -m tests.stubs writes them"


@pytest.mark.parametrize("name", MODULES)
def test_stubs_have_every_name(name):
    tree = ast.parse(path_of(name).read_text())
    (exported,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node)
    ]
    assert set(names_of(importlib.import_module(name))) <= set(ast.literal_eval(exported))
