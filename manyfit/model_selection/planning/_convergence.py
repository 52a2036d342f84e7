"""Families that iterate: which fits scikit-learn has to make, and the note of the plan on the others."""

from typing import Any

from manyfit.families import Family, Shape
from manyfit.folds import Unsupported
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning.places._data_location import fits_by_own_solvers

# scikit-learn's default. Scores of fits that meet a larger `tol` may differ by more than they show.
MOST_TOL = 1e-4


def stops_as_sklearn(job: Job) -> bool:
    """Whether a setting may be shared only where scikit-learn's own solver would meet its tolerance."""
    return job.sharing == "auto" and not fits_by_own_solvers(job)


def require_gradient_stop(family: Family, estimator: Any, shape: Shape) -> None:
    """Raise `Unsupported` if scikit-learn's own fit would not stop at a small gradient, whatever the data."""
    if family.result == "exact":
        return
    why = family.other_stopping_rule(estimator, shape)
    tol = getattr(estimator, "tol", None)
    if why is None and tol is not None and not tol <= MOST_TOL:
        why = f"tol={tol:g} leaves scores open, where {MOST_TOL:g} would not"
    if why is not None:
        raise Unsupported(why)


def convergence_note(estimator: Any, checked: bool) -> str:
    """The note of the plan on a family that iterates to the optimum; `checked` as `stops_as_sklearn`."""
    tol, max_iter = getattr(estimator, "tol", None), getattr(estimator, "max_iter", None)
    if tol is None or max_iter is None:
        return ""
    if checked:
        return f"if scikit-learn's solver is found to meet tol={tol:g} before max_iter={max_iter}"
    return f"down to tol={tol:g}, also where scikit-learn would stop at max_iter={max_iter}"
