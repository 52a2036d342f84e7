"""Bytes that a search sends, the first and the second time, counted alike for all contenders."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from benchmarks import _on_workers as on
from benchmarks._benchmark import Contender
from benchmarks._measure import describe
from benchmarks._study import Column, Findings, Tell
from benchmarks._task import Data, Task
from benchmarks._timed import Spins
from benchmarks._verdict import Verdict, at_most
from benchmarks._wire import Wire, watched

_COLUMNS = (
    Column("contender", "contender"),
    Column("bytes", "X", "bytes"),
    Column("search", "search"),
    Column("data", "client: data", "bytes"),
    Column("messages", "client: the rest", "bytes"),
    Column("everyone", "all processes", "bytes"),
    Column("seconds", "time", "s"),
    Column("failure", "failure"),
)
_NOTE = (
    "data: what the client scattered; the rest: graphs and requests; all processes: the scheduler, which "
    "passes data on, and workers as well"
)
_CONTENDERS = (on.manyfit(), on.joblib_dask(), on.dask_ml())
MOST_AGAIN, MOST_MESSAGES = 0.01, 100_000.0
# Copies of the large X in all processes when workers cut their first folds.
_COPIES = 8


def measure_bytes(quick: bool, tell: Tell) -> Findings:
    """Search twice with each contender on 40 MB, and with manyfit on 1 GB if there is memory for it."""
    # An item for each fold, so that both workers get X in the first search.
    task = Task(QuadraticDiscriminantAnalysis(), {"reg_param": np.linspace(0.1, 0.6, 2 if quick else 6)})
    spins = Task(Spins(), {"value": np.linspace(0.0, 1.0, 2 if quick else 6)})
    n_rows, n_large = (2_000, 4_000) if quick else (50_000, 1_250_000)
    rows, notes = [], [_NOTE]
    with on.two_workers() as client, watched(client) as wire:
        for contender in _CONTENDERS:
            tell(contender.name)
            rows += _twice(contender, task, _data(n_rows), wire)
        large = []
        if psutil.virtual_memory().available > _COPIES * n_large * 800:
            tell("the large X")
            large = _twice(on.manyfit(), spins, _data(n_large), wire)
        else:
            notes.append("the large X was left out: there is no memory for it")
    return Findings(rows + large, _COLUMNS, notes=notes, verdicts=[_again(rows), _messages(large)])


def _data(n_rows: int) -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 100))
    return X, (X[:, 0] > 0.0).astype(int)


def _twice(contender: Contender, task: Task, data: Data, wire: Wire) -> list[dict[str, Any]]:
    rows = []
    for search in ("first", "second"):
        row: dict[str, Any] = dict.fromkeys((column.key for column in _COLUMNS), None)
        row |= {"contender": contender.name, "bytes": data[0].nbytes, "search": search, "failure": ""}
        before, start = wire.sent(), time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                contender.fit(task, *data)
        except Exception as error:
            row["failure"] = describe(error)
        else:
            row["seconds"] = time.perf_counter() - start
            row |= vars(wire.sent() - before)
        rows.append(row)
    return rows


def _again(rows: list[dict[str, Any]]) -> Verdict:
    first, second = (row["everyone"] for row in rows if row["contender"] == on.OURS)
    got = second / first if first and second else None
    return at_most(f"the second search sends at most {MOST_AGAIN:.0%} of the first", got, MOST_AGAIN, "of it")


def _messages(rows: list[dict[str, Any]]) -> Verdict:
    got = max((row["messages"] for row in rows if row["messages"] is not None), default=None)
    size = f"{rows[0]['bytes'] / 1e9:.3g} GB" if rows else "1 GB"
    asked = f"at most {MOST_MESSAGES:,.0f} bytes from the client beside the data of a search over {size}"
    return at_most(asked, got, MOST_MESSAGES, "bytes")
