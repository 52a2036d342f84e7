"""Runs a planned job: what shares fits first, then single fits; a cluster gets both at once.

Groups of shared steps and of individual fits are cut together, by `individual_items`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan

from manyfit._compat import has_callbacks
from manyfit._config.sizes import format_count
from manyfit.arrays import is_xp_array, transfers
from manyfit.cluster.pool.run import count_slots
from manyfit.folds import ChunkRows, is_row_source
from manyfit.introspection.composites import params_of
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.job._joblib_tasks import joblib_workers
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs
from manyfit.model_selection.planning._plan import Group, Plan
from manyfit.model_selection.planning._planner import FAMILY_STRATEGIES, Prepared
from manyfit.model_selection.planning._search_data import SearchData
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running._executors import Executor, JoblibExecutor, ProcessExecutor
from manyfit.model_selection.running._race import Race, describe
from manyfit.model_selection.running._sklearnex_check import let_sklearnex_fit
from manyfit.model_selection.running._time_budget import TimeBudget, complete, n_complete
from manyfit.model_selection.running._unread_fits import (
    failed_results,
    raise_unknown_parameter,
    refusal,
)
from manyfit.model_selection.running.cluster._remote_callbacks import can_run_remotely
from manyfit.model_selection.sharing._fit_overhead import keep_signatures
from manyfit.model_selection.sharing._verbose import print_end, print_start
from manyfit.model_selection.strategies._fold_families import FOLD_FAMILIES
from manyfit.model_selection.strategies._individual_fits import INDIVIDUAL_FITS, individual_items, progress_of
from manyfit.model_selection.strategies._strategy import RunContext, Schedule, Strategy, WorkItem

FITTED_BEFORE = "scikit-learn had fitted it when the checkpoint was written"


def run(
    job: Job,
    prepared: Prepared,
    sink: ResultSink | None = None,
    budget: TimeBudget | None = None,
    race: Race | None = None,
) -> tuple[list[Result], Report]:
    """Fit and score all pairs of a job, but for those that are restored from a checkpoint.

    Returns results as scikit-learn's ``_fit_and_score`` gives them, candidate by candidate, and the report.
    A pair for which the budget leaves no time, or whose setting is out of the race, has a `NotMade`.
    """
    plan = prepared.plan
    keep_signatures([job.estimator, *(value for params in job.candidates for value in params.values())])
    on_host = not (_on_cluster(job) or is_xp_array(job.X))
    rowwise = RowwiseOutputs(job.X, job.splits, job.options.memory_limit // 4) if on_host else None
    job = replace(job, rowwise=rowwise)
    report = Report(fits_requested=job.n_pairs, workers=n_workers(job))
    report.advice = [*plan.advice, *plan.warnings]
    with transfers() as crossed, sink or ResultSink(job) as finished:
        finished.rowwise = rowwise
        job = let_sklearnex_fit(job, plan, finished, report)
        running = _Run(job, plan, report, finished, prepared.data, budget, race)
        planned = running.run_all()
        total = running.total
        finished.doubts.update(total.doubts)
        finished.results.update(running.failed)
    if rowwise is not None:
        made = min(rowwise.fits, report.transformer_fits_saved)
        report.add({"transformer_fits": rowwise.fits, "transformer_fits_saved": -made})
    results, report.fits_restored = finished.results, len(finished.restored)
    if running.failed:
        n = format_count(len(running.failed), "fit")
        text = f"{n} got error_score: they are not shared, and scikit-learn cannot read X"
        lost, given = len({c for c, _ in running.failed}), len(job.candidates)
        if lost < given and isnan(job.options.error_score):
            text += f". Settings without a score, which best_index_ leaves out: {lost} of {given}"
        report.advice.append(text)
    single = ({*total.refused, *planned} & results.keys()) - running.failed.keys()
    n_single, report.family_fits = len(single - finished.restored), total.fits_made
    report.fits_done = n_single + report.family_fits
    report.fits_requested = len(results)
    report.fits_shared = len(results) - n_single - report.fits_restored - len(running.failed)
    report.left_to_sklearn = dict(Counter(total.refused.values()))
    before = finished.restored - finished.shared
    n_results = Counter(c for c, _ in results)
    report.groups = [describe_group(group, total, before, n_results) for group in plan.groups]
    report.cross(crossed)
    report.passes += prepared.data.take_passes_predicted()
    report.bytes_read = prepared.data.bytes_read - prepared.data.bytes_before
    prepared.data.bytes_before = prepared.data.bytes_read
    out, n_done = complete(job, results)
    n_raced = 0
    if race is not None:
        report.dropped = describe(race.dropped, job.candidates, job.splits.n_splits)
        n_raced = sum(one["fits_not_made"] for one in report.dropped)
    if budget is not None and len(results) + n_raced < len(out):
        report.stopped = (
            f"after {budget.spent:.4g} s by time_budget={budget.seconds:g}: {n_done} of "
            f"{len(job.candidates)} settings have all scores, {len(out) - len(results)} fits were not made"
        )
    return out, report


def fit_pairs(job: Job, plan: Plan, pairs: Sequence[Pair], sink: ResultSink) -> Report:
    """Fit and score some pairs of a job one by one, which shared work refused; return a report.

    Pairs that the checkpoint of `sink` has as such are restored.
    """
    report = Report(fits_requested=len(pairs), workers=n_workers(job))
    with transfers() as crossed, sink as finished:
        _Run(job, plan, report, finished).fit(pairs)
    report.cross(crossed)
    report.fits_restored = len(finished.restored)
    report.fits_done = len(pairs) - report.fits_restored
    return report


def n_workers(job: Job) -> int:
    """Fits that are made at a time."""
    return count_slots(job.client) if _on_cluster(job) else joblib_workers(job.n_jobs)


def _on_cluster(job: Job) -> bool:
    if job.client is None or (job.contexts is not None and not can_run_remotely(job.search)):
        return False
    # Messages for callbacks of an estimator that is a value of the grid would be lost on a worker.
    values = {id(value): value for params in job.candidates for value in params.values()}
    held = (one for value in values.values() for one in (value, *params_of(value).values()))
    return not any(map(has_callbacks, held))


class _Run:
    def __init__(
        self,
        job: Job,
        plan: Plan,
        report: Report,
        sink: ResultSink,
        data: SearchData | None = None,
        budget: TimeBudget | None = None,
        race: Race | None = None,
    ) -> None:
        self.job, self.plan, self.report, self.sink = job, plan, report, sink
        self.total, self.budget, self.race = TaskResult(), budget, race
        self.failed: dict[Pair, Result] = {}  # left to scikit-learn, which cannot read X
        # Those whose family makes a fit for each setting, which may be dropped before its last split.
        self.racing = [group for group in plan.groups if race is not None and _needs_fit_each(group)]
        self.executor: Executor
        if _on_cluster(job):
            from manyfit.model_selection.running.cluster._dask_executor import DaskExecutor

            self.executor = DaskExecutor(job, plan, sink)
        else:
            one = joblib_workers(job.n_jobs) == 1
            context = RunContext(job, plan.order, sink, one and not plan.by_sklearn, plan.by_candidate)
            if data is not None:
                context.data = data
            self.executor = ProcessExecutor(context) if one else JoblibExecutor(context, sink)

    def run_all(self) -> Sequence[Pair]:
        """Run all groups, and fit what they leave; return the pairs that were to be fitted one by one."""
        single = [group for group in self.plan.groups if not group.strategy.shares_fits]
        planned = self.job.pairs(sorted(c for group in single for c in group.candidates))
        planned = self._fittable(planned, may_fail=getattr(self.job.search, "rounds_may_fail", False))
        if self.budget is not None:
            self._run_within(self.budget, planned)
        elif self.executor.on_cluster and self.race is None:
            items = [item for items in self._shared_items(()) for item in items]
            self._execute([*items, *self._individual_items(planned)])
            self._fit(self.total.left)
        else:
            for items in self._shared_items(planned, self._shared_at_once()):
                self._execute(items)
            if not self.executor.on_cluster:
                self._print(self.total.results, self.total.fitted)
            self._fit([*planned, *self.total.left, *self._racing_pairs()])
        if self.executor.on_cluster:
            self._print(self.total.results)
        return planned

    def _run_within(self, budget: TimeBudget, planned: Sequence[Pair]) -> None:
        """Run groups that share fits, then settings, while there is time; at least one of them."""
        groups = [group for group in self._shared_at_once() if group.strategy.shares_fits]
        last = [group for group in groups if group.strategy == FOLD_FAMILIES]  # a fit or more for each
        first = [group for group in groups if group.strategy != FOLD_FAMILIES]
        for some in (first, *([last[j]] for j in budget.order(len(last)))):
            if not self._must_stop(budget):
                for items in self._shared_items(planned, some):
                    self._execute(items)
        pairs = self._not_restored([*planned, *self.total.left, *self._racing_pairs()])
        if not self._must_stop(budget):
            for batch in budget.batches(
                pairs, len(self.job.candidates), self._n_slots(pairs), self.sink.results
            ):
                self._fit(batch)

    def _must_stop(self, budget: TimeBudget) -> bool:
        """Whether the time is over, and a setting has all its scores."""
        return budget.is_over and n_complete(self.job, self.sink.results) > 0

    def fit(self, pairs: Sequence[Pair]) -> None:
        """Fit those of some pairs one by one that have no result yet, and print their lines."""
        self._fit(pairs)
        if self.executor.on_cluster:
            self._print(self.total.results)

    def _fit(self, pairs: Sequence[Pair]) -> None:
        pairs = sorted({*pairs} - self.sink.results.keys())
        pairs = self._fittable(pairs, may_fail=bool(self.sink.results or self.failed))
        if self.race is None:
            self._execute(self._individual_items(pairs))
            return
        pairs = self._not_restored(pairs)
        for stage in self.race.stages(pairs, self.sink.results, self._n_slots(pairs)):
            self._execute(self._racing_items(stage))
            left = sorted({*stage} - self.sink.results.keys())
            self._execute(self._individual_items(left))

    def _shared_at_once(self) -> list[Group]:
        """Groups that are answered on all splits whatever their scores."""
        return [group for group in self.plan.groups if not any(group is one for one in self.racing)]

    def _racing_pairs(self) -> list[Pair]:
        return self.job.pairs([c for group in self.racing for c in group.candidates])

    def _racing_items(self, stage: Sequence[Pair]) -> list[WorkItem]:
        """The items of a stage for families, one for each split."""
        items = []
        for i in sorted({i for _, i in stage}):
            own = {c for c, split in stage if split == i}
            groups = tuple(part for group in self.racing if (part := group.only(own)).candidates)
            pairs = tuple((c, i) for group in groups for c in group.candidates)
            if pairs and not self.sink.restore(pairs):
                items.append(WorkItem(FOLD_FAMILIES, pairs, groups, fits_rest=True))
        return items

    def _not_restored(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Those of some pairs that are to be fitted one by one; the others are restored now."""
        self._individual_items(pairs)  # restores what the checkpoint has
        return sorted({*pairs} - self.sink.results.keys())

    def _n_slots(self, pairs: Sequence[Pair]) -> int:
        return self.executor.n_slots(INDIVIDUAL_FITS, sorted({c for c, _ in pairs}))

    def _fittable(self, pairs: list[Pair], may_fail: bool) -> list[Pair]:
        """The pairs that scikit-learn can fit: none if only a `RowSource` reads X.

        The others then fail if they `may_fail`, as fits that raise an error; else a TypeError is raised.
        """
        job, X = self.job, self.job.X
        if not (pairs and is_row_source(X)):
            return pairs
        if isinstance(X, ChunkRows) and X.failure is not None:
            raise X.failure
        raise_unknown_parameter(job, sorted({c for c, _ in pairs}))
        planned = {c: group.reason for group in self.plan.groups for c in group.candidates}
        reasons = {(c, i): self.total.refused.get((c, i), planned[c]) for c, i in pairs}
        if not may_fail or job.options.error_score == "raise":
            raise TypeError(refusal(job, reasons))
        self.failed.update(failed_results(job, reasons, self.total.unscored))
        return []

    def _shared_items(
        self, planned: Sequence[Pair], among: Sequence[Group] | None = None
    ) -> Iterator[list[WorkItem]]:
        """The items of each strategy that shares fits, cut when those before them have run."""
        among = self.plan.groups if among is None else among
        for strategy in FAMILY_STRATEGIES:
            groups = [group for group in among if group.strategy == strategy]
            if groups:
                left = sorted({*planned, *self.total.left})
                yield strategy.work_items(groups, self._schedule(strategy, left))

    def _individual_items(self, pairs: Sequence[Pair]) -> list[WorkItem]:
        return individual_items(pairs, self._schedule(INDIVIDUAL_FITS))

    def _schedule(self, strategy: Strategy, planned: Sequence[Pair] = ()) -> Schedule:
        executor = self.executor
        return Schedule(
            self.job,
            self.plan,
            self.sink,
            lambda candidates: executor.n_slots(strategy, candidates),
            executor.in_process,
            tuple(planned),
        )

    def _execute(self, items: Sequence[WorkItem]) -> None:
        for item, part in self.executor.map(items):
            self.total.add(part)
            self.report.add(part.work)
            if part.worker is not None:
                for i in sorted({i for _, i in part.results}):
                    self.report.note_worker(i, part.worker)
            self.report.passes += part.rows_read / self.job.splits.n_samples
            kind = item.strategy.kind if item.strategy.shares_fits else INDIVIDUAL_FITS.kind
            self.report.spend(kind, part.seconds - part.seconds_fitting)
            if part.seconds_fitting:
                self.report.spend(INDIVIDUAL_FITS.kind, part.seconds_fitting)

    def _print(self, results: Mapping[Pair, Result], printed: Collection[Pair] = ()) -> None:
        """Print the lines of fits but those that processes of joblib have printed."""
        job = self.job
        if job.options.verbose > 1:
            for c, i in sorted(results.keys() - printed):
                progress = progress_of(job, c, i)
                print_start(job.options, job.candidates[c], progress)
                print_end(job.options, job.candidates[c], progress, results[c, i])


def _needs_fit_each(group: Group) -> bool:
    return group.strategy == FOLD_FAMILIES and group.fits_planned == group.fits_requested


def describe_group(
    group: Group, outcome: TaskResult, before: Collection[Pair], made: Mapping[int, int]
) -> dict[str, object]:
    """Describe a group for the report; `before` are pairs that were fitted one by one before a resume.

    `made` has the number of results of each setting, fewer where a budget or a race has ended it.
    """
    own = set(group.candidates)
    left = Counter(why for (c, _), why in outcome.refused.items() if c in own)
    if group.strategy.shares_fits:
        left += Counter(FITTED_BEFORE for c, i in before if c in own and (c, i) not in outcome.refused)
    return {
        "kind": group.kind,
        "estimator": group.estimator,
        "settings": len(group.candidates),
        "candidates": group.candidates,
        "fits_requested": sum(made[c] for c in group.candidates),
        "reason": group.reason,
        "fits_undecided": group.fits_undecided,
        "decided_by": group.decided_by,
        "left_to_sklearn": dict(left),
    }
