"""The place where the data of a search are worked on: their own, or the one that the configuration names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from manyfit._compat import DEVICE_TAKES_HOST_INDICES, map_scorers
from manyfit._config import get_config
from manyfit.arrays import (
    Place,
    TransferCache,
    array_namespace,
    container_kind,
    container_place,
    default_gpu,
    device,
    frame_of_array,
    is_array,
    is_device_frame,
    is_on_device,
    is_xp_array,
    label_transfers,
    to_place,
    warn_host_fallback,
)
from manyfit.folds import Unsupported, as_matrix
from manyfit.introspection.composites import last_step, pipeline_steps
from manyfit.introspection.gpu_support import is_drop_in, reads_device_frames, supports_device_data
from manyfit.metrics.scoring import get_scorer, scores_on_host
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers, strangers_among_scorers

_ADVICE = (
    "Use the estimators of manyfit.estimators, or scikit-learn's with set_config(array_api_dispatch=True) "
    "where they support it, or give the search data on the host."
)

# Why drop-in estimators, which take data of a device, are not fitted there by a search.
_BY_A_SEARCH = "by a search " + (
    "of a precomputed kernel" if DEVICE_TAKES_HOST_INDICES else "with scikit-learn before 1.9"
)


def moves_to_gpu(X: Any) -> bool:
    """Whether numbers of the host, in an array or a frame, are to be sent to a GPU."""
    if get_config()["device"] != "cuda" or is_xp_array(X):
        return False
    try:
        as_matrix(X)
    except Unsupported:
        return False
    return True


def place_data(job: Job) -> Job:
    """The job with its X on the device of `manyfit.set_config`; y and weights follow when they are read.

    Raises an ImportError or a RuntimeError if the configuration names a GPU that no library can use.
    """
    if job.client is not None:
        return job  # its workers have devices of their own
    if moves_to_gpu(job.X):
        with label_transfers("X"):
            X = to_place(as_matrix(job.X), default_gpu())
        return replace(job, X=X, host_data=(job.X, job.y))
    if get_config()["device"] == "cpu":
        return _move_job_to_host(job)
    return job


def place_of_work(job: Job) -> Place | None:
    """The device that a search reads its data from; None for the host and for clusters."""
    if job.client is not None:
        return None
    if moves_to_gpu(job.X):
        try:
            return container_place(to_place(np.empty(0), default_gpu()))
        except (ImportError, RuntimeError):
            return None  # a fit raises it
    return container_place(job.X) if is_xp_array(job.X) else container_place(job.y)


def data_for_fits(job: Job) -> Job:
    """The job with its data where single fits can be made: on the device of X, or on the host.

    A copy to the host raises a `HostFallbackError` with ``host_fallback="error"``.
    """
    if falls_back_to_host(job):
        return _move_job_to_host(job)
    if not is_xp_array(job.X):
        return _with_rows(job, job.copy_to_host)
    # Their rows are taken by indices that lie with X, which pandas and lists refuse.
    n = job.X.shape[0]
    job = _with_rows(job, lambda value: _as_array(value, n))
    scorer = scores_on_host(map_scorers(job.options.scorer, get_scorer))
    scorer = map_scorers(scorer, lambda one: _Copying(one) if any_of(strangers_among_scorers(one)) else one)
    # scikit-learn's scorers read classes on the host, where those of drop-in estimators follow y.
    y = job.copy_to_host(job.y, "y") if all(map(is_drop_in, _estimators(job))) else job.y
    return replace(job, y=y, options=replace(job.options, scorer=scorer))


class _Copying:
    """A user's scorer that may write into device rows: it gets copies, since these cannot be protected."""

    def __init__(self, scorer: Any) -> None:
        self.scorer = scorer

    def __call__(self, estimator: Any, *rows: Any, **params: Any) -> Any:
        copies = (array_namespace(one).asarray(one, copy=True) if is_xp_array(one) else one for one in rows)
        return self.scorer(estimator, *copies, **params)


