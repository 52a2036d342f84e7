"""Collects the transformers of a task's settings that one fit of a fold may serve."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from manyfit.introspection.composites import build_setting
from manyfit.model_selection.sharing.nested._rule import nested_key, nested_rule


class NestedRequests:
    """The unfitted transformers of some settings, by `nested_key`.

    A wide fit looks here for the values that it has to serve. Nothing is built before it does.
    """

    def __init__(self, estimator: Any, candidates: Sequence[Mapping[str, Any]]) -> None:
        self._estimator, self._candidates = estimator, candidates

    def of(self, key: Hashable) -> Sequence[Any]:
        return self._steps.get(key, ())

    @cached_property
    def _steps(self) -> Mapping[Hashable, Sequence[Any]]:
        found = defaultdict[Hashable, list[Any]](list)
        if self._may_vary():
            for step in self._all_steps():
                with suppress(Exception):  # a parameter without a key: its fits are not shared
                    found[nested_key(step)].append(step)
        return found

    def _may_vary(self) -> bool:
        """Whether a setting may change a parameter that nests."""
        with suppress(Exception):  # see below
            parts = [self._estimator, *self._estimator.get_params(deep=True).values()]
            names = {name for part in parts if (rule := nested_rule(part)) for name in rule.params}
            return any(
                name.rpartition("__")[2] in names or hasattr(value, "fit") or isinstance(value, list)
                for params in self._candidates
                for name, value in params.items()
            )
        return False

    def _all_steps(self) -> Iterator[Any]:
        for params in self._candidates:
            with suppress(Exception):  # scikit-learn raises it again, in its own words, when it is fitted
                model = build_setting(self._estimator, params)
                parts = [model, *model.get_params(deep=True).values()]
                yield from [part for part in parts if nested_rule(part) is not None]
