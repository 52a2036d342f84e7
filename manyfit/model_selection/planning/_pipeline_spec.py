"""A setting of a pipeline as a sequence of steps, read without building the pipeline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from manyfit._compat import has_callbacks, why_names_are_refused
from manyfit.families import wrapper_of
from manyfit.folds import Unsupported
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.composites import build_setting
from manyfit.introspection.object_state import Unkeyable, keeps_its_parameters, object_state
from manyfit.introspection.structural_key import ById, structural_key
from manyfit.model_selection.planning._metadata_routing import requests_of
from manyfit.model_selection.sharing.rows._known_readers import is_reader

Key = tuple[Any, ...]


def value_key(value: Any) -> Key:
    """A hashable key of a parameter value: 1, 1.0 and True differ, estimators are equal by their parameters.

    Keys are compared within one search only. A value of an unknown type is equal only to the same object.
    """
    try:
        return ("structure", structural_key(value))
    except Unkeyable:
        return ("identity", ById(value))


def _survives_copies(value: Any) -> bool:
    """Whether two copies of a value have the same key."""
    try:
        return value_key(clone(value, safe=False)) == value_key(clone(value, safe=False))
    except Exception:  # it cannot be copied: its fit says so
        return False


@dataclass(frozen=True)
class StepSpec:
    """One estimator of a pipeline."""

    path: str  # its names in the pipeline
    cls: type  # its exact type; for an estimator of manyfit.estimators, its twin in scikit-learn
    params: Mapping[str, Any]
    # Its other attributes: the output configuration, and what its constructor sets beside parameters.
    rest: Mapping[str, Any] = field(default_factory=dict)
    keeps_params: bool = True  # whether its parameters lie in its attributes; if not, it is not shared
    requests: str = ""  # its metadata requests

    def __getstate__(self) -> dict[str, Any]:
        """The fields: keys hold identities, which are others on a worker."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def _value_keys(self) -> dict[str, Key]:
        return {name: value_key(value) for name, value in sorted(self.params.items())}

    @cached_property
    def _rest_key(self) -> Key:
        return tuple((name, value_key(value)) for name, value in sorted(self.rest.items()))

    @cached_property
    def key(self) -> Key:
        """Equal for steps that do the same work."""
        return (self.cls, self.requests, self._rest_key, *self._value_keys.items())

    def key_without(self, free: frozenset[str]) -> Key:
        """The key with some parameters left open."""
        left = (item for item in self._value_keys.items() if item[0] not in free)
        return (self.cls, self.requests, self._rest_key, *left)

    @cached_property
    def unshared_reason(self) -> str | None:
        """Why two fits of this step are never known to be the same, or None."""
        if not self.keeps_params:
            return f"{self.cls.__name__} keeps parameters elsewhere than in its attributes"
        values = {**self.rest, **self.params}
        unknown = [name for name, value in values.items() if not _survives_copies(value)]
        if not unknown:
            return None
        kind = type(values[unknown[0]]).__name__
        return f"{unknown[0]} of {self.cls.__name__} holds a {kind}, of which copies cannot be compared"

    def changed(self, changes: Mapping[str, Any], keys: Mapping[str, Key]) -> "StepSpec":
        """The step with some of its parameters changed, whose `keys` are known; no others are made again."""
        step = replace(self, params={**self.params, **changes})
        # A frozen dataclass keeps its cached properties in its dict.
        step.__dict__.update(_value_keys={**self._value_keys, **keys}, _rest_key=self._rest_key)
        return step

    def build(self) -> Any:
        """An unfitted estimator with these parameters, for reading them."""
        return self.cls(**self.params)


@dataclass(frozen=True)
class PipelineSpec:
    """Transformers, in order, and the last estimator."""

    steps: tuple[StepSpec, ...]
    final: StepSpec
    wrapper: StepSpec | None = None  # the meta-estimator that holds the last estimator, without it
    n_wrapped: int = 0  # how many of the steps, the last ones, it holds too

    @property
    def title(self) -> str:
        """The classes of the estimators, as the plan prints them."""
        names = [step.cls.__name__ for step in (*self.steps, self.final)]
        if self.wrapper is not None:
            names[-1] = f"{self.wrapper.cls.__name__}({names[-1]})"
        return " > ".join(names)

    @property
    def opened(self) -> "PipelineSpec":
        """The chain in which the steps and the estimator of a last meta-estimator stand by themselves.

        The estimator takes the path of the meta-estimator, which hands fit parameters on to it. Raises
        `Unsupported` if it cannot be read.
        """
        last = self.final
        wrapped = wrapper_of(last.cls)
        if wrapped is None or not last.keeps_params:
            return self
        name, held = wrapped.holds, last.params[wrapped.holds]
        path = f"{last.path}__{name}" if last.path else name
        *steps, final = _flatten(path, wrapped.default() if held is None else held, last=True)
        wrapper = replace(last, params={**last.params, name: None})
        return PipelineSpec((*self.steps, *steps), replace(final, path=last.path), wrapper, len(steps))


