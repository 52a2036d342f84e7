"""One run of a benchmark: warm-up, interleaved rounds, differences of the scores, memory, floor, bars."""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from tqdm import tqdm

from benchmarks._bars import Verdict
from benchmarks._benchmark import Answer, Benchmark, Contender, Data, Task
from benchmarks._compare import score_differences
from benchmarks._count import count_fits
from benchmarks._floor import Floor, measure_floor
from benchmarks._machine import blas_threads
from benchmarks._memory import Memory, measure_memory

# messages of failures and warnings are kept, their tails are not
_MESSAGE_LENGTH = 300

Pairs = Iterable[tuple["Contender", "Row"]]


@dataclass
class Row:
    """What one contender did: a failure is kept beside whatever was measured before it."""

    name: str
    kind: str
    note: str = ""
    seconds: list[float] = field(default_factory=list)
    failure: str | None = None
    mean_difference: float | None = None
    split_difference: float | None = None
    memory: Memory | None = None
    memory_failure: str | None = None
    fits: Mapping[str, int] | None = None
    report: Mapping[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        """Median time in seconds, None after a failure."""
        return statistics.median(self.seconds) if self.seconds and self.failure is None else None


@dataclass
class Result:
    """Everything that one benchmark measured."""

    name: str
    summary: str
    quick: bool
    rounds: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    settings: int
    splits: int
    blas_threads: int | None
    rows: list[Row]
    dearest: str | None = None
    fit_seconds: list[float] = field(default_factory=list)
    floor: Floor | None = None
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def one_fit(self) -> float | None:
        """Median time of one fit and score of the dearest setting on one split."""
        return statistics.median(self.fit_seconds) if self.fit_seconds else None

    def best(self, *kinds: str) -> Row | None:
        """Return the fastest row of these kinds, None if none of them worked."""
        rows = [row for row in self.rows if row.kind in kinds and row.median is not None]
        return min(rows, key=lambda row: row.median or 0.0, default=None)

    def row(self, name: str) -> Row | None:
        """Return the row of one contender, None if it did not take part or failed."""
        return next((r for r in self.rows if r.name == name and r.median is not None), None)


def run(
    benchmark: Benchmark,
    *,
    repeat: int | None = None,
    quick: bool = False,
    memory: bool = True,
    progress: bool = False,
) -> Result:
    """Run one benchmark: each contender in turn, `repeat` times round, each on a fresh copy of the data."""
    task, data = benchmark.task(quick), benchmark.data(quick)
    result = _empty_result(benchmark, task, data, repeat or (2 if quick else benchmark.repeat), quick)
    pairs = list(zip(benchmark.contenders, result.rows, strict=True))
    steps = len(pairs) * (1 + result.rounds + memory)
    with tqdm(total=steps, desc=benchmark.name, disable=not progress, leave=False) as bar:
        _rounds(pairs, task, data, result, bar)
        work = benchmark.work(task, *data)
        result.floor = measure_floor(work, task, *data, steps=benchmark.separate_steps)
        if memory:
            for contender, row in _shown(pairs, bar, "memory"):
                _add_memory(benchmark, contender, row, data, quick=quick)
    result.verdicts = [bar_of(result) for bar_of in benchmark.bars]
    return result


def _empty_result(benchmark: Benchmark, task: Task, data: Data, rounds: int, quick: bool) -> Result:
    X, y = data
    return Result(
        benchmark.name,
        benchmark.summary,
        quick,
        rounds,
        shape=X.shape,
        dtype=str(X.dtype),
        bytes=X.nbytes,
        settings=task.settings,
        splits=len(task.splits(X, y)),
        blas_threads=blas_threads(),
        rows=[Row(c.name, c.kind, c.note) for c in benchmark.contenders],
    )


# What takes less than this is timed several times in a round: its first run finds caches that a contender of
# half a minute has left cold.
_SHORT_SECONDS = 0.1
_SHORT_RUNS = 5


def _rounds(pairs: Pairs, task: Task, data: Data, result: Result, bar: tqdm) -> None:
    """Warm up, then time: A B C and one fit, A B C and one fit, ...; what is short several times a round."""
    reference = _warm_up(_shown(pairs, bar, "warm-up"), task, data)
    one_fit = _dearest_fit(reference, task, data, result)
    for number in range(result.rounds):
        for contender, row in _shown(pairs, bar, f"round {number + 1}"):
            for _ in range(_SHORT_RUNS):
                if row.failure is None:
                    _timed(contender, row, task, data, reference)
                if row.failure is not None or result.quick or row.seconds[-1] > _SHORT_SECONDS:
                    break
        for _ in range(_SHORT_RUNS if one_fit is not None else 0):
            result.fit_seconds.append(one_fit())
            if result.quick or result.fit_seconds[-1] > _SHORT_SECONDS:
                break


def _shown(pairs: Pairs, bar: tqdm, phase: str) -> Iterator[tuple[Contender, Row]]:
    for contender, row in pairs:
        bar.set_postfix_str(f"{phase}: {contender.name}")
        yield contender, row
        bar.update()


def _warm_up(pairs: Pairs, task: Task, data: Data) -> Answer | None:
    """Run every contender once, untimed: its fits are counted and its warnings kept.

    Returns the answer of scikit-learn in this process, which the scores of all are compared with.
    """
    reference: Answer | None = None
    for contender, row in pairs:
        with _keeping_failure(row), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            with count_fits(task.step_classes()) as counts:
                answer = contender.read(contender.fit(task, *_copies(data)))
            row.fits = dict(counts) if contender.in_process else None
            row.report = answer.report
            if contender.kind == "scikit-learn" and reference is None:
                reference = answer
        row.warnings = sorted({f"{w.category.__name__}: {_first_line(w.message)}" for w in caught})
    return reference


def _timed(contender: Contender, row: Row, task: Task, data: Data, reference: Answer | None) -> None:
    X, y = _copies(data)
    gc.collect()
    with _keeping_failure(row), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fitted = contender.fit(task, X, y)
        row.seconds.append(time.perf_counter() - start)
        if reference is not None:
            mean, split = score_differences(contender.read(fitted), reference)
            row.mean_difference = _larger(row.mean_difference, mean)
            row.split_difference = _larger(row.split_difference, split)


def _dearest_fit(
    reference: Answer | None, task: Task, data: Data, result: Result
) -> Callable[[], float] | None:
    """Return a function that times one fit and score of the dearest setting on the first split.

    The dearest is the one that took longest in scikit-learn's warm-up run. Cutting the data is not timed,
    as in scikit-learn's ``mean_fit_time``.
    """
    if reference is None or reference.seconds_per_fit is None:
        return None
    index = int(np.argmax(reference.seconds_per_fit))
    result.dearest = reference.keys[index]
    train, test = task.splits(*data)[0]
    scorer = check_scoring(task.estimator, task.scoring)

    def one_fit() -> float:
        estimator = task.with_params(reference.params[index])
        X, y = data
        parts = X[train], y[train], X[test], y[test]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            scorer(estimator.fit(parts[0], parts[1]), parts[2], parts[3])
            return time.perf_counter() - start

    return one_fit


def _add_memory(benchmark: Benchmark, contender: Contender, row: Row, data: Data, *, quick: bool) -> None:
    if row.failure is not None:
        return
    try:
        row.memory = measure_memory(benchmark, contender, data, quick=quick)
    except Exception as error:
        row.memory_failure = _describe(error)


@contextmanager
def _keeping_failure(row: Row) -> Iterator[None]:
    """Keep whatever a contender raises as data: the others still run. An interrupt goes through."""
    try:
        yield
    except Exception as error:
        row.failure = _describe(error)


def _copies(data: Data) -> Data:
    return data[0].copy(), data[1].copy()


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(message: object) -> str:
    return (str(message).strip().splitlines() or [""])[0][:_MESSAGE_LENGTH]


def _larger(first: float | None, second: float | None) -> float | None:
    known = [value for value in (first, second) if value is not None]
    return max(known, default=None)
