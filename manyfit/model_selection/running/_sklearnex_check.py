"""Fits of scikit-learn-intelex against scikit-learn's, before a search relies on the former."""

from __future__ import annotations

import numbers
import time
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from manyfit.model_selection.job._job import Job, Result
from manyfit.model_selection.job._sklearnex import fit_for_sklearnex
from manyfit.model_selection.planning._pipeline_spec import value_key
from manyfit.model_selection.planning._plan import Group, Plan
from manyfit.model_selection.planning.places._data_location import data_for_fits
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._result_sink import ResultSink
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings
from manyfit.model_selection.sharing._fit_and_score import fit_with_sklearn
from manyfit.model_selection.sharing._fold_store import FoldStore

# The largest difference of a score, relative to scikit-learn's where that is above 1.
TOLERANCE = 1e-3


def let_sklearnex_fit(job: Job, plan: Plan, sink: ResultSink, report: Report) -> Job:
    """The job with the settings that scikit-learn-intelex fits.

    Settings of a group that differ in numbers only are of one kind. The first and the last of each kind are
    fitted by both on the first split. If a score differs by more than `TOLERANCE`, scikit-learn fits the
    settings of this kind, and a warning says so.
    """
    start, chosen = time.perf_counter(), {}
    for group in plan.groups:
        for candidates in _kinds(job, group):
            pairs = job.pairs(candidates)
            if len(sink.individual_results(pairs)) == len(pairs):
                continue
            compared = sorted({candidates[0], candidates[-1]})
            differences = [_largest_difference(job, c) for c in compared]
            for difference in differences:
                report.note_difference(difference)
            report.engine_compared += len(compared)
            difference = float(np.max(differences))  # NaN, if any is
            if difference <= TOLERANCE:
                chosen.update({c: fit_for_sklearnex(job, c) for c in candidates})
                continue
            failed = np.isnan(difference)
            why = "a fit or score failed" if failed else f"a score differs by {difference:.1e}"
            text = (
                f"engine='sklearnex' is not used for {len(candidates)} settings of {group.estimator}, such as"
                f" {dict(job.candidates[candidates[0]])}, because {why}. scikit-learn fits them."
            )
            report.advice.append(text)
            warnings.warn(text, UserWarning, stacklevel=2)
    if report.engine_compared:
        report.spend("comparison with scikit-learn-intelex", time.perf_counter() - start)
    return replace(job, by_sklearnex=chosen)


def _kinds(job: Job, group: Group) -> list[list[int]]:
    kinds: dict[Hashable, list[int]] = {}
    for c in group.by_sklearnex:
        key = tuple(
            (name, None if _is_number(value) else value_key(value))
            for name, value in sorted(job.candidates[c].items())
        )
        kinds.setdefault(key, []).append(c)
    return list(kinds.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _largest_difference(job: Job, c: int) -> float:
    """How far scores of one setting on the first split lie apart; NaN if there are none to compare."""
    job, dropped = data_for_fits(job), DeferredWarnings()  # the fits of the search show them
    quiet = replace(job.options, verbose=0, error_score=float("nan"))
    folds, found = FoldStore(job.X, job.y, job.splits, quiet, False), []
    try:
        with dropped.under("comparison"):
            for estimator, params in (fit_for_sklearnex(job, c), (job.estimator, job.candidates[c])):
                found.append(_scores(fit_with_sklearn(estimator, params, 0, folds, (None, None))))
    except Exception:  # a callable scorer's, say: the fits of the search raise it again
        return float("nan")
    finally:
        dropped.emit(())
    ours, theirs = found
    if ours.shape != theirs.shape or not ours.size:
        return float("nan")
    return float(np.max(np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))))


def _scores(result: Result) -> np.ndarray:
    """All scores of a fit as numbers; of one that failed, NaN."""
    if result["fit_error"] is not None:
        return np.array([np.nan])
    parts = (result[role] for role in ("test_scores", "train_scores") if role in result)
    return np.array([v for part in parts for v in (part.values() if isinstance(part, Mapping) else [part])])
