"""Collects the finished results of a search: counts them, and writes them to the checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from manyfit.model_selection.checkpoint._file import Checkpoint
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs
from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._task_result import TaskResult


class ResultSink:
    """Takes the finished results of all parts of a search; a context manager.

    Parameters
    ----------
    job : Job
        The search.
    checkpoint : Checkpoint, optional
        Takes the results, and has those of an interrupted run. It is closed at the end.
    metric : str, optional
        The score that the bar shows the best of, where there are several.
    bar : Progress, optional
        Another bar than one over all fits.

    Attributes
    ----------
    results : dict of pair to dict
        All that is finished, restored results too.
    restored : set of pair
        Those that came from the checkpoint.
    shared : set of pair
        Those that were answered without a fit of their own.
    doubts : dict of pair to mapping of str to float
        See `TaskResult`.
    steps_saved : int
        Fits of steps that were not made, since another setting had made the same one. Whoever fits sets it.
    rowwise : Fronts or None
        Its fits of steps were made for all splits at once, each of which counts in `steps_saved`.
    """

    def __init__(
        self,
        job: Job,
        checkpoint: Checkpoint | None = None,
        metric: str | None = None,
        bar: Progress | None = None,
    ) -> None:
        self.results: dict[Pair, Result] = {}
        self.restored: set[Pair] = set()
        self.shared: set[Pair] = set()
        self.doubts: dict[Pair, Mapping[str, float]] = {}
        self.steps_saved = 0
        self.rowwise: RowwiseOutputs | None = None
        self._job, self._checkpoint = job, checkpoint
        self._bar = Progress(job.n_pairs, job.options.verbose) if bar is None else bar
        self._columns = _Columns(len(job.candidates), job.splits.n_splits, metric)

    def add(
        self,
        results: Mapping[Pair, Result],
        *,
        individual: bool,
        lasting: bool = True,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        """Take finished results; `individual` says whether their fits were made one by one.

        Results that are not `lasting` are not written to the checkpoint: another run may have others.
        `versions` are those of the packages that computed them, if they are not this process's.
        """
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
        """Those of `pairs` that the checkpoint has the results of, as of fits made one by one."""
        kept = {} if self._checkpoint is None else self._checkpoint.stored
        return frozenset(pair for pair in pairs if pair in kept and kept[pair].individual)

    def restore(self, pairs: Sequence[Pair], *, individual: bool = False) -> bool:
        """Take the results of `pairs` from the checkpoint, if it has all of them; returns whether it has.

        With `individual`, only results of single fits count.
        """
        kept = {} if self._checkpoint is None else self._checkpoint.stored
        if not pairs or not all(pair in kept and (kept[pair].individual or not individual) for pair in pairs):
            return False
        results = {pair: kept[pair].result for pair in pairs}
        self.restored.update(results)
        self.shared.update(pair for pair in pairs if not kept[pair].individual)
        self._columns.saved += len(results)
        self._count(results)
        self._bar.skip(len(results))
        return True

    @property
    def shown(self) -> bool:
        """Whether the bar is shown."""
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
    """Finished results as a user reads them: with the parameters and the split of each."""
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
