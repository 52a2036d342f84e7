"""Tables of everyday, adaptive and GPU searches and of metrics, for the pages of the documentation."""

from __future__ import annotations

import json

from benchmarks._full_results import Cells, Results
from benchmarks._gains import GAINS
from benchmarks._report import as_difference, as_seconds, rounded
from benchmarks.gpu._page import table
from benchmarks.threads import IN_PROCESSES

_CLOCKS = {"Times less CPU": "cpu", "Times less wall": "wall"}


def everyday(results: Results) -> list[Cells]:
    """Everyday searches in scikit-learn and in manyfit: a row for each, and one for their mean."""
    found = results.read("everyday")
    rows = [
        {
            "Search": f"`{row['search']}`",
            "scikit-learn, CPU": as_seconds(row["theirs_cpu"]),
            "manyfit, CPU": as_seconds(row["ours_cpu"]),
            "Times less CPU": rounded(row["times_cpu"]),
            "Times less wall": rounded(row["times_wall"]),
            "Largest difference": as_difference(row["difference"]),
            "Served by": row["served"],
            "Fits made": row["fits"],
        }
        for row in found["rows"]
    ]
    found, empty = found["found"], dict.fromkeys(rows[0], "-")
    alone = {head: rounded(found["one_by_one"][clock][1]) for head, clock in _CLOCKS.items()}
    means = {head: rounded(found[clock]["geometric_mean"]) for head, clock in _CLOCKS.items()}
    return [
        *rows,
        empty | {"Search": "geometric mean, one by one", **alone},
        empty | {"Search": "geometric mean", **means},
    ]


def threads(results: Results) -> list[Cells]:
    """Some everyday searches with all threads of BLAS and OpenMP, and with processes."""
    return [
        {
            "Search": f"`{row['search']}`",
            "scikit-learn": as_seconds(row["theirs"]),
            "manyfit": as_seconds(row["ours"]),
            "scikit-learn, `n_jobs=-1`": as_seconds(row["theirs_in_processes"]),
            "manyfit, `n_jobs=-1`": as_seconds(row["ours_in_processes"]),
            "Largest difference": as_difference(row["of_threads"]),
        }
        for row in results.read("threads")["rows"]
        if row["search"] in IN_PROCESSES
    ]


def gains(results: Results) -> list[Cells]:
    """How much less CPU time everyday searches take, by what is searched."""
    times = {row["search"]: row["times_cpu"] for row in results.read("everyday")["rows"]}
    rows = []
    for what, names in GAINS.items():
        found = sorted(times[name] for name in names.split())
        span = rounded(found[0]) if len(found) == 1 else f"{rounded(found[0])} to {rounded(found[-1])}"
        searches = ", ".join(f"`{name}`" for name in names.split())
        rows.append({"You search": what, "Times less CPU": span, "Measured on": searches})
    return rows


def metrics(results: Results) -> list[Cells]:
    """manyfit's metrics of many settings beside scikit-learn's: a row for each metric."""
    found = json.loads((results.folder / "metrics.json").read_text())
    return [
        {
            "Metric": f"`{row['metric']}`",
            "scikit-learn": as_seconds(row["theirs"]),
            "manyfit": as_seconds(row["ours"]),
            "Times faster": rounded(row["times"]),
            "Reading the predictions once": as_seconds(row["floor"]),
            "Largest difference": as_difference(row["apart"]),
        }
        for row in found["rows"]
    ]


def first_searches(results: Results) -> list[Cells]:
    """The CPU time of first searches in fresh processes, and what they import."""
    return [
        {
            "Search": f"`{row['search']}`",
            "scikit-learn, first": as_seconds(row["theirs"]),
            "manyfit, first": as_seconds(row["ours"]),
            "scikit-learn, second": as_seconds(row["theirs_again"]),
            "manyfit, second": as_seconds(row["ours_again"]),
            "Modules of manyfit": str(row["modules"]),
            "More modules of scikit-learn": str(row["sklearn_modules"]),
        }
        for row in results.read("first-search")["rows"]
    ]


def races(results: Results) -> list[Cells]:
    """Races over splits beside the full search."""
    found = results.read("race-boosting")
    return [
        {
            "race": row["race"],
            "Fits": rounded(row["fits"]),
            "Times fewer": rounded(row["less"]),
            "Same choice": f"{row['same']} of {found['found']['seeds']}",
            "Largest loss of log loss": as_difference(row["lost"]),
        }
        for row in found["rows"]
    ]


def hyperband(results: Results) -> list[Cells]:
    """Hyperband over models with `partial_fit`."""
    return [
        {
            "Search": row["search"],
            "Settings": rounded(row["models"]),
            "Million rows read by fits": rounded(row["rows"]),
            "Time": as_seconds(row["seconds"]),
            "CPU time": as_seconds(row["cpu"]),
            "Accuracy on other rows": f"{row['score']:.4f}",
        }
        for row in results.read("hyperband-sgd")["rows"]
    ]


def optuna(results: Results) -> list[Cells]:
    """Optuna's sampler in batches, and in optuna-integration's search."""
    return [
        {
            "Search": row["search"],
            "Time": as_seconds(row["seconds"]),
            "CPU time": as_seconds(row["cpu"]),
            "Best score, mean": f"{row['best']:.4f}",
            "Worst": f"{row['worst']:.4f}",
        }
        for row in results.read("optuna-tpe")["rows"]
    ]


def on_gpu(results: Results) -> list[Cells]:
    """Searches with X on a GPU."""
    return [
        cells
        for name in ("gpu-ridge", "gpu-affine-pipeline", "gpu-logistic", "gpu-one-by-one")
        for cells in table(results.read(name)["rows"])
    ]
