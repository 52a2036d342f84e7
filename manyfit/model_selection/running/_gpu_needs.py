"""Finds the fits of a search that need a GPU: those on device data, or of estimators that compute on one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from manyfit.introspection.composites import params_of
from manyfit.introspection.gpu_support import has_gpu_params, is_gpu_object
from manyfit.model_selection.job._job import Job


def gpu_needs(job: Job) -> Callable[[Sequence[int]], bool]:
    """A function that says whether the fits of some candidates need a GPU, as far as parameters tell it.

    For other estimators, as one that hides a network of torch, the user says it around the search:
    ``with dask.annotate(resources={"GPU": 1})``.
    """
    options = job.options
    data = [job.X, job.y, *options.fit_params.values(), *options.score_params.values()]
    if any(is_gpu_object(value) for value in data):
        return lambda candidates: True
    params = params_of(job.estimator)
    own = is_gpu_object(job.estimator)
    found = [own or has_gpu_params(_replaced(params, candidate)) for candidate in job.candidates]
    return lambda candidates: any(found[c] for c in candidates)


def _replaced(params: Mapping[str, Any], candidate: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a setting, without those of an estimator that it replaces."""
    gone = tuple(f"{name}__" for name in candidate)
    return {**{name: value for name, value in params.items() if not name.startswith(gone)}, **candidate}
