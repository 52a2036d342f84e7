"""Strategies: each is one way to answer a group of settings, from its plan to its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from manyfit.arrays import TransferCache
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.estimators import Family, affine_step_of
from manyfit.folds import Splits, Unsupported
from manyfit.metrics import SharedScoring
from manyfit.model_selection.job._job import Job, Options, Pair, Result
from manyfit.model_selection.planning._convergence import stops_as_sklearn
from manyfit.model_selection.planning._data_location import data_for_fits
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec
from manyfit.model_selection.planning._plan import Group, Plan
from manyfit.model_selection.planning._search_data import SearchData
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.sharing._fold_store import FoldStore


@dataclass(frozen=True)
class Batch:
    """Settings that a strategy may answer together.

    `specs` are texts where a setting cannot be read as a pipeline. With a family, settings differ in its free
    parameters only; without one, `reason` says why they share no more.
    """

    candidates: tuple[int, ...]
    specs: tuple[PipelineSpec | str, ...]
    family: Family | None = None
    reason: str = ""

    @property
    def spec(self) -> PipelineSpec:
        """The first setting."""
        first = self.specs[0]
        assert isinstance(first, PipelineSpec)
        return first

    @property
    def settings(self) -> tuple[Mapping[str, Any], ...]:
        """Values of the family's free parameters."""
        assert self.family is not None
        free = self.family.free
        finals = [spec.final for spec in self.specs if isinstance(spec, PipelineSpec)]
        return tuple({name: final.params[name] for name in free} for final in finals)

    @property
    def is_affine(self) -> bool:
        """Whether all steps before the last one are affine."""
        return all(affine_step_of(step.cls) for step in self.spec.steps)

    @property
    def title(self) -> str:
        """The classes of the estimators, as the plan prints them."""
        return " > ".join(step.cls.__name__ for step in (*self.spec.steps, self.spec.final))

    def narrowed(self, kept: Sequence[int]) -> Batch:
        """The settings at some positions."""
        return replace(
            self,
            candidates=tuple(self.candidates[j] for j in kept),
            specs=tuple(self.specs[j] for j in kept),
        )


@dataclass(frozen=True)
class WorkItem:
    """Work that is restored, sent and run as one.

    Attributes
    ----------
    strategy : Strategy
        Runs it.
    pairs : tuple of (candidate, split)
        What it answers.
    groups : tuple of Group
        For shared fits: the settings in question.
    others : tuple of int
        Candidates that are fitted one by one on the same fold.
    kept : tuple of int
        Candidates that are not fitted if a family leaves them: the checkpoint has their results.
    fits_rest : bool
        Whether settings that a family leaves are fitted with the steps that were fitted for it.
    divisible : bool
        Whether fits that would take long are left, to be divided among workers.
    """

    strategy: Strategy
    pairs: tuple[Pair, ...]
    groups: tuple[Group, ...] = ()
    others: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    fits_rest: bool = False
    divisible: bool = False

    @property
    def candidates(self) -> tuple[int, ...]:
        """The settings of its pairs, each once."""
        return tuple(dict.fromkeys(c for c, _ in self.pairs))

    @property
    def split(self) -> int:
        """The only split."""
        (split,) = {i for _, i in self.pairs} or {-1}
        return split


@dataclass(frozen=True)
class Schedule:
    """What strategies read of a run to cut groups into work items.

    Attributes
    ----------
    n_slots : callable
        Items that run at a time, for some candidates; 1 for items that take all cores.
    in_process : bool
        Whether items run one after the other in the process of the search.
    planned : tuple of (candidate, split)
        Pairs that are fitted one by one, and not in items of their own at the same time.
    """

    job: Job
    plan: Plan
    sink: ResultSink
    n_slots: Callable[[Sequence[int]], int]
    in_process: bool
    planned: tuple[Pair, ...] = ()


