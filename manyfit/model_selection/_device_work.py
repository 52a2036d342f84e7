"""Which fits of a search take a GPU: on data of a device, and of estimators that compute there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from manyfit.arrays import on_device
from manyfit.model_selection._job import Job

# Estimators, frames and arrays of these packages are of the GPU.
_PACKAGES = frozenset(("cuml", "cudf", "cupy", "cupyx"))
# How estimators that can do both are told: XGBoost, LightGBM, CatBoost and skorch.
_CHOICES = frozenset(("device", "device_type", "task_type", "tree_method"))


def takes_gpu(job: Job) -> Callable[[Sequence[int]], bool]:
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
    if any(_of_gpu(value) for value in data):
        return lambda candidates: True
    params = _params(job.estimator)
    own = _of_gpu(job.estimator)
    found = [own or _any(_replaced(params, candidate)) for candidate in job.candidates]
    return lambda candidates: any(found[c] for c in candidates)


def _of_gpu(value: Any) -> bool:
    packages = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    return on_device(value) or not packages.isdisjoint(_PACKAGES)


def _any(params: Mapping[str, Any]) -> bool:
    return any(
        _of_gpu(value) or _chosen(name, value) or _any(_params(value)) for name, value in params.items()
    )


def _chosen(name: str, value: Any) -> bool:
    return name.rpartition("__")[2] in _CHOICES and str(value).lower().startswith(("cuda", "gpu"))


def _params(value: Any) -> Mapping[str, Any]:
    if isinstance(value, type) or not hasattr(value, "get_params"):
        return {}
    return dict(value.get_params(deep=True))


def _replaced(params: Mapping[str, Any], candidate: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters of a setting; an estimator that it replaces takes its own with it."""
    gone = tuple(f"{name}__" for name in candidate)
    return {**{name: value for name, value in params.items() if not name.startswith(gone)}, **candidate}
