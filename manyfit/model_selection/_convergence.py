"""What a search notes of fits that iterate: passes, where scikit-learn would stop, doubtful labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyfit.estimators import Answers, LinkedAnswers
from manyfit.folds import Fold
from manyfit.metrics import SharedScoring
from manyfit.model_selection._outcome import Outcome


def note_convergence(
    outcome: Outcome, answers: Answers, candidates: Sequence[int], scoring: SharedScoring, fold: Fold
) -> None:
    """Add to an outcome what it took to answer a split, and how near the optimum its answers are."""
    if not isinstance(answers, LinkedAnswers):
        return
    outcome.rows_read += answers.rows_read
    shared = [j for j in range(len(candidates)) if j not in answers.alone]
    outcome.cut_short.update(candidates[j] for j in shared if answers.cut_short[j])
    if answers.classes is not None and scoring.reads_labels and shared:
        outcome.work["near_boundary"] += int(np.sum(answers.near_boundary("test", fold)[shared]))


def reason_of(estimator: Any) -> str:
    """What the plan says of a family that goes on to the optimum."""
    tol, max_iter = getattr(estimator, "tol", None), getattr(estimator, "max_iter", None)
    if tol is None or max_iter is None:
        return ""
    return f"down to tol={tol:g}, also where scikit-learn would stop at max_iter={max_iter}"
