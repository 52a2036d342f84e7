"""A planned job on the workers of a cluster: cut into items, run there, and put together again."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
from sklearn import get_config
from sklearn.base import clone

from manyfit.cluster.inspection.gpu_workers import GPU
from manyfit.cluster.inspection.versions import require_versions
from manyfit.cluster.pool.run import count_slots, run_on_cluster
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.model_selection.checkpoint._search_identity import draws
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.planning._data_location import falls_back_to_host
from manyfit.model_selection.planning._pieces import cut_into_pieces
from manyfit.model_selection.planning._plan import Group, Kind, Plan
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running._gpu_needs import gpu_needs
from manyfit.model_selection.running._remote_callbacks import Callbacks, deliver_all
from manyfit.model_selection.running._worker_items import Common, Item, run_item
from manyfit.model_selection.sharing._fit_and_score import FoldStore
from manyfit.model_selection.sharing._fit_and_score import fit_with_sklearn as fit_alone
from manyfit.model_selection.sharing._fit_on_copies import RaisingEstimator
from manyfit.model_selection.strategies._fold_families import not_restored

# A group that iterates is cut into parts of at least so many nanoseconds, as its family expects. Its coarse
# problems, and a pass or two, are made for each part anew.
PART_OPERATIONS = 2.5e8


def run_on_workers(job: Job, plan: Plan, arrivals: ResultSink) -> TaskResult:
    """Answer and fit everything that a plan says, on the workers of ``job.client``.

    Moments of all folds are one item, so that results do not depend on the number of workers. A group of
    iterating fits is one item, too; a longer one is cut by settings, and where within its tolerance an answer
    ends may depend on the parts.
    """
    search = _Search(job, plan, arrivals)
    search.run(search.groups())
    left = search.total.left
    if left:  # by the groups, or by workers that died of a group
        search.run(search.fits(left))
    return search.total


def fit_on_workers(job: Job, plan: Plan, pairs: Sequence[Pair], arrivals: ResultSink) -> TaskResult:
    """Fit some pairs of a planned job one by one, on the workers of ``job.client``."""
    search = _Search(job, plan, arrivals)
    search.run(search.fits(pairs))
    return search.total


class _Search:
    """A job on its way through the workers."""

    def __init__(self, job: Job, plan: Plan, arrivals: ResultSink) -> None:
        self.job, self.plan, self.arrivals = job, plan, arrivals
        self.total = TaskResult()
        options = replace(job.options, verbose=0)  # its lines are printed here
        bare = replace(job, options=options, client=None, n_jobs=1)
        callbacks = Callbacks()
        if job.contexts is None:
            bare = replace(bare, search=None)
        else:
            callbacks = Callbacks.of(job.search)
        self._common = Common(bare, get_config(), list(warnings.filters), callbacks)
        # Else an equal search at the same time would have the same tasks: the same draws, or callbacks that
        # hear nothing.
        self._salt = uuid4().hex if job.contexts is not None or draws(job) else ""
        self._takes_gpu = gpu_needs(job)
        self._versions: list[Mapping[str, str]] = []  # other ones than ours, which were compared

    def groups(self) -> list[Item]:
        """What is to be done: all but what the checkpoint has."""
        job, plan, arrivals = self.job, self.plan, self.arrivals
        items = []
        moments = [c for group in plan.groups if group.kind == "moments" for c in group.candidates]
        if moments and not arrivals.restore(job.pairs(moments)):
            items.append(Item("moments", tuple(moments)))
        passes = [group for group in plan.groups if group.kind == "passes"]
        for group in passes:
            if not arrivals.restore(job.pairs(group.candidates)):
                n_slots = count_slots(job.client, self._needs(group.candidates))
                parts = cut(group, n_slots, len(passes))
                items += [Item("passes", cs) for cs in parts if not arrivals.restore(job.pairs(cs))]
        families = [group for group in plan.groups if group.kind == "family"]
        items += self._families(families)
        rest = [c for group in plan.groups if group.kind in ("steps", "one by one") for c in group.candidates]
        return items + self.fits(job.pairs(sorted(rest)))

    def _families(self, groups: Sequence[Group]) -> list[Item]:
        """A split each; what is left of those that are no whole round of the workers may be divided."""
        items: list[Item] = []
        for i in range(self.job.splits.n_splits):
            left = [c for group in not_restored(groups, i, self.arrivals) for c in group.candidates]
            if left:
                kept = self.arrivals.kept_alone((c, i) for c in left)
                items.append(Item("family", tuple(left), (i,), tuple(sorted(c for c, _ in kept))))
        if not items:
            return []
        n_slots = count_slots(self.job.client, self._needs(items[0].candidates))
        whole = len(items) - len(items) % n_slots
        return items[:whole] + [replace(item, divided=True) for item in items[whole:]]

    def fits(self, pairs: Sequence[Pair]) -> list[Item]:
        """Pairs that are fitted each for itself, as items."""
        pairs = [pair for pair in pairs if not self.arrivals.restore([pair], alone=True)]
        if not pairs:
            return []
        falls_back_to_host(self.job)  # what its workers say of it is not heard here
        order = self.plan.order
        kind: Kind = "one by one" if order is None else "steps"
        n_slots = count_slots(self.job.client, self._needs(sorted({c for c, _ in pairs})))
        return [Item(kind, tuple(cs), (i,)) for i, cs in cut_into_pieces(pairs, order, n_slots)]

    def run(self, items: Sequence[Item]) -> None:
        """Have items done, and take what they come to."""
        job, suspects = self.job, list[Item]()
        for item, part in self._results(run_item, items):
            if not isinstance(part, WorkerLost):
                deliver_all(part.messages)
                self._require_versions(part)
                self.total.add(part)
                self.arrivals.steps_saved += part.work["transformer_fits_saved"]
                self.arrivals.take(part, alone=item.kind in ("steps", "one by one"))
            elif item.kind == "one by one":
                dead = {pair: _of_the_dead(job, pair, part) for pair in item.pairs(job)}
                self.total.results.update(dead)
                # Another cluster may have the memory for it.
                self.arrivals.add(dead, alone=True, lasting=False)
            elif item.kind == "steps":
                suspects += [Item("one by one", (c,), (i,)) for c, i in item.pairs(job)]
            else:
                self.total.alone.update(dict.fromkeys(item.pairs(job), "the worker died of the shared work"))
        if suspects:
            self.run(suspects)

    def _require_versions(self, part: TaskResult) -> None:
        """Refuse what a worker of other versions computed before it said which they are."""
        if part.versions is not None and part.versions not in self._versions:
            there = {name.lower(): version for name, version in part.versions.items()}
            require_versions(there, "A worker", self.job.client)
            self._versions.append(part.versions)

    def _needs(self, candidates: Sequence[int]) -> Mapping[str, float]:
        return {GPU: 1} if self._takes_gpu(candidates) else {}

    def _results(self, function: Any, items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        job = self.job
        params = [*job.options.fit_params.values(), *job.options.score_params.values()]
        estimator = _name(job.estimator)
        return run_on_cluster(
            job.client,
            function,
            items,
            self._common,
            name=lambda item: f"{item.kind.replace(' ', '_')}-{estimator}",
            fuse=lambda item: item.kind == "one by one",
            needs=lambda item: self._needs(item.candidates),
            owners=[job.X, job.y, *params],
            salt=self._salt,
        )


def cut(group: Group, n_slots: int, n_groups: int) -> list[tuple[int, ...]]:
    """The settings of a group that iterates, in parts for several workers at once where that is worth it.

    By settings and not by splits: those share Hessians, and passes over few columns are no quicker.
    """
    n = min(-(-n_slots // n_groups), int(group.operations / PART_OPERATIONS), len(group.candidates))
    return [tuple(int(c) for c in part) for part in np.array_split(group.candidates, max(1, n))]


def _name(estimator: Any) -> str:
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1] if steps else estimator).__name__


# ------------------------------------------------------------------------------------ of the dead


def _of_the_dead(job: Job, pair: Pair, died: WorkerLost) -> Result:
    """What scikit-learn makes of a fit that fails: an error score, or the exception."""
    c, i = pair
    params = dict(job.candidates[c])
    error = type(died.error)(f"The worker died each time that it fitted {params} on split {i}. {died.error}")
    folds = FoldStore(job.X, job.y, job.splits, replace(job.options, fit_params={}), False)
    progress = (c, len(job.candidates)), (i, job.splits.n_splits)
    result = fit_alone(RaisingEstimator(error), {}, i, folds, progress)
    # As of any fit that fails: an estimator that is not fitted.
    if job.options.return_estimator:
        result["estimator"] = clone(job.estimator).set_params(**clone(params, safe=False))
    return result
