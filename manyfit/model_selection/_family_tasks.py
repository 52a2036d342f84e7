"""Groups behind steps that are not affine: the steps once a fold, then a family for the last one."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from manyfit.cluster import Progress, run_tasks
from manyfit.estimators import Family
from manyfit.folds import GivenFold, GivenRows, Unsupported, as_labels, as_matrix
from manyfit.metrics import SharedScoring
from manyfit.model_selection._evaluate import FoldStore, SharedFold
from manyfit.model_selection._job import Job, Options
from manyfit.model_selection._moment_groups import SharedOutcome, make_result, why_not
from manyfit.model_selection._plan import Group
from manyfit.model_selection._prefix import share_prefixes, writes_in_place
from manyfit.model_selection._score_answers import score_answers, why_alone


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


def run_families(job: Job, groups: Sequence[Group], bar: Progress) -> tuple[SharedOutcome, Counter[str]]:
    """Answer the settings of `groups`; the outcome and what steps took."""
    slim = []
    for group in groups:
        assert group.family is not None
        first = job.candidates[group.candidates[0]]
        slim.append(_Group(first, group.candidates, group.settings, group.family, group.prototype))
    total, work = SharedOutcome(), Counter[str]()
    arguments = [
        (_Task(job.estimator, slim, i, job.splits.indices(i), job.options), job.X, job.y)
        for i in range(job.splits.n_splits)
    ]
    for part, done in run_tasks(_run, arguments, job.n_jobs, job.pre_dispatch):
        total.results.update(part.results)
        total.alone.update(part.alone)
        total.seconds += part.seconds
        work += done
        bar.done(len(part.results))
    return total, work


def _run(task: _Task, X: Any, y: Any) -> tuple[SharedOutcome, Counter[str]]:
    outcome, start = SharedOutcome(), time.perf_counter()
    folds = FoldStore(X, y, {task.i: task.split}, task.options, True)
    for group in task.groups:
        try:
            _answer(task, group, folds, outcome)
        except Exception as error:
            # Whatever fails here is fitted one by one by scikit-learn, which raises what the user should see.
            outcome.alone.update({(c, task.i): why_not(error) for c in group.candidates})
    outcome.seconds = time.perf_counter() - start
    return outcome, folds.work


def _answer(task: _Task, group: _Group, folds: FoldStore, outcome: SharedOutcome) -> None:
    start = time.perf_counter()
    model = clone(task.estimator).set_params(**clone(dict(group.first), safe=False))
    if writes_in_place(model):
        raise Unsupported("a step may write into its input (copy=False)")
    rows = _rows(model, folds.get(task.i, model), task.options.return_train_score)
    folded = GivenFold(rows)
    answers = next(iter(group.family.fit_many(group.prototype, group.settings, folded)))
    fitted = time.perf_counter() - start
    scoring = SharedScoring(task.options.scorer, task.options.score_params)
    n = len(group.candidates)
    scores: dict[str, list[Any]] = {}
    for role in ("test", "train") if task.options.return_train_score else ("test",):
        scores[role] = score_answers(scoring, answers, n, rows, role, task.options, folded, 0)
    scored = time.perf_counter() - start - fitted
    for j, c in enumerate(group.candidates):
        why = why_alone(answers, scores, j)
        if why is not None:
            outcome.alone[c, task.i] = why
        else:
            outcome.results[c, task.i] = make_result(scores, j, fitted / n, scored / n)


def _rows(model: Any, fold: SharedFold, with_train: bool) -> GivenRows:
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
    train, test = as_matrix(X_train), as_matrix(X_test)
    score = train if X_score is X_train else as_matrix(X_score)
    return GivenRows(
        train, as_labels(fold.y_train), test, as_labels(fold.y_test), None, score, fold.y_train, fold.y_test
    )
