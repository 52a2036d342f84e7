"""Tables of results on the pages of the documentation, from the JSON files in ``benchmarks/results``.

``python -m benchmarks --write-docs`` writes each table between its markers ``<!-- name -->`` and ``<!--
/name -->``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._gains import GAINS
from benchmarks._report import as_bytes, as_seconds, rounded
from benchmarks.gpu._page import table

ROOT = Path(__file__).resolve().parents[1]
ON_CLUSTERS = (
    "cluster-generic",
    "cluster-overhead",
    "cluster-shared-affine",
    "cluster-shared-logistic",
    "cluster-checkpoint",
)
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
    "affine-pipeline",
    "lasso-path",
    "mixed-ridge",
    "logistic",
    "text-tfidf",
    "knn",
    "pruning",
    "xgboost",
    "svc",
    "forest-prefix",
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

Cells = dict[str, str]


@dataclass(frozen=True)
class Results:
    """The results in a folder, and the default number of rounds of each benchmark."""

    folder: Path
    rounds: Mapping[str, int]

    def read(self, name: str, file: str | None = None) -> dict[str, Any]:
        """The last result of a benchmark at its full size."""
        results = json.loads((self.folder / f"{file or name}.json").read_text())["results"]
        (found,) = (result for result in results if result["name"] == name)
        if found["quick"]:
            raise ValueError(f"{name} was run with --quick, which no page shows")
        return dict(found)


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
            "Largest difference": _gap(row["apart"]),
        }
        for row in found["rows"]
    ]


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
            "Largest difference": _gap(row["difference"]),
            "Served by": row["served"],
            "Fits made": row["fits"],
        }
        for row in found["rows"]
    ]
    means = {head: rounded(found["found"][clock]["geometric_mean"]) for head, clock in _CLOCKS.items()}
    return [*rows, dict.fromkeys(rows[0], "-") | {"Search": "geometric mean", **means}]


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


def races(results: Results) -> list[Cells]:
    """Races over splits beside the full search."""
    found = results.read("race-boosting")
    return [
        {
            "race": row["race"],
            "Fits": rounded(row["fits"]),
            "Times fewer": rounded(row["less"]),
            "Same choice": f"{row['same']} of {found['found']['seeds']}",
            "Largest loss of log loss": _gap(row["lost"]),
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
            "CPU time": as_seconds(row["cpu"]),
            "Best score, mean": f"{row['best']:.4f}",
            "Worst": f"{row['worst']:.4f}",
        }
        for row in results.read("optuna-tpe")["rows"]
    ]


def on_gpu(results: Results) -> list[Cells]:
    """Searches with X on a GPU."""
    return [
        cells for name in ("gpu-ridge", "gpu-affine-pipeline") for cells in table(results.read(name)["rows"])
    ]


_CLOCKS = {"Times less CPU": "cpu", "Times less wall": "wall"}

# The page and the rows of each table.
TABLES: dict[str, tuple[str, Callable[[Results], list[Cells]]]] = {
    "speed": ("README.md", speed),
    "benchmarks": ("docs/benchmarks.md", searches),
    "contenders": ("docs/benchmarks.md", contenders),
    "floors": ("docs/benchmarks.md", floors),
    "gains": ("docs/faster.md", gains),
    "everyday": ("docs/benchmarks.md", everyday),
    "metrics": ("docs/benchmarks.md", metrics),
    "races": ("docs/which-search.md", races),
    "hyperband": ("docs/which-search.md", hyperband),
    "optuna": ("docs/which-search.md", optuna),
    "gpu": ("docs/devices.md", on_gpu),
    "timed": ("docs/clusters.md", on_clusters),
    "sent": ("docs/clusters.md", bytes_sent),
    "slots": ("docs/clusters.md", busy_slots),
    "calls": ("docs/joblib.md", joblib_calls),
    "searches": ("docs/joblib.md", joblib_searches),
}


def write_pages(results: Results, root: Path = ROOT) -> list[str]:
    """Write all tables into the pages under a folder, and return the pages that changed."""
    changed = []
    for name, (page, rows) in TABLES.items():
        path = root / page
        before = path.read_text()
        after = replace_table(before, name, rows(results))
        if after != before:
            path.write_text(after)
            changed.append(page)
    return list(dict.fromkeys(changed))


def replace_table(page: str, name: str, rows: Sequence[Cells]) -> str:
    """Return a page with these rows between the markers of a table."""
    between = re.compile(rf"(?<=^<!-- {name} -->\n).*?(?=^<!-- /{name} -->$)", re.M | re.S)
    if len(between.findall(page)) != 1:
        raise ValueError(
            f"the page has no place for the table {name!r}: <!-- {name} --> and <!-- /{name} -->"
        )
    return between.sub(lambda _: as_markdown(rows), page)


def as_markdown(rows: Sequence[Cells]) -> str:
    """Rows as a table of Markdown."""
    heads = list(rows[0])
    lines = [heads, ["---"] * len(heads), *([row[head] for head in heads] for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n".replace("|  |", "| |") for cells in lines)


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
    return _gap(max(row[key] or 0.0 for row in rows for key in ("mean_difference", "split_difference")))


def _gap(value: float) -> str:
    return f"{value:.0e}" if value else "0"


def _time(row: dict[str, Any]) -> str:
    if row["given_up"] is not None:
        return f"more than {as_seconds(row['given_up'])}"
    return as_seconds(row["median"]) if row["median"] is not None else row["failure"]