def where_refitted(job: Job) -> Job:
    """The job with its data where its estimator can be fitted to them, as they are or on the host."""
    job = _move_job_to_host(job) if falls_back_to_host(job, cut=False) else job
    if not is_xp_array(job.X):
        return _with_rows(job, job.copy_to_host)
    if reads_device_frames(job.estimator):
        return replace(job, X=frame_of_array(job.X), y=frame_of_array(job.y))
    return job


def falls_back_to_host(job: Job, cut: bool = True) -> bool:
    """Whether single fits need the data on the host; warns of it, or raises, as ``host_fallback`` says.

    `cut`: whether fits read the rows of a split. On a device not every version of scikit-learn can cut them
    for drop-in estimators, and none can cut a precomputed kernel.
    """
    arrays = [one for one in (job.X, job.y) if is_xp_array(one)]
    names = (
        host_only_estimators(job, cut) if arrays else {}
    )  # which reads all settings, and workers ask for each fit
    if not names:
        return False
    if job.host_data is None and any(map(is_on_device, arrays)):
        reason = why_host_only(names, f"on device {device(arrays[0])}")
        left = "what a search leaves to it, or its refit, is fitted on the host"
        warn_host_fallback("search", f"{reason}: {left}. {_ADVICE}")
    return True


def why_host_only(names: Mapping[str, str], where: str = "on a device") -> str:
    """Why the estimators that `host_only_estimators` names need data on the host."""
    text, reasons = f"{' and '.join(names)} cannot be fitted {where}", dict.fromkeys(names.values())
    if list(reasons) == [_BY_A_SEARCH]:
        return f"{text} {_BY_A_SEARCH}"
    settings = [reason for reason in reasons if reason not in ("", _BY_A_SEARCH)]
    return f"{text}: {'; '.join(settings)}" if settings else text


def advise_drop_in(job: Job, reason: str) -> list[str]:
    """A line on the drop-in for scikit-learn's estimator, which was fitted on the host for a `reason`."""
    from manyfit import estimators

    name = type(last_step(job.estimator)).__name__
    if not is_xp_array(job.X) or is_drop_in(job.estimator) or name not in estimators.__all__:
        return []
    return [
        f"Fits were made one by one on the host: {reason}. manyfit.estimators.{name} follows its fits to tol "
        "where the data lie."
    ]


def fits_by_own_solvers(job: Job) -> bool:
    """Whether single fits use solvers of manyfit: those of drop-in estimators, on a device."""
    return is_xp_array(job.X) and all(map(is_drop_in, _estimators(job)))


def host_only_estimators(job: Job, cut: bool = True) -> dict[str, str]:
    """Estimators of a search that are not fitted on a device, by name; see `falls_back_to_host`.

    Each has its reason: a setting, the search, or "" if no fit of the class takes data of a device.
    """
    lost = cut and (not DEVICE_TAKES_HOST_INDICES or _may_be_pairwise(job))
    steps = [(one, step) for one in _estimators(job) for step in pipeline_steps(one)]
    # Drop-in estimators decide for themselves where they are fitted.
    refused = {} if all(is_drop_in(step) for _, step in steps) else _host_settings(job)
    found: dict[str, str] = {}
    for one, step in steps:
        name = type(step).__name__
        if not supports_device_data(step):
            found[name] = refused.get(name, "")
        elif name in refused or (lost and is_drop_in(one)):
            found.setdefault(name, refused.get(name, _BY_A_SEARCH))
    return dict(sorted(found.items()))


def _host_settings(job: Job) -> dict[str, str]:
    """Why scikit-learn's own classes are not fitted on a device with a setting of the search, by name."""
    from manyfit.estimators.backends.array_api import why_not_with

    found: dict[str, str] = {}
    for params in job.candidates:
        for step, own in _steps_of_setting(job.estimator, params):
            reason = why_not_with(step, own)
            if reason is not None:
                found.setdefault(type(step).__name__, reason)
    return found


