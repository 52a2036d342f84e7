"""Collects the finished results of a search: counts them, and writes them to the checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.job._predictions import Predicted
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs
from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._task_result import TaskResult

if TYPE_CHECKING:
    from manyfit.model_selection.checkpoint._file import Checkpoint


class ResultSink:
    """Takes the finished results of all parts of a search; a context manager.

    It closes `checkpoint` at the end. The bar shows the best value of the score `metric`. `fits_each`: fits
    of a candidate, if it has not one on each split.
    """

    def __init__(
        self,
        job: Job,
        checkpoint: Checkpoint | None = None,
        metric: str | None = None,
        bar: Progress | None = None,
        fits_each: int | None = None,
    ) -> None:
        self.results: dict[Pair, Result] = {}  # restored results too
        self.restored: set[Pair] = set()  # from the checkpoint
        self.shared: set[Pair] = set()  # answered without a fit of their own
        self.doubts: dict[Pair, Mapping[str, float]] = {}
        self.steps_saved = 0  # fits of steps that another setting had made; set by the caller
        self.predicted: dict[Pair, Predicted] = {}  # recorded predictions, which are not in `results`
        # Each of its fits, made once for all splits, counts in `steps_saved`.
        self.rowwise: RowwiseOutputs | None = None
        self._job, self._checkpoint = job, checkpoint
        self._bar = Progress(job.n_pairs, job.options.verbose) if bar is None else bar
        self._columns = _Columns(len(job.candidates), fits_each or job.splits.n_splits, metric)

    def add(
        self,
        results: Mapping[Pair, Result],
        *,
        individual: bool,
        lasting: bool = True,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        """Take finished results; `individual` says whether their fits were made one by one.

        Only `lasting` results go to the checkpoint: another run may have others. `versions` are those of the
        worker's packages; None: of this process.
        """
        for pair, result in results.items():
            if "predicted" in result:
                self.predicted[pair] = result.pop("predicted")
        if self._checkpoint is not None and lasting:
            self._checkpoint.add(results, individual, versions)
        if not individual:
            self._columns.saved += len(results)
            self.shared.update(results)
        self._count(results)
        self._bar.done(len(results))

    def take(self, part: TaskResult, *, individual: bool) -> None:
        """Take the results of a part; `individual` holds for those that are not in `part.fitted`."""
        self.steps_saved += part.work["transformer_fits_saved"]
        for own in (True, False):
            some = {pair: one for pair, one in part.results.items() if (pair in part.fitted) is own}
            if some:
                self.add(some, individual=individual or own, lasting=part.lasting, versions=part.versions)

    def individual_results(self, pairs: Iterable[Pair]) -> frozenset[Pair]:
        """The pairs with results of individual fits in the checkpoint."""
        stored = {} if self._checkpoint is None else self._checkpoint.stored
        return frozenset(pair for pair in pairs if pair in stored and stored[pair].individual)

    def restore(self, pairs: Sequence[Pair], *, individual: bool = False) -> bool:
        """Take results from the checkpoint if it has those of all `pairs`; return whether it has.

        With `individual`, only results of individual fits count.
        """
        stored = {} if self._checkpoint is None else self._checkpoint.stored
        if not pairs or not all(
            pair in stored and (stored[pair].individual or not individual) for pair in pairs
        ):
            return False
        results = {pair: stored[pair].result for pair in pairs}
        self.restored.update(results)
        self.shared.update(pair for pair in pairs if not stored[pair].individual)
        self._columns.saved += len(results)
        self._count(results)
        self._bar.skip(len(results))
        return True

    @property
    def shown(self) -> bool:
        return self._bar.shown

    def _count(self, results: Mapping[Pair, Result]) -> None:
        self.results.update(results)
        if self._bar.shown:
            self._columns.add(results)
            made = 0 if self.rowwise is None else self.rowwise.fits
            self._bar.note(*self._columns.texts(self.steps_saved - made))

    def __enter__(self) -> ResultSink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._checkpoint is not None:
                self._checkpoint.__exit__(kind, value, trace)
        finally:
            self._bar.__exit__(kind, value, trace)


def as_partial(
    candidates: Sequence[Mapping[str, Any]], results: Iterable[tuple[Pair, Result]]
) -> list[dict[str, Any]]:
    """Finished results, each with its parameters and its split."""
    return [{"params": dict(candidates[c]), "split": i, **result} for (c, i), result in results]


class _Columns:
    """The columns of the bar: settings done, fits saved, best score so far."""

    def __init__(self, n_settings: int, n_splits: int, metric: str | None) -> None:
        self.saved = 0
        self._n_settings, self._n_splits, self._metric = n_settings, n_splits, metric
        self._open: dict[int, tuple[int, float]] = {}
        self._settings, self._best = 0, -float("inf")

    def add(self, results: Mapping[Pair, Result]) -> None:
        for (c, _), result in results.items():
            n, total = self._open.pop(c, (0, 0.0))
            n, total = n + 1, total + self._score(result["test_scores"])
            if n < self._n_splits:
                self._open[c] = n, total
                continue
            self._settings += 1
            if total / n > self._best:  # never where it is NaN
                self._best = total / n

    def _score(self, scores: Any) -> float:
        score = scores.get(self._metric) if isinstance(scores, dict) else scores
        return float("nan") if score is None else float(score)

    def texts(self, steps_saved: int) -> tuple[str, ...]:
        """Texts for the bar, the most telling first."""
        counts = {"fits": self.saved, "steps": steps_saved}
        saved = " + ".join(f"{count} {what}" for what, count in counts.items() if count)
        best = f"best {self._best:.4g}" if self._best > -float("inf") else ""
        return (f"saved {saved}" if saved else "", best, f"settings {self._settings}/{self._n_settings}")
