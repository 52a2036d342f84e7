"""Runs a planned job: shared groups first, then whatever is fitted one by one."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from manyfit._compat import holds_callbacks
from manyfit.arrays import transfers
from manyfit.cluster.pool.run import count_slots
from manyfit.folds import is_xp_array
from manyfit.model_selection.job._job import Job, Pair, Result
from manyfit.model_selection.job._joblib_tasks import joblib_workers
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs
from manyfit.model_selection.planning._data_location import where_fitted
from manyfit.model_selection.planning._plan import Group, Plan
from manyfit.model_selection.planning._planner import Prepared
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running._dask_executor import fit_on_workers, run_on_workers
from manyfit.model_selection.running._remote_callbacks import travel
from manyfit.model_selection.sharing._fit_and_score import FoldStore
from manyfit.model_selection.sharing._verbose import print_end, print_start
from manyfit.model_selection.strategies._fold_families import run_families
from manyfit.model_selection.strategies._individual_fits import folds_here, run_individually
from manyfit.model_selection.strategies._iterations import run_iterations
from manyfit.model_selection.strategies._moments import run_moments
from manyfit.model_selection.strategies._rest_of_fold import Then

FITTED_BEFORE = "scikit-learn had fitted it when the checkpoint was written"


def run(job: Job, prepared: Prepared, arrivals: ResultSink | None = None) -> tuple[list[Result], Report]:
    """Fit and score all pairs of a job, but for those that are restored from a checkpoint.

    Returns
    -------
    results : list of dict
        As scikit-learn's ``_fit_and_score`` gives them, candidate by candidate.
    report : Report
        What was done.
    """
    on_cluster = _on_cluster(job)
    on_host = not (on_cluster or is_xp_array(job.X))
    fronts = RowwiseOutputs(job.X, job.splits, job.options.memory_limit // 4) if on_host else None
    job = replace(job, fronts=fronts)
    report = Report(fits_requested=job.n_pairs, workers=n_workers(job))
    report.advice = list(prepared.plan.advice)
    with transfers() as crossed, arrivals or ResultSink(job) as arrived:
        arrived.fronts = fronts
        planned = _planned_pairs(job, prepared.plan)
        if on_cluster:
            shared = run_on_workers(job, prepared.plan, arrived)
            _note(job, shared, report)
        else:
            shared, folds = _run_shared(job, prepared, report, arrived)
            _run_rest(job, prepared.plan, [*planned, *shared.left], report, arrived, folds)
        arrived.doubts.update(shared.doubts)
    if fronts is not None:
        report.add({"transformer_fits": fronts.fits, "transformer_fits_saved": -fronts.fits})
    results, report.fits_restored = arrived.results, len(arrived.restored)
    report.fits_done = len({*shared.alone, *planned} - arrived.restored)
    report.fits_shared = job.n_pairs - report.fits_done - report.fits_restored
    report.left_to_sklearn = dict(Counter(shared.alone.values()))
    before = arrived.restored - arrived.shared
    report.groups = [_described(group, shared, before) for group in prepared.plan.groups]
    report.cross(crossed)
    return [results[pair] for pair in job.pairs(range(len(job.candidates)))], report


def fit_pairs(job: Job, plan: Plan, pairs: Sequence[Pair], arrivals: ResultSink) -> Report:
    """Fit and score some pairs of a job one by one, as those that its shared work leaves; say what was done.

    Pairs that the checkpoint of `arrivals` has as such are restored.
    """
    report = Report(fits_requested=len(pairs), workers=n_workers(job))
    with transfers() as crossed, arrivals as arrived:
        if _on_cluster(job):
            _note(job, fit_on_workers(job, plan, pairs, arrived), report)
        else:
            _run_rest(job, plan, pairs, report, arrived, None)
    report.cross(crossed)
    report.fits_restored = len(arrived.restored)
    report.fits_done = len(pairs) - report.fits_restored
    return report


def n_workers(job: Job) -> int:
    """Fits that are made at a time."""
    return count_slots(job.client) if _on_cluster(job) else joblib_workers(job.n_jobs)


def _on_cluster(job: Job) -> bool:
    if job.client is None or (job.contexts is not None and not travel(job.search)):
        return False
    # What callbacks of an estimator that is a value of the grid hear on a worker would not come back.
    values = {id(value): value for params in job.candidates for value in params.values()}
    return not any(map(holds_callbacks, values.values()))


def _run_shared(
    job: Job, prepared: Prepared, report: Report, arrivals: ResultSink
) -> tuple[TaskResult, FoldStore | None]:
    """The groups that moments or families serve, and folds whose steps are fitted for what these leave."""
    outcome, folds = TaskResult(), None
    moments = [group for group in prepared.plan.groups if group.kind == "moments"]
    passes = [group for group in prepared.plan.groups if group.kind == "passes"]
    families = [group for group in prepared.plan.groups if group.kind == "family"]
    if moments:
        assert prepared.data is not None and prepared.scoring is not None
        outcome = run_moments(job, moments, prepared.data, prepared.scoring, arrivals)
        report.passes = prepared.data.passes
        report.spend("moments", outcome.seconds)
    if passes:
        assert prepared.rows is not None
        part = run_iterations(job, passes, prepared.rows, arrivals)
        report.spend("passes", part.seconds)
        outcome.add(part)
    if families:
        planned = [*_planned_pairs(job, prepared.plan), *outcome.left]
        part, folds = _run_families(job, prepared.plan, families, planned, arrivals)
        report.spend("family", part.seconds - part.seconds_fitting)
        report.spend("one by one", part.seconds_fitting)
        outcome.add(part)
    _note(job, outcome, report)
    return outcome, folds


def _run_families(
    job: Job, plan: Plan, groups: Sequence[Group], planned: Sequence[Pair], arrivals: ResultSink
) -> tuple[TaskResult, FoldStore | None]:
    """The groups that families serve, and what they leave, with the steps that were fitted for them.

    In this process, what is planned to be fitted one by one is fitted split by split, too; or, where the
    order of the fits is to be kept, later, on the folds that are returned.
    """
    # Families read y on the host, and score all settings at once by the search's own scorers.
    fitted = where_fitted(job)
    answered = replace(fitted, y=job.brought(fitted.y, "y"), options=job.options)
    here = joblib_workers(job.n_jobs) == 1
    folds, then = None, None
    if here and plan.by_candidate and answered.y is fitted.y:
        # Their order is scikit-learn's: those who fit what is left find the folds of all splits.
        folds = folds_here(answered, plan)
    elif answered.y is fitted.y and (plan.order is not None or not here):
        asked = job.pairs(sorted(c for group in groups for c in group.candidates))
        others = [pair for pair in planned if not arrivals.restore([pair], alone=True)] if here else []
        then = Then(fitted.options, plan.order, others, arrivals.kept_alone(asked))
    return run_families(answered, groups, arrivals, then, folds), folds


def _run_rest(
    job: Job,
    plan: Plan,
    pairs: Sequence[Pair],
    report: Report,
    arrivals: ResultSink,
    folds: FoldStore | None,
) -> None:
    """What nothing has answered or fitted yet, one by one."""
    pairs = sorted({*pairs} - arrivals.results.keys())
    pairs = [pair for pair in pairs if not arrivals.restore([pair], alone=True)]
    if pairs:
        rest = run_individually(where_fitted(job), pairs, plan, arrivals, folds)
        report.spend("one by one", rest.seconds)
        report.add(rest.work)


def _note(job: Job, outcome: TaskResult, report: Report) -> None:
    report.add(outcome.work)
    report.passes += outcome.rows_read / job.splits.n_samples
    # Fits that were made in this process, or by joblib's, have printed theirs.
    told = outcome.fitted if job.client is None else set()
    _print(job, {pair: one for pair, one in outcome.results.items() if pair not in told})


def _print(job: Job, results: dict[Pair, Result]) -> None:
    if job.options.verbose > 1:
        sizes = (len(job.candidates), job.splits.n_splits)
        for (c, i), result in sorted(results.items(), key=lambda item: item[0]):
            progress = (c, sizes[0]), (i, sizes[1])
            print_start(job.options, job.candidates[c], progress)
            print_end(job.options, job.candidates[c], progress, result)


def _planned_pairs(job: Job, plan: Plan) -> Sequence[Pair]:
    rest = [c for group in plan.groups if group.kind in ("steps", "one by one") for c in group.candidates]
    return job.pairs(sorted(rest))


def _described(group: Group, outcome: TaskResult, before: Collection[Pair]) -> dict[str, object]:
    """What a report says of a group; `before` is what was fitted one by one before the search went on."""
    own = set(group.candidates)
    left = Counter(why for (c, _), why in outcome.alone.items() if c in own)
    if group.kind not in ("steps", "one by one"):
        left += Counter(FITTED_BEFORE for c, i in before if c in own and (c, i) not in outcome.alone)
    return {
        "kind": group.kind,
        "estimator": group.estimator,
        "settings": len(group.candidates),
        "fits_requested": group.fits_requested,
        "reason": group.reason,
        "fits_undecided": group.fits_undecided,
        "decided_by": group.decided_by,
        "left_to_sklearn": dict(left),
    }
