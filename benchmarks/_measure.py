"""One run of a benchmark: warm-up, interleaved rounds, differences of the scores, memory, floor, bars."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing
from tqdm import tqdm

from benchmarks._benchmark import Answer, Benchmark, Contender
from benchmarks._compare import score_differences
from benchmarks._count import count_fits
from benchmarks._floor import measure_floor, stored_bytes
from benchmarks._limit import TooLong, time_limit
from benchmarks._machine import blas_threads
from benchmarks._memory import measure_memory
from benchmarks._result import Result, Row
from benchmarks._task import Data, Task

# Longer messages of failures and warnings are cut.
_MESSAGE_LENGTH = 300

Pairs = Iterable[tuple[Contender, Row]]


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
    rounds = repeat or (2 if quick else benchmark.repeat)
    steps = len(benchmark.contenders) * (1 + rounds + memory)
    with tqdm(total=steps, desc=benchmark.name, disable=not progress, leave=False) as bar:
        with benchmark.around():
            result = _empty_result(benchmark, task, data, rounds, quick)
            pairs = list(zip(benchmark.contenders, result.rows, strict=True))
            _rounds(pairs, task, data, result, bar)
            work, cores = benchmark.work(task, *data), benchmark.cores
            result.floor = measure_floor(work, task, *data, steps=benchmark.separate_steps, cores=cores)
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
        dtype=str(getattr(X, "dtype", "frame")),
        bytes=stored_bytes(X),
        settings=task.settings,
        splits=len(task.splits(X, y)),
        blas_threads=blas_threads(),
        rows=[Row(c.name, c.kind, c.note) for c in benchmark.contenders],
        reference=benchmark.reference or _first_of_sklearn(benchmark.contenders),
        cores=benchmark.cores,
        most_seconds=benchmark.most_seconds,
    )


def _first_of_sklearn(contenders: Iterable[Contender]) -> str | None:
    return next((c.name for c in contenders if c.kind == "scikit-learn"), None)


# A shorter run is timed several times per round, because a long contender leaves cold caches for the first.
_SHORT_SECONDS = 0.1
_SHORT_RUNS = 5
# If the warm-up takes longer than this, it counts as the only run.
_LONG_SECONDS = 60.0


def _rounds(pairs: Pairs, task: Task, data: Data, result: Result, bar: tqdm) -> None:
    """Warm up, then time: A B C and one fit, A B C and one fit, ...

    A short run is repeated within a round. A long run is timed as it warms up, and not repeated.
    """
    answers = _warm_up(_shown(pairs, bar, "warm-up"), task, data, result)
    reference = answers.get(result.reference or "")
    one_fit = _dearest_fit(reference, task, data, result)
    for number in range(result.rounds):
        for contender, row in _shown(pairs, bar, f"round {number + 1}"):
            for _ in range(_SHORT_RUNS):
                if row.seconds and row.seconds[0] > _LONG_SECONDS:
                    break
                if row.failure is None:
                    peer = answers.get(contender.peer or "", reference)
                    _timed(contender, row, task, data, result, peer)
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


def _warm_up(pairs: Pairs, task: Task, data: Data, result: Result) -> dict[str, Answer]:
    """Run every contender once, count its fits and keep its warnings; returns the answers by name."""
    answers: dict[str, Answer] = {}
    for contender, row in pairs:
        with _keeping_failure(row, result.most_seconds), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            X, y = _copies(data)
            start = time.perf_counter()
            with count_fits(task.step_classes()) as counts:
                fitted = contender.fit(task, X, y)
            seconds, answer = time.perf_counter() - start, contender.read(fitted)
            if seconds > _LONG_SECONDS:
                _keep_run(row, seconds, answer, result, answers.get(result.reference or ""))
            row.fits = dict(counts) if contender.in_process else None
            row.report = answer.report
            answers[contender.name] = answer
        row.warnings = sorted({f"{w.category.__name__}: {_first_line(w.message)}" for w in caught})
    return answers


def _timed(
    contender: Contender, row: Row, task: Task, data: Data, result: Result, reference: Answer | None
) -> None:
    X, y = _copies(data)
    gc.collect()
    with _keeping_failure(row, result.most_seconds), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if contender.prepare is not None:
            contender.prepare(task, X, y)
        start = time.perf_counter()
        fitted = contender.fit(task, X, y)
        seconds = time.perf_counter() - start
        _keep_run(row, seconds, contender.read(fitted), result, reference)


def _keep_run(row: Row, seconds: float, answer: Answer, result: Result, reference: Answer | None) -> None:
    row.seconds.append(seconds)
    if answer.seconds_per_fit is not None:
        row.fit_sums.append(float(answer.seconds_per_fit.sum()) * result.splits)
    if reference is not None:
        mean, split = score_differences(answer, reference)
        row.mean_difference = _larger(row.mean_difference, mean)
        row.split_difference = _larger(row.split_difference, split)


def _dearest_fit(
    reference: Answer | None, task: Task, data: Data, result: Result
) -> Callable[[], float] | None:
    """Return a function that times one fit and score of the most expensive setting on the first split.

    This is the setting that took longest in scikit-learn's warm-up run. Cutting the data is not timed, as in
    scikit-learn's ``mean_fit_time``.
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
        parts = _safe_indexing(X, train), y[train], _safe_indexing(X, test), y[test]
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
        row.memory_failure = describe(error)


@contextmanager
def _keeping_failure(row: Row, most_seconds: float) -> Iterator[None]:
    """Keep any exception of a contender, except an interrupt, as data, so that the others still run.

    A run that takes too long is stopped.
    """
    try:
        with time_limit(most_seconds):
            yield
    except TooLong as error:
        row.failure, row.given_up = describe(error), most_seconds
    except Exception as error:
        row.failure = describe(error)


def _copies(data: Data) -> Data:
    return data[0].copy(), data[1].copy()


def describe(error: BaseException) -> str:
    """The class of an error and the first line of its message."""
    return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(message: object) -> str:
    return (str(message).strip().splitlines() or [""])[0][:_MESSAGE_LENGTH]


def _larger(first: float | None, second: float | None) -> float | None:
    known = [value for value in (first, second) if value is not None]
    return max(known, default=None)
