"""Groups behind steps that are not affine: the steps once a fold, then a family for the last one."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from manyfit.cluster import run_tasks, workers
from manyfit.estimators import Family, Shape
from manyfit.folds import (
    AtomGroup,
    GivenFold,
    GivenRows,
    PassData,
    Unsupported,
    as_labels,
    as_matrix,
    as_matrix_or_csr,
    brought_home,
    finite_middle,
)
from manyfit.metrics import SharedScoring
from manyfit.model_selection._arrivals import Arrivals
from manyfit.model_selection._convergence import doubtful_labels, note_convergence
from manyfit.model_selection._evaluate import FoldStore, SharedFold
from manyfit.model_selection._front import Fronts
from manyfit.model_selection._job import Job, Options
from manyfit.model_selection._moment_groups import why_not
from manyfit.model_selection._outcome import Outcome
from manyfit.model_selection._own_rows import own_copy
from manyfit.model_selection._plan import Group
from manyfit.model_selection._prefix import share_prefixes, writes_in_place
from manyfit.model_selection._score_answers import score_answers
from manyfit.model_selection._worth import n_classes, require_cheaper, require_memory


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
    """All groups on one split, answered by one worker, so that they share the steps that they share."""

    estimator: Any
    groups: Sequence[_Group]
    i: int
    split: tuple[Any, Any]
    options: Options


def run_families(job: Job, groups: Sequence[Group], arrivals: Arrivals) -> Outcome:
    """Answer the settings of `groups`."""
    total, arguments = Outcome(), []
    for i in range(job.splits.n_splits):
        left = not_restored(groups, i, arrivals)
        if left:
            arguments.append((_task(job, left, i), job.X, job.y, job.fronts))
    if arguments and job.fronts is not None and workers(job.n_jobs) > 1:
        for group in groups:  # by this process: none of theirs sees all of the others' splits
            job.fronts.prepare_setting(job.estimator, job.candidates[group.candidates[0]])
    for part in run_tasks(_run, arguments, job.n_jobs, job.pre_dispatch):
        total.add(part)
        arrivals.add(part.results, alone=False)
    return total


def not_restored(groups: Sequence[Group], i: int, arrivals: Arrivals) -> list[Group]:
    """The groups that are to be run on split `i`: each is restored whole, or not."""
    return [group for group in groups if not arrivals.restore([(c, i) for c in group.candidates])]


def run_family_split(job: Job, groups: Sequence[Group], i: int) -> Outcome:
    """Answer the settings of `groups` on one split."""
    return _run(_task(job, groups, i), job.X, job.y)


def _task(job: Job, groups: Sequence[Group], i: int) -> _Task:
    slim = []
    for group in groups:
        assert group.family is not None
        first = job.candidates[group.candidates[0]]
        slim.append(_Group(first, group.candidates, group.settings, group.family, group.prototype))
    return _Task(job.estimator, slim, i, job.splits.indices(i), job.options)


def _run(task: _Task, X: Any, y: Any, fronts: Fronts | None = None) -> Outcome:
    outcome, start = Outcome(), time.perf_counter()
    folds = FoldStore(X, y, {task.i: task.split}, task.options, True, fronts=fronts)
    for group in task.groups:
        try:
            _answer(task, group, folds, outcome)
        except Exception as error:
            # Whatever fails here is fitted one by one by scikit-learn, which raises what the user should see.
            outcome.alone.update({(c, task.i): why_not(error) for c in group.candidates})
    outcome.work += folds.work
    outcome.seconds = time.perf_counter() - start
    return outcome


def _answer(task: _Task, group: _Group, folds: FoldStore, outcome: Outcome) -> None:
    start = time.perf_counter()
    model = clone(task.estimator).set_params(**clone(dict(group.first), safe=False))
    if writes_in_place(model):
        raise Unsupported("a step may write into its input (copy=False)")
    sparse = group.family.needs == "passes"
    with folds.at_work():
        rows = _rows(model, folds.get(task.i, model), task.options.return_train_score, sparse)
        if not type(group.family).__module__.startswith("manyfit."):  # a user's family may write into them
            rows = GivenRows(*(own_copy(getattr(rows, one.name)) for one in fields(rows)))
    folded = GivenFold(rows)
    _require_worth(group, folded, task.options.memory_limit)
    seen = _pass_data(rows, task.options.memory_limit) if group.family.needs == "passes" else folded
    answers = next(iter(group.family.fit_many(group.prototype, group.settings, seen)))
    fitted = time.perf_counter() - start
    scoring = SharedScoring(task.options.scorer, task.options.score_params, group.prototype)
    n = len(group.candidates)
    scored = score_answers(scoring, answers, n, folded, 0, task.options)
    doubtful = brought_home(*doubtful_labels(answers, scoring, folded.fold(0)))
    note_convergence(outcome, answers, group.candidates, doubtful)
    score_time = time.perf_counter() - start - fitted
    scored.keep(outcome, group.candidates, task.i, (fitted / n, score_time / n))


def _pass_data(rows: GivenRows, memory_limit: int) -> PassData:
    """The training rows of one fold, to be gone over."""
    X, y = rows.X_train, rows.y_train
    if y.ndim != 1:
        raise Unsupported("y has several columns")
    origin = finite_middle(X)
    every = AtomGroup(range(1), [slice(0, y.shape[0])], np.ones((1, 1)), np.zeros((1, 1)))
    return PassData(X, y, [every], rows.fit_weight, [None], memory_limit, origin=origin)


def _require_worth(group: _Group, folded: GivenFold, limit: int) -> None:
    """The plan does not know the data behind the steps, so it is here that a group may be refused."""
    rows = folded.fold(0)
    (n, p), q = rows.X_train.shape, np.size(rows.y_train[0])
    entries = getattr(rows.X_train, "nnz", None)
    shape = Shape(n, p, q, 1, n_classes(group.prototype, rows.y_train), entries)
    require_cheaper(group.family, group.prototype, group.settings, shape)
    if group.family.needs == "moments":
        require_memory(folded.moment_bytes, limit)


def _rows(model: Any, fold: SharedFold, with_train: bool, sparse: bool) -> GivenRows:
    """The rows of a fold behind the steps of a pipeline, as scikit-learn's own steps give them."""
    lend = fold.cache.lend
    X_train, X_test = lend(fold.X_train), lend(fold.X_test)
    X_score = X_train
    if type(model) is Pipeline and len(model.steps) > 1:
        before = share_prefixes(Pipeline(model.steps[:-1]), fold.cache, is_transformer=True)
        X_fitted = before.fit_transform(X_train, lend(fold.y_train))
        X_test = before.transform(X_test)
        X_score = before.transform(X_train) if with_train else X_fitted
        X_train = X_fitted
    read = as_matrix_or_csr if sparse else as_matrix
    train, test = read(X_train), read(X_test)
    score = train if X_score is X_train else read(X_score)
    return GivenRows(
        train, as_labels(fold.y_train), test, as_labels(fold.y_test), None, score, fold.y_train, fold.y_test
    )
