"""The refit as a check: a solver that stops early there may have stopped early on the splits, too."""

from collections.abc import Container
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from manyfit.model_selection._convergence import stops_as_sklearn
from manyfit.model_selection._job import Job, Pair
from manyfit.model_selection._plan import Group, Plan

REFIT_STOPPED = "scikit-learn's solver stopped at max_iter in the refit"


def settings_in_doubt(job: Job, plan: Plan, shared: Container[Pair], best: int, refitted: Any) -> list[int]:
    """The settings that scikit-learn is to fit after all, given what the refit came to.

    Parameters
    ----------
    job, plan : Job, Plan
        What was run.
    shared : container of pair
        What was answered without a fit of its own.
    best : int
        The candidate that was refitted.
    refitted : estimator
        It, on all rows.

    Returns
    -------
    list of int
        Candidates that were shared in one group with the best one; none if the refit met its tolerance.
    """
    if not (stops_as_sklearn(job) and _stopped_early(refitted)):
        return []
    together = [
        c for group in plan.groups if best in group.candidates and _iterates(group) for c in group.candidates
    ]
    return [c for c in together if any(pair in shared for pair in job.pairs([c]))]


def _iterates(group: Group) -> bool:
    return group.family is not None and group.family.result == "converged"


def _stopped_early(estimator: Any) -> bool:
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    n_iter, max_iter = getattr(estimator, "n_iter_", None), getattr(estimator, "max_iter", None)
    return n_iter is not None and max_iter is not None and bool(np.max(n_iter) >= max_iter)
