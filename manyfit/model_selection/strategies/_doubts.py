"""How far `tol` leaves the scores of shared iterations open.

Two fits that both meet `tol` may differ in their last digits. Their scores then differ, too, and settings
whose scores differ by less are as good as each other.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from manyfit.families import Answers
from manyfit.folds import NO_NOTES, Array, Fold, FoldedData, StepNotes
from manyfit.metrics.scoring import ScoredTargets, SharedScoring
from manyfit.model_selection.job._job import Options, Pair, Result
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.strategies._score_answers import (
    blocks_of_settings,
    has_device_rows,
    start_scores,
)

# scikit-learn fits a setting whose score `tol` leaves open by more than this. Scores of labels may be open by
# twice as much, since about half of the open labels stay as they are.
MOST_OPEN, MOST_LABELS_OPEN = 0.01, 0.02
TOO_OPEN = "tol leaves its score open"
# By the name of the scorer.
Doubt = Mapping[str, float]


class PendingAnswers:
    """Answers to some settings on one split while they are scored; `device_scores` wait for a device.

    The doubt of a test score says how far it may change within `tol`. For a scorer of labels it is the share
    of rows whose label may change, among all rows (accuracy) or those of the rarest class. For others, not on
    a device, it is the largest change when all coefficients move by `tol`.
    """

    def __init__(
        self,
        scoring: SharedScoring,
        answers: Answers,
        candidates: Sequence[int],
        folded: FoldedData,
        i: int,
        options: Options,
        notes: StepNotes = NO_NOTES,
    ) -> None:
        start, n = time.perf_counter(), len(candidates)
        self._answers, self._candidates = answers, candidates
        self._scores = start_scores(scoring, answers, n, folded, i, options, notes)
        self.device_scores = self._scores.device_scores
        self._labels, self._shifted = frozenset[str](), list[dict[str, Array]]()
        if answers.varies_within_tol and len(answers.refused) < n and not notes.unscored:
            self._start_doubts(scoring, folded, i, options.memory_limit)
        self._seconds = time.perf_counter() - start

    def _start_doubts(self, scoring: SharedScoring, folded: FoldedData, i: int, memory_limit: int) -> None:
        answers, fold = self._answers, folded.fold(i)
        if answers.classes is not None and scoring.label_scorers:
            y = fold.targets("test")
            # A label counts for as much as its share of all rows, or perhaps of those of its class.
            rarest = int(np.unique(y, return_counts=True)[1].min())
            self._n_rows = {
                name: len(y) if name in scoring.accuracies else rarest for name in scoring.label_scorers
            }
            self._labels = scoring.label_scorers
            self.device_scores = [*self.device_scores, answers.near_boundary("test", fold)]
        if not (has_device_rows(folded) or self._labels.issuperset(scoring.named)):
            self._shifted = [
                _known_scores(scoring, answers.shifted(side), len(self._candidates), fold, memory_limit)
                for side in (1.0, -1.0)
            ]

    def finish(
        self, on_host: Iterable[Array], outcome: TaskResult, i: int, fit_time: float, sklearn_stops: bool
    ) -> dict[Pair, Result]:
        """Note all scores of split `i`, and return the results of settings that stay shared.

        `on_host` begins with what `device_scores` became on the host; `fit_time` are the seconds of one
        setting. With `sklearn_stops`, settings whose scores `tol` leaves too open are left to scikit-learn.
        """
        start, fetched = time.perf_counter(), list(islice(on_host, len(self.device_scores)))
        scored = self._scores.finish(fetched)
        doubts = {
            j: self._doubt(j, score, fetched)
            for j, score in enumerate(scored.scores.get("test", ()))
            if not (score is None or isinstance(score, Exception))
        }
        for j, names in scored.failed.items():
            doubts[j] = {name: doubt for name, doubt in doubts[j].items() if name not in names}
        left = dict[int, str]()
        if sklearn_stops:
            too_open = [j for j in doubts if self._is_too_open(scored.scores["test"][j], doubts[j])]
            left = dict.fromkeys(too_open, TOO_OPEN)
        shared = {j: doubt for j, doubt in doubts.items() if doubt and j not in left}
        outcome.doubts.update({(self._candidates[j], i): doubt for j, doubt in shared.items()})
        outcome.rows_read += self._answers.rows_read
        outcome.fits_made += self._answers.fits_made
        seconds = self._seconds + time.perf_counter() - start
        times = (fit_time, seconds / len(self._candidates))
        return scored.keep(outcome, self._candidates, i, times, left)

    def _doubt(self, j: int, score: Any, fetched: Sequence[Array]) -> Doubt:
        found: dict[str, float] = {}
        for shifted in self._shifted:
            for name, other in shifted.items():
                found[name] = float(np.maximum(found.get(name, 0.0), abs(_named(score, name) - other[j])))
        return found | {name: float(fetched[-1][j] / self._n_rows[name]) for name in self._labels}

    def _is_too_open(self, score: Any, doubt: Doubt) -> bool:
        most = {
            name: MOST_LABELS_OPEN if name in self._labels else MOST_OPEN * max(1.0, abs(_named(score, name)))
            for name in doubt
        }
        return not all(amount <= most[name] for name, amount in doubt.items())  # NaN: a scorer might warn


def _known_scores(
    scoring: SharedScoring, answers: Answers, n_settings: int, fold: Fold, memory_limit: int
) -> dict[str, Array]:
    """Scores of all settings by metrics that need no scorer to be called; NaN where one would be."""
    y, scored = fold.targets("test"), fold.scored_targets("test")
    truth = ScoredTargets(y, fold.score_weight("test"), answers.classes, getattr(scored, "dtype", None))
    parts = []
    for block in blocks_of_settings(range(n_settings), len(y), answers, memory_limit // 8):
        parts.append(scoring.from_responses(answers.subset(block).respond("test", fold), truth))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _named(score: Any, name: str) -> float:
    return float(score[name] if isinstance(score, Mapping) else score)


def as_good_as_best(
    scores: Array, best: int, doubts: Mapping[Pair, Doubt], name: str, n_splits: int
) -> list[int]:
    """Settings other than `best` whose mean test score is as good within `tol`.

    `scores`, (n_settings,): mean test scores. Those without `doubts` are exact.
    """
    means = np.zeros(len(scores))
    for (c, _), doubt in doubts.items():
        means[c] += np.nan_to_num(doubt.get(name, 0.0)) / n_splits
    left = means + means[best]
    with np.errstate(invalid="ignore"):  # infinite scores, of residuals that overflow
        close = scores[best] - scores <= left
    return [int(c) for c in np.flatnonzero(close & (left > 0.0)) if c != best]