class PipelineReader:
    """Reads the settings of one estimator as sequences of steps."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        try:
            self._base: list[StepSpec] | None = list(_flatten("", estimator, last=True))
        except Unsupported:
            # A setting may still replace the step that cannot be read.
            self._base = None
        self._places: dict[str, tuple[int, str] | None] = {}
        self._changed: dict[Any, StepSpec] = {}  # many settings of a grid have the same step

    def read(self, params: Mapping[str, Any]) -> PipelineSpec:
        """The steps of one setting; raises `Unsupported` if it is no sequence of plain estimators."""
        overlay = self._overlay(params)
        if overlay is None:
            # Estimators among the values are cloned: a nested setting would change the user's own.
            changed = build_setting(self._estimator, params)
            steps = list(_flatten("", changed, last=True))
        else:
            steps = overlay
        return PipelineSpec(tuple(steps[:-1]), steps[-1])

    def _overlay(self, params: Mapping[str, Any]) -> list[StepSpec] | None:
        """The base's steps with parameters set, or None where a setting changes the steps themselves."""
        if self._base is None:
            return None
        changes: dict[int, dict[str, Any]] = {}
        for name, value in params.items():
            if hasattr(value, "get_params"):
                return None
            if name not in self._places:
                self._places[name] = self._place(self._base, name)
            place = self._places[name]
            if place is None:
                return None
            changes.setdefault(place[0], {})[place[1]] = value
        steps = [*self._base]
        for j, values in changes.items():
            keys = {leaf: value_key(value) for leaf, value in values.items()}
            key = j, *keys.items()
            if key not in self._changed:
                self._changed[key] = steps[j].changed(values, keys)
            steps[j] = self._changed[key]
        return steps

    @staticmethod
    def _place(base: Sequence[StepSpec], name: str) -> tuple[int, str] | None:
        """The step whose parameter a setting changes, and the parameter; None where no step has it."""
        path, _, leaf = name.rpartition("__")
        found = [j for j, step in enumerate(base) if step.path == path and leaf in step.params]
        if len(found) != 1:
            return None
        cls = base[found[0]].cls
        if not _sets_no_more(cls):
            if is_reader(cls):  # a known one, such as a ColumnTransformer
                return None
            # Only a call shows what else it does, and its author may count calls.
            raise Unsupported(f"{cls.__name__} has a way of its own to set parameters")
        return found[0], leaf


def _sets_no_more(cls: type) -> bool:
    """Whether setting a parameter of an estimator changes nothing else of it."""
    plain = getattr(cls, "set_params", None) is BaseEstimator.set_params
    return plain and cls.__setattr__ is object.__setattr__


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
        yield _step(path, estimator)
        return
    if estimator.verbose or getattr(estimator, "transform_input", None) is not None:
        raise Unsupported("the pipeline is verbose or routes metadata through its steps")
    try:
        steps = [(name, step) for name, step in estimator.steps]
    except (TypeError, ValueError):  # its fit raises
        raise Unsupported("the steps of the pipeline are no pairs of a name and an estimator") from None
    why = why_names_are_refused(estimator, [name for name, _ in steps])
    if why is not None:
        raise Unsupported(f"scikit-learn refuses a name: {why}")
    for j, (name, step) in enumerate(steps):
        inner = f"{path}__{name}" if path else name
        yield from _flatten(inner, step, last=last and j == len(steps) - 1)


def _step(path: str, estimator: Any) -> StepSpec:
    params = estimator.get_params(deep=False)
    cls = sklearn_class_of(type(estimator))
    if not keeps_its_parameters(estimator):
        return StepSpec(path, cls, params, keeps_params=False, requests=requests_of(estimator))
    state = object_state(estimator)
    rest = {name: state[name] for name in state if name not in params and not _repeats(state[name], params)}
    return StepSpec(path, cls, params, rest, requests=requests_of(estimator))


def _repeats(value: Any, params: Mapping[str, Any]) -> bool:
    """Whether an attribute has parameters again, as those have that LightGBM hands on."""
    return type(value) is dict and all(name in params and value[name] is params[name] for name in value)
