"""Fits and scorers on copies of rows that are cut once, with scikit-learn's scores and errors."""

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from traceback import format_exception
from types import TracebackType
from typing import Any

from sklearn.base import BaseEstimator

from manyfit._compat import score
from manyfit.arrays import array_namespace, deep_copy, is_xp_array
from manyfit.introspection.composites import build_setting
from manyfit.model_selection.job._job import Result
from manyfit.model_selection.sharing._fit_and_score import fit_with_sklearn, record
from manyfit.model_selection.sharing._fold_store import FoldStore


class CopyingScorer:
    """A user's scorer that may write into device rows: it gets copies, since these cannot be protected."""

    def __init__(self, scorer: Any) -> None:
        self.scorer = scorer

    def __call__(self, estimator: Any, *rows: Any, **params: Any) -> Any:
        return self.scorer(estimator, *map(_copied, rows), **params)


def _copied(rows: Any) -> Any:
    return array_namespace(rows).asarray(rows, copy=True) if is_xp_array(rows) else rows


class RaisingEstimator(BaseEstimator):
    """An estimator whose fit raises the error of another fit."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __sklearn_clone__(self) -> "RaisingEstimator":
        """Itself: a copy of an error has no traceback, and many errors cannot be copied."""
        return self

    def fit(self, X: Any, y: Any = None, **params: Any) -> None:
        raise self.error


def fit_on_copies(
    estimator: Any, params: Mapping[str, Any], i: int, folds: FoldStore, progress: tuple[Any, Any]
) -> Result:
    """Fit and score one setting on split `i` as scikit-learn would, on copies of rows that are cut once.

    For NumPy arrays, since cutting them takes scikit-learn longer than many a short fit. A fit may write into
    its copies.
    """
    options, ready = folds.options, None
    with suppress(Exception):
        model = build_setting(estimator, params)
        fold = folds.get(i, model)
        rows = (fold.test, fold.train) if options.return_train_score else (fold.test,)
        score_params = [folds.cut(options.score_params, one) for one in rows]
        ready = model, fold, folds.cut(options.fit_params, fold.train), score_params
    if ready is None:
        return fit_with_sklearn(estimator, params, i, folds, progress)
    model, fold, fit_params, score_params = ready
    start, failed = time.perf_counter(), None
    X, y = deep_copy(fold.X_train), deep_copy(fold.y_train)
    fit, stopping = model.fit, None
    if options.early_stopping is not None:
        stopping = folds.stopping(deep_copy(fold.X_test), deep_copy(fold.y_test), fold.test)
        fit = partial(stopping.fit, model)
    try:
        fit(X, *(() if y is None else (y,)), **fit_params)
    except Exception as error:
        failed = error
    fitted = time.perf_counter()
    if failed is not None:
        result = _failed(failed, i, folds, progress) | {"fit_time": fitted - start}
        return result | ({"estimator": model} if options.return_estimator else {})

    def scored(X: Any, y: Any, params: Any) -> Any:
        return score(model, X, y, options.scorer, params, options.error_score)

    X_test, y_test = deep_copy(fold.X_test), deep_copy(fold.y_test)
    result = {
        "fit_error": None, "test_scores": scored(X_test, y_test, score_params[0]),
        "fit_time": fitted - start, "score_time": time.perf_counter() - fitted,
    }  # fmt: skip
    if options.return_train_score:
        result["train_scores"] = scored(X, y, score_params[1])
    if options.return_estimator:
        result["estimator"] = model
    if options.recording is not None:
        record(options, model, deep_copy(fold.X_test), result)
    return result if stopping is None else result | stopping.found


def _failed(error: Exception, i: int, folds: FoldStore, progress: tuple[Any, Any]) -> Result:
    """scikit-learn's result for a failed fit; its text quotes the traceback below its own call of `fit`."""
    below = error.__traceback__ and error.__traceback__.tb_next
    result = fit_with_sklearn(RaisingEstimator(error), {}, i, folds, progress)
    call = error.__traceback__
    assert call is not None
    error.__traceback__ = TracebackType(below, call.tb_frame, call.tb_lasti, call.tb_lineno)
    return result | {"fit_error": "".join(format_exception(error))}
