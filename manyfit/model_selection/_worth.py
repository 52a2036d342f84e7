"""Whether sharing pays: in operations, and in the memory that the user allows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from dask.utils import format_bytes
from sklearn.base import is_classifier

from manyfit.estimators import Family, Shape
from manyfit.folds import Unsupported


def n_classes(estimator: Any, y: Any) -> int:
    """How many classes a classifier is given; 0 for other estimators."""
    return len(np.unique(y)) if is_classifier(estimator) else 0


def require_cheaper(
    family: Family, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape
) -> float:
    """Operations that sharing takes; settings that scikit-learn fits in fewer are refused."""
    cost = family.cost(estimator, settings, shape)
    if cost.shared > cost.one_by_one:
        raise Unsupported("sharing would take more operations here")
    return cost.shared


def require_memory(needed: int, limit: int) -> None:
    """Refuse moments of more than `limit` bytes."""
    if needed > limit:
        raise Unsupported(f"moments would need {format_bytes(needed)}, more than memory_limit")
