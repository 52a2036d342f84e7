"""Checks that sharing saves operations, and fits in the memory that the user allows."""

from collections.abc import Mapping, Sequence
from typing import Any

from dask.utils import format_bytes
from sklearn.base import is_classifier

from manyfit.estimators import Family, Shape
from manyfit.folds import Unsupported, distinct_labels

# A family that converges has to be so many times as fast.
LEAST_GAIN = 2.0


def n_classes(estimator: Any, y: Any) -> int:
    """The number of classes in y for a classifier; 0 for other estimators."""
    return len(distinct_labels(y)) if is_classifier(estimator) else 0


def require_cheaper(
    family: Family, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape, sharing: str
) -> float:
    """The operations of shared fits; raises `Unsupported` if scikit-learn's fits take fewer.

    A family that converges may change last digits, which is not worth a small gain.
    """
    cost = family.cost(estimator, settings, shape)
    least = LEAST_GAIN if family.result == "converged" and sharing == "auto" else 1.0
    if cost.shared > cost.individual:
        raise Unsupported("sharing would take more operations here")
    if least * cost.shared > cost.individual:
        gain = cost.individual / cost.shared
        raise Unsupported(
            f"sharing is expected to be {gain:.1f} times as fast, and has to be {least:g} times"
        )
    return cost.shared


def require_memory(needed: int, limit: int) -> None:
    """Raise `Unsupported` for moments of more than `limit` bytes."""
    if needed > limit:
        raise Unsupported(f"moments would need {format_bytes(needed)}, more than memory_limit")
