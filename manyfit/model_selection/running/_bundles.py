"""Bundles of individual fits, so that workers lose little time between fits and end at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from manyfit.folds import Splits
from manyfit.model_selection.job._job import Pair, Result

# Splits whose training rows are counted; more differ little, and counting takes a pass over the rows of each.
MOST_COUNTED = 100
# A shorter bundle would cost more in sending it than workers lose if they do not end together; a longer one
# would hold back results from the progress bar and the checkpoint.
LEAST_SECONDS, MOST_SECONDS = 0.01, 0.5


def training_rows(splits: Splits) -> Callable[[int], int]:
    """A function that gives the number of training rows of a split, or 1 for any of very many."""
    if splits.n_splits > MOST_COUNTED:
        return lambda i: 1
    trains = [np.asarray(train) for train, _ in splits]
    return [int(t.sum()) if t.dtype == bool else t.size for t in trains].__getitem__


class Bundles(Iterator[list[Pair]]):
    """Pairs in bundles, cut when a worker asks for one, by the times of the fits that are finished.

    The first fit of each setting comes first, and shows what the others take; then costly fits come before
    cheap ones. A bundle takes at most half of a worker's share of the rest. Another thread may read it than
    the one that notes times.

    `n_rows` gives the training rows of a split. `in_order` keeps the order of `pairs`, one in a bundle.
    """

    def __init__(
        self, pairs: Sequence[Pair], n_workers: int, n_rows: Callable[[int], int], *, in_order: bool = False
    ) -> None:
        self._n_workers, self._n_rows, self._in_order = n_workers, n_rows, in_order
        self._samples, self._others = deque(pairs), deque[Pair]()
        if not in_order:
            by_rows = sorted(pairs, key=lambda pair: -n_rows(pair[1]))
            first = {c: (c, i) for c, i in reversed(by_rows)}
            self._samples = deque(pair for pair in by_rows if first[pair[0]] == pair)
            self._others = deque(pair for pair in by_rows if first[pair[0]] != pair)
        self._are_sorted = False
        self._per_row: dict[int, float] = {}  # seconds, by setting
        self._slowest = float("inf")  # of these

    def note(self, results: Mapping[Pair, Result]) -> None:
        """Note the times of finished fits."""
        for (c, i), result in results.items():
            if c not in self._per_row:
                seconds = (result["fit_time"] + result["score_time"]) / max(self._n_rows(i), 1)
                self._slowest = max(seconds, self._slowest if self._per_row else 0.0)
                self._per_row[c] = seconds

    def __next__(self) -> list[Pair]:
        if self._samples:
            # Settings of which nothing is known: few in a bundle, since others may be much slower.
            few = 1 if self._in_order else max(len(self._samples) // (2 * self._n_workers), 1)
            return self._cut(self._samples, self._slowest, few)
        if not self._others:
            raise StopIteration
        if not self._are_sorted:
            # Settings whose first fit is not finished come first.
            key = partial(self._expected, unknown=float("inf"))
            self._others = deque(sorted(self._others, key=key, reverse=True))
            self._are_sorted = True
        return self._cut(self._others, float("inf"), len(self._others))

    def _cut(self, queue: deque[Pair], unknown: float, most_fits: int) -> list[Pair]:
        bundle = [queue.popleft()]
        seconds = self._expected(bundle[0], unknown)
        if seconds >= MOST_SECONDS:
            return bundle
        most = max(LEAST_SECONDS, min(MOST_SECONDS, self._rest(seconds) / (2 * self._n_workers)))
        while queue and len(bundle) < most_fits:
            seconds += self._expected(queue[0], unknown)
            if seconds > most:
                break
            bundle.append(queue.popleft())
        return bundle

    def _rest(self, seconds: float) -> float:
        """Seconds that all fits may still take, beside `seconds`, as far as they make bundles shorter."""
        for pair in chain(reversed(self._others), self._samples):
            if seconds >= MOST_SECONDS * 2 * self._n_workers:
                break
            seconds += self._expected(pair, self._slowest)
        return seconds

    def _expected(self, pair: Pair, unknown: float) -> float:
        """Seconds that a fit may take; of a setting without a finished fit `unknown` a row."""
        c, i = pair
        return self._per_row.get(c, unknown) * max(self._n_rows(i), 1)
