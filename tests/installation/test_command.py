"""`python -m manyfit` runs a program as `python` does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests._covering import spread

ROOT = Path(__file__).parent.parent.parent
SHOWN = """
import sys
main = sys.modules["__main__"]
print(sys.argv, repr(sys.path[0]), __name__, vars(main) is globals())
print(globals().get("__file__"), __package__, main.__spec__ and main.__spec__.name)
"""
PROGRAM = f"""{SHOWN}
import pickle

class Own:
    def fail(self):
        raise KeyError("mine")

assert type(pickle.loads(pickle.dumps(Own()))) is Own
if sys.argv[1] == "raise":
    try:
        Own().fail()
    except KeyError as error:
        raise ValueError("from another") from error
elif sys.argv[1] == "text":
    sys.exit("a text")
elif sys.argv[1] == "hook":
    sys.excepthook = lambda kind, value, trace: print(kind, trace.tb_frame.f_code.co_name, trace.tb_lineno)
    Own().fail()
elif sys.argv[1] == "interrupt":
    raise KeyboardInterrupt
elif sys.argv[1] == "late":
    import atexit, threading, time
    atexit.register(lambda: print("exit", sys.modules["__main__"].__dict__ is globals()))
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
"""
SEARCH = """
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
X, y = load_diabetes(return_X_y=True)
search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}).fit(X, y)
print(cross_val_score(Ridge(), X, y).round(6))
class Mine(GridSearchCV):
    def _run_search(self, evaluate_candidates, **_):
        evaluate_candidates([{"alpha": 1.0}])
print(Mine(Ridge(), {}).fit(X, y).best_params_, round(search.best_score_, 6))
"""


def python(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, check=False)


def both(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The result of `python -m manyfit`, which is that of `python`."""
    expected = python(*arguments, cwd=cwd, stdin=stdin)
    found = python("-m", "manyfit", *arguments, cwd=cwd, stdin=stdin)
    assert (found.returncode, found.stdout) == (expected.returncode, expected.stdout)
    assert without_runpy(found.stderr) == without_runpy(expected.stderr)
    return found


def without_runpy(text: str) -> list[str]:
    """The lines of a traceback without the frames by which Python itself runs a module."""
    return [line for line in text.splitlines() if "runpy>" not in line]


@pytest.mark.parametrize("what", spread(["raise", "text", "hook", "interrupt", "late"], 1))
def test_a_script_ends_as_under_python(what, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "program.py").write_text(PROGRAM)
    found = both("folder/program.py", what, "--plan", "-m", cwd=tmp_path)
    assert "['folder/program.py'" in found.stdout
    assert found.returncode == {"raise": 1, "text": 1, "hook": 1, "interrupt": -2, "late": 0}[what]


@pytest.mark.thorough
def test_modules_run_as_under_python(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(SHOWN)
    both("-m", "package", "a", "-c", cwd=tmp_path)


@pytest.mark.thorough
def test_code_standard_input_archives_and_broken_programs_run_as_under_python(tmp_path):
    both("-c", f"{SHOWN}\n1 / 0", "--report", cwd=tmp_path)
    both("-", "b", cwd=tmp_path, stdin=SHOWN)
    (tmp_path / "broken.py").write_text("x = (\n")
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as archive:
        archive.writestr("__main__.py", SHOWN)
    both("program.zip", "c", cwd=tmp_path)
    assert both("broken.py", cwd=tmp_path).returncode == 1
    assert both("missing.py", cwd=tmp_path).returncode == 2
    assert "No module named missing" in both("-m", "missing", cwd=tmp_path).stderr


def test_searches_are_served_planned_and_reported(tmp_path):
    (tmp_path / "search.py").write_text(SEARCH)
    expected = StringIO()
    with redirect_stdout(expected):
        exec(compile(SEARCH, "search.py", "exec"), {"__name__": "__main__"})
    options = ["--plan", "--report", "report.txt", "--verify=2", "--sharing", "exact"]
    found = python("-m", "manyfit", *options, "search.py", cwd=tmp_path)
    assert (found.returncode, found.stdout) == (0, expected.getvalue())
    assert found.stderr.count("Plan: ") == 2
    assert "GridSearchCV.fit\nShared work answers all 10 fits." in found.stderr
    assert "cross-validation of Ridge\n" in found.stderr
    report = (tmp_path / "report.txt").read_text()
    assert report.startswith("Searches and cross-validations: 3. Shared work answered 15 of 20 fits.")
    assert "because Mine overrides _run_search." in report
    assert re.search(r"scores checked by scikit-learn +2\n", report)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name a program to run"),
        (["-m"], "name a program to run"),
        (["--sharing", "all", "x.py"], "invalid choice: 'all'"),
        (["--verify", "-1", "x.py"], "'-1' is not 0 or a positive whole number"),
        (["--verify", "x", "x.py"], "'x' is not 0 or a positive whole number"),
        (["--memory-limit", "much", "x.py"], "memory_limit should be bytes or a text"),
        (["--report", "/no/folder/r.txt", "x.py"], "there is no folder /no/folder"),
        (["--unknown", "x.py"], "unrecognized arguments: --unknown"),
        (["-x", "x.py"], "unknown option -x"),
    ],
)
def test_wrong_options_are_refused(arguments, text, capsys):
    from manyfit.installation.command import main

    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert text in capsys.readouterr().err


def test_the_notebook_extension_installs_and_uninstalls():
    import manyfit
    from manyfit.installation._settings import current

    manyfit.load_ipython_extension(None)
    assert current() is not None
    manyfit.unload_ipython_extension(None)
    assert current() is None
