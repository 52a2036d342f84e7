"""Trains and scores models on an X that is read in chunks: all models of a round in the same passes."""

from __future__ import annotations

import copy
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier

from manyfit._compat import PassthroughScorer, check_method_params, safe_indexing, score, scorer_parts
from manyfit.folds import ChunkRows, Rows, n_rows
from manyfit.metrics.scoring import PredictedClassifier, PredictedRegressor
from manyfit.model_selection.checkpoint._models import ModelCheckpoint, Trained
from manyfit.model_selection.job._job import Job, Result
from manyfit.model_selection.job._joblib_tasks import joblib_workers
from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.search.adaptive.incremental._growing import grow_function
from manyfit.model_selection.search.adaptive.incremental._partial_fits import (
    PartialFits,
    Step,
    results_with_models,
)

_OWN_SCORES = (ClassifierMixin.score, RegressorMixin.score)  # of predictions, whoever makes them


class ChunkTrainer:
    """Trains models by `partial_fit` with one block of X after the other, and predicts by block.

    A model reads the training rows of a block in their order. No more than a block of X is in memory, and the
    predictions of some models for the held-out rows. `job` is the search as users see it, without candidates.
    """

    def __init__(self, job: Job, rows: ChunkRows, classes: Any) -> None:
        self._job, self._rows, self._classes = job, rows, classes
        model = job.estimator
        if not hasattr(model, "partial_fit"):
            raise TypeError(
                f"X, a {rows.kind} of {rows.nbytes:,} bytes, is read in chunks, and {type(model).__name__} "
                "trains on all rows at once. Use an estimator with partial_fit, or pass X in memory."
            )
        self._method = _response_method(job.options.scorer, model)

    def train(
        self, steps: Sequence[Step], trained: Sequence[Trained], checkpoint: ModelCheckpoint | None = None
    ) -> tuple[list[Result], Report]:
        before, start = self._rows.bytes_read, time.perf_counter()
        with ResultSink(self._job, checkpoint, bar=Progress(len(steps), 0)) as sink:
            pairs = [(c, one.split) for c, one in enumerate(steps)]
            new = [pair for pair in pairs if not sink.restore([pair], individual=True)]
            some = [steps[c] for c, _ in new]
            models = [copy.deepcopy(trained[c].model) for c, _ in new]

            def keep(done: Mapping[int, Trained]) -> None:
                if checkpoint is not None:
                    checkpoint.keep({new[j]: one for j, one in done.items()})

            fits = self._fit(some, models, [trained[c].calls for c, _ in new], keep)
            for pair, result in zip(new, self._scored(some, models, fits), strict=True):
                sink.add({pair: result}, individual=True)
        report = Report(bytes_read=self._rows.bytes_read - before)
        report.spend("one by one", time.perf_counter() - start)
        return results_with_models(sink, pairs), report

    def further(self, trained: Trained, split: int | None, target: int) -> Any:
        model = copy.deepcopy(trained.model)
        rows = np.arange(self._rows.shape[0]) if split is None else self._sets([split], 0)[0]
        for _ in range(target - trained.calls):
            for block, read in self._blocks([rows]):
                self._call(model, block[0], read[0])
        return model

    def _sets(self, splits: Sequence[int], part: int) -> list[Any]:
        """Training (0) or held-out (1) rows of some splits, in the order of X."""
        every = np.arange(self._rows.shape[0])
        return [np.sort(every[self._job.splits.indices(i)[part]]) for i in splits]

    def _blocks(self, sets: Sequence[Rows]) -> Iterator[tuple[list[Any], list[Any]]]:
        """For each read the rows of each set in memory, and their numbers in X; empty ones are None."""
        for read, frame, local in self._rows.in_turn(sets, self._rows.load_frame):
            numbers = [np.arange(read.start, read.stop)[own] for own in local]
            blocks = [safe_indexing(frame, own - read.start) if len(own) else None for own in numbers]
            yield blocks, numbers

    def _call(self, model: Any, block: Any, numbers: Any) -> None:
        y, every = self._job.y, np.empty(self._rows.shape[0])
        params = dict(check_method_params(every, self._job.options.fit_params, indices=numbers))
        if self._classes is not None:
            params["classes"] = self._classes
        grow = grow_function(model)
        assert grow is not None
        grow(model, 0, (block,) if y is None else (block, safe_indexing(y, numbers)), params)

    def _fit(
        self,
        steps: Sequence[Step],
        models: Sequence[Any],
        made: Sequence[int],
        keep: Callable[[Mapping[int, Trained]], None],
    ) -> list[tuple[float, str | None]]:
        """Seconds of each model, and the error that ended its training; `keep` gets models after a call."""
        seconds, errors = [0.0] * len(steps), [None] * len(steps)  # type: list[float], list[str | None]

        def call(task: tuple[int, Any, Any]) -> None:
            j, block, numbers = task
            start = time.perf_counter()
            try:
                self._call(models[j], block, numbers)
            except Exception:
                if self._job.options.error_score == "raise":
                    raise
                errors[j] = traceback.format_exc()
            seconds[j] += time.perf_counter() - start

        workers = joblib_workers(self._job.n_jobs)
        with ThreadPoolExecutor(workers) as threads:
            run: Callable[..., Any] = map if workers == 1 else threads.map
            for k in range(max((one.target - n for one, n in zip(steps, made, strict=True)), default=0)):
                active = [j for j, one in enumerate(steps) if made[j] + k < one.target and errors[j] is None]
                splits = sorted({steps[j].split for j in active})
                for blocks, numbers in self._blocks(self._sets(splits, 0)):
                    by_split = dict(zip(splits, zip(blocks, numbers, strict=True), strict=True))
                    tasks = [(j, *by_split[steps[j].split]) for j in active if errors[j] is None]
                    list(run(call, [task for task in tasks if task[1] is not None]))
                keep({j: Trained(models[j], made[j] + k + 1) for j in active if errors[j] is None})
        return list(zip(seconds, errors, strict=True))

    def _scored(
        self, steps: Sequence[Step], models: Sequence[Any], fits: Sequence[tuple[float, str | None]]
    ) -> Iterator[Result]:
        """The results of models, which are scored some at a time, as memory allows."""
        options = self._job.options
        largest = max((n_rows(own) for own in self._sets(sorted({one.split for one in steps}), 1)), default=0)
        width = 1 if self._classes is None or self._method == "predict" else len(self._classes)
        size = max(1, self._rows.memory // 4 // max(1, 8 * width * largest))
        for first in range(0, len(steps), size):
            some = range(first, min(first + size, len(steps)))
            alive = [j for j in some if fits[j][1] is None]
            responses = self._respond([steps[j].split for j in alive], [models[j] for j in alive])
            found = dict(zip(alive, responses, strict=True))
            for j in some:
                seconds, error = fits[j]
                result: Result = {"fit_error": error, "fit_time": seconds, "score_time": 0.0}
                if error is None:
                    start = time.perf_counter()
                    result["test_scores"] = self._score(models[j], steps[j].split, found[j][0])
                    result["score_time"] = found[j][1] + time.perf_counter() - start
                    result["estimator"] = PartialFits()
                    result["estimator"].model_ = models[j]
                else:
                    result["test_scores"] = options.error_score
                yield result

    def _respond(self, of_split: Sequence[int], models: Sequence[Any]) -> list[tuple[Any, float]]:
        """The responses of models for the held-out rows of their splits, or their errors, and the seconds."""
        parts: list[list[Any]] = [[] for _ in models]
        errors: dict[int, Exception] = {}
        seconds, splits = [0.0] * len(models), sorted({*of_split})
        for blocks, _ in self._blocks(self._sets(splits, 1)):
            for j, (split, model) in enumerate(zip(of_split, models, strict=True)):
                block = blocks[splits.index(split)]
                if block is not None and j not in errors:
                    start = time.perf_counter()
                    try:
                        parts[j].append(getattr(model, self._method)(block))
                    except Exception as error:
                        errors[j] = error
                    seconds[j] += time.perf_counter() - start
        found: list[Any] = []
        for j, own in enumerate(parts):
            try:
                found.append(errors[j] if j in errors else np.concatenate(own))
            except Exception as error:  # blocks of different shapes: the scorer raises it
                found.append(error)
        return list(zip(found, seconds, strict=True))

    def _score(self, model: Any, split: int, response: Any) -> float:
        """The score of a model by its response, or `error_score` with scikit-learn's warning."""
        job = self._job
        (rows,) = self._sets([split], 1)
        kind = PredictedClassifier if is_classifier(model) else PredictedRegressor
        stub = kind({self._method: response}, getattr(model, "classes_", None))
        every = np.empty(self._rows.shape[0])
        params = check_method_params(every, job.options.score_params, indices=rows)

        def scorer(*given: Any, **params: Any) -> float:
            if isinstance(response, Exception):
                raise response
            return float(job.options.scorer(*given, **params))

        y = safe_indexing(job.y, rows)
        return float(score(stub, None, y, scorer, params, job.options.error_score))


def _response_method(scorer: Any, model: Any) -> str:
    """The method of a model that a scorer reads; TypeError if it may read more."""
    parts = scorer_parts(scorer)
    if parts is not None:
        names = (parts[3],) if isinstance(parts[3], str) else tuple(parts[3])
        return next((name for name in names if hasattr(model, name)), names[0])
    if isinstance(scorer, PassthroughScorer) and type(model).score in _OWN_SCORES:
        return "predict"
    raise TypeError(
        f"X is read in chunks, and the held-out rows are scored by their predictions, which {scorer!r} may "
        "not read alone. Set scoring to the name of a metric, or to a scorer of make_scorer."
    )
