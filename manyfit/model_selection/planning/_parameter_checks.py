"""Checks of the parameters of steps and last estimators, each made once for all settings of a search."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from manyfit._compat import check_parameters
from manyfit.estimators import Family, affine_step_of
from manyfit.families import require_usual_numbers
from manyfit.folds import Unsupported
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec, StepSpec
from manyfit.model_selection.sharing.rows._known_readers import writes_in_place

WRITES = "a step may write into its input (copy=False)"


class ParameterChecks:
    """Remembers why a step or a last estimator cannot be shared, by its key."""

    def __init__(self) -> None:
        self._reasons: dict[Any, str | None] = {}

    def family_reason(self, family: Family, final: StepSpec) -> str | None:
        """Why a family does not serve a setting of the last step, or None."""
        shared = ("shared", final.key_without(family.free))
        why = self._reason(shared, _check_shared, final, family.free)
        return why or self._reason(("free", final.key), _check_free, family, final)

    def require_affine_steps(self, spec: PipelineSpec) -> None:
        """Raise `Unsupported` if an affine step before the last one has a parameter that is not served."""
        for step in spec.steps:
            why = self._reason(("step", step.key), _check_step, step)
            if why is not None:
                raise Unsupported(why)

    def writes_into_input(self, spec: PipelineSpec | str) -> bool:
        """Whether a step writes into its input: it then needs rows of its own, and shares no steps."""
        steps = (*spec.steps, spec.final) if isinstance(spec, PipelineSpec) else ()
        return any(self._reason(("writes", step.key), _require_copies, step) for step in steps)

    def _reason(self, key: Any, check: Callable[..., None], *args: Any) -> str | None:
        if key not in self._reasons:
            try:
                check(*args)
                self._reasons[key] = None
            except Unsupported as why:
                self._reasons[key] = str(why)
            except Exception as error:  # of a value that only scikit-learn's fit can judge
                self._reasons[key] = f"a check of its parameters raised {type(error).__name__}"
        return self._reasons[key]


def _check_shared(final: StepSpec, free: frozenset[str]) -> None:
    # Free parameters at their defaults, which are valid.
    shared = {name: value for name, value in final.params.items() if name not in free}
    require_usual_numbers(shared)
    _require_valid(final.cls(**shared))


def _check_free(family: Family, final: StepSpec) -> None:
    free, prototype = {name: final.params[name] for name in family.free}, final.build()
    require_usual_numbers(free)
    family.check(prototype, [free])
    _require_valid(prototype, free)  # a family may take more than scikit-learn does


def _check_step(step: StepSpec) -> None:
    prototype = step.build()
    affine = affine_step_of(step.cls)
    assert affine is not None
    require_usual_numbers(step.params)
    _require_valid(prototype)
    affine.check(prototype)


def _require_copies(step: StepSpec) -> None:
    if writes_in_place(step.build()):
        raise Unsupported(WRITES)


def _require_valid(prototype: Any, names: Collection[str] | None = None) -> None:
    why = check_parameters(prototype, names)
    if why is not None:
        raise Unsupported(f"scikit-learn refuses a parameter: {why}")
