"""What runs on a worker of a cluster: the items that a job is cut into, under the settings of who asks."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from joblib import parallel_config
from sklearn import config_context
from sklearn.utils.parallel import delayed

from manyfit._config import config_context as config
from manyfit.cluster.inspection.versions import version_differences, versions_error
from manyfit.cluster.worker.errors import end_if_device_is_lost
from manyfit.cluster.worker.task_context import (
    PartialResult,
    still_wanted,
    task_scratch,
    worker_runs_one_task,
)
from manyfit.folds import check_blas_threads
from manyfit.model_selection.checkpoint._search_identity import versions
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.planning._data_location import where_fitted
from manyfit.model_selection.planning._plan import Group, Kind
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.results._progress_bar import Progress
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running._remote_callbacks import Callbacks
from manyfit.model_selection.sharing._fit_and_score import FoldStore
from manyfit.model_selection.strategies._fold_families import run_family_split
from manyfit.model_selection.strategies._individual_fits import Enough, fit_on, fit_piece, folds_to_share
from manyfit.model_selection.strategies._iterations import run_iterations
from manyfit.model_selection.strategies._moments import run_moments
from manyfit.model_selection.strategies._rest_of_fold import Then

T = TypeVar("T")


@dataclass(frozen=True)
class Item:
    """A part of a job that one worker does.

    Attributes
    ----------
    kind : str
        Of the groups of the plan that are answered, whole or on one split; "steps" and "one by one" are fits.
    candidates : tuple of int
    splits : tuple of int or None
        None: all of them.
    kept : tuple of int
        Candidates that are not fitted if a family leaves them: the checkpoint has what comes of it.
    divided : bool
        Whether settings that a family leaves, and that take long, are to be divided among the workers.
    """

    kind: Kind
    candidates: tuple[int, ...]
    splits: tuple[int, ...] | None = None
    kept: tuple[int, ...] = ()
    divided: bool = False

    @property
    def split(self) -> int:
        """The only one."""
        assert self.splits is not None
        (split,) = self.splits
        return split

    def pairs(self, job: Job) -> list[Pair]:
        """What it answers."""
        pairs = job.pairs(self.candidates)
        return pairs if self.splits is None else [pair for pair in pairs if pair[1] in self.splits]


@dataclass(frozen=True)
class Common:
    """What all items of a search have in common.

    Attributes
    ----------
    job : Job
    config : mapping
        scikit-learn's configuration where the search was started.
    filters : sequence of tuple
        Which warnings are shown there, and which are errors.
    callbacks : Callbacks
        Of the search.
    versions : mapping of str to str
        Of the packages that results depend on, where the search was started.
    """

    job: Job
    config: Mapping[str, Any]
    filters: Sequence[Any]
    callbacks: Callbacks = field(default_factory=Callbacks)
    versions: Mapping[str, str] = field(default_factory=versions)


def run_item(item: Item, common: Common) -> TaskResult | PartialResult:
    """Answer or fit one item on a worker, under the settings of the process that asks for it.

    An estimator's own `n_jobs` is threads there, as within tasks of joblib's other backends: a worker may
    start no processes, and joblib would warn of each fit.
    """
    here = versions()
    if here != common.versions:
        _refuse_versions(here, common.versions)
    told = config(host_fallback=common.job.options.host_fallback)
    with parallel_config(backend="threading"), told, common.callbacks.heard() as messages:
        done = _run_under(item, common)
    outcome = done.result if isinstance(done, PartialResult) else done
    outcome.messages = messages
    if here != common.versions:
        outcome.versions = here
    return done


def _refuse_versions(here: Mapping[str, str], asked: Mapping[str, str]) -> None:
    """Raise if this worker has other versions than who asks: what it computed would not be taken."""
    there, theirs = ({name.lower(): one for name, one in of.items()} for of in (here, asked))
    wrong, _ = version_differences(there, theirs)
    if wrong:
        raise versions_error(wrong, "A worker")


def _run_under(item: Item, common: Common) -> TaskResult | PartialResult:
    # Filters belong to the process: tasks that run at the same time must not change them for each other.
    if common.filters == list(warnings.filters) or not worker_runs_one_task():
        with config_context(**common.config):
            return _run_item(item, common)
    task, args, kwargs = delayed(_run_item)(item, common)
    return cast(
        TaskResult | PartialResult,
        task.with_config_and_warning_filters(common.config, common.filters)(*args, **kwargs),
    )


def _run_item(item: Item, common: Common) -> TaskResult | PartialResult:
    job = common.job
    if item.kind in ("steps", "one by one"):
        job = _once_a_task("job", where_fitted, job)
        folds = _folds_of_task(job) if item.kind == "one by one" else None
        if folds is not None:
            (pair,) = item.pairs(job)
            outcome = fit_on(folds, job, pair)
            end_if_device_is_lost(outcome.results[pair]["fit_error"])
            return outcome
        outcome, left = fit_piece(job, item.split, item.candidates, item.kind == "steps", Enough().said)
        for result in outcome.results.values():
            end_if_device_is_lost(result["fit_error"])
        return PartialResult(outcome, replace(item, candidates=tuple(left))) if left else outcome
    # Planned again, from the same job: a plan holds views of the data, which are here already.
    prepared = prepare(job)
    asked = set(item.candidates)
    groups = [
        group.only(asked)
        for group in prepared.plan.groups
        if group.kind == item.kind and not asked.isdisjoint(group.candidates)
    ]
    with check_blas_threads(_stop_if_unwanted):
        if item.kind == "family":
            outcome = _families(item, job, groups, prepared.plan.order)
        else:
            outcome = _answer(item, job, groups, prepared)
    for pair in item.pairs(job):
        if pair not in outcome.results:
            outcome.alone.setdefault(pair, "the worker's plan is another one")
    left = tuple(c for c, _ in outcome.left if c not in item.kept)
    if item.kind != "family" or item.divided or not left:
        return outcome
    return PartialResult(outcome, replace(item, kind="steps", candidates=left, kept=()))


def _families(item: Item, job: Job, groups: Sequence[Group], order: Sequence[Any] | None) -> TaskResult:
    """Answer groups on one split, and fit what they leave; if that takes long, some is left over."""
    kept = frozenset((c, item.split) for c in item.kept)
    then = Then(where_fitted(job).options, order, kept=kept)
    outcome = run_family_split(job, groups, item.split, then, Enough())
    for pair in outcome.fitted:
        end_if_device_is_lost(outcome.results[pair]["fit_error"])
    return outcome


def _folds_of_task(job: Job) -> FoldStore | None:
    """Rows that short fits, many to a task, need not cut each for itself."""
    return None if task_scratch() is None else _once_a_task("folds", folds_to_share, job)


def _once_a_task(name: str, make: Callable[[Job], T], job: Job) -> T:
    """What is made of the job of a task, which is the same for all of its items."""
    left = task_scratch()
    if left is None:  # it is the only one
        return make(job)
    if name not in left:
        left[name] = make(job)
    return cast(T, left[name])


def _stop_if_unwanted() -> None:
    if not still_wanted():
        raise InterruptedError("the search was cancelled")


class _Arrivals(ResultSink):
    """Where shared work notices that nobody wants it any more."""

    def add(self, results: Mapping[Pair, Result], **how: Any) -> None:
        super().add(results, **how)
        _stop_if_unwanted()


def _answer(item: Item, job: Job, groups: Sequence[Group], prepared: Any) -> TaskResult:
    arrivals = _Arrivals(job, bar=Progress(0, 0))  # the search has one of its own
    if not groups:
        return TaskResult()
    if item.kind == "moments":
        outcome = run_moments(job, groups, prepared.data, prepared.scoring, arrivals)
        outcome.rows_read += round(prepared.data.passes * job.splits.n_samples)
        return outcome
    return run_iterations(job, groups, prepared.rows, arrivals)
