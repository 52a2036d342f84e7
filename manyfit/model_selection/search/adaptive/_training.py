"""Trains, scores and drops models with `partial_fit` as schedules say."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler, ShuffleSplit
from sklearn.utils import indexable

from manyfit._compat import BaseSearchCV as SklearnBaseSearchCV
from manyfit._compat import HasMethods, Interval, StrOptions, check_method_params, fit_context, num_samples
from manyfit.arrays import compute_dask_inputs
from manyfit.cluster.pool.run import client_for
from manyfit.folds import Splits
from manyfit.metrics import check_scoring
from manyfit.model_selection.job._job import Job, Options
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.search._parameter_hints import suggest_parameters
from manyfit.model_selection.search.adaptive._growing import grow_function
from manyfit.model_selection.search.adaptive._partial_fits import ModelScorer, PartialFits, advance
from manyfit.model_selection.search.adaptive._schedules import (
    Schedule,
    best_of,
    has_stalled,
)

COUNT = Interval(numbers.Integral, 1, None, closed="left")
_DEFAULT_TEST_SIZE = 0.2
# `patience=True` is this share of the most calls.
_PATIENCE_SHARE = 3


class IncrementalSearch(SklearnBaseSearchCV):
    """The base of the incremental searches: it trains, scores and drops models as schedules say."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["set_params"])],
        "parameters": [dict, list],
        "max_iter": [COUNT],
        "test_size": [Interval(numbers.Real, 0, 1, closed="neither"), COUNT, None],
        "patience": [Interval(numbers.Integral, 2, None, closed="left"), "boolean"],
        "tol": [Interval(numbers.Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "scoring": [str, callable, None],
        "verbose": ["verbose"],
        "n_jobs": [numbers.Integral, None],
        "error_score": [StrOptions({"raise"}), numbers.Real],
    }
    refit = True
    report_: Report
    history_: list[dict[str, Any]]
    model_history_: dict[Any, list[dict[str, Any]]]
    _models: dict[Any, Any]
    _params: dict[Any, dict[str, Any]]
    _stopped: set[Any]

    def _schedules(self) -> dict[str, tuple[Schedule, list[dict[str, Any]]]]:
        """Schedules by the prefix of their models' names, each with the settings of its models."""
        raise NotImplementedError

    def _run_search(self, evaluate: Callable[[Mapping[Any, int]], None]) -> None:
        """Train models until no schedule goes on; `evaluate` trains each to some calls in all."""
        groups = {
            prefix: (schedule, self._name_models(prefix, settings))
            for prefix, (schedule, settings) in self._schedules().items()
        }
        targets = {prefix: schedule.start(ids) for prefix, (schedule, ids) in groups.items()}
        while targets:
            wanted = {one: n for group in targets.values() for one, n in group.items()}
            self._reach(wanted, evaluate)
            going_on = {prefix: groups[prefix][0].go_on(self.model_history_) for prefix in targets}
            # A schedule whose models have all stopped has nothing to compare any more.
            targets = {prefix: group for prefix, group in going_on.items() if group.keys() - self._stopped}
            self._forget(targets)

    def _reach(self, wanted: Mapping[Any, int], evaluate: Callable[[Mapping[Any, int]], None]) -> None:
        """Train models to their targets; with `patience` in parts, after which stalled ones stop."""
        patience = self._patience()
        while True:
            calls = self._calls()
            short = {
                one: n if not patience else min(n, calls.get(one, 0) + patience)
                for one, n in wanted.items()
                if calls.get(one, 0) < n and one not in self._stopped
            }
            if not short:
                return
            evaluate(short)
            for one in short:
                records = self.model_history_[one]
                if math.isnan(records[-1]["score"]) or has_stalled(records, patience, self.tol):
                    self._stopped.add(one)

    def _calls(self) -> dict[Any, int]:
        """Calls that models have made."""
        return {one: records[-1]["partial_fit_calls"] for one, records in self.model_history_.items()}

    def _patience(self) -> int:
        if isinstance(self.patience, bool | np.bool_):
            return max(self.max_iter // _PATIENCE_SHARE, 2) if self.patience else 0
        return int(self.patience)

    def _name_models(self, prefix: str, settings: Sequence[dict[str, Any]]) -> list[Any]:
        ids = [f"{prefix}{j}" if prefix else j for j in range(len(settings))]
        for one, params in zip(ids, settings, strict=True):
            self._params[one] = params
            self._models[one] = clone(self.estimator).set_params(**clone(params, safe=False))
        return ids

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Train and compare models.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            All data; a call of ``partial_fit`` reads all training rows once. Dask arrays are computed.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets.
        **fit_params : dict
            Passed to ``partial_fit``, with the rows of the training part where they have one for each row.
            ``classes`` of classifiers need not be given.

        Returns
        -------
        self : object
            The fitted search.

        Raises
        ------
        TypeError
            If the estimator can be trained further neither by ``partial_fit`` nor by ``warm_start``.
        """
        if grow_function(self.estimator) is None:
            raise TypeError(
                f"{type(self).__name__} trains models by partial_fit, or as boosting and forests with "
                f"warm_start, which {type(self.estimator).__name__} does not have. Use HalvingGridSearchCV "
                "with one of its integer parameters as the resource."
            )
        start = time.perf_counter()
        X, y, *values = compute_dask_inputs((X, y, *fit_params.values()), type(self).__name__)
        X, y = indexable(X, y)
        given = dict(zip(fit_params, values, strict=True))
        classes = given.pop("classes", None)
        if classes is None and is_classifier(self.estimator):
            classes = np.unique(y)
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        job = self._job(X, y, check_method_params(X, params=given), scorer)
        self.report_, self.history_, self.model_history_ = Report(), [], {}
        self._models, self._params, self._stopped = {}, {}, set()

        def evaluate(targets: Mapping[Any, int]) -> None:
            ids, before = list(targets), self._calls()
            made = [before.get(one, 0) for one in ids]
            calls = [targets[one] - n for one, n in zip(ids, made, strict=True)]
            results, report = advance(job, [self._models[one] for one in ids], made, calls, classes)
            self.report_ = report if not self.history_ else self.report_.merged(report)
            for one, n, result in zip(ids, calls, results, strict=True):
                self._record(one, targets[one], n, result, time.perf_counter() - start)
            if self.verbose:
                best = max(records[-1]["score"] for records in self.model_history_.values())
                print(f"{len(ids)} models, {sum(calls)} calls of partial_fit, best score {best:.4g}")

        try:
            self._run_search(evaluate)
            self._finish(scorer)
        except ValueError as error:
            suggest_parameters(error, self.estimator)
            raise
        finally:
            del self._models, self._params, self._stopped
        self.report_.seconds["total"] = time.perf_counter() - start
        return self

    def _job(self, X: Any, y: Any, params: dict[str, Any], scorer: Any) -> Job:
        """A job of no candidates on the one split."""
        test_size = _DEFAULT_TEST_SIZE if self.test_size is None else self.test_size
        split = ShuffleSplit(1, test_size=test_size, random_state=self.random_state)
        options = Options(
            ModelScorer(scorer), fit_params=params, error_score=self.error_score, return_estimator=True
        )
        splits = Splits.given(split.split(X, y), num_samples(X))
        return Job(PartialFits(), [], X, y, splits, options, self.n_jobs, client=client_for(None))

    def _record(self, one: Any, calls: int, n_new: int, result: Mapping[str, Any], seconds: float) -> None:
        if result["fit_error"] is None:
            self._models[one] = result["model"]
        else:
            self._stopped.add(one)
        record = {
            "model_id": one,
            "params": self._params[one],
            "partial_fit_calls": calls,
            "partial_fit_time": result["fit_time"] / n_new,
            "score": float(result["test_scores"]),
            "score_time": result["score_time"],
            "elapsed_wall_time": seconds,
        }
        if isinstance(one, str):
            record["bracket"] = int(one.partition("=")[2].partition("-")[0])
        self.history_.append(record)
        self.model_history_.setdefault(one, []).append(record)

    def _forget(self, going_on: Mapping[str, Mapping[Any, int]]) -> None:
        """Drop the models that do not go on, but for the best of them, which may be the best of all."""
        alive = {one for group in going_on.values() for one in group}
        ended = [one for one in self._models if one not in alive]
        best = best_of(self.model_history_, ended, 1)
        self._models = {one: model for one, model in self._models.items() if one in alive or one in best}

    def _finish(self, scorer: Any) -> None:
        """Set the attributes that tell the result."""
        last = [records[-1] for records in self.model_history_.values()]
        scores = np.array([one["score"] for one in last])
        ranked = np.where(np.isnan(scores), -np.inf, scores)
        self.best_index_ = int(np.argmax(ranked))
        best = last[self.best_index_]
        self.best_estimator_ = self._models[best["model_id"]]
        self.best_score_, self.best_params_ = best["score"], best["params"]
        self.scorer_, self.n_splits_, self.multimetric_ = scorer, 1, False
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        results: dict[str, Any] = {}
        for name in ("partial_fit_time", "score_time"):
            times = [[one[name] for one in records] for records in self.model_history_.values()]
            results[f"mean_{name}"] = np.array([np.mean(one) for one in times])
            results[f"std_{name}"] = np.array([np.std(one) for one in times])
        results["test_score"] = scores
        results["rank_test_score"] = 1 + np.array([np.count_nonzero(ranked > one) for one in ranked])
        results["model_id"] = np.array([one["model_id"] for one in last])
        results["partial_fit_calls"] = np.array([one["partial_fit_calls"] for one in last])
        results["params"] = np.array([one["params"] for one in last], dtype=object)
        names = dict.fromkeys(name for one in last for name in one["params"])
        for name in names:
            column = np.ma.MaskedArray(np.empty(len(last), dtype=object), mask=True)
            for j, one in enumerate(last):
                if name in one["params"]:
                    column[j] = one["params"][name]
            results[f"param_{name}"] = column
        if "bracket" in last[0]:
            results["bracket"] = np.array([one["bracket"] for one in last])
        self.cv_results_ = results

    def _draw(self, n: Any, random_state: Any) -> list[dict[str, Any]]:
        if n == "grid":
            return list(ParameterGrid(self.parameters))
        return list(ParameterSampler(self.parameters, n, random_state=random_state))
