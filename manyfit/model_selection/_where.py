"""Where the data of a search are worked on: where they lie, or where the configuration says."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from manyfit._compat import INDICES_OF_THE_HOST, with_each_scorer
from manyfit._config import get_config
from manyfit.arrays import cuda_place, device, is_host, tell_fallback, to_place
from manyfit.cluster import is_drop_in, takes_device_data
from manyfit.folds import Unsupported, as_matrix, is_foreign
from manyfit.metrics import get_scorer, scores_at_home
from manyfit.model_selection._job import Job

_ADVICE = (
    "Use the estimators of manyfit.estimators, or scikit-learn's with set_config(array_api_dispatch=True) "
    "where they support it, or give the search data on the host."
)


def goes_there(X: Any) -> bool:
    """Whether numbers of the host, in an array or a frame, are to be sent to a GPU."""
    if get_config()["device"] != "cuda" or is_foreign(X):
        return False
    try:
        as_matrix(X)
    except Unsupported:
        return False
    return True


def where_asked(job: Job) -> Job:
    """The job with its X where `manyfit.set_config` has it; y and weights follow as they are read.

    Raises
    ------
    ImportError, RuntimeError
        If a GPU is asked for, and there is none that a library here can use.
    """
    if job.client is not None:
        return job  # its workers have devices of their own
    if goes_there(job.X):
        return replace(job, X=to_place(as_matrix(job.X), cuda_place()), home=(job.X, job.y))
    if get_config()["device"] == "cpu":
        return _at_home(job)
    return job


def where_fitted(job: Job) -> Job:
    """The job with its data where its estimators can be fitted one by one: there, or on the host.

    Raises
    ------
    HostFallbackError
        If data would have to come to the host, and ``host_fallback="error"``.
    """
    if comes_home(job):
        return _at_home(job)
    if not is_foreign(job.X):
        return job
    scorer = scores_at_home(with_each_scorer(job.options.scorer, get_scorer))
    # scikit-learn's scorers read classes on the host, where those of drop-in estimators follow y.
    y = job.brought(job.y) if all(map(is_drop_in, _estimators(job))) else job.y
    return replace(job, y=y, options=replace(job.options, scorer=scorer))


def where_refitted(job: Job) -> Job:
    """The job with its data where its estimator can be fitted to them, as they are or on the host."""
    return _at_home(job) if comes_home(job, cut=False) else job


def comes_home(job: Job, cut: bool = True) -> bool:
    """Whether data have to come to the host to be fitted one by one, which is said, or refused.

    `cut` is whether rows of a split are fitted: scikit-learn before 1.9 cuts labels of the host, as those of
    drop-in estimators are, by indices that it has sent to the device.
    """
    lost = cut and not INDICES_OF_THE_HOST
    estimators = list(_estimators(job))
    unable = sorted(
        {type(one).__name__ for one in estimators if not takes_device_data(one) or (lost and is_drop_in(one))}
    )
    there = [one for one in (job.X, job.y) if is_foreign(one)]
    if not unable or not there:
        return False
    if job.home is None and not all(map(is_host, there)):
        what = f"{' and '.join(unable)} cannot be fitted on device {device(there[0])}"
        left = "what a search leaves to it, or its refit, is fitted on the host"
        tell_fallback("search", f"{what}: {left}. {_ADVICE}")
    return True


def _estimators(job: Job) -> Iterator[Any]:
    yield job.estimator
    for params in job.candidates:
        yield from (value for value in params.values() if hasattr(value, "fit"))


def _at_home(job: Job) -> Job:
    if job.home is not None:
        return replace(job, X=job.home[0], y=job.home[1])
    return replace(job, X=job.brought(job.X), y=job.brought(job.y))
