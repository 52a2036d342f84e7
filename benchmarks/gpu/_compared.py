"""Comparison of all contenders: ratios of times, differences of scores."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.gpu._contenders import SKLEARN
from benchmarks.gpu._timed import Row

Case = tuple[str, str]


def compared(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with ratios and differences to other rows of the same case.

    ``difference`` is from the reference: scikit-learn or, if it did not run, the first contender with scores.
    """
    rows, out = _with_what_was_seen(rows), []
    for group in _cases(rows).values():
        with_scores = [row for row in group if row.get("scores")]
        reference = next((r for r in with_scores if r["contender"] == SKLEARN), next(iter(with_scores), None))
        peer = next((r["whole"] for r in with_scores if r["contender"] == SKLEARN), None)
        for row in group:
            whole = row.get("whole")
            more = {
                "share": row.get("settings_run", 0) / row["settings"],
                "times": peer / whole if peer and whole else None,
                "over_floor": whole / row["floor"] if whole else None,
                "compared_with": reference["contender"] if reference else None,
                "difference": apart(row, reference) if whole and reference and row is not reference else None,
            }
            out.append(_EMPTY | row | more)
    return out


_EMPTY = dict.fromkeys(
    ("seconds", "whole", "fits_made", "to_device", "to_host", "synchronisations", "failure", "peak")
    + ("seen_to_device", "seen_to_host", "seen_waits", "seen_failure")
)


def _with_what_was_seen(rows: Sequence[Row]) -> list[Row]:
    """The rows, each with the profile of another run of the same case."""
    name = lambda row: (row["problem"], row["case"], row["contender"])  # noqa: E731
    found = {name(row): row["seen"] for row in rows if "seen" in row}
    return [row | found.get(name(row), {}) for row in rows if "seen" not in row]


def largest_differences(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return for each case the two contenders whose scores are farthest apart, and how far."""
    found = []
    for (problem, case), group in _cases(rows).items():
        pairs = itertools.combinations([row for row in group if row.get("scores")], 2)
        gaps = [(apart(a, b), a["contender"], b["contender"]) for a, b in pairs]
        known = [gap for gap in gaps if gap[0] is not None]
        if known:
            worst, first, second = max(known, key=lambda gap: gap[0] or 0.0)
            found.append({"problem": problem, "case": case, "between": [first, second], "difference": worst})
    return found


def failures(rows: Sequence[Row]) -> list[str]:
    """Return a line for each reason that something was not measured, with contender and case."""
    where: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.get("failure"):
            where.setdefault((row["contender"], row["failure"]), []).append(f"{row['problem']} {row['case']}")
    return [f"{who}: {why} ({', '.join(cases)})" for (who, why), cases in where.items()]


def apart(row: Row, other: Row) -> float | None:
    """Return the largest difference of a score on a split, over the settings that both have."""
    both = [key for key in row["scores"] if key in other["scores"]]
    if not both:
        return None
    ours, theirs = (np.array([r["scores"][key] for key in both], dtype=float) for r in (row, other))
    gaps = np.abs(ours - theirs)
    return float(np.max(np.where(np.isnan(gaps), np.inf, gaps)))


def _cases(rows: Sequence[Row]) -> dict[Case, list[Row]]:
    cases: dict[Case, list[Row]] = {}
    for row in rows:
        if "seen" not in row:
            cases.setdefault((row["problem"], row["case"]), []).append(row)
    return cases
