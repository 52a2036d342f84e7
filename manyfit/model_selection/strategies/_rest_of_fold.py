"""What families leave on a split: fitted one by one in the same task, with the steps fitted there."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyfit.model_selection.job._job import Job, Options, Pair, Result
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.sharing._fit_and_score import evaluate
from manyfit.model_selection.sharing._fold_store import FoldStore
from manyfit.model_selection.strategies._individual_fits import Enough, progress_of

# Takes finished results, and whether they were fitted one by one.
Taker = Callable[[Mapping[Pair, Result], bool], None]


@dataclass(frozen=True)
class Then:
    """How the tasks of families go on with settings that these leave.

    Attributes
    ----------
    options : Options
        Of fits that are made one by one.
    order : sequence or None
        As the plan has it.
    pairs : sequence of (candidate, split)
        Others that are fitted one by one in the task of their split.
    kept : frozenset of (candidate, split)
        Those that are not fitted: the checkpoint has their results.
    """

    options: Options
    order: Sequence[Any] | None
    pairs: Sequence[Pair] = ()
    kept: frozenset[Pair] = frozenset()

    def others(self, i: int) -> list[int]:
        """The candidates of `pairs` on one split."""
        return [c for c, split in self.pairs if split == i]

    def rest(self, job: Job, candidates: Sequence[int], i: int, to_the_end: bool) -> "RestOfFold":
        """What may be fitted on split `i`, where families answer `candidates`."""
        others = self.others(i)
        asked = [c for c in candidates if (c, i) not in self.kept]
        settings = {c: job.candidates[c] for c in (*asked, *others)}
        order = {c: () if self.order is None else self.order[c] for c in settings}
        sizes = (len(job.candidates), job.splits.n_splits)
        return RestOfFold(i, settings, frozenset(others), order, self.options, sizes, to_the_end)


@dataclass(frozen=True)
class RestOfFold:
    """Settings that are fitted one by one on a split, after families have answered others.

    Attributes
    ----------
    i : int
        The split.
    settings : dict of int to dict
        Parameters by candidate.
    others : frozenset of int
        Candidates that are fitted whatever families leave.
    order : dict of int to tuple
        By candidate; equal steps have equal keys.
    options : Options
        Of these fits.
    sizes : tuple of int
        Candidates and splits of the search.
    to_the_end : bool
        Whether all are fitted; else those that would take long are left, to be divided among workers.
    """

    i: int
    settings: Mapping[int, Mapping[str, Any]]
    others: frozenset[int]
    order: Mapping[int, Any]
    options: Options
    sizes: tuple[int, int]
    to_the_end: bool

    def fit(
        self, estimator: Any, folds: FoldStore, outcome: TaskResult, enough: Enough, take: Taker | None
    ) -> None:
        """Fit what `outcome` has left, and the others, and note the results there.

        The time that families took to leave their settings is added to the first fit: it has the steps.
        """
        asked, start = outcome.seconds, time.perf_counter()
        folds, i = folds.with_options(self.options), self.i
        waiting = [c for c in self.settings if c in self.others or (c, i) in outcome.alone]
        for c in sorted(waiting, key=lambda c: (self.order[c], c)):
            result = evaluate(estimator, self.settings[c], i, folds, progress_of(c, i, self.sizes))
            result["fit_time"], asked = result["fit_time"] + asked, 0.0
            outcome.results[c, i] = result
            outcome.fitted.add((c, i))
            if take is not None:
                take({(c, i): result}, True)
            if enough.said() and not self.to_the_end:
                break
        outcome.seconds_fitting += time.perf_counter() - start
