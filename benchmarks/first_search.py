"""The cost of the first search of a process, which imports what it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from benchmarks import _first_search
from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import at_most

ROUNDS = 5
# CPU seconds that manyfit's first search takes beyond scikit-learn's.
MOST_BEYOND = 0.25
_COLUMNS = (
    Column("search", "search"),
    Column("theirs", "scikit-learn, first", "s"),
    Column("theirs_again", "scikit-learn, second", "s"),
    Column("ours", "manyfit, first", "s"),
    Column("ours_again", "manyfit, second", "s"),
    Column("modules", "modules of manyfit", "number"),
    Column("sklearn_modules", "more modules of scikit-learn", "number"),
)


def _in_a_new_process(library: str, name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", _first_search.__name__, library, name]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **threads})
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measure(quick: bool, tell: Tell) -> Findings:
    rows = []
    for name in ["Ridge"] if quick else _first_search.SEARCHES:
        found: dict[str, list[dict[str, Any]]] = {"sklearn": [], "manyfit": []}
        for i in range(1 if quick else ROUNDS):
            for library, runs in found.items():
                tell(f"{name}, {library}, process {i + 1}")
                runs.append(_in_a_new_process(library, name))
        # Other programs only add to a time.
        theirs, ours = ([min(run[k] for run in runs) for k in ("first", "second")] for runs in found.values())
        modules = found["manyfit"][0]["modules"]
        more = modules["sklearn"] - found["sklearn"][0]["modules"]["sklearn"]
        row = {"search": name, "theirs": theirs[0], "theirs_again": theirs[1], "ours": ours[0]}
        rows.append(row | {"ours_again": ours[1], "modules": modules["manyfit"], "sklearn_modules": more})
    verdicts = [
        at_most(
            f"a first search of {row['search']} takes at most {MOST_BEYOND} s of CPU beyond scikit-learn's",
            row["ours"] - row["theirs"],
            MOST_BEYOND,
            "s",
        )
        for row in rows
    ]
    return Findings(rows, _COLUMNS, verdicts=verdicts)


register(
    Study(
        name="first-search",
        summary="CPU time of the first search of a process, five estimators with three settings on 569 x 30",
        measure=_measure,
    )
)
