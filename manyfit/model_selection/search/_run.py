"""A search from its first look at the data to its refit."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from manyfit._compat import callback_context, scorers_by_name, takes_callback_context, uses_callbacks
from manyfit._config.sizes import format_count
from manyfit.arrays import transfers
from manyfit.cluster.chunk_workers import chunk_workers
from manyfit.introspection.parameter_hints import suggest_parameters
from manyfit.model_selection.early_stopping._iterations import limit_iterations
from manyfit.model_selection.planning._plan import Plan
from manyfit.model_selection.planning._planner import prepare
from manyfit.model_selection.results._progress_bar import refitting
from manyfit.model_selection.running._predictions import note_predictions
from manyfit.model_selection.search._evaluation import Evaluation
from manyfit.model_selection.search._hooks import attributes_restored, list_candidates
from manyfit.model_selection.search._options import refuse_checkpoint_in_rounds
from manyfit.model_selection.search._refit import refit_shared
from manyfit.model_selection.search._setup import (
    Frozen,
    Setup,
    draw_splits,
    fingerprint,
    make_job,
    make_setup,
    refuse_fits_by_sklearn,
    search_key,
    weights_of,
)
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings
from manyfit.model_selection.sharing._fit_overhead import threads_of_fit, uses_blas_and_openmp
from manyfit.model_selection.sharing._fold_store import data_bytes


def plan_search(search: Any, X: Any, y: Any, params: Mapping[str, Any]) -> Plan:
    """`SharedSearch.plan`."""
    search._validate_params()
    with attributes_restored(search):
        setup = make_setup(search, X, y, params)
        candidates = list_candidates(search, setup.n_splits)
    with chunk_workers(setup.X, search.client):
        splits = draw_splits(setup, setup.cv)
        # Only now: drawing may have advanced a random state among the parameters.
        own = search.get_params(deep=False)
        drawn = setup.cv, splits, candidates, setup.sample
        search._frozen = Frozen(fingerprint(setup), search_key(own), own, *drawn)
        contexts: list[Any] | None = [] if uses_callbacks(search) else None
        plan = prepare(make_job(search, setup, candidates, splits, contexts)).plan
    return plan if setup.sample is None else setup.sample.note(plan)


def fit_search(search: Any, X: Any, y: Any, params: Mapping[str, Any]) -> None:
    """`SharedSearch.fit`."""
    start = time.perf_counter()
    vars(search).pop("partial_results_", None)
    refuse_checkpoint_in_rounds(search)
    frozen = _take_frozen(search)
    with transfers() as crossed:
        setup = make_setup(search, X, y, params, frozen)
    refuse_fits_by_sklearn(setup.X, search.refit, search.verify)
    if frozen is not None and (frozen.data is None or frozen.data != fingerprint(setup)):
        frozen = None
    with chunk_workers(setup.X, search.client):
        _search(search, setup, Evaluation(search, setup, frozen, crossed))
    search.report_.seconds["total"] = time.perf_counter() - start


def _take_frozen(search: Any) -> Frozen | None:
    """The last plan, if the search has not changed since; it is used once."""
    frozen: Frozen | None = vars(search).pop("_frozen", None)
    if frozen is None:
        return None
    own = search.get_params(deep=False)
    return frozen if frozen.search_key == search_key(own) else None


def _search(search: Any, setup: Setup, evaluation: Evaluation) -> None:
    metadata = weights_of(setup.params)
    n_tasks = 1 + (search.refit is not False)
    root = callback_context(search, n_tasks).call_on_fit_task_begin(
        estimator=search, X=setup.X, y=setup.y, metadata=metadata
    )
    search.n_splits_ = setup.n_splits
    try:
        if takes_callback_context(search._run_search):
            search._run_search(evaluation, callback_ctx=root)
        else:
            search._run_search(evaluation)
        evaluation.end()
        search.report_ = evaluation.report
        if setup.sample is not None:
            search.report_.sample, search.sample_indices_ = str(setup.sample), setup.sample.rows
        _choose(search, setup, evaluation)
        if search.refit:
            context = root.subcontext(task_name="refit-with-best-params")
            _refit_audited(search, setup, evaluation, context, metadata)
    except BaseException as error:  # Ctrl-C too
        search.partial_results_ = evaluation.partial()
        _note_finished(search, error)
        suggest_parameters(error, search.estimator, evaluation.names)
        raise
    if hasattr(search, "best_index_"):
        evaluation.note_choice()
    # The one scorer, or all by name where there are several.
    named = scorers_by_name(setup.scorer)
    search.scorer_ = setup.scorer if named.get("score") is setup.scorer else named
    search.cv_results_ = evaluation.formatted
    note_predictions(search, evaluation)
    root.call_on_fit_task_end(estimator=search, X=setup.X, y=setup.y, metadata=metadata)


def _note_finished(search: Any, error: BaseException) -> None:
    """Add a note to the error that ends a search: where the finished scores are."""
    n = sum(pair["fit_error"] is None for pair in search.partial_results_)
    if not n or not search.keeps_partial_results:
        return
    if search.checkpoint is None:
        rest = "With checkpoint= a file would keep them, and fit would go on from there."
    else:
        rest = f"{os.fspath(search.checkpoint)!r} has them too, and fit goes on from there."
    pairs = f"{format_count(n, 'finished pair')} of a setting and a split"
    error.add_note(f"{type(search).__name__}: partial_results_ has the scores of {pairs}. {rest}")


def _choose(search: Any, setup: Setup, evaluation: Evaluation) -> None:
    """Set ``best_index_``, ``best_params_`` and ``best_score_`` by scikit-learn's rules."""
    results, first = evaluation.formatted, evaluation.out[0]["test_scores"]
    search.multimetric_ = isinstance(first, dict)
    metric = setup.refit_metric
    if callable(search.scoring) and search.multimetric_:
        # The scores that a callable returns are known only now.
        search._check_refit_for_multimetric(first)
        metric = search.refit
    if search.refit or not search.multimetric_:
        search.best_index_ = search._select_best_index(search.refit, metric, results)
        if not callable(search.refit):
            search.best_score_ = results[f"mean_test_{metric}"][search.best_index_]
        search.best_params_ = results["params"][search.best_index_]


