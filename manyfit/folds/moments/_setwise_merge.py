"""Merges sums over several sets of rows, some of which may have no rows in a part of X."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SetwiseMerge:
    """Merges the sums of each set in two parts of X by `merge`; None is the sum of a set without rows."""

    merge: Callable[[Any, Any], Any]

    def __call__(self, before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
        return [
            other if one is None else one if other is None else self.merge(one, other)
            for one, other in zip(before, after, strict=True)
        ]
