"""Checks of the parameters of steps and last estimators, each made once for all settings of a search."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from inspect import signature
from typing import Any

from sklearn import get_config
from sklearn.utils import get_tags

from manyfit._compat import check_parameters, own_output_container
from manyfit.families import (
    Family,
    check_step,
    family_in,
    family_of,
    require_usual_numbers,
    sparse_step_of,
    target_function,
)
from manyfit.folds import Unsupported
from manyfit.introspection.class_names import is_instance, public_name
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec, StepSpec
from manyfit.model_selection.sharing.rows._known_readers import writes_in_place

WRITES = "a step may write into its input (copy=False)"


class ParameterChecks:
    """Remembers why a step or a last estimator cannot be shared, by its key."""

    def __init__(self) -> None:
        self._reasons: dict[Any, str | None] = {}
        self._advice: dict[Any, str] = {}
        self.advice: dict[str, None] = {}  # what a user can set so that several settings share more

    def family_of(self, spec: PipelineSpec) -> Family:
        """The family of a last step that has one, inside its meta-estimator if there is one.

        Raises `Unsupported` if the meta-estimator is not served.
        """
        family, wrapper = family_of(spec.final.cls), spec.wrapper
        assert family is not None
        if wrapper is None:
            return family
        why = self._reason(("wrapper", wrapper.key, spec.final.cls), _check_wrapper, wrapper, family)
        if why is not None:
            raise Unsupported(why)
        wrapped = family_in(wrapper.cls, family, wrapper.build())
        if target_function(wrapped) is not None:
            _require_steps_without_targets(spec)
        return wrapped

    def family_reasons(self, family: Family, finals: Sequence[StepSpec]) -> list[str | None]:
        """For settings of the last step that differ in free parameters: why a family does not serve it."""
        shared = ("shared", finals[0].key_without(family.free))
        why = self._reason(shared, _check_shared, finals[0], family.free)
        found = [why or self._reason(("free", final.key), _check_free, family, final) for final in finals]
        if len(finals) > 1:
            keys = (("free", final.key) for final in finals)
            self.advice |= {self._advice[key]: None for key in keys if key in self._advice}
        return found

    def can_be_met(self, why: str) -> bool:
        """Whether a user can set a parameter so that this reason no longer holds."""
        return any(self._reasons[key] == why for key in self._advice)

    def writes_into_input(self, spec: PipelineSpec | str) -> bool:
        """Whether a step writes into its input: it then needs rows of its own, and shares no steps."""
        steps = (*spec.steps, spec.final) if isinstance(spec, PipelineSpec) else ()
        return any(self._reason(("writes", step.key), _require_copies, step) for step in steps)

    def require(self, spec: PipelineSpec, check: Callable[..., None], *more: Any) -> None:
        """Raise `Unsupported` if a step before the last one does not pass a check, as those below."""
        for step in spec.steps:
            why = self._reason((check, step.key, *more), check, step, *more)
            if why is not None:
                raise Unsupported(why)

    def _reason(self, key: Any, check: Callable[..., None], *args: Any) -> str | None:
        if key not in self._reasons:
            try:
                check(*args)
                self._reasons[key] = None
            except Unsupported as why:
                self._reasons[key] = str(why)
                if why.advice is not None:
                    self._advice[key] = why.advice
            except Exception as error:  # of a value that only scikit-learn's fit can judge
                self._reasons[key] = f"a check of its parameters raised {type(error).__name__}"
        return self._reasons[key]


def _check_shared(final: StepSpec, free: frozenset[str]) -> None:
    # Free parameters at their defaults, which are valid; `_check_free` looks at those that have none.
    needed = {name for name, one in signature(final.cls).parameters.items() if one.default is one.empty}
    shared = {name: value for name, value in final.params.items() if name in needed or name not in free}
    require_usual_numbers(shared)
    _require_valid(final.cls(**shared))


def _check_wrapper(wrapper: StepSpec, family: Family) -> None:
    model = wrapper.build()
    given = {name: value for name, value in wrapper.params.items() if value is not None}
    require_usual_numbers(given)
    _require_valid(model, given)
    family_in(wrapper.cls, family, model)


def _require_steps_without_targets(spec: PipelineSpec) -> None:
    """Raise `Unsupported` if a step before a meta-estimator reads targets, which that one changes."""
    assert spec.wrapper is not None
    for step in spec.steps[: len(spec.steps) - spec.n_wrapped]:
        if _may_read_targets(step.build()):
            raise Unsupported(f"{step.cls.__name__} reads targets that {spec.wrapper.cls.__name__} changes")


def check_reads_no_labels(step: StepSpec) -> None:
    """Raise `Unsupported` if a step before a classifier reads labels, of which there are no moments."""
    if _may_read_targets(step.build()):
        raise Unsupported(f"{step.cls.__name__} reads labels, and moments are of indicators of the classes")


def _may_read_targets(step: Any) -> bool:
    parts = [step, *step.get_params().values()] if hasattr(step, "get_params") else []
    found = [part for part in parts if hasattr(part, "fit") and not isinstance(part, type)]
    return any(not _ignores_targets(part) for part in found)


def _ignores_targets(part: Any) -> bool:
    # Tags of selectors do not say that a score reads targets.
    if is_instance(part, "sklearn.feature_selection.SelectorMixin"):
        return public_name(type(part)) == "sklearn.feature_selection.VarianceThreshold"
    return type(part).__module__.startswith("sklearn.") and not get_tags(part).target_tags.required


def _check_free(family: Family, final: StepSpec) -> None:
    free, prototype = {name: final.params[name] for name in family.free}, final.build()
    require_usual_numbers(free)
    family.check(prototype, [free])
    _require_valid(prototype, free)  # a family may take more than scikit-learn does


def check_affine_step(step: StepSpec) -> None:
    """Raise `Unsupported` if an affine step has a parameter that is not served."""
    require_usual_numbers(step.params)
    check_step(step.build())


def check_sparse_step(step: StepSpec, is_exact: bool) -> None:
    """Raise `Unsupported` if a step over sparse chunks has a parameter that is not served.

    `is_exact` says whether no bit of what it learns may differ from scikit-learn's.
    """
    require_usual_numbers(step.params)
    known, model = sparse_step_of(step.cls), step.build()
    assert known is not None
    output = own_output_container(step.rest) or get_config()["transform_output"]
    if output != "default":
        raise Unsupported(f"the output of {step.cls.__name__} is set to {output!r}")
    _require_valid(model)
    known.check(model)
    if is_exact and known.reads_rows(model) and not known.is_exact:
        raise Unsupported(f"rounding in {step.cls.__name__} could decide which class is predicted")


def _require_copies(step: StepSpec) -> None:
    if writes_in_place(step.build()):
        raise Unsupported(WRITES)


def _require_valid(prototype: Any, names: Collection[str] | None = None) -> None:
    why = check_parameters(prototype, names)
    if why is not None:
        raise Unsupported(f"scikit-learn refuses a parameter: {why}")
