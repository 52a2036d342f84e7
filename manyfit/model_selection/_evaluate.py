"""One setting on one split: fitted, scored and timed, with the rows and steps that others share."""

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from manyfit._compat import (
    check_method_params,
    fit_and_score,
    needs_estimator,
    raising,
    safe_split,
    score,
)
from manyfit.folds import Splits
from manyfit.model_selection._job import Options, Result
from manyfit.model_selection._lend import guard
from manyfit.model_selection._messages import print_end, print_start
from manyfit.model_selection._prefix import FoldCache, share_prefixes, unshare, writes_in_place


class SharedFold:
    """The rows of one split, cut once for all settings that are fitted on it.

    Parameters
    ----------
    estimator : estimator
        Tells whether X is a kernel, which is cut in rows and columns.
    X, y : array-like
        All rows.
    split : tuple
        Train and test indices.
    options : Options
        Fit and score parameters are cut along.
    limit : int
        Bytes that outputs of shared steps may take.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, split: tuple[Any, Any], options: Options, limit: int
    ) -> None:
        train, test = map(np.asarray, split)  # as scikit-learn does, which refuses slices by this
        self.cache = FoldCache(limit)
        self.X_train, self.y_train = safe_split(estimator, X, y, train)
        self.X_test, self.y_test = safe_split(estimator, X, y, test, train)
        self.fit_params = check_method_params(X, params=dict(options.fit_params), indices=train)
        self.score_train = check_method_params(X, params=dict(options.score_params), indices=train)
        self.score_test = check_method_params(X, params=dict(options.score_params), indices=test)


class FoldStore:
    """The folds of a task, by split; as many are kept as the memory limit allows.

    Parameters
    ----------
    X, y : array-like
        All rows.
    splits : Splits or dict of int to tuple
        The splits, or those of a task.
    options : Options
        Of all fits.
    share_steps : bool
        Whether steps are shared.
    in_turn : bool
        Whether the folds are asked for one after the other, so that only the last one is needed.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        splits: Mapping[int, tuple[Any, Any]] | Splits,
        options: Options,
        share_steps: bool,
        in_turn: bool = True,
    ) -> None:
        self.X, self.y, self.options, self.share_steps = X, y, options, share_steps
        self._splits = splits
        self._kept: dict[tuple[int, bool], SharedFold] = {}
        self._spent = Counter[str]()
        # A fold is about as large as X; of what does not tell its size, one is kept.
        size = None if in_turn else _size(X)
        n_splits = splits.n_splits if isinstance(splits, Splits) else len(splits)
        self._most = 1 if size is None else max(1, min(n_splits, options.memory_limit // 4 // max(size, 1)))

    def split(self, i: int) -> tuple[Any, Any]:
        """Train and test indices of split `i`."""
        return self._splits.indices(i) if isinstance(self._splits, Splits) else self._splits[i]

    def get(self, i: int, estimator: Any) -> SharedFold:
        """The rows of split `i` for an estimator."""
        key = (i, bool(get_tags(estimator).input_tags.pairwise))
        if key not in self._kept:
            while len(self._kept) >= self._most:
                oldest = self._kept.pop(next(iter(self._kept)))
                self._spent += _work(oldest.cache)
            limit = self.options.memory_limit // 2 // self._most
            self._kept[key] = SharedFold(estimator, self.X, self.y, self.split(i), self.options, limit)
        return self._kept[key]

    @property
    def work(self) -> Counter[str]:
        """Counts of a `Report` about shared steps, over the folds so far."""
        return sum((_work(fold.cache) for fold in self._kept.values()), self._spent)


def _work(cache: FoldCache) -> Counter[str]:
    return Counter(transformer_fits=cache.fits, steps_repeated=cache.repeated)


def _size(X: Any) -> int | None:
    """Bytes of X, if it tells."""
    if hasattr(X, "memory_usage"):  # pandas
        return int(X.memory_usage(index=True).sum())
    if hasattr(X, "estimated_size"):  # polars
        return int(X.estimated_size())
    size = getattr(X, "nbytes", None) or getattr(getattr(X, "data", None), "nbytes", None)
    return None if size is None else int(size)


def evaluate(
    estimator: Any, params: Mapping[str, Any], i: int, folds: FoldStore, progress: tuple[Any, Any]
) -> Result:
    """Fit and score one setting on split `i` as scikit-learn would, sharing rows and steps.

    Whatever goes wrong is repeated by scikit-learn's own function on rows of its own, so that errors,
    warnings and `error_score` are scikit-learn's: also where a step wrote into its input, which is
    read-only here because others read it too.
    """
    print_start(folds.options, params, progress)
    result: Result | None = None
    with suppress(Exception):
        result = _shared_fit(estimator, params, i, folds)
    # Outside of any handler, so that scikit-learn's texts quote its own traceback only.
    if result is None:
        return alone(estimator, params, i, folds, progress)
    print_end(folds.options, params, progress, result)
    return result


def _shared_fit(estimator: Any, params: Mapping[str, Any], i: int, folds: FoldStore) -> Result:
    options = folds.options
    model = clone(estimator).set_params(**clone(dict(params), safe=False))
    start = time.perf_counter()
    if writes_in_place(model):
        raise _NeedsOwnRows
    fold = folds.get(i, model)
    lend = fold.cache.lend
    if folds.share_steps:
        model = share_prefixes(model, fold.cache)
    targets = () if fold.y_train is None else (lend(fold.y_train),)
    model.fit(lend(fold.X_train), *targets, **_guarded(fold.fit_params))
    fitted = time.perf_counter()
    if options.return_estimator or needs_estimator(options.scorer):
        model = unshare(model)
    strict = raising(options.scorer)
    params = _guarded(fold.score_test)
    test = score(model, lend(fold.X_test), _lent(fold, fold.y_test), strict, params, "raise")
    result: Result = {"fit_error": None, "test_scores": test, "fit_time": fitted - start}
    result["score_time"] = time.perf_counter() - fitted
    if options.return_train_score:
        params = _guarded(fold.score_train)
        result["train_scores"] = score(
            model, lend(fold.X_train), _lent(fold, fold.y_train), strict, params, "raise"
        )
    if options.return_estimator:
        result["estimator"] = model
    return result


class _NeedsOwnRows(Exception):
    """The estimator may write into its input, which others read; scikit-learn's own rows are for it alone."""


def _lent(fold: SharedFold, y: Any) -> Any:
    return None if y is None else fold.cache.lend(y)


def _guarded(params: Mapping[str, Any]) -> dict[str, Any]:
    """Weights and their kin, which other settings read too."""
    return {name: guard(value) for name, value in params.items()}


def alone(
    estimator: Any,
    params: Mapping[str, Any],
    i: int,
    folds: FoldStore,
    progress: tuple[Any, Any],
    **more: Any,
) -> Result:
    """Fit and score one setting on split `i` by scikit-learn's own function."""
    options = folds.options
    train, test = folds.split(i)
    return fit_and_score(
        clone(estimator),
        folds.X,
        folds.y,
        train=train,
        test=test,
        parameters=dict(params),
        scorer=options.scorer,
        fit_params=dict(options.fit_params),
        score_params=dict(options.score_params),
        return_train_score=options.return_train_score,
        return_times=True,
        return_estimator=options.return_estimator,
        error_score=options.error_score,
        verbose=options.verbose,
        candidate_progress=progress[0],
        split_progress=progress[1],
        **more,
    )
