"""One setting on one split, fitted, scored and timed on shared rows and with shared steps."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from manyfit._compat import fit_and_score, needs_estimator, raise_scorer_errors, safe_split, score
from manyfit.arrays import is_xp_array, label_transfers
from manyfit.families import fit_continued
from manyfit.folds import Unsupported
from manyfit.introspection.composites import build_setting, fails_with_its_parts
from manyfit.introspection.randomness import is_deterministic
from manyfit.model_selection.job._job import Options, Result
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings, in_main_thread
from manyfit.model_selection.sharing._fit_overhead import (
    skip_parameter_checks,
    threads_of_fit,
    uses_blas_and_openmp,
)
from manyfit.model_selection.sharing._fold_store import OWN_ROWS, FoldStore, SettingFacts, SharedFold
from manyfit.model_selection.sharing._verbose import print_end, print_start
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers, writes_in_place
from manyfit.model_selection.sharing.rows._own_rows import InputWritten, OwnRows
from manyfit.model_selection.sharing.transformers._step_wrappers import (
    has_shareable_prefix,
    share_prefixes,
    unshare,
)

_LOG = logging.getLogger(__name__)


def evaluate(
    estimator: Any, params: Mapping[str, Any], i: int, folds: FoldStore, progress: tuple[Any, Any]
) -> Result:
    """Fit and score one setting on split `i` as scikit-learn would, sharing rows and steps.

    If anything fails, or an estimator or scorer wrote into its copies, scikit-learn's own function repeats it
    on its own rows, so that errors, warnings and `error_score` are scikit-learn's. If that succeeds, the
    error came from sharing, and is logged.
    """
    ready = _prepare(estimator, params, i, folds)
    if ready is None:
        return fit_with_sklearn(estimator, params, i, folds, progress)
    model, fold, facts = ready
    print_start(folds.options, params, progress)
    result: Result | None = None
    failed: Exception | None = None
    key = id(estimator), id(params)
    try:
        with (
            trial(draws=facts.draws),
            folds.shared_fits(),
            threads_of_fit(facts.blas_and_openmp, folds.n_bytes if facts.blas_and_openmp else None),
            skip_parameter_checks(key in folds.checked),
            folds.options.fits_within(),
        ):
            result = _shared_fit(model, fold, facts, folds)
        if facts.checked_once and not folds.strange_scorers:
            folds.checked.add(key)
    except InputWritten:
        folds.writers |= facts.strange_steps | folds.strange_scorers
    except Exception as error:
        failed = error.with_traceback(None)  # the frames hold the rows
    # Outside of any handler, so that scikit-learn's texts quote its own traceback only.
    if result is None:
        result = fit_with_sklearn(estimator, params, i, folds, progress, verbose=0)
        expected = failed is None or isinstance(failed, Unsupported)
        if not (expected or has_failed(result, folds.options.error_score)):
            _LOG.debug("%r failed where steps are shared: %r", model, failed)
    print_end(folds.options, params, progress, result)
    return result


def fit_with_sklearn(
    estimator: Any,
    params: Mapping[str, Any],
    i: int,
    folds: FoldStore,
    progress: tuple[Any, Any],
    **more: Any,
) -> Result:
    """Fit and score one setting on split `i` by scikit-learn's own function; `more` are its arguments.

    A `HostFallbackError` in a fit or score is raised, whatever ``error_score`` is.
    """
    options = folds.options
    arguments = {**arguments_of_fits(options), **arguments_of_fit(params, folds.split(i), progress), **more}
    # Fits have labels of their own.
    blas_and_openmp = uses_blas_and_openmp(estimator, params)
    threads = threads_of_fit(blas_and_openmp, folds.n_bytes if blas_and_openmp else None)
    with folds.sklearn_fits() as refused, label_transfers("scores"), threads, options.fits_within():
        model, stopping = clone(estimator), None
        if options.early_stopping is not None:
            train, test = folds.split(i)
            X_test, y_test = safe_split(model, folds.X, folds.y, test, train)
            stopping = folds.stopping(X_test, y_test, test)
            model = stopping.attach(model)
        result: Result = fit_and_score(model, folds.X, folds.y, **arguments)
        if options.recording is not None and result["fit_error"] is None:
            train, test = folds.split(i)
            X_test, _ = safe_split(model, folds.X, folds.y, test, train)
            _record(options, model, X_test, result)
    result |= {} if stopping is None else stopping.found
    if refused and options.error_score != "raise" and has_failed(result, options.error_score):
        raise refused[0]
    return result


def arguments_of_fits(options: Options) -> dict[str, Any]:
    """Arguments of `fit_and_score` that all fits of a search have in common."""
    return {
        "scorer": options.scorer,
        "fit_params": dict(options.fit_params),
        "score_params": dict(options.score_params),
        "return_train_score": options.return_train_score,
        "return_times": True,
        "return_estimator": options.return_estimator,
        "error_score": options.error_score,
        "verbose": options.verbose,
    }


def arguments_of_fit(params: Mapping[str, Any], split: tuple[Any, Any], progress: Any) -> dict[str, Any]:
    """Arguments of `fit_and_score` for one setting on one split."""
    return {
        "train": split[0],
        "test": split[1],
        # None: scikit-learn calls no `set_params` of an estimator that is validated as it is.
        "parameters": dict(params) or None,
        "candidate_progress": progress[0],
        "split_progress": progress[1],
    }


def _record(options: Options, model: Any, X_test: Any, result: Result) -> None:
    """Add recorded predictions of a fitted model to its result; none if its scores failed, too."""
    recording = options.recording
    if recording is None or not recording.wants(model):
        return
    try:
        result["predicted"] = recording.of_model(model, X_test)
    except Exception:
        if not has_failed(result, options.error_score):
            raise


def has_failed(result: Result, error_score: Any) -> bool:
    """Whether a fit, or one of its scores, failed; with `error_score` "raise" no result has."""
    if result["fit_error"] is not None or isinstance(error_score, str):
        return result["fit_error"] is not None
    scores = [result[part] for part in ("test_scores", "train_scores") if part in result]
    values = [value for some in scores for value in (some.values() if isinstance(some, dict) else [some])]
    return any(np.array_equal(v, error_score, equal_nan=True) for v in values)


@contextmanager
def trial(draws: bool) -> Iterator[None]:
    """A fit that leaves no trace if it raises, since it will be made again.

    Its warnings are shown, and its draws from NumPy's global random state count, only if it succeeds. Other
    threads than the main one change neither.
    """
    if not in_main_thread():
        yield
        return
    # Reading the state takes a tenth of a millisecond.
    state = np.random.get_state(legacy=False) if draws else None
    deferred = DeferredWarnings()
    try:
        with deferred.under("trial"):
            yield
    except Exception:
        deferred.emit(())
        if state is not None:
            np.random.set_state(state)
        raise
    deferred.emit(("trial",))


def _prepare(
    estimator: Any, params: Mapping[str, Any], i: int, folds: FoldStore
) -> tuple[Any, SharedFold, SettingFacts] | None:
    """The estimator, fold and facts of a setting on shared rows; None if it needs rows of its own."""
    with suppress(Exception):
        key = id(estimator), id(params)
        facts = folds.facts[key][-1] if key in folds.facts else None
        # Before `set_params`, whose calls an estimator may count.
        if facts is None and not folds.share_steps and any_of(strangers(estimator)):
            facts = OWN_ROWS
        if facts is not OWN_ROWS:
            model = build_setting(estimator, params)
            facts = facts or _facts_of(model, folds)
        folds.facts[key] = estimator, params, facts
        if facts is OWN_ROWS:
            return None
        ready = model, folds.get(i, model), facts
        return ready if folds.writers.isdisjoint(facts.strange_steps | folds.strange_scorers) else None
    return None


def _facts_of(model: Any, folds: FoldStore) -> SettingFacts:
    if writes_in_place(model):
        return OWN_ROWS
    strange = frozenset(strangers(model))
    if strange and not (folds.share_steps and has_shareable_prefix(model)):
        return OWN_ROWS
    checked_once = not strange and fails_with_its_parts(model)
    return SettingFacts(
        strange,
        is_deterministic(model) is not True,
        uses_blas_and_openmp(model),
        checked_once,
        None if strange else _plain_scorer_of(model, folds),
    )


def _plain_scorer_of(model: Any, folds: FoldStore) -> Any:
    """What scores fits of a setting without checking targets again, or None."""
    if folds.strange_scorers or folds.options.score_params or is_xp_array(folds.X) or folds.y is None:
        return None
    from manyfit.model_selection.sharing._plain_scores import plain_scorer  # searches that share do without

    return plain_scorer(folds.options.scorer, model)


def _shared_fit(unfitted: Any, fold: SharedFold, facts: SettingFacts, folds: FoldStore) -> Result:
    options, model, copies = folds.options, unfitted, OwnRows()
    start = time.perf_counter()
    calls_scorer = needs_estimator(options.scorer)
    copies_X = bool(facts.strange_steps or (folds.strange_scorers and calls_scorer))
    copies_y = bool(facts.strange_steps or folds.strange_scorers)

    def cached(rows: Any, copied: bool) -> Any:
        shared = None if rows is None else fold.cache.share(rows)
        return fold.cache.register_copy(copies.copy(shared), shared) if copied else shared

    def scored(role: str, X: Any, y: Any, rows: Any) -> Any:
        if facts.scorer is not None:
            return facts.scorer(model, cached(X, copies_X), fold.checked_targets(role))
        params = folds.cut(options.score_params, rows)
        with label_transfers("scores"):
            return score(model, cached(X, copies_X), cached(y, copies_y), strict, params, "raise")

    if folds.share_steps:
        model = share_prefixes(model, fold.cache, copies=copies if copies_X else None)
    targets = () if fold.y_train is None else (cached(fold.y_train, copies_X),)
    fit, stopping = partial(fit_continued, model), None
    if options.early_stopping is not None:
        X_test, y_test = cached(fold.X_test, copies_X), cached(fold.y_test, copies_X)
        stopping = folds.stopping(X_test, y_test, fold.test)
        fit = partial(stopping.fit, model)
    fit(cached(fold.X_train, copies_X), *targets, **folds.cut(options.fit_params, fold.train))
    fitted = time.perf_counter()
    if calls_scorer:
        model = unshare(model)
    strict = raise_scorer_errors(options.scorer)
    result: Result = {"fit_error": None, "test_scores": scored("test", fold.X_test, fold.y_test, fold.test)}
    result |= {"fit_time": fitted - start, "score_time": time.perf_counter() - fitted}
    if options.return_train_score:
        result["train_scores"] = scored("train", fold.X_train, fold.y_train, fold.train)
    if options.recording is not None and options.recording.wants(unfitted):
        result["predicted"] = options.recording.of_model(model, cached(fold.X_test, copies_X))
    copies.require_unchanged()
    return result if stopping is None else result | stopping.found