def _steps_of_setting(estimator: Any, params: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """The estimators that a setting fits one after the other, each with the parameters that it gets."""
    if not isinstance(estimator, Pipeline):
        yield estimator, params
        return
    steps = dict(params.get("steps", estimator.steps))
    for name, step in steps.items():
        inner = {
            key.removeprefix(f"{name}__"): value
            for key, value in params.items()
            if key.startswith(f"{name}__")
        }
        yield from _steps_of_setting(params.get(name, step), inner)


def _may_be_pairwise(job: Job) -> bool:
    """Whether X may be a kernel or distances, of which a split takes rows and columns."""
    values = (value for params in job.candidates for value in params.values())
    pairwise = get_tags(job.estimator).input_tags.pairwise
    return pairwise or any(isinstance(value, str) and value == "precomputed" for value in values)


def may_share_device_rows(job: Job) -> bool:
    """Whether several fits may read the same rows, and so share steps.

    Rows of a device are shared only if no estimator writes into them; host rows are copied and compared.
    """
    if job.client is not None:
        return not (is_xp_array(job.X) or is_xp_array(job.y))  # workers plan for themselves
    if not (is_xp_array(job.X) or moves_to_gpu(job.X)) or host_only_estimators(job):
        return True
    return only_readers(job)


def only_readers(job: Job) -> bool:
    """Whether all estimators of a search are known not to write into their input."""
    values = (value for params in job.candidates for value in params.values())
    return not any(any_of(strangers(one)) for one in (job.estimator, *values))


def _estimators(job: Job) -> Iterator[Any]:
    yield job.estimator
    for params in job.candidates:
        for value in params.values():
            yield from _estimators_in(value)


def _estimators_in(value: Any) -> Iterator[Any]:
    """Estimators among the values of a setting, such as ``steps`` of a pipeline."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _estimators_in(one)
    elif hasattr(value, "fit") and not isinstance(value, type):
        yield value


def _move_job_to_host(job: Job) -> Job:
    X, y = (
        (job.copy_to_host(frame_of_array(job.X), "X"), job.copy_to_host(job.y, "y"))
        if job.host_data is None
        else job.host_data
    )
    return _with_rows(replace(job, X=X, y=y), job.copy_to_host)


def _with_rows(job: Job, change: Callable[[Any], Any]) -> Job:
    """The job with y, weights and whatever else has a value for each row changed."""
    options = job.options
    with label_transfers("weights"):
        params = [
            {name: change(v) for name, v in p.items()} for p in (options.fit_params, options.score_params)
        ]
    with label_transfers("y"):
        y = change(job.y)
    return replace(job, y=y, options=replace(options, fit_params=params[0], score_params=params[1]))


def _as_array(value: Any, n: int) -> Any:
    """An array for lists of n, and for pandas' and other series of the host; anything else as it is."""
    framed = hasattr(value, "__array__") and not is_array(value) and container_kind(value) is None
    return np.asarray(value) if framed or (isinstance(value, list | tuple) and len(value) == n) else value


def move_data_to_host(caller: str, why: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Data as they are, or all of them on the host if any lies on a device; that is a host fallback."""
    on_device = [value for value in data.values() if container_kind(value) is not None]
    if not on_device:
        return dict(data)
    warn_moved_to_host(caller, on_device, why)
    to_host = TransferCache()
    return {
        name: to_host(frame_of_array(value) if is_xp_array(value) else value) for name, value in data.items()
    }


def warn_moved_to_host(estimator: str, arrays: Iterable[Any], why: str) -> None:
    """Warn that an estimator copies device arrays to the host, or raise, as ``host_fallback`` says."""
    moved = [one for one in arrays if is_device_frame(one) or is_on_device(one)]
    if moved:
        first = moved[0]
        source = f"a {type(first).__name__}" if is_device_frame(first) else f"device {device(first)}"
        text = f"{estimator} works on the host and copies data from {source}: {why}. {_ADVICE}"
        warn_host_fallback(estimator, text)
