"""Checks that sharing saves operations, and fits into the memory that the user allows."""

from typing import Any

from sklearn.base import is_classifier

from manyfit._config.sizes import format_size
from manyfit.families import Cost, Shape
from manyfit.folds import Unsupported, distinct_labels
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._plan import Group

# A family that converges has to be so many times as fast.
LEAST_GAIN = 2.0
NOT_CHEAPER = "sharing would take longer here"


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
