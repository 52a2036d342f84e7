"""A planned job on the workers of a cluster: cut into items, run there, and put together again."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import uuid4

import numpy as np
from joblib import parallel_config
from sklearn import config_context, get_config
from sklearn.utils.parallel import delayed

from manyfit.cluster import (
    GPU,
    Died,
    Partly,
    Progress,
    alone,
    end_if_device_is_lost,
    left_here,
    run_on_cluster,
    slots,
    wanted,
)
from manyfit.folds import checked
from manyfit.model_selection._arrivals import Arrivals
from manyfit.model_selection._callbacks import Callbacks, deliver_all
from manyfit.model_selection._device_work import takes_gpu
from manyfit.model_selection._evaluate import Fails, FoldStore
from manyfit.model_selection._evaluate import alone as fit_alone
from manyfit.model_selection._family_tasks import not_restored, run_family_split
from manyfit.model_selection._identity import draws
from manyfit.model_selection._job import Job, Pair, Result
from manyfit.model_selection._moment_groups import run_moments
from manyfit.model_selection._one_by_one import fit_on, fit_piece, folds_to_share, pieces
from manyfit.model_selection._outcome import Outcome
from manyfit.model_selection._pass_groups import run_passes
from manyfit.model_selection._plan import Group, Kind, Plan
from manyfit.model_selection._planner import prepare

# Fits that share steps are handed back after so long, and so many times as long as the first of them took.
HAND_BACK_S, HAND_BACK = 2.0, 10.0
# A group that iterates is cut into parts of at least so many operations: some tenths of a second. Its coarse
# problems, and a pass or two, are made for each part anew.
PART_OPERATIONS = 5e9


@dataclass(frozen=True)
class Item:
    """A part of a job that one worker does.

    Attributes
    ----------
    kind : str
        Of the groups of the plan that are answered, whole or on one split; "steps" and "one by one" are fits.
    candidates : tuple of int
    split : int or None
        None: all of them.
    """

    kind: Kind
    candidates: tuple[int, ...]
    split: int | None = None

    def pairs(self, job: Job) -> list[Pair]:
        """What it answers."""
        return [pair for pair in job.pairs(self.candidates) if self.split in (None, pair[1])]


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
    """

    job: Job
    config: Mapping[str, Any]
    filters: Sequence[Any]
    callbacks: Callbacks = field(default_factory=Callbacks)


def run_on_workers(job: Job, plan: Plan, arrivals: Arrivals) -> Outcome:
    """Answer and fit everything that a plan says, on the workers of ``job.client``.

    Moments of all folds are one item: their sums are added in the same order as in one process, so that
    results do not depend on the number of workers. So is a group of iterating fits that does not take long;
    a longer one is cut by settings, and where within its tolerance an answer ends may depend on the parts.
    """
    search = _Search(job, plan, arrivals)
    search.run(search.groups())
    left = sorted(search.total.alone)
    if left:  # by the groups, or by workers that died of a group
        search.run(search.fits(left))
    return search.total


