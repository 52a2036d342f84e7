"""How far `tol` leaves the scores of shared iterations open.

Two fits that both meet `tol` may differ in their last digits. Their scores then differ, too, and settings
whose scores differ by less are as good as each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators import Answers, LinkedAnswers
from manyfit.folds import FoldedData
from manyfit.metrics import SharedScoring
from manyfit.model_selection._job import Options, Pair
from manyfit.model_selection._score_answers import Begun, Scored, begin_scores, folded_there

Array = NDArray[Any]
# By the name of the scorer.
Doubt = Mapping[str, float]


class Doubts:
    """What `tol` leaves open of the test scores of a split: begun where the rows lie, and ended on the host.

    A scorer of labels is in doubt by the share of rows whose label `tol` leaves open, any other by the
    difference that another answer within `tol` makes. The latter is not asked on a device.

    Parameters
    ----------
    scoring, answers, n_settings, folded, i, options
        As for `begin_scores`.

    Attributes
    ----------
    there : list of array
        What is to be brought to the host.
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
        self._names, self._labels = list(scoring.named), scoring.label_scorers
        self._counts: list[Any] = []
        self._shifted: Begun | None = None
        if not isinstance(answers, LinkedAnswers) or len(answers.alone) == n_settings:
            self._names = []
        else:
            fold = folded.fold(i)
            self._n_rows = len(fold.targets("test"))
            if answers.classes is None:
                self._labels = frozenset()
            if self._labels:
                self._counts = [answers.near_boundary("test", fold)]
            if folded_there(folded):  # a second score of all settings would take its memory and time
                self._names = [name for name in self._names if name in self._labels]
            if self._labels != set(self._names) and self._names:
                test_only = replace(options, return_train_score=False)
                self._shifted = begin_scores(scoring, answers.shifted(), n_settings, folded, i, test_only)
        self.there = [*self._counts, *(self._shifted.there if self._shifted is not None else ())]

    def finish(self, home: Sequence[Array], scored: Scored) -> dict[int, Doubt]:
        """The doubt of each setting that is shared, given what was brought to the host."""
        n = len(self._counts)
        open_labels = home[0] / self._n_rows if n else None
        shifted = None
        if self._shifted is not None:
            found = self._shifted.finish(home[n:])
            found.warned.settle(())  # what they warn of, the scores themselves did
            shifted = found.scores["test"]
        doubts: dict[int, Doubt] = {}
        for j, score in enumerate(scored.scores["test"]):
            if not self._names or score is None or isinstance(score, Exception):
                continue
            own = {}
            for name in self._names:
                if name in self._labels:
                    assert open_labels is not None
                    own[name] = float(open_labels[j])
                else:
                    assert shifted is not None
                    own[name] = _difference(score, shifted[j], name)
            doubts[j] = own
        return doubts


def _difference(score: Any, other: Any, name: str) -> float:
    """Of two scores by the same scorer; 0 where one of them cannot be given."""
    if other is None or isinstance(other, Exception):
        return 0.0
    if isinstance(score, Mapping):
        score, other = score[name], other[name]
    difference = abs(score - other)
    return float(difference) if np.isfinite(difference) else 0.0


def as_good_as_best(
    scores: Array, best: int, doubts: Mapping[Pair, Doubt], name: str, n_splits: int
) -> list[int]:
    """Settings whose mean test score `tol` leaves as good as that of the best one.

    Parameters
    ----------
    scores : ndarray of shape (n_settings,)
        Mean test scores.
    best : int
        The setting that was chosen.
    doubts : mapping of pair to Doubt
        Of scores that come of shared iterations; all others are exact.
    name : str
        The scorer.
    n_splits : int
        Number of splits.

    Returns
    -------
    list of int
        Without the best one.
    """
    means = np.zeros(len(scores))
    for (c, _), doubt in doubts.items():
        means[c] += doubt.get(name, 0.0) / n_splits
    left = means + means[best]
    return [int(c) for c in np.flatnonzero((scores[best] - scores <= left) & (left > 0.0)) if c != best]
