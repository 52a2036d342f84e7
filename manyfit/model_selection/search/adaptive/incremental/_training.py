"""Trains, scores and drops models with `partial_fit` as schedules say."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler, ShuffleSplit, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.multiclass import type_of_target

from manyfit._compat import BaseSearchCV as SklearnBaseSearchCV
from manyfit._compat import (
    HasMethods,
    Interval,
    StrOptions,
    callback_context,
    check_method_params,
    fit_context,
    num_samples,
    process_routing,
    routing_enabled,
)
from manyfit.cluster.pool.run import client_for
from manyfit.folds import ChunkRows, Splits
from manyfit.introspection.composites import build_setting
from manyfit.introspection.parameter_hints import suggest_parameters
from manyfit.metrics.scoring import check_scoring
from manyfit.model_selection.checkpoint._models import UnwrittenModels
from manyfit.model_selection.checkpoint._search_identity import identity
from manyfit.model_selection.job._chunk_inputs import IndexedRows, load_inputs
from manyfit.model_selection.job._job import Job, Options
from manyfit.model_selection.job._option_values import memory_limit_in_bytes
from manyfit.model_selection.planning.places._data_location import move_data_to_host
from manyfit.model_selection.results._report import Report
from manyfit.model_selection.running._engine import n_workers
from manyfit.model_selection.search._base import accept_device_data
from manyfit.model_selection.search._options import COUNT, OPTIONS
from manyfit.model_selection.search._setup import weights_of
from manyfit.model_selection.search.adaptive.incremental._chunk_training import ChunkTrainer
from manyfit.model_selection.search.adaptive.incremental._growing import grow_function
from manyfit.model_selection.search.adaptive.incremental._model_pool import ModelFile, ModelPool
from manyfit.model_selection.search.adaptive.incremental._partial_fits import (
    EngineTrainer,
    ModelScorer,
    PartialFits,
    Trainer,
)
from manyfit.model_selection.search.adaptive.incremental._results import (
    as_columns,
    best_of_models,
    count_fits,
)
from manyfit.model_selection.search.adaptive.incremental._schedules import Schedule, has_stalled

_DEFAULT_TEST_SIZE = 0.2
# `patience=True` is this share of the most calls.
_PATIENCE_SHARE = 3
Groups = Mapping[str, tuple[Schedule, list[Any]]]
"""Schedules, and the names of their models, by prefix."""


@accept_device_data
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
        "cv": ["cv_object"],
        "checkpoint": OPTIONS["checkpoint"],
        "memory_limit": OPTIONS["memory_limit"],
        # Of some of the searches.
        "n_initial_parameters": [COUNT, StrOptions({"grid"})],
        "n_initial_iter": [COUNT],
        "decay_rate": [Interval(numbers.Real, 0, None, closed="left")],
        "fits_per_score": [COUNT],
        "aggressiveness": [Interval(numbers.Real, 1, None, closed="neither")],
    }
    refit = True
    report_: Report
    history_: list[dict[str, Any]]
    model_history_: dict[Any, list[dict[str, Any]]]

    def _schedules(self) -> dict[str, tuple[Schedule, list[dict[str, Any]]]]:
        """Schedules by the prefix of their models' names, each with the settings of its models."""
        raise NotImplementedError

    def _run_search(self, pool: ModelPool, groups: Groups, context: Any) -> None:
        """Let models train until no schedule goes on; `context` is that of callbacks."""
        targets = {prefix: schedule.start(ids) for prefix, (schedule, ids) in groups.items()}
        while targets:
            wanted = {one: n for group in targets.values() for one, n in group.items()}
            self._reach(pool, wanted, context)
            going_on = {prefix: groups[prefix][0].go_on(pool.records) for prefix in targets}
            # A schedule whose models have all stopped has nothing to compare any more.
            targets = {prefix: group for prefix, group in going_on.items() if group.keys() - pool.stopped}
            pool.forget({one for group in targets.values() for one in group})

    def _reach(self, pool: ModelPool, wanted: Mapping[Any, int], context: Any) -> None:
        """Train models to their targets; with `patience` in parts, after which stalled ones stop."""
        patience = self._patience()
        while True:
            calls = pool.calls
            short = {
                one: n if not patience else min(n, calls.get(one, 0) + patience)
                for one, n in wanted.items()
                if calls.get(one, 0) < n and one not in pool.stopped
            }
            if not short:
                return
            self._train(pool, short, context)
            for one in short:
                records = pool.records[one]
                if math.isnan(records[-1]["score"]) or has_stalled(records, patience, self.tol):
                    pool.stopped.add(one)

    def _train(self, pool: ModelPool, targets: Mapping[Any, int], context: Any) -> None:
        """Train models to some calls in all, and score them."""
        task = context.subcontext(task_name="round").call_on_fit_task_begin(estimator=self)
        n_calls = pool.reach(targets)
        task.call_on_fit_task_end(estimator=self)
        if self.verbose:
            models = list(pool.records.values())
            best = models[best_of_models(models)][-1]["score"]
            print(f"{len(targets)} models, {n_calls} calls of partial_fit, best score {best:.4g}")

    def _patience(self) -> int:
        if isinstance(self.patience, bool | np.bool_):
            return max(self.max_iter // _PATIENCE_SHARE, 2) if self.patience else 0
        return int(self.patience)

    @fit_context
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Train and compare models.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            All data; a call of ``partial_fit`` reads all training rows once. An X that is larger than
            `memory_limit`, or half of the machine's memory if that is None, and lies in chunks is read in
            chunks, as in `GridSearchCV.fit`: a call then is one of ``partial_fit`` for each block of up to 32
            MiB that is read, in the order of the rows. Smaller Dask arrays are computed.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets; None if they come with `Blocks`.
        **fit_params : dict
            Passed to ``partial_fit``, with the rows of the training part where they have one for each row;
            ``groups`` to the splitter. With metadata routing, as requested of ``partial_fit``, the scorer and
            the splitter. ``classes`` of classifiers need not be given.

        Returns
        -------
        self : object
            The fitted search.

        Raises
        ------
        TypeError
            If the estimator can be trained further neither by ``partial_fit`` nor by ``warm_start``; or if X
            is read in chunks, and it has no ``partial_fit``.
        ValueError
            If the checkpoint belongs to another search, or the search is random; it then needs an integer
            ``random_state``.
        """
        start = time.perf_counter()
        self._check_estimator()
        classes = fit_params.pop("classes", None)
        X, y, given = load_inputs(self, X, y, fit_params)
        X, y, *values = move_data_to_host(
            type(self).__name__, "it trains models on the host", {"X": X, "y": y, **given}
        ).values()
        given = dict(zip(given, values, strict=True))
        if isinstance(X, IndexedRows) and isinstance(X.source, ChunkRows):
            X.source.count()
        given = check_method_params(X, params=given)
        if classes is None and is_classifier(self.estimator):
            several = type_of_target(y) == "multilabel-indicator"
            classes = np.arange(np.shape(y)[1]) if several else np.unique(y)
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        metadata = weights_of(given)
        root = callback_context(self, None).call_on_fit_task_begin(
            estimator=self, X=X, y=y, metadata=metadata
        )
        try:
            pool, groups = self._start(X, y, given, scorer, classes)
            try:
                self._run_search(pool, groups, root)
            finally:
                pool.close()
            self.scorer_, self.n_splits_, self.multimetric_ = scorer, pool.n_splits, False
            self._finish(pool)
        except ValueError as error:
            suggest_parameters(error, self.estimator)
            raise
        root.call_on_fit_task_end(estimator=self, X=X, y=y, metadata=metadata)
        self.report_.seconds["total"] = time.perf_counter() - start
        return self

    def _check_estimator(self) -> None:
        if grow_function(self.estimator) is None:
            way = "Use HalvingGridSearchCV with one of its integer parameters as the resource."
            last = self.estimator.steps[-1][1] if isinstance(self.estimator, Pipeline) else None
            if last is not None and grow_function(last) is not None:
                way = f"Transform X by its steps first, and search {type(last).__name__} by itself."
            raise TypeError(
                f"{type(self).__name__} trains models by partial_fit, or as boosting and forests with "
                f"warm_start, which {type(self.estimator).__name__} does not have. {way}"
            )
        if self.cv is not None and self.test_size is not None:
            raise ValueError(
                f"{type(self).__name__}: test_size={self.test_size!r} holds out one part of the rows, and "
                f"cv={self.cv!r} several in turn. Give one of them."
            )

    def _start(
        self, X: Any, y: Any, params: dict[str, Any], scorer: Any, classes: Any
    ) -> tuple[ModelPool, Groups]:
        """Models that are not trained yet, and their schedules."""
        drawn = self._schedules()
        settings = [one for _, some in drawn.values() for one in some]
        job = self._job(X, y, params, scorer, settings)
        pool = self._pool(job, classes)
        groups = {}
        for prefix, (schedule, some) in drawn.items():
            names = [f"{prefix}{j}" if prefix else j for j in range(len(some))]
            for name, one in zip(names, some, strict=True):
                pool.add(name, one, build_setting(self.estimator, one))
            groups[prefix] = schedule, names
        return pool, groups

    def _job(self, X: Any, y: Any, params: dict[str, Any], scorer: Any, settings: list[Any]) -> Job:
        """The search as users see it; the checkpoint compares it."""
        fit, score, split = self._routed(params)
        if self.cv is None:
            size = _DEFAULT_TEST_SIZE if self.test_size is None else self.test_size
            held_out = ShuffleSplit(1, test_size=size, random_state=self.random_state)
            splits = Splits.given(held_out.split(X, y), num_samples(X))
        else:
            cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
            splits = Splits.draw(cv, X, y, num_samples(X), split)
        X = X.source if isinstance(X, IndexedRows) else X
        limit = memory_limit_in_bytes(self.memory_limit)
        options = Options(scorer, fit, score, error_score=self.error_score, memory_limit=limit)
        return Job(self.estimator, settings, X, y, splits, options, self.n_jobs)

    def _pool(self, job: Job, classes: Any) -> ModelPool:
        options, in_chunks = job.options, isinstance(job.X, ChunkRows)
        fits = replace(
            job, estimator=PartialFits(), candidates=[], client=None if in_chunks else client_for(None),
            options=replace(options, scorer=ModelScorer(options.scorer), return_estimator=True),
        )  # fmt: skip
        file = None
        if self.checkpoint is not None:
            params = {**options.fit_params, "classes": classes}
            compared = identity(replace(job, options=replace(options, fit_params=params)), self)
            file = ModelFile(self.checkpoint, compared, n_workers(fits), UnwrittenModels(self.checkpoint))
        trainer: Trainer = EngineTrainer(fits, classes)
        if isinstance(job.X, ChunkRows):
            trainer = ChunkTrainer(replace(job, candidates=[]), job.X, classes)
        return ModelPool(trainer, job.splits.n_splits, self.error_score, file, self.cv is not None)

    def _routed(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """What of the parameters of `fit` goes to the estimator, the scorer and the splitter."""
        if routing_enabled():
            routed = process_routing(self, "fit", **params)
            return routed.estimator[self._method()], routed.scorer.score, routed.splitter.split
        params = dict(params)
        groups = params.pop("groups", None)
        return params, {}, {"groups": groups}

    def _method(self) -> str:
        return "partial_fit" if hasattr(self.estimator, "partial_fit") else "fit"

    def get_metadata_routing(self) -> MetadataRouter:
        """Get metadata routing of this object.

        Returns
        -------
        routing : MetadataRouter
            What `fit` passes to ``partial_fit`` of the estimator, to the scorer and to the splitter.
        """
        router = MetadataRouter(owner=self)
        fits = MethodMapping().add(caller="fit", callee=self._method())
        router.add(estimator=self.estimator, method_mapping=fits)
        scores = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
        router.add(scorer=check_scoring(self.estimator, scoring=self.scoring), method_mapping=scores)
        router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router

    def _finish(self, pool: ModelPool) -> None:
        """Set the attributes that tell the result."""
        self.history_, self.model_history_, self.report_ = pool.history, pool.records, pool.report
        models = list(pool.records.values())
        self.best_index_ = best_of_models(models)
        best = models[self.best_index_][-1]
        self.best_score_, self.best_params_ = best["score"], best["params"]
        start = time.perf_counter()
        again = None if self.cv is None else build_setting(self.estimator, self.best_params_)
        self.best_estimator_ = pool.model(best["model_id"], all_rows=again)
        if again is not None:
            self.refit_time_ = time.perf_counter() - start
            self.report_.spend("refit", self.refit_time_)
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        self.cv_results_ = as_columns(models)
        name = type(self.estimator).__name__
        count_fits(self.report_, name, len(models), pool.n_splits, len(pool.trained))

    def _draw(self, n: Any, random_state: Any) -> list[dict[str, Any]]:
        if n == "grid":
            return list(ParameterGrid(self.parameters))
        return list(ParameterSampler(self.parameters, n, random_state=random_state))
