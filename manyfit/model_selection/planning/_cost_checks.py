"""Checks whether a group may be shared: operations, memory, and where scikit-learn's solver would stop."""

from typing import Any

from sklearn.base import is_classifier

from manyfit._config.sizes import format_size
from manyfit.families import Cost, Family, Shape
from manyfit.folds import Unsupported, distinct_labels
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.planning.places._data_location import fits_by_own_solvers

# A family that converges has to be so many times as fast.
LEAST_GAIN = 2.0
NOT_CHEAPER = "sharing would take longer here"
# scikit-learn's default. Scores of fits that meet a larger `tol` may differ by more than they show.
MOST_TOL = 1e-4


def n_classes(estimator: Any, y: Any) -> int:
    """The number of classes in y for a classifier; 0 for other estimators."""
    return len(distinct_labels(y)) if is_classifier(estimator) else 0


def require_cheaper(group: Group, shape: Shape, job: Job) -> Cost:
    """The cost of the shared fits of a group.

    Raises `Unsupported` if they take more operations or too much memory. A family that converges may change
    last digits, which is not worth a small gain.
    """
    family = group.family
    assert family is not None
    cost = family.cost(group.prototype, group.settings, shape)
    least = LEAST_GAIN if family.result == "converged" and job.sharing == "auto" else 1.0
    if cost.shared > cost.individual:
        raise Unsupported(NOT_CHEAPER)
    if least * cost.shared > cost.individual:
        gain = cost.individual / cost.shared
        raise Unsupported(
            f"sharing is expected to be {gain:.1f} times as fast, and is not done below {least:g} times"
        )
    require_memory(cost.memory, job.options.memory_limit, "shared fits")
    return cost


def require_memory(needed: int, limit: int, what: str = "moments") -> None:
    """Raise `Unsupported` if something needs more than `limit` bytes."""
    if needed > limit:
        raise Unsupported(f"{what} would need {format_size(needed)}, more than memory_limit")


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
