"""How far `tol` leaves the scores of shared iterations open.

Two fits that both meet `tol` may differ in their last digits. Their scores then differ, too, and settings
whose scores differ by less are as good as each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators import Answers
from manyfit.folds import Fold, FoldedData
from manyfit.metrics import ScoredTargets, SharedScoring
from manyfit.model_selection.job._job import Options, Pair
from manyfit.model_selection.strategies._score_answers import FoldScores, blocks_of_settings, has_device_rows

Array = NDArray[Any]
# scikit-learn fits a setting whose score `tol` leaves open by more than this. Scores of labels may be open by
# twice as much, since about half of the open labels stay as they are.
MOST_OPEN, MOST_LABELS_OPEN = 0.01, 0.02
# By the name of the scorer.
Doubt = Mapping[str, float]


class Doubts:
    """The doubt of each test score of a split: how far it may change within `tol`.

    For a scorer of labels: the share of rows whose label may change, among all rows (accuracy) or those of
    the rarest class. For others, not on a device: the largest change when all coefficients move by `tol`.
    """

    def __init__(
        self,
        scoring: SharedScoring,
        answers: Answers,
        n_settings: int,
        folded: FoldedData,
        i: int,
        options: Options,
    ) -> None:
        self.device_scores: list[Any] = []  # to be fetched, and passed to `finish`
        self._labels, self._shifted = frozenset[str](), list[dict[str, Array]]()
        if not answers.varies_within_tol or len(answers.refused) == n_settings:
            return
        fold = folded.fold(i)
        if answers.classes is not None and scoring.label_scorers:
            y = fold.targets("test")
            # A label counts for as much as its share of all rows, or perhaps of those of its class.
            rarest = int(np.unique(y, return_counts=True)[1].min())
            self._n_rows = {
                name: len(y) if name in scoring.accuracies else rarest for name in scoring.label_scorers
            }
            self._labels = scoring.label_scorers
            self.device_scores = [answers.near_boundary("test", fold)]
        if not (has_device_rows(folded) or self._labels.issuperset(scoring.named)):
            self._shifted = [
                _known_scores(scoring, answers.shifted(side), n_settings, fold, options.memory_limit)
                for side in (1.0, -1.0)
            ]

    def finish(self, on_host: Sequence[Array], scored: FoldScores) -> dict[int, Doubt]:
        """The doubt of each setting that is shared, given `device_scores` on the host."""
        doubts: dict[int, Doubt] = {}
        for j, score in enumerate(scored.scores["test"]):
            if score is None or isinstance(score, Exception):
                continue
            own: dict[str, float] = {}
            for shifted in self._shifted:
                for name, other in shifted.items():
                    own[name] = float(np.maximum(own.get(name, 0.0), _difference(score, other[j], name)))
            own |= {name: float(on_host[0][j] / self._n_rows[name]) for name in self._labels}
            if own:
                doubts[j] = own
        return doubts

    def too_open(self, doubts: Mapping[int, Doubt], scored: FoldScores) -> dict[int, str]:
        """Return the settings whose scores `tol` leaves too open, each with the reason, for scikit-learn."""
        found = {}
        for j, doubt in doubts.items():
            score = scored.scores["test"][j]
            for name, amount in doubt.items():
                size = abs(score[name] if isinstance(score, Mapping) else score)
                most = MOST_LABELS_OPEN if name in self._labels else MOST_OPEN * max(1.0, size)
                if not amount <= most:  # NaN, too: scikit-learn's scorer might warn
                    found[j] = "tol leaves its score open"
        return found


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


def keep_shared(doubts: Mapping[int, Doubt], left: Collection[int]) -> dict[int, Doubt]:
    """The doubts of settings that stay shared."""
    return {j: doubt for j, doubt in doubts.items() if j not in left}


def _difference(score: Any, other: float, name: str) -> float:
    return float(abs((score[name] if isinstance(score, Mapping) else score) - other))


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
    return [int(c) for c in np.flatnonzero((scores[best] - scores <= left) & (left > 0.0)) if c != best]
