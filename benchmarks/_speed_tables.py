"""Tables of manyfit's times beside scikit-learn's, for the pages of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks._full_results import Cells, Results
from benchmarks._report import as_bytes, as_difference, as_seconds, rounded

IN_ONE_PROCESS = (
    "ridge-28kB",
    "ridge-2.8MB",
    "ridge-28MB",
    "affine-pipeline",
    "logistic",
    "poisson",
    "linear-svc",
    "overhead",
    "svc-pipeline",
    "logistic-multinomial",
    "mixed-ridge",
    "mixed-logistic",
    "text-tfidf",
    "text-tfidf-svc",
    "lasso-path",
    "lda",
    "svc",
    "svc-wide",
    "knn",
    "forest-prefix",
    "boosting-prefix",
    "xgboost",
    "lightgbm",
    "pruning",
    "leaves",
    "kbest",
)
WITH_RATIOS = (
    "ridge-2.8MB",
    "affine-pipeline",
    "lasso-path",
    "logistic",
    "linear-svc",
    "mixed-ridge",
    "mixed-logistic",
    "text-tfidf",
    "svc",
    "knn",
    "forest-prefix",
    "xgboost",
    "pruning",
    "kbest",
    "overhead",
    "logistic-multinomial",
)
IN_README = (
    "ridge-2.8MB",
    "logistic",
    "text-tfidf",
    "xgboost",
    "overhead",
)
WITH_FLOOR = (
    "ridge-28MB",
    "affine-pipeline",
    "lasso-path",
    "mixed-ridge",
    "lda",
    "gaussian-nb",
    "logistic",
    "logistic-multinomial",
    "poisson",
    "linear-svc",
    "mixed-logistic",
    "text-tfidf",
)


def searches(results: Results) -> list[Cells]:
    """manyfit beside the faster of scikit-learn's two searches: a row for each benchmark."""
    rows = []
    for name in WITH_RATIOS:
        found = results.read(name)
        ours, theirs = _fastest(found, "ours"), _fastest(found, "scikit-learn")
        parallel = " (`n_jobs=-1`)" if ours["name"].endswith("n_jobs=-1") else ""
        rows.append(
            {
                "Command": f"`{_command(found, results.rounds)}`",
                "scikit-learn": as_seconds(theirs["median"]),
                "manyfit": as_seconds(ours["median"]) + parallel,
                "Times faster": rounded(ours["times_best_sklearn"]),
                "Cost in fits": rounded(ours["cost_in_fits"]),
                "Memory beyond X": _memory(found, ours, results),
                "Largest difference": _largest_difference(found, "ours"),
            }
        )
    return rows


def speed(results: Results) -> list[Cells]:
    """The README's rows: some of the searches in words, and how much faster they are."""
    rows = dict(zip(WITH_RATIOS, searches(results), strict=True))
    heads = ("scikit-learn", "manyfit", "Times faster")
    return [
        {"Benchmark": f"`{name}`", "Search": results.read(name)["summary"]}
        | {head: rows[name][head] for head in heads}
        for name in IN_README
    ]


def contenders(results: Results) -> list[Cells]:
    """The time of every contender of every benchmark that runs in one process."""
    rows = []
    for name in IN_ONE_PROCESS:
        first = {"Benchmark": f"`{name}`"}
        for row in results.read(name)["rows"]:
            if row["failure"] is None:
                who = row["name"].replace("manyfit sharing", "manyfit, sharing")
                rows.append({"Benchmark": "", **first, "Who": who, "Time": as_seconds(row["median"])})
                first = {}
    return rows


def floors(results: Results) -> list[Cells]:
    """The least time that some searches could take, beside manyfit's."""
    rows = []
    for name in WITH_FLOOR:
        found = results.read(name)
        least, ours = found["floor"]["seconds"], _fastest(found, "ours")["median"]
        rows.append(
            {
                "Benchmark": f"`{name}`",
                "Floor": as_seconds(least),
                "manyfit": as_seconds(ours),
                "Times the floor": rounded(ours / least),
            }
        )
    return rows


def _fastest(found: dict[str, Any], kind: str) -> dict[str, Any]:
    rows = [row for row in found["rows"] if row["kind"] == kind and row["median"] is not None]
    return min(rows, key=lambda row: float(row["median"]))


def _command(found: dict[str, Any], rounds: Mapping[str, int]) -> str:
    repeat = f" --repeat {found['rounds']}" if found["rounds"] != rounds[found["name"]] else ""
    no_memory = "" if any(row["memory"] for row in found["rows"]) else " --no-memory"
    return f"python -m benchmarks {found['name']}{repeat}{no_memory}"


def _memory(found: dict[str, Any], ours: dict[str, Any], results: Results) -> str:
    name, note = found["name"], ""
    if ours["memory"] is None and (results.folder / f"{name}-memory.json").exists():
        ours, note = _fastest(results.read(name, f"{name}-memory"), "ours"), ", in another run"
    if ours["memory"] is None:
        return "-"
    total = ours["memory"]["resident"] + ours["memory"]["workers"]
    return f"{as_bytes(total)}, {ours['memory_in_X']:.2g} X{note}"


def _largest_difference(found: dict[str, Any], kind: str) -> str:
    rows = [row for row in found["rows"] if row["kind"] == kind]
    return as_difference(
        max(row[key] or 0.0 for row in rows for key in ("mean_difference", "split_difference"))
    )
