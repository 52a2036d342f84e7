"""Keys by which settings that share steps are fitted next to each other, and the estimators of settings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from manyfit.introspection.composites import build_setting
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec, value_key
from manyfit.model_selection.sharing.transformers._step_wrappers import has_shareable_prefix


def step_order(
    job: Job, specs: Sequence[PipelineSpec | str], left: Sequence[int], splits_share: bool
) -> tuple[Any, ...] | None:
    """For each candidate the identities of its steps, as integers; None if no step is shared.

    `left` are the candidates that are fitted one by one, or may be. `splits_share`: a single one of them
    shares work, too, among its splits.
    """
    if len(left) < 2 - splits_share or not any(
        map(has_shareable_prefix, _distinct_estimators(job, specs, left))
    ):
        return None
    ids: dict[Any, int] = {}
    order: list[Any] = [()] * len(specs)
    for c in left:
        spec, params = specs[c], job.candidates[c]
        if isinstance(spec, PipelineSpec):
            keys = [step.key for step in spec.steps]
        else:
            keys = [(name, value_key(value)) for name, value in params.items()]
        order[c] = tuple(ids.setdefault(key, len(ids)) for key in keys)
    return tuple(order)


def _distinct_estimators(job: Job, specs: Sequence[PipelineSpec | str], left: Sequence[int]) -> Iterator[Any]:
    """An estimator for each first step, and each class of the last one, among some settings."""
    seen = set[Any]()
    for c in left:
        spec = specs[c]
        ends: Any = None
        if isinstance(spec, PipelineSpec):
            ends = spec.steps[0].key if spec.steps else None, spec.final.cls
        if ends not in seen:
            seen.add(ends)
            # Without `set_params`, whose calls an estimator may count.
            if isinstance(spec, PipelineSpec) and not spec.final.path:
                yield spec.final.build()
            else:
                yield build_candidate(job, c) if _may_change_steps(job.candidates[c]) else job.estimator


def _may_change_steps(params: Mapping[str, Any]) -> bool:
    """Whether a setting may replace steps of the search's estimator."""
    return any(hasattr(one, "get_params") or isinstance(one, list | tuple) for one in params.values())


def build_candidate(job: Job, c: int) -> Any:
    """The estimator of a setting; that of the search if the setting cannot be applied."""
    try:
        return build_setting(job.estimator, job.candidates[c])
    except Exception:  # scikit-learn raises it again, in its own words, when it is fitted
        return job.estimator
