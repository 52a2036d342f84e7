"""Which fits of a search take a GPU: on data of a device, and of estimators that compute there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from manyfit.introspection.composites import params_of
from manyfit.introspection.gpu_support import has_gpu_params, is_gpu_object
from manyfit.model_selection.job._job import Job


def gpu_needs(job: Job) -> Callable[[Sequence[int]], bool]:
    """Whether the fits of some candidates take a GPU, as far as can be told without fitting.

    Work that cannot be told from outside, as of an estimator that hides a network of torch, is named by the
    user: ``with dask.annotate(resources={"GPU": 1})`` around the search.

    Parameters
    ----------
    job : Job
        The search.

    Returns
    -------
    callable
        Of the positions of candidates.
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
    """All parameters of a setting; an estimator that it replaces takes its own with it."""
    gone = tuple(f"{name}__" for name in candidate)
    return {**{name: value for name, value in params.items() if not name.startswith(gone)}, **candidate}
