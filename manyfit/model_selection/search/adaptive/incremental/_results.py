"""The results of an incremental search, from the records of its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyfit.model_selection.job._job import Result
from manyfit.model_selection.planning._plan import Group
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.results._task_result import TaskResult
from manyfit.model_selection.running._engine import describe_group
from manyfit.model_selection.strategies._individual_fits import INDIVIDUAL_FITS


def new_record(
    name: Any, params: Any, calls: int, n_new: int, results: Sequence[Result], by_split: bool
) -> dict[str, Any]:
    """The record of a model after some calls; `results` are those of its splits, shown if `by_split`."""
    scores = [float(one["test_scores"]) for one in results]
    record = {
        "model_id": name,
        "params": params,
        "partial_fit_calls": calls,
        "partial_fit_time": float(np.mean([one["fit_time"] for one in results])) / n_new,
        "score": float(np.mean(scores)),
        "score_time": float(np.mean([one["score_time"] for one in results])),
    }
    if by_split:
        record["split_scores"] = scores
    if isinstance(name, str):
        record["bracket"] = int(name.partition("=")[2].partition("-")[0])
    return record


def best_of_models(models: Sequence[Sequence[Mapping[str, Any]]]) -> int:
    """The row of the model with the highest last score; of equal ones the first, and NaN last."""
    return int(np.argmax(_ranked(models)))


def _ranked(models: Sequence[Sequence[Mapping[str, Any]]]) -> np.ndarray:
    scores = np.array([records[-1]["score"] for records in models])
    return np.where(np.isnan(scores), -np.inf, scores)


def as_columns(models: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """``cv_results_``: a row for each model, from its records."""
    last, ranked = [records[-1] for records in models], _ranked(models)
    results: dict[str, Any] = {}
    for name in ("partial_fit_time", "score_time"):
        times = [[one[name] for one in records] for records in models]
        results[f"mean_{name}"] = np.array([np.mean(one) for one in times])
        results[f"std_{name}"] = np.array([np.std(one) for one in times])
    results["test_score"] = np.array([one["score"] for one in last])
    if "split_scores" in last[0]:
        scores = np.array([one["split_scores"] for one in last])
        results |= {f"split{i}_test_score": own for i, own in enumerate(scores.T)}
        results |= {"mean_test_score": results["test_score"], "std_test_score": scores.std(axis=1)}
    results["rank_test_score"] = 1 + np.array([np.count_nonzero(ranked > one) for one in ranked])
    results["model_id"] = np.array([one["model_id"] for one in last])
    results["partial_fit_calls"] = np.array([one["partial_fit_calls"] for one in last])
    results["params"] = np.array([one["params"] for one in last], dtype=object)
    for name in dict.fromkeys(name for one in last for name in one["params"]):
        column = np.ma.MaskedArray(np.empty(len(last), dtype=object), mask=True)
        for j, one in enumerate(last):
            if name in one["params"]:
                column[j] = one["params"][name]
        results[f"param_{name}"] = column
    if "bracket" in last[0]:
        results["bracket"] = np.array([one["bracket"] for one in last])
    return results


def count_fits(report: Report, name: str, n_models: int, n_splits: int, n_trained: int) -> None:
    """Count each model on each split as one fit, however many rounds have trained it.

    `n_trained`: those that were trained at all; the checkpoint had all scores of the others.
    """
    n = n_models * n_splits
    report.fits_requested, report.fits_done, report.fits_restored = n, n_trained, n - n_trained
    models, reason = tuple(range(n_models)), "models are trained further, each by itself"
    group = Group(INDIVIDUAL_FITS, models, name, n, n, reason=reason)
    report.groups = [describe_group(group, TaskResult(), (), dict.fromkeys(models, n_splits))]
