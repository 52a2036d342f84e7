"""Strategies: each is one way to answer a group of settings, from its plan to its results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from manyfit._compat import routing_enabled
from manyfit.arrays import TransferCache
from manyfit.cluster.worker.errors import WorkerLost
from manyfit.families import Family, affine_step_of, column_step_of
from manyfit.folds import Splits, Unsupported
from manyfit.metrics.scoring import SharedScoring
from manyfit.model_selection.job._job import Job, Options, Pair, Result
from manyfit.model_selection.planning._cost_checks import stops_as_sklearn
from manyfit.model_selection.planning._metadata_routing import require_scored_by_last_step
from manyfit.model_selection.planning._pipeline_spec import PipelineSpec
from manyfit.model_selection.planning._plan import Group, GroupStrategy, Plan
from manyfit.model_selection.planning._search_data import SearchData
from manyfit.model_selection.planning._search_facts import SearchFacts
from manyfit.model_selection.planning.places._data_location import data_for_fits
from manyfit.model_selection.planning.steps._order import build_candidate
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
    is_sparse: bool = False  # whether X is sparse and in chunks

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
        """Whether all steps before the last one are known to be linear in the columns of X."""
        steps = self.spec.steps
        known = all(affine_step_of(step.cls) or column_step_of(step.cls) for step in steps)
        return known and not (steps and self.is_sparse)

    def subset(self, positions: Sequence[int]) -> Batch:
        return replace(
            self,
            candidates=tuple(self.candidates[j] for j in positions),
            specs=tuple(self.specs[j] for j in positions),
        )


@dataclass(frozen=True)
class WorkItem:
    """Work that is restored, sent and run as one."""

    strategy: Strategy
    pairs: tuple[Pair, ...]  # the pairs that it answers
    groups: tuple[Group, ...] = ()  # for shared fits: the groups of these pairs
    others: tuple[int, ...] = ()  # candidates that are fitted one by one on the same fold
    # Candidates that are not fitted if a family refuses them: the checkpoint has their results.
    fitted_before: tuple[int, ...] = ()
    # Whether refused settings are fitted with the steps that were fitted for the family.
    fits_rest: bool = False
    divisible: bool = False  # whether long fits are left, to be divided among workers

    @property
    def candidates(self) -> tuple[int, ...]:
        """The settings of its pairs, each once."""
        return tuple(dict.fromkeys(c for c, _ in self.pairs))

    @property
    def split(self) -> int:
        (split,) = {i for _, i in self.pairs} or {-1}
        return split


@dataclass(frozen=True)
class Schedule:
    """The parts of a run that strategies read to cut groups into work items."""

    job: Job
    plan: Plan
    sink: ResultSink
    # Items that run at a time, for some candidates; 1 for items that take all cores.
    n_slots: Callable[[Sequence[int]], int]
    in_process: bool  # whether items run one after the other in the process of the search
    # Pairs that are fitted one by one, and not in items of their own at the same time.
    planned: tuple[Pair, ...] = ()


@dataclass
class RunContext:
    """The data and settings of a run: in the process of the search, in one of joblib, or on a worker."""

    job: Job  # the search, or the part of it that the items read
    # For each candidate a key that is equal where steps are shared.
    order: Sequence[Any] | Mapping[int, Any] | None = None
    sink: ResultSink | None = None  # takes results as soon as they are made; None: after each item
    keeps_folds: bool = False  # whether fits find the folds of earlier fits
    by_candidate: bool = False  # whether fits keep scikit-learn's order
    returns_early: bool = False  # whether a long item returns what is finished
    n_threads: int = 1  # threads that a fit may have: more than one where workers would be idle
    shares_rows: bool = False  # whether items that follow each other on a worker may read the same rows
    refused: dict[Pair, str] = field(default_factory=dict)  # pairs that families have refused so far
    folds: FoldStore | None = None  # the folds of earlier fits
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
            y = self.job.copy_to_host(self.fitted.y, "y")
            self._answered = replace(self.fitted, y=y, options=self.job.options)
        return self._answered

    @cached_property
    def sklearn_stops(self) -> bool:
        """See `stops_as_sklearn`, for families behind fitted steps."""
        return stops_as_sklearn(self.answered)

    @cached_property
    def rows_of_task(self) -> FoldStore | None:
        """The folds that all short fits of a task read; None if its own rows are quicker."""
        job = self.fitted
        if not self.shares_rows or len(job.candidates) == 1:
            return None  # no fold is read twice
        if not all(one is None or type(one) is np.ndarray for one in (job.X, job.y)):
            return None
        return FoldStore(job.X, job.y, job.splits, job.options, share_steps=False, in_turn=False)

    @property
    def may_fit_rest(self) -> bool:
        """Whether single fits read the same data as families."""
        return self.answered.y is self.fitted.y

    def scoring_of(self, group: Group) -> SharedScoring:
        """The scorers of a group that reads the matrices, which take its weights."""
        scoring = scoring_of(group, self.job.options)
        self.data.require_weights(group, scoring)
        return scoring

    def add(self, results: Mapping[Pair, Result], *, individual: bool) -> None:
        """Pass finished results to the sink, if any."""
        if self.sink is not None:
            self.sink.add(results, individual=individual)

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
        by_sklearnex={c: one for c, one in job.by_sklearnex.items() if c in candidates},
        search=None if contexts is None else job.search,
        contexts=contexts,
        client=None,
        host_data=None,
        copy_to_host=TransferCache(),
    )


@dataclass(frozen=True)
class Strategy(GroupStrategy):
    """One way to answer groups of settings: it serves them in a plan, cuts them into items and runs these."""

    # Whether an item uses all cores, and so runs in the process of the search.
    takes_all_cores: ClassVar[bool] = False
    # Whether what it refuses may be served by the strategies after it.
    refuses_alone: ClassVar[bool] = False

    def matches(self, batch: Batch) -> bool:
        """Whether this is the way for a batch that a family serves."""
        return False

    def serve(self, batch: Batch, facts: SearchFacts) -> Group:
        """The group of a batch; raises `Unsupported` with the reason that the plan prints."""
        raise NotImplementedError

    def work_items(self, groups: Sequence[Group], schedule: Schedule) -> list[WorkItem]:
        """The items of some groups, without those that the checkpoint has.

        Only strategies that share fits have it: `individual_items` cuts the groups of the others together.
        """
        raise NotImplementedError

    def run(self, item: WorkItem, context: RunContext) -> TaskResult:
        """Answer an item; what shared work leaves is noted with its reason."""
        raise NotImplementedError

    def after_loss(self, item: WorkItem, job: Job, lost: WorkerLost) -> tuple[TaskResult, list[WorkItem]]:
        """Return the results of an item that killed its workers, and items to try instead."""
        return TaskResult(refused=dict.fromkeys(item.pairs, "the worker died of the shared work")), []


class DataStrategy(Strategy):
    """A strategy whose items read the matrices of all rows, and take all cores."""

    shares_fits = True
    takes_all_cores = True

    def group_of(self, batch: Batch, facts: SearchFacts) -> tuple[Group, SharedScoring]:
        """See `family_group`; also if other groups read matrices with other weights."""
        group, scoring = family_group(self, batch, facts)
        facts.data.require_weights(group, scoring)
        return group, scoring

    def work_items(self, groups: Sequence[Group], schedule: Schedule) -> list[WorkItem]:
        """See `Strategy`. All groups are one item, whose size may move the last bit of scores."""
        pairs = schedule.job.pairs([c for group in groups for c in group.candidates])
        if not pairs or schedule.sink.restore(pairs):
            return []
        return [WorkItem(self, tuple(pairs), tuple(groups))]

    def run(self, item: WorkItem, context: RunContext) -> TaskResult:
        outcome, start = TaskResult(), time.perf_counter()
        try:
            self.answer(item.groups, context, outcome)
        except Exception as error:
            outcome.leave(item.pairs, error)
        outcome.seconds = time.perf_counter() - start
        return outcome

    def answer(self, groups: Sequence[Group], context: RunContext, outcome: TaskResult) -> None:
        """Answer the groups of an item."""
        raise NotImplementedError


def scoring_of(group: Group, options: Options) -> SharedScoring:
    """The scorers of a search for the answers of one group."""
    return SharedScoring(
        options.scorer, options.score_params, group.prototype if group.wrapper is None else group.wrapper
    )


def nothing_in_common(batch: Batch) -> str:
    """Why a setting whose estimator has a family shares its fits with no other."""
    assert batch.family is not None
    names = sorted(batch.family.free)
    which = " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none of its parameters"
    return f"{batch.spec.final.cls.__name__} shares fits of settings that differ in nothing but {which}"


def family_group(strategy: Strategy, batch: Batch, facts: SearchFacts) -> tuple[Group, SharedScoring]:
    """The group of a batch whose fits are shared, and its scorers.

    Raises `Unsupported` if the search does not allow it, or if the scorers cannot score shared answers.
    """
    family, job, spec = batch.family, facts.job, batch.spec
    assert family is not None
    if family.result == "converged" and job.sharing == "exact":
        raise Unsupported("sharing='exact' leaves out families that converge")
    if job.options.return_train_score and facts.checks.writes_into_input(spec):
        raise Unsupported("training scores would be of rows that a step has overwritten (copy=False)")
    group = Group(
        strategy,
        batch.candidates,
        spec.title,
        fits_requested=len(batch.candidates) * job.splits.n_splits,
        fits_planned=0,
        settings=batch.settings,
        steps=spec.steps,
        family=family,
        prototype=spec.final.build(),
        wrapper=None if spec.wrapper is None else spec.wrapper.build(),
        path=spec.final.path,
    )
    scoring = scoring_of(group, job.options)
    if scoring.by_itself and routing_enabled():
        require_scored_by_last_step(build_candidate(job, group.candidates[0]), job.options.score_params)
    return group, scoring
