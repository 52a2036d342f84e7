"""Differences between the scores of two searches."""

from __future__ import annotations

import numpy as np

from benchmarks._benchmark import Answer


def score_differences(answer: Answer, reference: Answer) -> tuple[float | None, float | None]:
    """Return the largest absolute difference of the mean scores and of the scores per split.

    Settings are matched by their parameters. A missing setting counts as an infinite difference, and so do
    two scores that are not both finite and not the same. None if there is nothing to compare.
    """
    if answer.means is None or reference.means is None or answer.splits is None or reference.splits is None:
        if answer.best is None or reference.best is None:
            return None, None
        return largest_difference(np.array([answer.best]), np.array([reference.best])), None
    if set(answer.keys) != set(reference.keys) or answer.splits.shape != reference.splits.shape:
        return float("inf"), float("inf")
    order = [answer.keys.index(key) for key in reference.keys]
    return (
        largest_difference(answer.means[order], reference.means),
        largest_difference(answer.splits[:, order], reference.splits),
    )


def largest_difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference of scores, of which NaN equals NaN and nothing else."""
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(invalid="ignore"):
        gaps = np.where(same, 0.0, np.abs(ours - theirs))
    return float(np.max(np.where(np.isnan(gaps), np.inf, gaps), initial=0.0))