class _Search:
    """A job on its way through the workers."""

    def __init__(self, job: Job, plan: Plan, arrivals: Arrivals) -> None:
        self.job, self.plan, self.arrivals = job, plan, arrivals
        self.total = Outcome()
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
        self._takes_gpu = takes_gpu(job)

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
                n_slots = slots(job.client, self._needs(group.candidates))
                items += [Item("passes", cs) for cs in cut(group, n_slots, len(passes))]
        families = [group for group in plan.groups if group.kind == "family"]
        for i in range(job.splits.n_splits):
            left = [c for group in not_restored(families, i, arrivals) for c in group.candidates]
            if left:
                items.append(Item("family", tuple(left), i))
        rest = [c for group in plan.groups if group.kind in ("steps", "one by one") for c in group.candidates]
        return items + self.fits(job.pairs(sorted(rest)))

    def fits(self, pairs: Sequence[Pair]) -> list[Item]:
        """Pairs that are fitted each for itself, as items."""
        pairs = [pair for pair in pairs if not self.arrivals.restore([pair], alone=True)]
        if not pairs:
            return []
        order = self.plan.order
        kind: Kind = "one by one" if order is None else "steps"
        n_slots = slots(self.job.client, self._needs(sorted({c for c, _ in pairs})))
        return [Item(kind, tuple(cs), i) for i, cs in pieces(pairs, order, n_slots)]

    def run(self, items: Sequence[Item]) -> None:
        """Have items done, and take what they come to."""
        job, suspects = self.job, list[Item]()
        for item, part in self._results(items):
            if not isinstance(part, Died):
                deliver_all(part.messages)
                self.total.add(part)
                self.arrivals.add(part.results, alone=item.kind in ("steps", "one by one"))
            elif item.kind == "one by one":
                dead = {pair: _of_the_dead(job, pair, part) for pair in item.pairs(job)}
                self.total.results.update(dead)
                # Another cluster may have the memory for it.
                self.arrivals.add(dead, alone=True, lasting=False)
            elif item.kind == "steps":
                suspects += [Item("one by one", (c,), i) for c, i in item.pairs(job)]
            else:
                self.total.alone.update(dict.fromkeys(item.pairs(job), "the worker died of the shared work"))
        if suspects:
            self.run(suspects)

    def _needs(self, candidates: Sequence[int]) -> Mapping[str, float]:
        return {GPU: 1} if self._takes_gpu(candidates) else {}

    def _results(self, items: Sequence[Item]) -> Iterator[tuple[Item, Any]]:
        job = self.job
        params = [*job.options.fit_params.values(), *job.options.score_params.values()]
        estimator = _name(job.estimator)
        return run_on_cluster(
            job.client,
            run_item,
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


# ------------------------------------------------------------------------------------ on a worker


def run_item(item: Item, common: Common) -> Outcome | Partly:
    """Answer or fit one item on a worker, under the settings of the process that asks for it.

    An estimator's own `n_jobs` is threads there, as within tasks of joblib's other backends: a worker may
    start no processes, and joblib would warn of each fit.
    """
    with parallel_config(backend="threading"), common.callbacks.heard() as messages:
        done = _run_under(item, common)
    (done.result if isinstance(done, Partly) else done).messages = messages
    return done


def _run_under(item: Item, common: Common) -> Outcome | Partly:
    # Filters belong to the process: tasks that run at the same time must not change them for each other.
    if common.filters == list(warnings.filters) or not alone():
        with config_context(**common.config):
            return _run_item(item, common.job)
    task, args, kwargs = delayed(_run_item)(item, common.job)
    return cast(
        Outcome | Partly, task.with_config_and_warning_filters(common.config, common.filters)(*args, **kwargs)
    )


def _run_item(item: Item, job: Job) -> Outcome | Partly:
    if item.kind in ("steps", "one by one"):
        assert item.split is not None
        folds = _folds_of_task(job) if item.kind == "one by one" else None
        if folds is not None:
            (pair,) = item.pairs(job)
            outcome = fit_on(folds, job, pair)
            end_if_device_is_lost(outcome.results[pair]["fit_error"])
            return outcome
        outcome, left = fit_piece(job, item.split, item.candidates, item.kind == "steps", _Enough().said)
        for result in outcome.results.values():
            end_if_device_is_lost(result["fit_error"])
        return Partly(outcome, replace(item, candidates=tuple(left))) if left else outcome
    # Planned again, from the same job: a plan holds views of the data, which are here already.
    prepared = prepare(job)
    asked = set(item.candidates)
    groups = [
        group.only(asked)
        for group in prepared.plan.groups
        if group.kind == item.kind and not asked.isdisjoint(group.candidates)
    ]
    with checked(_stop_if_unwanted):
        outcome = _answer(item, job, groups, prepared)
    for pair in item.pairs(job):
        if pair not in outcome.results:
            outcome.alone.setdefault(pair, "the worker's plan is another one")
    return outcome


def _folds_of_task(job: Job) -> FoldStore | None:
    """Rows that short fits, many to a task, need not cut each for itself."""
    left = left_here()
    if left is None:
        return None
    if "folds" not in left:
        left["folds"] = folds_to_share(job)
    return cast(FoldStore | None, left["folds"])


class _Enough:
    """When a piece of fits that share steps hands the rest back: others may have time, or nobody wants it."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._first: float | None = None

    def said(self) -> bool:
        """Whether to stop after this fit."""
        seconds = time.perf_counter() - self._start
        if self._first is None:
            self._first = seconds  # with all of its steps, which whoever goes on has to fit again
        return seconds > max(HAND_BACK_S, HAND_BACK * self._first) or not wanted()


def _stop_if_unwanted() -> None:
    if not wanted():
        raise InterruptedError("the search was cancelled")


class _Arrivals(Arrivals):
    """Where shared work notices that nobody wants it any more."""

    def add(self, results: Mapping[Pair, Result], *, alone: bool, lasting: bool = True) -> None:
        super().add(results, alone=alone, lasting=lasting)
        _stop_if_unwanted()


def _answer(item: Item, job: Job, groups: Sequence[Group], prepared: Any) -> Outcome:
    arrivals = _Arrivals(job, bar=Progress(0, 0))  # the search has one of its own
    if not groups:
        return Outcome()
    if item.kind == "moments":
        outcome = run_moments(job, groups, prepared.data, prepared.scoring, arrivals)
        outcome.rows_read += round(prepared.data.passes * job.splits.n_samples)
        return outcome
    if item.kind == "passes":
        return run_passes(job, groups, prepared.rows, arrivals)
    assert item.split is not None
    return run_family_split(job, groups, item.split)


# ------------------------------------------------------------------------------------ of the dead


def _of_the_dead(job: Job, pair: Pair, died: Died) -> Result:
    """What scikit-learn makes of a fit that fails: an error score, or the exception."""
    c, i = pair
    params = dict(job.candidates[c])
    error = type(died.error)(f"The worker died each time that it fitted {params} on split {i}. {died.error}")
    folds = FoldStore(job.X, job.y, job.splits, replace(job.options, fit_params={}), False)
    progress = (c, len(job.candidates)), (i, job.splits.n_splits)
    return fit_alone(Fails(error), {}, i, folds, progress)