@dataclass
class RunContext:
    """What items are run with: in the process of the search, in one of joblib, or on a worker.

    Attributes
    ----------
    job : Job
        The search, or the part of it that the items read.
    order : sequence or None
        For each candidate a key that is equal where steps are shared.
    sink : ResultSink or None
        Takes results as soon as they are made; None: those of an item are taken with it.
    keeps_folds : bool
        Whether fits that follow each other find the folds of those before them.
    by_candidate : bool
        Whether fits keep scikit-learn's order.
    returns_early : bool
        Whether an item that takes long is to return with what is done by then.
    many_items : bool
        Whether short items follow each other on a worker.
    refused : dict of pair to str
        What families have left so far.
    folds : FoldStore or None
        The folds that fits have left for those that follow.
    """

    job: Job
    order: Sequence[Any] | Mapping[int, Any] | None = None
    sink: ResultSink | None = None
    keeps_folds: bool = False
    by_candidate: bool = False
    returns_early: bool = False
    many_items: bool = False
    refused: dict[Pair, str] = field(default_factory=dict)
    folds: FoldStore | None = None
    _fitted: Job | None = None
    _answered: Job | None = None
    _splits: dict[frozenset[int], Splits] = field(default_factory=dict, repr=False)

    @cached_property
    def data(self) -> SearchData:
        """The matrices that moments and iterations read."""
        return SearchData(self.job)

    @property
    def fitted(self) -> Job:
        """The job with its data where single fits are made."""
        if self._fitted is None:  # no cached property: warnings look for the frame of the user
            self._fitted = data_for_fits(self.job)
        return self._fitted

    @property
    def answered(self) -> Job:
        """The job as families behind fitted steps read it: y on the host, and the search's own scorers."""
        if self._answered is None:
            y = self.job.brought(self.fitted.y, "y")
            self._answered = replace(self.fitted, y=y, options=self.job.options)
        return self._answered

    @cached_property
    def sklearn_stops(self) -> bool:
        """See `stops_as_sklearn`, for families behind fitted steps."""
        return stops_as_sklearn(self.answered)

    @cached_property
    def copied_folds(self) -> FoldStore | None:
        """Folds of which each of many short fits gets copies; None if its own rows are quicker."""
        job = self.fitted
        if not self.many_items or len(job.candidates) == 1:
            return None  # no fold is read twice
        if not all(one is None or type(one) is np.ndarray for one in (job.X, job.y)):
            return None
        return FoldStore(job.X, job.y, job.splits, job.options, share_steps=False, in_turn=False)

    @property
    def may_fit_rest(self) -> bool:
        """Whether single fits read the same data as families."""
        return self.answered.y is self.fitted.y

    def add(self, results: Mapping[Pair, Result], *, alone: bool) -> None:
        """Hand finished results to the sink, if there is one."""
        if self.sink is not None:
            self.sink.add(results, alone=alone)

    def for_item(self, item: WorkItem) -> RunContext:
        """The part that another process needs to run an item."""
        candidates, indices = {*item.candidates, *item.others}, frozenset(i for _, i in item.pairs)
        if indices not in self._splits:
            self._splits[indices] = self.job.splits.only(indices)
        splits = self._splits[indices]
        context = RunContext(_part(self.job, candidates, splits))
        if self.order is not None:
            context.order = {c: self.order[c] for c in candidates}
        context._fitted = _part(self.fitted, candidates, splits)
        if item.strategy.shares_fits:
            context._answered = _part(self.answered, candidates, splits)
            vars(context)["sklearn_stops"] = self.sklearn_stops
        return context


class _Some(Sequence[Any]):
    """Some values of a sequence, at their positions among all."""

    def __init__(self, values: Mapping[int, Any], n: int) -> None:
        self._values, self._n = values, n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, j: Any) -> Any:
        return self._values[j]


def _part(job: Job, candidates: set[int], splits: Splits) -> Job:
    """A job with some of its settings and splits, and nothing that belongs to this process."""
    contexts, k = job.contexts, job.splits.n_splits
    if contexts is not None:
        chosen = [c * k + i for c in candidates for i in splits.chosen]
        contexts = _Some({j: contexts[j] for j in chosen}, len(contexts))
    return replace(
        job,
        candidates=_Some({c: job.candidates[c] for c in candidates}, len(job.candidates)),
        splits=splits,
        search=None if contexts is None else job.search,
        contexts=contexts,
        client=None,
        home=None,
        brought=TransferCache(),
    )


@dataclass(frozen=True)
class Strategy:
    """One way to answer groups of settings: serves them in a plan, cuts them into items, and runs these.

    Attributes
    ----------
    kind : str
        Its name in plans and reports.
    title : str
        The heading of its groups in a plan.
    shares_fits : bool
        Whether the fits of the last step are shared.
    shares_steps : bool
        Whether steps are fitted for several settings at once.
    takes_all_cores : bool
        Whether an item uses all cores, and so runs in the process of the search rather than in joblib's.
    last_step_place : tuple of str
        Where the last step works on data of a device, and why.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    shares_fits: ClassVar[bool] = False
    shares_steps: ClassVar[bool] = False
    takes_all_cores: ClassVar[bool] = False
    last_step_place: ClassVar[tuple[Literal["device", "host"], str]] = ("device", "")

    def heading(self, group: Group) -> str:
        """The heading of a group in a plan."""
        return self.title

    def matches(self, batch: Batch) -> bool:
        """Whether this is the way for a batch that a family serves."""
        return False

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        """The group of a batch; raises `Unsupported` with the reason that the plan prints."""
        raise NotImplementedError

    def work_items(self, groups: Sequence[Group], schedule: Schedule) -> list[WorkItem]:
        """The items of some groups, without those that the checkpoint has."""
        raise NotImplementedError

    def run(self, item: WorkItem, context: RunContext) -> TaskResult:
        """Answer an item; what shared work leaves is noted with its reason."""
        raise NotImplementedError

    def setting_fronts(self, item: WorkItem) -> Sequence[int]:
        """Candidates whose row-wise steps other processes find applied to all rows."""
        return ()

    def after_loss(self, item: WorkItem, job: Job, lost: WorkerLost) -> tuple[TaskResult, list[WorkItem]]:
        """What becomes of an item that workers died of: results, and items that are to be tried."""
        return TaskResult(alone=dict.fromkeys(item.pairs, "the worker died of the shared work")), []


def scoring_of(group: Group, options: Options) -> SharedScoring:
    """The scorers of a search for the answers of one group."""
    return SharedScoring(options.scorer, options.score_params, group.prototype)


def why_not(error: Exception) -> str:
    """The reason that an exception in shared work gives; scikit-learn fits the pairs instead."""
    return str(error) if isinstance(error, Unsupported) else f"shared work failed ({type(error).__name__})"


def leave(outcome: TaskResult, pairs: Sequence[Pair], why: str) -> None:
    """Leave those of some pairs that have no result to scikit-learn."""
    outcome.alone.update(dict.fromkeys((pair for pair in pairs if pair not in outcome.results), why))
