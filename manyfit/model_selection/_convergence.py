"""Fits that iterate: where they are scikit-learn's to make, and what a search notes of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators import Answers, Family, LinkedAnswers, Shape
from manyfit.folds import Fold, Unsupported
from manyfit.metrics import SharedScoring
from manyfit.model_selection._job import Job
from manyfit.model_selection._outcome import Outcome
from manyfit.model_selection._where import fits_are_ours

Array = NDArray[Any]


def stops_as_sklearn(job: Job) -> bool:
    """Whether a setting may be shared only where scikit-learn's own solver would meet its tolerance."""
    return job.sharing == "auto" and not fits_are_ours(job)


def require_gradient_stop(family: Family, estimator: Any, shape: Shape) -> None:
    """Refuse estimators whose fit in scikit-learn does not end at a gradient of `tol`, whatever the data."""
    asked = getattr(family, "why_stops_elsewhere", None)
    why = asked(estimator, shape) if asked is not None else None
    if why is not None:
        raise Unsupported(why)


def doubtful_labels(answers: Answers, scoring: SharedScoring, fold: Fold) -> list[Any]:
    """How many labels of the test rows each setting is not sure of, (m,), where they lie; or nothing."""
    if not isinstance(answers, LinkedAnswers) or answers.classes is None or not scoring.reads_labels:
        return []
    return [answers.near_boundary("test", fold)] if len(answers.alone) < answers.linear.coef.shape[1] else []


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
    for counts in doubtful:
        outcome.work["near_boundary"] += int(np.sum(counts[shared]))


def reason_of(estimator: Any, checked: bool) -> str:
    """What the plan says of a family that goes on to the optimum; `checked` as `stops_as_sklearn`."""
    tol, max_iter = getattr(estimator, "tol", None), getattr(estimator, "max_iter", None)
    if tol is None or max_iter is None:
        return ""
    if checked:
        return f"where scikit-learn's solver is found to meet tol={tol:g} before max_iter={max_iter}"
    return f"down to tol={tol:g}, also where scikit-learn would stop at max_iter={max_iter}"
