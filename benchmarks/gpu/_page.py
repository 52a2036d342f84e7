"""The table of searches on a GPU in the documentation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks._report import as_seconds, rounded
from benchmarks.gpu._contenders import ACCEL, CUML_DEVICE, CUML_HOST, OURS, OURS_ON_HOST, SKLEARN
from benchmarks.gpu._problems import PROBLEMS
from benchmarks.gpu._verdicts import same_settings

_COLUMNS = {
    "manyfit, X on the GPU": OURS,
    "manyfit, X on the host": OURS_ON_HOST,
    "scikit-learn, all cores": SKLEARN,
    "scikit-learn with cuML, X on the GPU": CUML_DEVICE,
    "scikit-learn with cuML, NumPy": CUML_HOST,
    "cuml.accel": ACCEL,
}


def table(rows: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """One row for each case that manyfit ran on the GPU, with the times of all contenders."""
    cases: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        cases.setdefault((row["problem"], row["case"]), {})[row["contender"]] = row
    return [_cells(*case, found) for case, found in cases.items() if _seconds(found, OURS) is not None]


def _cells(problem: str, case: str, found: dict[str, dict[str, Any]]) -> dict[str, str]:
    ours = _seconds(found, OURS)
    names = [name for name in (SKLEARN, CUML_DEVICE, CUML_HOST, ACCEL) if _comparable(problem, found, name)]
    others = [_seconds(found, name) for name in names]
    best = min((seconds for seconds in others if seconds is not None), default=None)
    cells = {"Search": problem, "X": case}
    cells |= {head: _time(found, name) for head, name in _COLUMNS.items()}
    gain = None if best is None or ours is None else best / ours
    return {**cells, "Times the best of the others": "-" if gain is None else rounded(gain)}


def _comparable(problem: str, found: dict[str, dict[str, Any]], name: str) -> bool:
    """Whether times compare: some settings do not tell the time of all if each fit is made by itself."""
    return not PROBLEMS[problem].own or same_settings(found, name)


def _seconds(found: dict[str, dict[str, Any]], name: str) -> float | None:
    seconds: float | None = found.get(name, {}).get("whole")
    return seconds


def _time(found: dict[str, dict[str, Any]], name: str) -> str:
    seconds = _seconds(found, name)
    if seconds is None:
        return "-"
    return ("" if found[name]["share"] == 1 else "about ") + as_seconds(seconds)
