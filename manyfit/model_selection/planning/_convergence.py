"""Families that iterate: which fits are scikit-learn's to make, and what the plan says of the others."""

from typing import Any

from manyfit.estimators import Family, Shape
from manyfit.folds import Unsupported
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._data_location import fits_are_ours

# scikit-learn's default. A larger `tol` leaves more open than the scores of fits that meet it tell.
MOST_TOL = 1e-4


def stops_as_sklearn(job: Job) -> bool:
    """Whether a setting may be shared only where scikit-learn's own solver would meet its tolerance."""
    return job.sharing == "auto" and not fits_are_ours(job)


def require_gradient_stop(family: Family, estimator: Any, shape: Shape) -> None:
    """Refuse estimators whose fit in scikit-learn does not end at a small gradient, whatever the data."""
    why = family.why_stops_elsewhere(estimator, shape)
    tol = getattr(estimator, "tol", None)
    if why is None and tol is not None and not tol <= MOST_TOL:
        why = f"tol={tol:g} leaves scores open, where {MOST_TOL:g} would not"
    if why is not None:
        raise Unsupported(why)


def reason_of(estimator: Any, checked: bool) -> str:
    """What the plan says of a family that goes on to the optimum; `checked` as `stops_as_sklearn`."""
    tol, max_iter = getattr(estimator, "tol", None), getattr(estimator, "max_iter", None)
    if tol is None or max_iter is None:
        return ""
    if checked:
        return f"where scikit-learn's solver is found to meet tol={tol:g} before max_iter={max_iter}"
    return f"down to tol={tol:g}, also where scikit-learn would stop at max_iter={max_iter}"
