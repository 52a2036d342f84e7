"""Tables of searches on clusters and of calls of joblib, for the pages of the documentation."""

from __future__ import annotations

from typing import Any

from benchmarks._full_results import Cells, Results
from benchmarks._report import as_bytes, as_seconds

ON_CLUSTERS = (
    "cluster-generic",
    "cluster-overhead",
    "cluster-shared-affine",
    "cluster-shared-logistic",
    "cluster-checkpoint",
)


def on_clusters(results: Results) -> list[Cells]:
    """A row for each contender of each benchmark on two workers."""
    rows = []
    for name in ON_CLUSTERS:
        found = results.read(name)
        first = {"Benchmark": f"`{name}`"}
        for row in found["rows"]:
            rows.append({"Benchmark": "", **first, "Who": row["name"], "Time": _time(row)})
            first = {}
        if found["ideal"] is not None:
            who = f"the fits of {found['reference']}, over {found['cores']} cores"
            rows.append({"Benchmark": "", "Who": who, "Time": as_seconds(found["ideal"])})
    return rows


def bytes_sent(results: Results) -> list[Cells]:
    """The bytes that each search on a cluster sends."""
    heads = {"data": "The client's data", "messages": "Its other messages", "everyone": "All processes"}
    return [
        {"Who": row["contender"], "X": as_bytes(row["bytes"]), "Search": row["search"]}
        | {head: as_bytes(row[key]) for key, head in heads.items()}
        for row in results.read("cluster-bytes")["rows"]
        if not row["failure"]
    ]


def busy_slots(results: Results) -> list[Cells]:
    """The number of slots that one client keeps busy, for each length of a fit."""
    return [
        {"A fit takes": as_seconds(float(seconds)), "Slots that are 90 % busy": str(n)}
        for seconds, n in results.read("cluster-slots")["found"].items()
    ]


def joblib_calls(results: Results) -> list[Cells]:
    """The time of joblib's calls through each backend: a row for each kind of call."""
    rows: dict[str, Cells] = {}
    for name in ("joblib-overhead", "joblib-forest"):
        for row in results.read(name)["rows"]:
            cell = row["failure"] or as_seconds(row["seconds"])
            rows.setdefault(row["what"], {"What": row["what"]})[row["backend"]] = cell
    return list(rows.values())


def joblib_searches(results: Results) -> list[Cells]:
    """Three searches in a row through each of joblib's backends."""
    return [
        {
            "Backend": row["backend"],
            "Search": row["search"],
            "Time": row["failure"] or as_seconds(row["seconds"]),
            "All processes send": as_bytes(row["everyone"]) if row["backend"] != "loky" else "its own way",
        }
        for row in results.read("joblib-data")["rows"]
    ]


def _time(row: dict[str, Any]) -> str:
    if row["given_up"] is not None:
        return f"more than {as_seconds(row['given_up'])}"
    return as_seconds(row["median"]) if row["median"] is not None else row["failure"]
