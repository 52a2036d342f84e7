"""The seconds that a search may take: which settings are fitted next, and when no more are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from manyfit.model_selection.job._job import Job, Pair, Result

# A batch is expected to take at most this share of the budget. What is cut and fitted for the settings of a
# batch is not kept for the next one.
LONGEST_BATCH = 0.1


class NotMade(dict[str, Any]):
    """In place of the result of a pair that was not fitted, since the time was over: NaN."""

    @classmethod
    def like(cls, result: Result) -> NotMade:
        """With the keys of a result."""
        nan = float("nan")
        empty = {
            key: dict.fromkeys(one, nan) if isinstance(one, dict) else nan for key, one in result.items()
        }
        return cls(empty | {"fit_error": None})


class TimeBudget:
    """The seconds of a search, counted from now; `spread`: whether settings follow each other at random."""

    def __init__(self, seconds: float, *, spread: bool) -> None:
        self.seconds, self._spread, self._start = seconds, spread, perf_counter()

    @property
    def spent(self) -> float:
        return perf_counter() - self._start

    @property
    def is_over(self) -> bool:
        return self.spent >= self.seconds

    def order(self, n: int) -> list[int]:
        """The order of `n` settings, always the same."""
        return np.random.default_rng(0).permutation(n).tolist() if self._spread else list(range(n))

    def batches(
        self, pairs: Sequence[Pair], n_settings: int, n_workers: int, results: Mapping[Pair, Result]
    ) -> Iterator[list[Pair]]:
        """All splits of some settings at a time, while the next ones are expected to end within the budget.

        The first batch keeps every worker busy. The next settings may be as dear as the dearest one so far,
        whose seconds are in `results`, or dearer: a batch has at most as many as were made before it. None
        begins if the cheapest so far would not end in time.
        """
        of_setting: dict[int, list[Pair]] = defaultdict(list)
        for pair in pairs:
            of_setting[pair[0]].append(pair)
        left = [c for c in self.order(n_settings) if c in of_setting]
        if not left:
            return
        n_splits = len(of_setting[left[0]])
        size, made, start = -(-n_workers // n_splits), 0, self.spent
        in_turn, cheapest, dearest = -(-n_splits // n_workers) / n_splits, math.inf, 0.0
        while left:
            batch, left = left[:size], left[size:]
            yield [pair for c in batch for pair in of_setting[c]]
            made += len(batch)
            costs = [_seconds([results[pair] for pair in of_setting[c] if pair in results]) for c in batch]
            cheapest, dearest = min(cheapest, *costs), max(dearest, *costs)
            if self.is_over or cheapest * in_turn > self.seconds - self.spent:
                return
            seconds = min(self.seconds - self.spent, LONGEST_BATCH * self.seconds)
            each = max((self.spent - start) / made, dearest / n_workers)
            size = max(min(int(seconds / each) if each else made, made), 1)


def _seconds(results: Sequence[Result]) -> float:
    """Seconds that fits and scores of a setting took, one after the other."""
    return float(sum(one["fit_time"] + one["score_time"] for one in results))


def complete(job: Job, results: Mapping[Pair, Result]) -> tuple[list[Result], int]:
    """A result for each pair of a job, `NotMade` for those without, and how many settings have all."""
    pairs = job.pairs(range(len(job.candidates)))
    made = [one for one in results.values() if one["fit_error"] is None] or list(results.values())
    found = [results[pair] if pair in results else NotMade.like(made[0]) for pair in pairs]
    return found, n_complete(job, results)


def n_complete(job: Job, results: Mapping[Pair, Result]) -> int:
    """How many settings have a result for each split."""
    splits = range(job.splits.n_splits)
    return sum(all((c, i) in results for i in splits) for c in range(len(job.candidates)))
