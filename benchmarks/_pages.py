"""Tables of results on the pages of the documentation, from the JSON files in ``benchmarks/results``.

``python -m benchmarks --write-docs`` writes each table between its markers ``<!-- name -->`` and ``<!--
/name -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks._cluster_tables import busy_slots, bytes_sent, joblib_calls, joblib_searches, on_clusters
from benchmarks._full_results import Cells, Results
from benchmarks._speed_tables import contenders, floors, searches, speed
from benchmarks._study_tables import (
    everyday,
    first_searches,
    gains,
    hyperband,
    metrics,
    on_gpu,
    optuna,
    races,
    threads,
)

ROOT = Path(__file__).resolve().parents[1]
# The page and the rows of each table.
TABLES: dict[str, tuple[str, Callable[[Results], list[Cells]]]] = {
    "speed": ("README.md", speed),
    "benchmarks": ("docs/benchmarks.md", searches),
    "contenders": ("docs/benchmarks.md", contenders),
    "floors": ("docs/benchmarks.md", floors),
    "gains": ("docs/faster.md", gains),
    "everyday": ("docs/benchmarks.md", everyday),
    "metrics": ("docs/benchmarks.md", metrics),
    "first": ("docs/benchmarks.md", first_searches),
    "races": ("docs/which-search.md", races),
    "hyperband": ("docs/which-search.md", hyperband),
    "optuna": ("docs/which-search.md", optuna),
    "threads": ("docs/searches.md", threads),
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
