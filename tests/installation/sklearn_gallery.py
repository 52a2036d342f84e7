"""Runs examples of scikit-learn's gallery as they are, and again under ``python -m manyfit``.

``python -m tests.installation.sklearn_gallery FOLDER [WORD ...]``: FOLDER is `examples` of scikit-learn's
source; words choose among the examples whose paths hold one of them. Without words it runs all that search
or cross-validate and whose data come with scikit-learn. Both runs begin with the same random state of NumPy.
It prints whether they print the same text but for seconds, and for the order of lines that processes of
joblib print when they come to it; how many fits were shared; and it ends with 1 if a text differs.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CALLS = re.compile(
    r"(GridSearchCV|RandomizedSearchCV|HalvingRandomSearchCV|cross_val_score|cross_validate|cross_val_predict"
    r"|validation_curve|learning_curve|LearningCurveDisplay|ValidationCurveDisplay)[.(]"
)
# They load data from the web, draw with another library, or choose a setting by measured times.
LEFT_OUT = re.compile(r"fetch_|plotly|polars|skimage|urlopen|mean_score_time")
# Random numbers of examples that draw without a seed; Python imports a module of this name when it starts.
SEED = "import numpy\n\nnumpy.random.seed(0)\n"
_SECONDS = re.compile(
    r"(?i)\d+(\.\d+)?(e-?\d+)? ?(ms|s|sec|seconds|min)\b|(took|time|in|done)\W+\d+(\.\d+)?|\d\d:\d\d(:\d\d)?"
    r"|0x[0-9a-f]+"
)


def examples(folder: Path, words: list[str]) -> Iterator[Path]:
    """The examples to run."""
    for path in sorted(folder.rglob("plot_*.py")):
        text = path.read_text(encoding="utf-8")
        chosen = any(word in str(path) for word in words) if words else CALLS.search(text)
        if chosen and not LEFT_OUT.search(text):
            yield path


def run(path: Path, options: list[str]) -> tuple[str, str, float]:
    """What an example prints, its errors if it fails, and its seconds."""
    start = time.perf_counter()
    env = {**os.environ, "MPLBACKEND": "agg", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, *options, path.name]
    # Files: a pipe would wait for worker processes that outlive the example.
    with (
        tempfile.TemporaryFile("w+") as out,
        tempfile.TemporaryFile("w+") as err,
        tempfile.TemporaryDirectory() as first,
    ):
        (Path(first) / "sitecustomize.py").write_text(SEED)
        env["PYTHONPATH"] = os.pathsep.join(filter(None, (first, env.get("PYTHONPATH"))))
        done = subprocess.run(command, cwd=path.parent, env=env, stdout=out, stderr=err, timeout=600)
        out.seek(0), err.seek(0)
        return out.read(), err.read() if done.returncode else "", time.perf_counter() - start


def without_seconds(text: str) -> list[str]:
    """The lines of a text, with a mark in place of seconds; those of single fits and bars have no order."""
    lines = [_SECONDS.sub("#", line).rstrip() for line in text.splitlines()]
    return sorted(lines, key=lambda line: line if line.startswith("[CV ") or "━" in line else "")


def main(arguments: list[str]) -> int:
    """Run the examples, print a line for each and a summary."""
    folder, words = Path(arguments[0]), arguments[1:]
    outcomes = []
    report = Path(tempfile.mkdtemp()) / "report"
    for path in examples(folder, words):
        report.unlink(missing_ok=True)
        theirs, failed, seconds = run(path, [])
        ours, error, own_seconds = run(path, ["-m", "manyfit", "--report", str(report)])
        same = without_seconds(theirs) == without_seconds(ours)
        outcome = "does not run here" if failed else "fails" if error else "same" if same else "DIFFERS"
        outcomes.append(outcome)
        shared = report.read_text().split("\n", 1)[0] if report.exists() else ""
        name = str(path.relative_to(folder))
        print(f"{outcome:18} {seconds:6.1f} {own_seconds:6.1f} s  {name}: {shared}", flush=True)
        if outcome == "DIFFERS":
            lines = difflib.unified_diff(without_seconds(theirs), without_seconds(ours), lineterm="", n=0)
            print("\n".join(list(lines)[:20]), flush=True)
        elif outcome == "fails":
            print(error[-2000:], flush=True)
    print({one: outcomes.count(one) for one in dict.fromkeys(outcomes)})
    return int(not {"same", "does not run here"} >= set(outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
