"""A setting of a pipeline, read as a chain of steps without building the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from manyfit._compat import has_callbacks
from manyfit._twins import twin_of
from manyfit.folds import Unsupported
from manyfit.model_selection._prefix_key import Unkeyable, structural_key

Key = tuple[Any, ...]


def value_key(value: Any) -> Key:
    """A hashable key of a parameter value: 1, 1.0 and True differ, estimators are equal by their parameters.

    Keys are compared within one search only, which keeps alive the objects that have no key but their
    identity.
    """
    if type(value) is int:
        return (int, value)  # some are too long to be printed
    if value is None or isinstance(value, (bool, int, float, str, np.number)):
        return (type(value), repr(value))
    try:
        return ("structure", structural_key(value))
    except Unkeyable:
        return ("id", id(value))


@dataclass(frozen=True)
class Step:
    """One estimator of a chain: its path of names in the pipeline, exact type and parameters.

    Of an estimator that `manyfit.estimators` exports the type is that of its twin in scikit-learn.
    """

    path: str
    cls: type
    params: Mapping[str, Any]

    @cached_property
    def _value_keys(self) -> dict[str, Key]:
        return {name: value_key(value) for name, value in sorted(self.params.items())}

    @cached_property
    def key(self) -> Key:
        """Equal for steps that do the same work."""
        return (self.cls, *self._value_keys.items())

    def key_without(self, free: frozenset[str]) -> Key:
        """The key with some parameters left open."""
        return (self.cls, *(item for item in self._value_keys.items() if item[0] not in free))

    def changed(self, changes: Mapping[str, Any]) -> "Step":
        """The step with some of its parameters changed; keys of the others are not made again."""
        step = Step(self.path, self.cls, {**self.params, **changes})
        # A frozen dataclass keeps its cached properties in its dict.
        changed = {name: value_key(value) for name, value in changes.items()}
        step.__dict__["_value_keys"] = self._value_keys | changed
        return step

    def build(self) -> Any:
        """An unfitted estimator with these parameters, for reading them."""
        return self.cls(**self.params)


@dataclass(frozen=True)
class Chain:
    """Transformers, in order, and the last estimator."""

    steps: tuple[Step, ...]
    final: Step


class ChainReader:
    """Reads the settings of one estimator as chains.

    Parameters
    ----------
    estimator : estimator
        What the search varies.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        try:
            self._base: list[Step] | None = list(_flatten("", estimator, last=True))
        except Unsupported:
            # A setting may still replace what stands in the way.
            self._base = None

    def read(self, params: Mapping[str, Any]) -> Chain:
        """The chain of one setting.

        Raises
        ------
        Unsupported
            If the estimator is no chain of plain estimators.
        """
        overlay = self._overlay(params)
        if overlay is None:
            # Estimators among the values are cloned: a nested setting would change the user's own.
            changed = clone(self._estimator).set_params(**clone(dict(params), safe=False))
            steps = list(_flatten("", changed, last=True))
        else:
            steps = overlay
        return Chain(tuple(steps[:-1]), steps[-1])

    def _overlay(self, params: Mapping[str, Any]) -> list[Step] | None:
        """The base's steps with parameters set, or None where a setting changes the steps themselves."""
        if self._base is None:
            return None
        changes: dict[int, dict[str, Any]] = {}
        for name, value in params.items():
            path, _, leaf = name.rpartition("__")
            found = [j for j, step in enumerate(self._base) if step.path == path and leaf in step.params]
            if len(found) != 1 or hasattr(value, "get_params"):
                return None
            changes.setdefault(found[0], {})[leaf] = value
        return [step.changed(changes[j]) if j in changes else step for j, step in enumerate(self._base)]


def _flatten(path: str, estimator: Any, *, last: bool) -> Any:
    """The steps of an estimator, with nested pipelines opened and "passthrough" left out."""
    if estimator is None or (isinstance(estimator, str) and estimator == "passthrough"):
        if last:
            raise Unsupported("the last step is 'passthrough'")
        return
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise Unsupported(f"{estimator!r} is no estimator")
    if has_callbacks(estimator):
        raise Unsupported("callbacks are attached to a step")
    if type(estimator) is not Pipeline:
        yield Step(path, twin_of(type(estimator)), estimator.get_params(deep=False))
        return
    if estimator.verbose or getattr(estimator, "transform_input", None) is not None:
        raise Unsupported("the pipeline is verbose or routes metadata through its steps")
    for j, (name, step) in enumerate(estimator.steps):
        inner = f"{path}__{name}" if path else name
        yield from _flatten(inner, step, last=last and j == len(estimator.steps) - 1)
