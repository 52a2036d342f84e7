"""The place where each estimator of a search on a device works, and why, for its plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from sklearn.pipeline import FeatureUnion

from manyfit._compat import output_container
from manyfit._config import get_config
from manyfit.arrays import container_place, is_xp_array
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.introspection.composites import pipeline_steps
from manyfit.introspection.gpu_support import is_drop_in, supports_array_api, supports_device_data_natively
from manyfit.model_selection.job._job import Job
from manyfit.model_selection.planning._plan import Group, WorkPlace
from manyfit.model_selection.planning.places._data_location import (
    host_only_estimators,
    moves_to_gpu,
    place_of_work,
    why_host_only,
)
from manyfit.model_selection.planning.steps._order import build_candidate
from manyfit.model_selection.planning.steps._outputs import is_left_out, makes_sparse, parts_of

_MOMENTS = WorkPlace("moments of X and y", "device", "rows are summed where X lies")
_FROM_MOMENTS = "it works on the moments, which are small"


class WorkPlaces:
    """Finds where the estimators of a search work if its data lie on a device, or are sent to one."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._place = place_of_work(job) if job.client is None else container_place(job.X)
        y = job.y
        self._n_targets = y.shape[1] if getattr(y, "ndim", 1) == 2 else 1

    def locate(self, group: Group) -> tuple[WorkPlace, ...]:
        """The places where the estimators of a group work; empty if the data stay in host memory."""
        if self._reads_host_memory:
            return ()
        if self._job.client is not None:
            why = "the cluster fits it; each worker sends the data to its own device"
            return self._everywhere(group, "workers", why)
        why_host = self._why_host()
        if why_host:
            return self._everywhere(group, "host", why_host)
        strategy = group.strategy
        if strategy.shares_fits and not strategy.shares_steps:
            return tuple(_shared(group))
        names = host_only_estimators(self._job)
        if names:
            return self._everywhere(group, "host", why_host_only(names))
        first = group.candidates[:1] if strategy.shares_fits else group.candidates
        found = [
            self._walk(build_candidate(self._job, c), group if strategy.shares_fits else None) for c in first
        ]
        return tuple(dict.fromkeys(place for places in found for place in places))

    def locate_refit(self) -> tuple[WorkPlace, ...]:
        """The places where the estimators of the first setting would be refitted, in this process."""
        if self._reads_host_memory or not getattr(self._job.search, "refit", False):
            return ()
        model = build_candidate(self._job, 0)
        why_host = self._why_host()
        names = host_only_estimators(self._job, cut=False)
        if names and not why_host:
            why_host = why_host_only(names)
        if why_host:
            return tuple(WorkPlace(_name(step), "host", why_host) for step in pipeline_steps(model))
        return tuple(self._walk(model))

    @property
    def _reads_host_memory(self) -> bool:
        return self._place is None or self._place.on_host

    def _why_host(self) -> str:
        """Why the host does all work, whatever the estimators are; empty if it does not."""
        if get_config()["device"] == "cpu" and self._job.client is None:
            return "device='cpu' is set"
        if not (is_xp_array(self._job.X) or moves_to_gpu(self._job.X)):
            return "X lies on the host"
        return ""

    def _everywhere(self, group: Group, where: Literal["host", "workers"], why: str) -> tuple[WorkPlace, ...]:
        names = dict.fromkeys(
            _name(step) for c in group.candidates for step in pipeline_steps(build_candidate(self._job, c))
        )
        return tuple(WorkPlace(name, where, why) for name in names)

    def _walk(self, model: Any, family: Group | None = None) -> list[WorkPlace]:
        """The places of the steps of a setting; `family` is its group if fits of the last one are shared."""
        found: list[WorkPlace] = []
        *steps, last = pipeline_steps(model)
        stays = self._through(steps, "", found)
        if stays or family is None:
            self._through([last], stays, found, n_targets=self._n_targets)
        else:
            found.append(WorkPlace(_name(last), *family.strategy.last_step_place))
        return found

    def _through(
        self, steps: list[Any], stays: str, found: list[WorkPlace], path: str = "", n_targets: int = 1
    ) -> str:
        """Add the places of consecutive steps; return why their output stays on the host, or an empty text.

        `stays` is why the input of the first step lies on the host.
        """
        from manyfit.estimators.backends.selection import find_fitting_place

        assert self._place is not None
        for step in steps:
            what = f"{path}: {_name(step)}" if path else _name(step)
            if is_left_out(step):
                continue
            if stays:
                found.append(WorkPlace(what, "host", stays))
            elif not is_drop_in(step):
                found.append(WorkPlace(what, "device", _why_device(step)))
            else:
                where, why = find_fitting_place(step, self._place, n_targets)
                if where == "device" and parts_of(step, None) is not None:
                    stays = self._parts(step, what, found, path)
                else:
                    found.append(WorkPlace(what, where, why))
                    stays = self._left_on_host(step) if where == "host" else ""
        return stays

    def _parts(self, holder: Any, what: str, found: list[WorkPlace], path: str) -> str:
        """The places of a composite's parts, and its own, where it joins their columns."""
        ends = []
        for part in parts_of(holder, None) or ():
            name = f"{path}__{part.name}" if path else part.name
            ends.append(self._through(list(pipeline_steps(part.estimator)), "", found, name))
        sparse = sklearn_class_of(type(holder)) is FeatureUnion and any("sparse" in end for end in ends)
        if (ends and all(ends)) or sparse:
            why = "columns of its parts lie on the host" if not sparse else "its columns are sparse"
            found.append(WorkPlace(what, "host", why))
            return next(end for end in ends if end)
        found.append(WorkPlace(what, "device", "columns of its parts are joined where X lies"))
        return ""

    def _left_on_host(self, step: Any) -> str:
        """Why the output of a step on the host stays on it; an empty text if it goes to the device."""
        assert self._place is not None
        if hasattr(step, "transform") and output_container(step) != "default":
            return f"{_name(step)} gives it a frame, which stays on the host"
        if makes_sparse(step) and self._place.library != "cupy":
            return f"{_name(step)} gives it a sparse matrix, which stays on the host"
        return ""


def _shared(group: Group) -> Iterator[WorkPlace]:
    """Places of a group whose fits and affine steps are shared as a whole."""
    where, why = group.strategy.last_step_place
    if group.steps or where == "host":
        yield _MOMENTS
    for step in group.steps:
        yield WorkPlace(step.cls.__name__, "host", _FROM_MOMENTS)
    yield WorkPlace(type(group.prototype).__name__, where, why)


def _why_device(step: Any) -> str:
    """Why an estimator that is not a drop-in reads arrays of a device."""
    if supports_device_data_natively(step):
        return "it takes arrays of a device itself"
    if type(step).__module__.startswith("sklearn.") and supports_array_api(step):
        return "scikit-learn's array API dispatch supports it"
    return "it is not scikit-learn's, and is given what X is"


def _name(estimator: Any) -> str:
    return type(estimator).__name__
