"""What a search notes of fits that iterate: passes, where scikit-learn would stop, doubtful labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators import Answers, LinkedAnswers
from manyfit.folds import Fold
from manyfit.metrics import SharedScoring
from manyfit.model_selection._outcome import Outcome

Array = NDArray[Any]


def doubtful_labels(answers: Answers, scoring: SharedScoring, fold: Fold) -> list[Any]:
    """How many labels of the test rows each setting is not sure of, (m,), where they lie; or nothing."""
    if not isinstance(answers, LinkedAnswers) or answers.classes is None or not scoring.reads_labels:
        return []
    return [answers.near_boundary("test", fold)] if len(answers.alone) < len(answers.cut_short) else []


def note_convergence(
    outcome: Outcome, answers: Answers, candidates: Sequence[int], doubtful: Sequence[Array]
) -> None:
    """Add to an outcome what it took to answer a split, and how near the optimum its answers are.

    `doubtful` is what `doubtful_labels` gives, on the host.
    """
    if not isinstance(answers, LinkedAnswers):
        return
    outcome.rows_read += answers.rows_read
    shared = [j for j in range(len(candidates)) if j not in answers.alone]
    outcome.cut_short.update(candidates[j] for j in shared if answers.cut_short[j])
    for counts in doubtful:
        outcome.work["near_boundary"] += int(np.sum(counts[shared]))


def reason_of(estimator: Any) -> str:
    """What the plan says of a family that goes on to the optimum."""
    tol, max_iter = getattr(estimator, "tol", None), getattr(estimator, "max_iter", None)
    if tol is None or max_iter is None:
        return ""
    return f"down to tol={tol:g}, also where scikit-learn would stop at max_iter={max_iter}"
