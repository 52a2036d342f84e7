"""Requirements on a search on a device, and whether they are met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks._verdict import Verdict, at_least, at_most
from benchmarks.gpu._contenders import CUML_DEVICE, OURS, SKLEARN
from benchmarks.gpu._timed import Row

# Largest difference of scores from scikit-learn's, if both solve the same equations.
APART = {"float32": 1e-5, "float64": 1e-9}
# Waits of iterations beside those of passes: y, the rows of a sample to begin with, the scores.
BESIDE_PASSES = 3
EXACT = ("ridge", "affine-pipeline")
# Time limit, as a share of a contender that makes the same individual fits.
ONE_BY_ONE = 1.05


def verdicts(rows: Sequence[Row], own: Sequence[str]) -> list[Verdict]:
    """Return a verdict for each requirement of each problem; manyfit shares no fits of those in ``own``."""
    found: list[Verdict] = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        cases = _cases([row for row in rows if row["problem"] == problem])
        largest = list(cases.values())[-1]
        if problem in own:
            # Settings take different times, so that some of them do not tell the time of all.
            alike = [CUML_DEVICE] if same_settings(largest, CUML_DEVICE) else []
            found.append(_not_slower(problem, largest, alike, ONE_BY_ONE))
            continue
        others = [name for name in largest if name not in (OURS,) and not name.startswith("manyfit")]
        found.append(_not_slower(problem, largest, others, 1.0))
        found.append(_waits(problem, [case[OURS] for case in cases.values() if OURS in case]))
        if problem in EXACT:
            found += [_apart(problem, dtype, cases.values()) for dtype in APART]
    return found


def same_settings(case: dict[str, Row], name: str) -> bool:
    """Whether a contender ran as many settings of a case as manyfit on the device."""
    return case.get(name, {}).get("share") == case.get(OURS, {}).get("share")


def _cases(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    cases: dict[str, dict[str, Row]] = {}
    for row in rows:
        cases.setdefault(row["case"], {})[row["contender"]] = row
    return cases


def _not_slower(problem: str, case: dict[str, Row], others: Sequence[str], most: float) -> Verdict:
    ours = case.get(OURS, {}).get("whole")
    times = {name: case[name]["whole"] for name in others if name in case and case[name].get("whole")}
    best = min(times, key=lambda name: times[name], default=None)
    name = next(iter(case.values()))["case"]
    asked = f"{problem}, {name}: not slower than {best or 'the best of the others'}"
    asked += f" by more than {most - 1:.0%}" if most > 1.0 else ""
    return at_least(asked, times[best] * most / ours if ours and best else None, 1.0, "times as fast")


def _waits(problem: str, rows: Sequence[Row]) -> Verdict:
    """One wait for moments; for iterations one for the sums of each pass, and `BESIDE_PASSES`."""
    over = [
        row["synchronisations"] - _allowed(row) for row in rows if row.get("synchronisations") is not None
    ]
    most = "one" if problem in EXACT else f"one for each pass and {BESIDE_PASSES}"
    asked = f"{problem}: waits of manyfit beyond {most}, at any size"
    return at_most(asked, max(over, default=None), 0, "more")


def _allowed(row: Row) -> int:
    return 1 if row["problem"] in EXACT else int(row.get("waits_of_passes") or 0) + BESIDE_PASSES


def _apart(problem: str, dtype: str, cases: Any) -> Verdict:
    gaps = [
        case[OURS]["difference"]
        for case in cases
        if OURS in case and case[OURS]["dtype"] == dtype and case[OURS].get("compared_with") == SKLEARN
    ]
    known = [gap for gap in gaps if gap is not None]
    asked = f"{problem}: scores within {APART[dtype]:g} of scikit-learn's in {dtype}"
    return at_most(asked, max(known, default=None), APART[dtype], "apart")
