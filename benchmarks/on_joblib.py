"""joblib's backends on two workers: overhead of a call, bytes of searches, a forest."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from benchmarks import _on_joblib as through
from benchmarks import _on_workers as on
from benchmarks._benchmark import register
from benchmarks._study import Column, Findings, Study, Tell
from benchmarks._verdict import Verdict, at_most
from benchmarks._wire import watched

ROUNDS = 5
# Share of the bytes that joblib's backend for Dask sends for the second and third search.
MOST_AGAIN = 0.1
OVER_LOKY = 1.15

_TIMES = (
    Column("what", "calls"),
    Column("backend", "backend"),
    Column("seconds", "time", "s"),
    Column("failure", "failure"),
)
_BYTES = (
    Column("backend", "backend"),
    Column("search", "search"),
    Column("data", "client: data", "bytes"),
    Column("messages", "client: the rest", "bytes"),
    Column("everyone", "all processes", "bytes"),
    Column("seconds", "time", "s"),
    Column("failure", "failure"),
)


def _overhead(quick: bool, tell: Tell) -> Findings:
    rows, long = [], ""
    with on.one_thread_each():
        for n_calls, seconds in ((100, 1e-3), (10, 5e-2)) if quick else ((10_000, 1e-3), (100, 5e-2)):
            long = f"{n_calls:,} of {seconds * 1e3:g} ms"

            def call(n_calls: int = n_calls, seconds: float = seconds) -> None:
                Parallel()(delayed(through.spin)(seconds) for _ in range(n_calls))

            rows += through.race(long, call, 1 if quick else ROUNDS, tell)
    verdicts = [through.not_slower(rows, what, through.DASK, 1.0) for what in {r["what"]: 0 for r in rows}]
    verdicts.append(through.not_slower(rows, long, through.LOKY, OVER_LOKY))
    return Findings(rows, _TIMES, verdicts=verdicts)


def _data(quick: bool, tell: Tell) -> Findings:
    X = np.random.default_rng(0).normal(size=(2_000 if quick else 50_000, 100))
    y = (X[:, 0] > 0.0).astype(int)
    grid = {"var_smoothing": np.logspace(-9, -4, 2 if quick else 6)}
    rows = []
    with on.one_thread_each() as client, watched(client) as wire:
        for backend in through.BACKENDS:
            tell(f"{backend}, the modules of workers")
            through.under(backend, lambda: GridSearchCV(GaussianNB(), grid, refit=False).fit(X[:99], y[:99]))
            for search in ("first", "second", "third"):
                tell(f"{backend}, the {search} search")
                before = wire.sent()
                taken = through.under(
                    backend, lambda: GridSearchCV(GaussianNB(), grid, refit=False).fit(X, y)
                )
                row: dict[str, Any] = {"backend": backend, "search": search, "seconds": None, "failure": ""}
                row["failure" if isinstance(taken, str) else "seconds"] = taken
                time.sleep(0.5)  # for messages that arrive late
                rows.append(row | vars(wire.sent() - before))
    return Findings(rows, _BYTES, verdicts=_again(rows) + _times(rows))


def _again(rows: list[dict[str, Any]]) -> list[Verdict]:
    verdicts = []
    for search in ("second", "third"):
        sent = {row["backend"]: row["everyone"] for row in rows if row["search"] == search}
        asked = f"the {search} search sends at most {MOST_AGAIN:.0%} of what it does through dask"
        verdicts.append(at_most(asked, sent[through.OURS] / sent[through.DASK], MOST_AGAIN, "of it"))
    return verdicts


def _times(rows: list[dict[str, Any]]) -> list[Verdict]:
    verdicts = []
    for search in ("first", "second", "third"):
        took = {row["backend"]: row["seconds"] for row in rows if row["search"] == search}
        ours, dask = took[through.OURS], took[through.DASK]
        asked = f"the {search} search is not slower than through dask"
        verdicts.append(at_most(asked, ours / dask if ours and dask else None, 1.0, "times as long"))
    return verdicts


def _forest(quick: bool, tell: Tell) -> Findings:
    X, y = make_classification(500 if quick else 5_000, 20, n_informative=8, random_state=0)
    forest = RandomForestClassifier(10 if quick else 200, random_state=0)
    what = f"a forest of {forest.n_estimators} trees"
    with on.one_thread_each():
        rows = through.race(what, lambda: forest.fit(X, y), 1 if quick else ROUNDS, tell)
    return Findings(rows, _TIMES, verdicts=[through.not_slower(rows, what, through.DASK, 1.0)])


register(
    Study(
        name="joblib-overhead",
        summary="10,000 calls of 1 ms and 100 calls of 50 ms through joblib's backends, on two workers",
        measure=_overhead,
    )
)
register(
    Study(
        name="joblib-data",
        summary="bytes and time of three searches in a row on 40 MB through joblib's backends",
        measure=_data,
    )
)
register(
    Study(
        name="joblib-forest",
        summary="RandomForestClassifier, 200 trees, 5,000 x 20, through joblib's backends",
        measure=_forest,
    )
)
