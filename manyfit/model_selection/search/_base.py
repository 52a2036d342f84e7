"""The base of all searches: it adds the plan, shared work and the report to scikit-learn's searches."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from manyfit._compat import (
    callback_context,
    check_method_params,
    fit_context,
    scorers_by_name,
    takes_callback_context,
    uses_callbacks,
)
from manyfit.model_selection.job._memory_limit import memory_limit_in_bytes
from manyfit.model_selection.job._option_types import EarlyStopping, Engine, Sharing
from manyfit.model_selection.running._race import Race, race_of
from manyfit.model_selection.search._options import OPTIONS, refuse_checkpoint_in_rounds, require_timed_fits
from manyfit.model_selection.search._parameter_hints import suggest_parameters

# Methods import what works on data: that takes longer than to import scikit-learn's searches.
if TYPE_CHECKING:
    from manyfit.folds import Splits
    from manyfit.model_selection.job._job import Job
    from manyfit.model_selection.planning._plan import Plan
    from manyfit.model_selection.results._report import Report
    from manyfit.model_selection.search._evaluation import Evaluation
    from manyfit.model_selection.search._setup import Frozen, Setup


class SharedSearch:
    """A mixin for scikit-learn's search classes that adds a plan, shared work and a report."""

    _parameter_constraints: ClassVar[dict[str, Any]] = OPTIONS

    announces_refit = True  # scikit-learn's own searches print no line for it
    checks_input = False  # whether scikit-learn 1.7 has ``_check_input_parameters`` of this search
    time_budget: float | None = None
    race: str | float | None = None
    fit_timeout: float | None = None
    return_predictions: Any = False
    fits_within: Callable[[], AbstractContextManager[Any]] = nullcontext
    continues_rounds = False  # whether a checkpoint may have settings that earlier scores have chosen
    estimator: Any
    scoring: Any
    n_jobs: Any
    refit: Any
    cv: Any
    verbose: Any
    pre_dispatch: Any
    error_score: Any
    return_train_score: Any
    sharing: Sharing
    verify: int
    memory_limit: int | str | None
    client: Any
    checkpoint: str | os.PathLike[str] | None
    early_stopping: EarlyStopping
    engine: Engine
    report_: Report
    partial_results_: list[dict[str, Any]]
    best_estimator_: Any
    best_index_: int
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: dict[str, Any]
    multimetric_: bool
    n_splits_: int
    refit_time_: float
    scorer_: Any

    def plan(self, X: Any, y: Any = None, **params: Any) -> Plan:
        """Return what `fit` on the same data will share and why, without fitting anything.

        Splits and settings are drawn now. A `fit` with the same data, parameters and search uses them, even
        if they are random.

        Parameters
        ----------
        X, y, **params
            As for `fit`.

        Returns
        -------
        Plan
            It prints as a tree, and holds no data.

        Notes
        -----
        The data are read once, so that `fit` can compare their content. Device data are copied to the host
        for that, here and again in `fit`.
        """
        from manyfit.model_selection.planning._planner import prepare
        from manyfit.model_selection.search._hooks import attributes_restored, list_candidates
        from manyfit.model_selection.search._setup import Frozen, draw_splits, fingerprint, search_key

        self._validate_params()  # type: ignore[attr-defined]
        with attributes_restored(self):
            setup = self._setup(X, y, params)
            candidates = list_candidates(self, setup.n_splits)
        splits = draw_splits(setup, setup.cv)
        # Only now: drawing may have advanced a random state among the parameters.
        own = self.get_params(deep=False)  # type: ignore[attr-defined]
        self._frozen = Frozen(
            fingerprint(setup), search_key(own), own, setup.cv, setup.n_splits, splits, candidates
        )
        contexts: list[Any] | None = [] if uses_callbacks(self) else None
        return prepare(self._job(setup, candidates, splits, contexts)).plan

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Run the search.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame, (n_samples, n_features) or (n_samples, n_samples)
            Training data, or a kernel if the estimator takes one. Dask arrays, frames and series, here and
            below, are computed once and loaded whole, and so are `h5py.Dataset` and `zarr.Array`. X may also
            be a `pyarrow.dataset.Dataset`, a path of Parquet files or `manyfit.folds.Blocks`. An X of these
            that is larger than `memory_limit`, or half of the machine's memory if that is None, is read in
            chunks. An object of another class is read by the `manyfit.folds.RowSource`
            registered for it. Then, and in chunks, every fit must be shared, and the estimator of the refit
            be one that reads chunks, or `refit` be False.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets; None if they come with `Blocks`. The name of a column if X is a data set of Parquet
            files: the other columns are then the features.
        **params : dict
            Passed on to the estimator's ``fit``, the scorer and the splitter (``groups``), as in
            scikit-learn.

        Returns
        -------
        self : object
            The fitted search, with scikit-learn's attributes and `report_`.

        Raises
        ------
        TypeError
            If X is read in chunks or by a `RowSource`, and scikit-learn has to make a fit.

        Notes
        -----
        The time of a shared fit is split evenly over its settings, so that ``mean_fit_time`` in
        ``cv_results_`` adds up to the time spent.
        """
        from manyfit.arrays import transfers
        from manyfit.model_selection.running._predictions import note_predictions
        from manyfit.model_selection.search._evaluation import Evaluation
        from manyfit.model_selection.search._setup import fingerprint, refuse_fits_by_sklearn, weights_of

        start = time.perf_counter()
        vars(self).pop("partial_results_", None)
        refuse_checkpoint_in_rounds(self)
        frozen = self._take_frozen()
        with transfers() as crossed:
            setup = self._setup(X, y, params, frozen)
        refuse_fits_by_sklearn(setup.X, self.refit, self.verify)
        if frozen is not None and (frozen.data is None or frozen.data != fingerprint(setup)):
            frozen = None
        metadata = weights_of(setup.params)
        n_tasks = 1 + (self.refit is not False)
        root = callback_context(self, n_tasks).call_on_fit_task_begin(
            estimator=self, X=setup.X, y=setup.y, metadata=metadata
        )
        self.n_splits_ = setup.n_splits
        evaluation = Evaluation(self, setup, frozen, crossed)
        try:
            if takes_callback_context(self._run_search):  # type: ignore[attr-defined]
                self._run_search(evaluation, callback_ctx=root)  # type: ignore[attr-defined]
            else:
                self._run_search(evaluation)  # type: ignore[attr-defined]
            self.report_ = evaluation.report
            self._choose(setup, evaluation)
            if self.refit:
                context = root.subcontext(task_name="refit-with-best-params")
                self._refit_audited(setup, evaluation, context, metadata)
        except BaseException as error:  # Ctrl-C too
            self.partial_results_ = evaluation.partial()
            suggest_parameters(error, self.estimator)  # type: ignore[attr-defined]
            raise
        if hasattr(self, "best_index_"):
            self._note_choice(setup, evaluation)
        # The one scorer, or all by name where there are several.
        named = scorers_by_name(setup.scorer)
        self.scorer_ = setup.scorer if named.get("score") is setup.scorer else named
        self.cv_results_ = evaluation.formatted
        note_predictions(self, evaluation)
        root.call_on_fit_task_end(estimator=self, X=setup.X, y=setup.y, metadata=metadata)
        self.report_.seconds["total"] = time.perf_counter() - start
        return self

    # Before the fits

    def _get_scorers(self) -> Any:
        from manyfit.metrics import refuse_metrics

        # scikit-learn recognizes its own metrics, given in place of a scorer, by their module.
        refuse_metrics(self.scoring)
        return super()._get_scorers()  # type: ignore[misc]

    def _setup(self, X: Any, y: Any, params: Mapping[str, Any], frozen: Frozen | None = None) -> Setup:
        from manyfit.arrays import TransferCache, compute_dask_inputs
        from manyfit.folds import ChunkRows, expect_rows, load_targets, own_row_source
        from manyfit.model_selection.job._chunk_inputs import IndexedRows, chunk_input, weights_as_params
        from manyfit.model_selection.search._hooks import check_input
        from manyfit.model_selection.search._setup import Setup

        scorer, refit_metric = self._get_scorers()  # type: ignore[attr-defined]
        source = own_row_source(X)
        if source is None:
            given = chunk_input(X, y, self.memory_limit)
            X, y, source = given.X, given.y, given.rows
            if given.sample_weight is not None:
                params = weights_as_params(self.estimator, given.sample_weight, params)
        lazy = None if source is not None else X, y, *map(load_targets, params.values())
        X, y, *values = compute_dask_inputs(lazy, type(self).__name__)
        params = dict(zip(params, values, strict=True))
        if source is not None:
            if isinstance(source, ChunkRows):
                expect_rows(source, y)
            X = IndexedRows(source)
        (X, y), copy_to_host = indexable(X, y), TransferCache()
        params = check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)  # type: ignore[attr-defined]
        # The plan has consumed a `cv` that can be read only once. Any other depends on y.
        once = isinstance(self.cv, Iterable) and not hasattr(self.cv, "split")
        if frozen is not None and once:
            cv = frozen.cv
        else:
            # For a classifier, `check_cv` reads the kind of y.
            y_read = copy_to_host(y, "y") if is_classifier(self.estimator) else y
            cv = check_cv(self.cv, y_read, classifier=is_classifier(self.estimator))
        split_params = routed.splitter.split
        cv = check_input(self, cv, X, y, split_params)
        memory_limit_in_bytes(self.memory_limit)
        n_splits = cv.get_n_splits(X, y, **split_params)
        X = X if source is None else source
        return Setup(X, y, params, scorer, refit_metric, routed, cv, n_splits, copy_to_host)

    def _job(self, setup: Setup, candidates: list[Any], splits: Splits, contexts: Any) -> Job:
        from manyfit.cluster.pool.run import client_for
        from manyfit.folds import ChunkRows
        from manyfit.model_selection.job._job import Job, Options
        from manyfit.model_selection.job._predictions import recording_for
        from manyfit.model_selection.job._sklearnex import sklearnex_version
        from manyfit.model_selection.running._predictions import require_choice
        from manyfit.model_selection.search._early_stopping import require_stops
        from manyfit.model_selection.search._setup import refuse_refit_in_chunks

        if self.engine is not None:
            sklearnex_version()  # raises if it is not installed
        require_choice(self, setup.scorer)
        options = Options(
            scorer=setup.scorer,
            fit_params=setup.routed.estimator.fit,
            score_params=setup.routed.scorer.score,
            return_train_score=self.return_train_score,
            error_score=self.error_score,
            verbose=int(self.verbose),
            memory_limit=memory_limit_in_bytes(self.memory_limit),
            early_stopping=self.early_stopping,
            engine=self.engine,
            fit_timeout=self.fit_timeout,
            recording=recording_for(self.return_predictions, setup.y, len(candidates), self.memory_limit),
            fits_within=self.fits_within,
        )
        in_chunks = isinstance(setup.X, ChunkRows)
        if in_chunks and self.refit is not False:
            refuse_refit_in_chunks(setup.X, self.estimator, candidates)
        job = Job(
            clone(self.estimator), candidates, setup.X, setup.y, splits, options, self.n_jobs,
            self.pre_dispatch, self.sharing, self, contexts,
            client=None if in_chunks else client_for(self.client),  # chunks are summed where they are read
            copy_to_host=setup.copy_to_host,
        )  # fmt: skip
        return require_timed_fits(require_stops(job))

    def _make_race(self, n_splits: int, metric: str | None) -> Race | None:
        """The race of settings that are fitted one by one; None if all are fitted on all splits."""
        return None if self.race is None else race_of(self, n_splits, metric)

    def _take_frozen(self) -> Frozen | None:
        """The last plan, if the search has not changed since; it is used once."""
        from manyfit.model_selection.search._setup import search_key

        frozen: Frozen | None = vars(self).pop("_frozen", None)
        if frozen is None:
            return None
        own = self.get_params(deep=False)  # type: ignore[attr-defined]
        return frozen if frozen.search_key == search_key(own) else None

    # After the fits

    def _choose(self, setup: Setup, evaluation: Evaluation) -> None:
        """Set ``best_index_``, ``best_params_`` and ``best_score_`` by scikit-learn's rules."""
        results, first = evaluation.formatted, evaluation.out[0]["test_scores"]
        self.multimetric_ = isinstance(first, dict)
        metric = setup.refit_metric
        if callable(self.scoring) and self.multimetric_:
            # The scores that a callable returns are known only now.
            self._check_refit_for_multimetric(first)  # type: ignore[attr-defined]
            metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, metric, results)  # type: ignore[attr-defined]
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _note_choice(self, setup: Setup, evaluation: Evaluation) -> None:
        """Report what the choice of the best setting leaves open, and settings as good as it within `tol`."""
        from manyfit.model_selection.results.displays._advice import advise
        from manyfit.model_selection.strategies._doubts import as_good_as_best

        results, metric = evaluation.formatted, self.refit if self.multimetric_ else "score"
        by_mean = metric if isinstance(metric, str) and not callable(self.refit) else None
        self.report_.advice += advise(self, results, by_mean, setup.X)
        if isinstance(metric, str):
            scores = results[f"mean_test_{metric}"]
            tied = as_good_as_best(scores, self.best_index_, evaluation.doubts, metric, setup.n_splits)
            self.report_.as_good_as_best = [dict(evaluation.candidates[c]) for c in tied]

    def _refit_audited(self, setup: Setup, evaluation: Evaluation, context: Any, metadata: Any) -> None:
        """Refit the best setting; if that casts doubt on scores, replace them, choose and refit again."""
        from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings

        deferred = DeferredWarnings()  # those of a refit that is made again are dropped
        try:
            while True:
                refitted, raised = self.best_index_, None
                try:
                    with deferred.under("refit") if evaluation.may_doubt(refitted) else nullcontext():
                        self._refit(setup, evaluation, context, metadata)
                except ConvergenceWarning as error:  # a user's warning filters raise it
                    raised = error
                while self.best_index_ == refitted:
                    if evaluation.refit_doubts(refitted, self.best_estimator_, raised is not None):
                        self._choose(setup, evaluation)
                    elif raised is None:
                        return
                    else:
                        raise raised
                deferred.emit(())
        finally:
            deferred.emit(("refit",))

    def _refit(self, setup: Setup, evaluation: Evaluation, context: Any, metadata: Any) -> None:
        """Fit the user's own estimator on all rows, as scikit-learn does."""
        from manyfit.model_selection.results._progress_bar import refitting
        from manyfit.model_selection.search._early_stopping import limit_iterations
        from manyfit.model_selection.search._refit import fit_on_all_rows

        params = clone(self.best_params_, safe=False)
        self.best_estimator_ = clone(self.estimator).set_params(**params)
        if self.early_stopping is not None:
            self.report_.refit_n_iter = limit_iterations(
                self.best_estimator_, evaluation.formatted, self.best_index_, setup.n_splits
            )
        with context.propagate_callback_context(self.best_estimator_):
            context.call_on_fit_task_begin(estimator=self, X=setup.X, y=setup.y, metadata=metadata)
            start = time.time()
            X, y, params = evaluation.data_for(self.best_estimator_)
            data = (X,) if y is None else (X, y)
            verbose = int(self.verbose) if self.announces_refit or self.verbose <= 1 else 0
            with refitting(verbose, evaluation.seconds):
                model = fit_on_all_rows(
                    self.best_estimator_, evaluation.rowwise_of(self.best_index_), data, params
                )
                if model is None:
                    self.best_estimator_.fit(*data, **params)
                else:
                    self.best_estimator_ = model
            self.refit_time_ = time.time() - start
        self.report_.spend("refit", self.refit_time_)
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        context.call_on_fit_task_end(estimator=self, X=setup.X, y=setup.y, metadata=metadata)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_frozen", None)
        if state.get("client"):
            state["client"] = None  # a connection cannot be pickled; the current client is used instead
        return state

    def __sklearn_clone__(self) -> Any:
        """A clone with the same client: a connection cannot be copied."""
        without = copy.copy(self)  # it takes the pickled state
        other = super(SharedSearch, without).__sklearn_clone__()  # type: ignore[misc]
        other.client = self.client
        return other
