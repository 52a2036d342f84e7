"""Whether sharing pays: in operations, and in the memory that the user allows."""

from collections.abc import Mapping, Sequence
from typing import Any

from dask.utils import format_bytes

from manyfit.estimators import Family, Shape
from manyfit.folds import Unsupported


def require_cheaper(
    family: Family, estimator: Any, settings: Sequence[Mapping[str, Any]], shape: Shape
) -> None:
    """Refuse settings that scikit-learn fits in fewer operations."""
    cost = family.cost(estimator, settings, shape)
    if cost.shared > cost.one_by_one:
        raise Unsupported("sharing would take more operations here")


def require_memory(needed: int, limit: int) -> None:
    """Refuse moments of more than `limit` bytes."""
    if needed > limit:
        raise Unsupported(f"moments would need {format_bytes(needed)}, more than memory_limit")
