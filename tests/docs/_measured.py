"""The tables of measured figures on docs/clusters.md and docs/joblib.md, from what the benchmarks wrote.

``python -m tests.docs._measured`` prints them, to be put into the pages after new runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from benchmarks._report import as_bytes, as_seconds
from tests.docs._pages import ROOT

TIMED = (
    "cluster-generic",
    "cluster-overhead",
    "cluster-shared-affine",
    "cluster-shared-logistic",
    "cluster-checkpoint",
)


def result(name: str) -> dict[str, Any]:
    """What a benchmark measured last, at its full size."""
    kept = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
    (found,) = (one for one in kept["results"] if one["name"] == name)
    assert not found["quick"]
    return dict(found)


def timed() -> list[dict[str, str]]:
    """A row for each contender of each benchmark that is a race."""
    rows = []
    for found in map(result, TIMED):
        first = {"Benchmark": f"`{found['name']}`"}
        for row in found["rows"]:
            rows.append({"Benchmark": "", **first, "Who": row["name"], "Time": _time(row)})
            first = {}
        if found["ideal"] is not None:
            who = f"the fits of {found['reference']}, over {found['cores']} cores"
            rows.append({"Benchmark": "", "Who": who, "Time": as_seconds(found["ideal"])})
    return rows


def _time(row: dict[str, Any]) -> str:
    if row["given_up"] is not None:
        return f"more than {as_seconds(row['given_up'])}"
    return as_seconds(row["median"]) if row["median"] is not None else row["failure"]


def sent() -> list[dict[str, str]]:
    """A row for each search whose bytes were counted."""
    heads = {"data": "The client's data", "messages": "Its other messages", "everyone": "All processes"}
    return [
        {"Who": row["contender"], "X": as_bytes(row["bytes"]), "Search": row["search"]}
        | {head: as_bytes(row[key]) for key, head in heads.items()}
        for row in result("cluster-bytes")["rows"]
        if not row["failure"]
    ]


def slots() -> list[dict[str, str]]:
    """How many slots were busy enough, for each length of a fit."""
    found = result("cluster-slots")["found"]
    return [
        {"A fit takes": as_seconds(float(seconds)), "Slots that are 90 % busy": str(n)}
        for seconds, n in found.items()
    ]


def calls() -> list[dict[str, str]]:
    """What calls of joblib take through each backend: a row for each kind of call."""
    rows: dict[str, dict[str, str]] = {}
    for name in ("joblib-overhead", "joblib-forest"):
        for row in result(name)["rows"]:
            rows.setdefault(row["what"], {"What": row["what"]})[row["backend"]] = _of(row)
    return list(rows.values())


def searches() -> list[dict[str, str]]:
    """Three searches in a row through joblib's backends."""
    return [
        {"Backend": row["backend"], "Search": row["search"], "Time": _of(row)}
        | {"All processes send": as_bytes(row["everyone"]) if row["backend"] != "loky" else "its own way"}
        for row in result("joblib-data")["rows"]
    ]


def _of(row: dict[str, Any]) -> str:
    return row["failure"] or as_seconds(row["seconds"])


TABLES = {
    "timed": ("clusters", timed), "sent": ("clusters", sent),
    "slots": ("clusters", slots),
    "calls": ("joblib", calls), "searches": ("joblib", searches),
}  # fmt: skip


def as_text(rows: Sequence[dict[str, str]]) -> str:
    """Rows as a table of Markdown."""
    heads = list(rows[0])
    lines = [heads, ["---"] * len(heads), *([row[head] for head in heads] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


if __name__ == "__main__":
    for name, (_, rows) in TABLES.items():
        print(f"<!-- {name} -->", as_text(rows()), f"<!-- /{name} -->", sep="\n", end="\n\n")
