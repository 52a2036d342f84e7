"""Groups behind steps that are not affine: the steps once a fold, then a family for the last one."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from manyfit.arrays import label_transfers
from manyfit.estimators import Family, Shape
from manyfit.folds import (
    AtomGroup,
    FoldArrays,
    PassData,
    SingleFold,
    Unsupported,
    as_labels,
    as_matrix,
    as_matrix_or_csr,
    as_targets,
    finite_middle,
    to_host_together,
)
from manyfit.metrics import SharedScoring
from manyfit.model_selection.job._job import Job, Options, Pair, Result
from manyfit.model_selection.job._joblib_tasks import joblib_workers, run_tasks
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs
from manyfit.model_selection.planning._convergence import require_gradient_stop, stops_as_sklearn
from manyfit.model_selection.planning._cost_checks import n_classes, require_cheaper, require_memory
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.sharing._fold_store import FoldStore, SharedFold
from manyfit.model_selection.sharing._step_wrappers import share_prefixes
from manyfit.model_selection.sharing.rows._own_rows import own_copy
from manyfit.model_selection.strategies._doubts import Doubts, without
from manyfit.model_selection.strategies._individual_fits import Enough
from manyfit.model_selection.strategies._moments import why_not
from manyfit.model_selection.strategies._rest_of_fold import RestOfFold, Taker, Then
from manyfit.model_selection.strategies._score_answers import score_answers


@dataclass(frozen=True)
class _Group:
    """Settings of one family behind the same steps."""

    first: Mapping[str, Any]
    candidates: Sequence[int]
    settings: Sequence[Mapping[str, Any]]
    family: Family
    prototype: Any


@dataclass(frozen=True)
class _Task:
    """All groups on one split, answered by one worker, so that they share the steps that they share.

    What they leave is fitted in the same task, with the steps that were fitted for them; unless `rest` is
    None.
    """

    estimator: Any
    groups: Sequence[_Group]
    i: int
    split: tuple[Any, Any]
    options: Options
    sharing: str
    sklearn_stops: bool
    rest: RestOfFold | None


def run_families(
    job: Job, groups: Sequence[Group], arrivals: ResultSink, then: Then | None, folds: FoldStore | None = None
) -> TaskResult:
    """Answer the settings of `groups`.

    Parameters
    ----------
    job : Job
        The search.
    groups : sequence of Group
        Of its plan.
    arrivals : Arrivals
        Takes finished results.
    then : Then or None
        How the tasks go on with what the families leave; None: it is handed back.
    folds : FoldStore, optional
        Of all splits, in this process: what is fitted there stays for those who fit what is handed back.
    """
    tasks = _tasks(job, groups, arrivals, then)
    if joblib_workers(job.n_jobs) == 1:
        return _run_here(job, tasks, arrivals, folds)
    if tasks and job.rowwise is not None:
        for group in groups:  # by this process: none of theirs sees all of the others' splits
            job.rowwise.prepare_setting(job.estimator, job.candidates[group.candidates[0]])
    total, arguments = TaskResult(), [(task, job.X, job.y, job.rowwise) for task in tasks]
    for part in run_tasks(_run, arguments, job.n_jobs, job.pre_dispatch):
        total.add(part)
        arrivals.steps_saved += part.work["transformer_fits_saved"]
        arrivals.take(part, alone=False)
    return total


def _tasks(job: Job, groups: Sequence[Group], arrivals: ResultSink, then: Then | None) -> list[_Task]:
    """A task for each split with work; what is left of those that are no whole round of the workers may be
    divided among them."""
    found = []
    for i in range(job.splits.n_splits):
        left = not_restored(groups, i, arrivals)
        if left or (then is not None and then.others(i)):
            found.append((left, i))
    whole = len(found) - len(found) % joblib_workers(job.n_jobs)
    return [_task(job, left, i, then, to_the_end=j < whole) for j, (left, i) in enumerate(found)]


def _run_here(job: Job, tasks: Sequence[_Task], arrivals: ResultSink, folds: FoldStore | None) -> TaskResult:
    """In this process, where each result arrives when it is there."""
    total = TaskResult()

    def take(results: Mapping[Pair, Result], alone: bool) -> None:
        arrivals.add(results, alone=alone)

    for task in tasks:
        if folds is not None and not folds.keeps_all:
            # Steps that were fitted to ask would be gone when they are needed: nobody asks twice.
            task = _without_refused(task, total)
        part = _run(task, job.X, job.y, job.rowwise, folds=folds, take=take)
        arrivals.steps_saved += part.work["transformer_fits_saved"]
        total.add(part)
    return total


def _without_refused(task: _Task, total: TaskResult) -> _Task:
    """The task without groups that were left as a whole on a split; these are left on this one, too."""
    asked = []
    for group in task.groups:
        pairs = [pair for pair in total.alone if pair[0] in set(group.candidates)]
        if len({c for c, _ in pairs}) < len(group.candidates):
            asked.append(group)
        else:
            total.alone.update({(c, task.i): total.alone[pairs[0]] for c in group.candidates})
    return replace(task, groups=asked)


def not_restored(groups: Sequence[Group], i: int, arrivals: ResultSink) -> list[Group]:
    """The groups that are to be run on split `i`: each is restored whole, or not."""
    return [group for group in groups if not arrivals.restore([(c, i) for c in group.candidates])]


def run_family_split(
    job: Job, groups: Sequence[Group], i: int, then: Then | None, enough: Enough
) -> TaskResult:
    """Answer `groups` on one split, and fit what they leave until it is enough."""
    return _run(_task(job, groups, i, then, to_the_end=False), job.X, job.y, enough=enough)


def _task(job: Job, groups: Sequence[Group], i: int, then: Then | None, to_the_end: bool) -> _Task:
    slim = []
    for group in groups:
        assert group.family is not None
        first = job.candidates[group.candidates[0]]
        slim.append(_Group(first, group.candidates, group.settings, group.family, group.prototype))
    candidates = [c for group in groups for c in group.candidates]
    rest = None if then is None else then.rest(job, candidates, i, to_the_end)
    split, options = job.splits.indices(i), job.options
    return _Task(job.estimator, slim, i, split, options, job.sharing, stops_as_sklearn(job), rest)


def _run(
    task: _Task,
    X: Any,
    y: Any,
    rowwise: RowwiseOutputs | None = None,
    folds: FoldStore | None = None,
    enough: Enough | None = None,
    take: Taker | None = None,
) -> TaskResult:
    outcome, enough, start = TaskResult(), enough or Enough(), time.perf_counter()
    if folds is None:
        folds = FoldStore(X, y, {task.i: task.split}, task.options, True, rowwise=rowwise)
    before = folds.work
    for group in task.groups:
        begun = time.perf_counter()
        try:
            answered = _answer(task, group, folds, outcome)
        except Exception as error:
            # Whatever fails here is fitted one by one by scikit-learn, which raises what the user should see.
            outcome.alone.update({(c, task.i): why_not(error) for c in group.candidates})
            outcome.seconds += time.perf_counter() - begun
        else:
            if take is not None:
                take(answered, False)
    if task.rest is not None:
        task.rest.fit(task.estimator, folds, outcome, enough, take)
    outcome.work.update(folds.work_since(before))
    outcome.seconds = time.perf_counter() - start
    return outcome


def _answer(task: _Task, group: _Group, folds: FoldStore, outcome: TaskResult) -> dict[Pair, Result]:
    """The results that the family has for a group; what it leaves is noted."""
    model = clone(task.estimator).set_params(**clone(dict(group.first), safe=False))
    fold = folds.get(task.i, model)
    before, answered = fold.cache.fits_requested, dict[Pair, Result]()
    try:
        answered = _ask(task, group, model, fold, folds, outcome)
    finally:
        # The fits of steps for the family stand for those of one setting; those that it leaves count theirs.
        fold.cache.count_saved((len(answered) - 1) * (fold.cache.fits_requested - before))
    return answered


def _ask(
    task: _Task, group: _Group, model: Any, fold: SharedFold, folds: FoldStore, outcome: TaskResult
) -> dict[Pair, Result]:
    start = time.perf_counter()
    with folds.shared_fits():
        rows = _rows(model, fold, task.options.return_train_score, group.family.needs == "passes")
        if not type(group.family).__module__.startswith("manyfit."):  # a user's family may write into them
            rows = FoldArrays(*(own_copy(getattr(rows, one.name)) for one in fields(rows)))
    folded = SingleFold(rows)
    _require_worth(task, group, folded)
    seen = _pass_data(rows, task) if group.family.needs == "passes" else folded
    with label_transfers("iterations" if group.family.needs == "passes" else "moments"):
        answers = next(iter(group.family.fit_many(group.prototype, group.settings, seen)))
    fitted = time.perf_counter() - start
    scoring = SharedScoring(task.options.scorer, task.options.score_params, group.prototype)
    n = len(group.candidates)
    scored = score_answers(scoring, answers, n, folded, 0, task.options)
    doubts = Doubts(scoring, answers, n, folded, 0, task.options)
    found = doubts.finish(to_host_together(*doubts.there, label="scores"), scored)
    left = doubts.too_open(found, scored) if task.sklearn_stops else {}
    outcome.note_iterations(group.candidates, task.i, answers, without(found, left))
    score_time = time.perf_counter() - start - fitted
    return scored.keep(outcome, group.candidates, task.i, (fitted / n, score_time / n), left)


def _pass_data(rows: FoldArrays, task: _Task) -> PassData:
    """The training rows of one fold, to be gone over."""
    X, y = rows.X_train, rows.y_train
    if y.ndim != 1:
        raise Unsupported("y has several columns")
    origin = finite_middle(X)
    every = AtomGroup(range(1), [slice(0, y.shape[0])], np.ones((1, 1)), np.zeros((1, 1)))
    return PassData(
        X, y, [every], rows.fit_weight, [None], task.options.memory_limit, origin=origin,
        sklearn_stops=task.sklearn_stops,
    )  # fmt: skip


def _require_worth(task: _Task, group: _Group, folded: SingleFold) -> None:
    """The plan does not know the data behind the steps, so it is here that a group may be refused."""
    rows = folded.fold(0)
    (n, p), q = rows.X_train.shape, np.size(rows.y_train[0])
    entries = getattr(rows.X_train, "nnz", None)
    shape = Shape(n, p, q, 1, n_classes(group.prototype, rows.y_train), entries)
    if task.sklearn_stops:
        require_gradient_stop(group.family, group.prototype, shape)
    require_cheaper(group.family, group.prototype, group.settings, shape, task.sharing)
    if group.family.needs == "moments":
        require_memory(folded.moment_bytes, task.options.memory_limit)


def _rows(model: Any, fold: SharedFold, with_train: bool, sparse: bool) -> FoldArrays:
    """The rows of a fold behind the steps of a pipeline, as scikit-learn's own steps give them."""
    lend = fold.cache.lend
    X_train, X_test = lend(fold.X_train), lend(fold.X_test)
    X_score = X_train
    if type(model) is Pipeline and len(model.steps) > 1:
        before = share_prefixes(Pipeline(model.steps[:-1]), fold.cache, ends_in_transformer=True)
        X_fitted = before.fit_transform(X_train, lend(fold.y_train))
        X_test = before.transform(X_test)
        X_score = before.transform(X_train) if with_train else X_fitted
        X_train = X_fitted
    read = as_matrix_or_csr if sparse else as_matrix
    train, test = read(X_train), read(X_test)
    score = train if X_score is X_train else read(X_score)
    read_y = as_labels if is_classifier(model) else as_targets
    y_train, y_test = read_y(fold.y_train), read_y(fold.y_test)
    return FoldArrays(train, y_train, test, y_test, None, score, fold.y_train, fold.y_test)