def _refit_audited(search: Any, setup: Setup, evaluation: Evaluation, context: Any, metadata: Any) -> None:
    """Refit the best setting; if that casts doubt on scores, replace them, choose and refit again."""
    deferred = DeferredWarnings()  # those of a refit that is made again are dropped
    try:
        while True:
            refitted, raised = search.best_index_, None
            try:
                with deferred.under("refit") if evaluation.may_doubt(refitted) else nullcontext():
                    _refit(search, setup, evaluation, context, metadata)
            except ConvergenceWarning as error:  # a user's warning filters raise it
                raised = error
            while search.best_index_ == refitted:
                if evaluation.refit_doubts(refitted, search.best_estimator_, raised is not None):
                    _choose(search, setup, evaluation)
                elif raised is None:
                    return
                else:
                    raise raised
            deferred.emit(())
    finally:
        deferred.emit(("refit",))


def _refit(search: Any, setup: Setup, evaluation: Evaluation, context: Any, metadata: Any) -> None:
    """Fit the user's own estimator on all rows, as scikit-learn does."""
    params = clone(search.best_params_, safe=False)
    search.best_estimator_ = clone(setup.estimator).set_params(**params)
    if search.early_stopping is not None:
        search.report_.refit_n_iter = limit_iterations(
            search.best_estimator_, evaluation.formatted, search.best_index_, setup.n_splits
        )
    with context.propagate_callback_context(search.best_estimator_):
        context.call_on_fit_task_begin(estimator=search, X=setup.X, y=setup.y, metadata=metadata)
        start = time.time()
        X, y, params = evaluation.data_for(search.best_estimator_)
        data = (X,) if y is None else (X, y)
        verbose = int(search.verbose) if search.announces_refit or search.verbose <= 1 else 0
        with refitting(verbose, evaluation.seconds):
            model = refit_shared(search.best_estimator_, evaluation, search.best_index_, data, params)
            if model is None:
                blas_and_openmp = uses_blas_and_openmp(search.best_estimator_)
                with threads_of_fit(blas_and_openmp, data_bytes(X) if blas_and_openmp else None):
                    search.best_estimator_.fit(*data, **params)
            else:
                search.best_estimator_ = model
        search.refit_time_ = time.time() - start
    search.report_.spend("refit", search.refit_time_)
    if hasattr(search.best_estimator_, "feature_names_in_"):
        search.feature_names_in_ = search.best_estimator_.feature_names_in_
    context.call_on_fit_task_end(estimator=search, X=setup.X, y=setup.y, metadata=metadata)
