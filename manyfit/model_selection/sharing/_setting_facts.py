"""What the parameters of a setting say about its fits on every fold: read once, not for each fit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SettingFacts:
    """Classes and functions in a setting that may write into rows, and whether its fit draws numbers."""

    strange_steps: frozenset[Hashable] = frozenset()
    draws: bool = True


# A setting that cannot be fitted on rows that others read.
OWN_ROWS = SettingFacts()


class KnownSettings:
    """The facts of settings, by the objects that describe them."""

    def __init__(self) -> None:
        # With the objects, so that no other takes their place in memory.
        self._known: dict[tuple[int, int], tuple[Any, Mapping[str, Any], SettingFacts]] = {}

    def get(self, estimator: Any, params: Mapping[str, Any]) -> SettingFacts | None:
        """The facts of a setting, if they are known."""
        found = self._known.get((id(estimator), id(params)))
        return None if found is None else found[2]

    def keep(self, estimator: Any, params: Mapping[str, Any], facts: SettingFacts) -> SettingFacts:
        """Keep the facts of a setting, and return them."""
        self._known[id(estimator), id(params)] = estimator, params, facts
        return facts
