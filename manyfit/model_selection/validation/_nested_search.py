"""Cross-validation of a grid search: inner and outer splits are answered from the same moments."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv

from manyfit._compat import (
    PassthroughScorer,
    has_callbacks,
    is_multimetric,
    num_samples,
    routing_enabled,
    safe_indexing,
    scorers_by_name,
)
from manyfit.folds import Array, Splits, Unsupported
from manyfit.model_selection.job._job import Job, Result
from manyfit.model_selection.planning._cost_checks import require_memory
from manyfit.model_selection.planning._plan import Plan
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.running._engine import run
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings
from manyfit.model_selection.strategies._moments import MOMENTS
from manyfit.model_selection.validation.moment_scores import NEAR, draw_fixed_splits

# Parameters of a search that may have any value; others change what its fit does.
_FREE = {
    "estimator", "param_grid", "scoring", "n_jobs", "cv", "pre_dispatch", "error_score", "return_train_score",
    "sharing", "memory_limit",
}  # fmt: skip
# Settings that score the same in the inner splits, but for rounding, may differ by so much in the outer one.
SAME = 1e-9
# The key of warnings.
_SPLITS = "splits"


def answer_nested_search(job: Job) -> tuple[list[Result], Plan, Report] | None:
    """The results of a job whose estimator is a grid search; None if its fits are to be made one by one.

    All settings are scored on all inner splits and on the outer ones, in the same passes. The search's choice
    and its score follow: no search is fitted, and nothing refitted.
    """
    drawn = DeferredWarnings()  # of the inner splits, which single fits draw again
    try:
        answer = _answer(job, job.estimator, drawn)
    except Exception:  # also errors of scikit-learn's own, which the fits will raise
        drawn.emit(())
        return None
    drawn.emit((_SPLITS,))
    return answer


def _answer(job: Job, search: Any, drawn: DeferredWarnings) -> tuple[list[Result], Plan, Report]:
    outer = _require_plain(job, search)
    with drawn.under(_SPLITS):
        pairs = list(_all_splits(job, search))
    splits = Splits.given([pair for of_outer in pairs for pair in of_outer], job.splits.n_samples)
    inner = check_scoring(search.estimator, scoring=search.scoring)
    scorer = check_scoring(search.estimator, scoring={"inner": inner, "outer": outer or inner})
    settings = list(ParameterGrid(search.param_grid))
    all_fits = replace(
        job,
        estimator=clone(search.estimator),
        candidates=settings,
        splits=splits,
        options=replace(job.options, scorer=scorer, error_score=search.error_score),
        sharing="exact",
        by_split=False,
    )
    prepared = prepare(all_fits)
    if any(group.strategy != MOMENTS for group in prepared.plan.groups):
        raise Unsupported("not all settings are shared through moments")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found, report = run(all_fits, prepared)
    if caught:
        raise Unsupported("fits or scores warn, of which the searches give each once")
    if any(one["fit_error"] is not None for one in found):
        raise Unsupported("a fit failed")
    shape = (len(settings), splits.n_splits)
    tables = [np.reshape([one["test_scores"][name] for one in found], shape) for name in ("inner", "outer")]
    seconds = sum(one["fit_time"] + one["score_time"] for one in found)
    ends = np.cumsum([len(of_outer) for of_outer in pairs])
    results = []
    for end, of_outer in zip(ends, pairs, strict=True):
        means = tables[0][:, end - len(of_outer) : end - 1].mean(axis=1)
        value = _score_of_choice(means, tables[1][:, end - 1])
        names = scorers_by_name(job.options.scorer)
        scores = dict.fromkeys(names, value) if is_multimetric(job.options.scorer) else value
        times = {"fit_time": seconds / len(pairs), "score_time": 0.0}
        results.append({"fit_error": None, "test_scores": scores, **times})
    return results, prepared.plan, report


def _require_plain(job: Job, search: Any) -> Any:
    """The scorer of the outer splits, None for the search's own; Unsupported if fits have to be made."""
    cls, options = type(search), job.options
    if cls is not GridSearchCV and (cls.__name__, cls.__module__) != (
        "GridSearchCV",
        "manyfit.model_selection._search",
    ):
        raise Unsupported("the estimator is no grid search")
    for name, parameter in inspect.signature(cls).parameters.items():
        if name not in _FREE and getattr(search, name) is not parameter.default:
            raise Unsupported(f"{name} is not as by default")
    if has_callbacks(search) or has_callbacks(search.estimator):
        raise Unsupported("callbacks follow every single fit")
    if getattr(search, "sharing", "auto") == "none" or routing_enabled() or not len(job.candidates) == 1:
        raise Unsupported("nothing is shared, or fits have parameters")
    if job.candidates[0] or options.fit_params or options.score_params or options.verbose:
        raise Unsupported("fits have parameters, or print lines")
    if options.return_train_score or options.return_estimator or job.client is not None:
        raise Unsupported("more than test scores is asked for")
    if hasattr(search.cv, "__next__"):
        raise Unsupported("the inner splits can be read only once")
    (outer,) = scorers_by_name(options.scorer).values()
    return None if isinstance(outer, PassthroughScorer) else outer


def _all_splits(job: Job, search: Any) -> Iterator[Sequence[tuple[Array, Array]]]:
    """For each outer split the inner ones, as rows of X, and itself."""
    n_numbers = 0
    for train, test in job.splits:
        rows = np.arange(job.splits.n_samples)[train]
        X, y = (None if one is None else safe_indexing(one, rows) for one in (job.X, job.y))
        cv = check_cv(search.cv, y, classifier=is_classifier(search.estimator))
        inner = draw_fixed_splits(cv, X, y)
        if inner.n_samples != num_samples(X) or inner.n_splits < 2:
            raise Unsupported("there are no inner splits")
        pairs = [(rows[a], rows[b]) for a, b in inner]
        n_numbers += sum(len(a) + len(b) for a, b in [*pairs, (rows, rows)])
        require_memory(8 * n_numbers, job.options.memory_limit, "the splits")
        yield [*pairs, (train, test)]


def _score_of_choice(means: Array, outer: Array) -> float:
    """The outer score of the setting with the best mean; Unsupported if rounding could change it."""
    best = int(np.argmax(means))
    near = ~(means < means[best] - NEAR * max(abs(means[best]), 1.0))
    if not (np.abs(outer[near] - outer[best]) <= SAME * max(abs(outer[best]), 1.0)).all():
        raise Unsupported("rounding could decide which setting is best")
    return float(outer[best])
