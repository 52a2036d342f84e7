"""One setting on one split: fitted, scored and timed, with the rows and steps that others share."""

import copy
import logging
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from manyfit._compat import (
    array_api_dispatch,
    check_method_params,
    fit_and_score,
    needs_estimator,
    raise_scorer_errors,
    safe_indexing,
    safe_split,
    score,
)
from manyfit._config import config_context
from manyfit.arrays import (
    TransferCache,
    collect_fallback_errors,
    is_xp_array,
    label_transfers,
    share_host_copies,
)
from manyfit.exceptions import HostFallbackError
from manyfit.folds import Splits, Unsupported, take_rows
from manyfit.introspection.randomness import is_deterministic
from manyfit.model_selection.job._job import Options, Result
from manyfit.model_selection.job._rowwise_prefix import FoldRowwise, RowwiseOutputs
from manyfit.model_selection.sharing._cached_transformer import (
    FoldCache,
    has_shareable_prefix,
    share_prefixes,
    writes_in_place,
)
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings, in_main_thread
from manyfit.model_selection.sharing._fold_store import retained_folds
from manyfit.model_selection.sharing._unshare import unshare
from manyfit.model_selection.sharing._verbose import print_end, print_start
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers, strangers_among_scorers
from manyfit.model_selection.sharing.rows._own_rows import InputWritten, OwnRows

_LOG = logging.getLogger(__name__)


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
    limit : int
        Bytes that outputs of shared steps may take.
    fronts : Fronts, optional
        What steps that see one row at a time make of all rows.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        split: tuple[Any, Any],
        limit: int,
        fronts: RowwiseOutputs | None = None,
    ) -> None:
        # As arrays, as scikit-learn does, which refuses slices by this.
        self.train, self.test = train, test = tuple(map(np.asarray, split))
        self.cache = FoldCache(limit, there=is_xp_array(X))
        if is_xp_array(X):
            self.X_train, self.y_train = _there(X, y, train)
            self.X_test, self.y_test = _there(X, y, test)
        else:
            self.X_train, self.y_train = safe_split(estimator, X, y, train)
            self.X_test, self.y_test = safe_split(estimator, X, y, test, train)
        if fronts is not None:
            self.cache.front = FoldRowwise(fronts, self._tokens)

    def _tokens(self) -> list[tuple[int | None, Any]]:
        cache = self.cache
        rows = ((self.X_train, self.train), (self.X_test, self.test))
        return [(cache.token(cache.lend(X)), index) for X, index in rows]


def _there(X: Any, y: Any, rows: Any) -> tuple[Any, Any]:
    """Rows of X on a device, and of y wherever it lies: views where they are neighbours."""
    return take_rows(X, rows), y if y is None else take_rows(y, rows) if is_xp_array(y) else safe_indexing(
        y, rows
    )


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
    fronts : Fronts, optional
        What steps that see one row at a time make of all rows.

    Attributes
    ----------
    writers : set
        Types and functions of settings in which one of them wrote into its input.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        splits: Mapping[int, tuple[Any, Any]] | Splits,
        options: Options,
        share_steps: bool,
        in_turn: bool = True,
        fronts: RowwiseOutputs | None = None,
    ) -> None:
        self.X, self.y, self.options, self.share_steps = X, y, options, share_steps
        self._fronts = fronts if share_steps else None
        self._splits = splits
        self.writers = set[Hashable]()
        self._kept: dict[tuple[int, bool], SharedFold] = {}
        self._spent = Counter[str]()
        self._at_home = TransferCache(weak=True)
        self._n_splits = splits.n_splits if isinstance(splits, Splits) else len(splits)
        self._most = 1 if in_turn else retained_folds(X, self._n_splits, options.memory_limit)

    @property
    def keeps_all(self) -> bool:
        """Whether all folds are kept at once."""
        return self._most >= self._n_splits

    def under(self, options: Options) -> "FoldStore":
        """The same folds, for fits under other options."""
        other = copy.copy(self)
        other.options = options
        return other

    @cached_property
    def strange_scorers(self) -> frozenset[Hashable]:
        """Scorers and metrics that may write into what they are given."""
        return frozenset(strangers_among_scorers(self.options.scorer))

    def split(self, i: int) -> tuple[Any, Any]:
        """Train and test indices of split `i`."""
        return self._splits.indices(i) if isinstance(self._splits, Splits) else self._splits[i]

    def get(self, i: int, estimator: Any) -> SharedFold:
        """The rows of split `i` for an estimator."""
        key = (i, bool(get_tags(estimator).input_tags.pairwise))
        if key[1] and is_xp_array(self.X):
            raise Unsupported("a kernel on a device is cut by scikit-learn")
        if key not in self._kept:
            while len(self._kept) >= self._most:
                # The last one: where folds are read in turn, again and again, the first one is read next.
                _, newest = self._kept.popitem()
                self._spent.update(_work(newest.cache))
            limit = self.options.memory_limit // 2 // self._most
            fronts = None if key[1] else self._fronts  # a kernel is cut in columns, too
            self._kept[key] = SharedFold(estimator, self.X, self.y, self.split(i), limit, fronts)
        return self._kept[key]

    def cut(self, params: Mapping[str, Any], rows: Any) -> dict[str, Any]:
        """Fit or score parameters for some rows: each fit's own, which it may change."""
        return dict(check_method_params(self.X, params=dict(params), indices=rows))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Within it steps work on arrays of a device, and what has to come home comes once a fold."""
        if not is_xp_array(self.X):
            yield
            return
        configured = config_context(host_fallback=self.options.host_fallback)
        with array_api_dispatch(), share_host_copies(self._at_home), configured:
            yield

    @contextmanager
    def at_work_alone(self) -> Iterator[list[HostFallbackError]]:
        """Within it scikit-learn's function fits: it cuts rows of other libraries by its dispatch.

        It yields the refusals to bring data to the host so far, which that function takes for failures.
        """
        configured = config_context(host_fallback=self.options.host_fallback)
        dispatch = array_api_dispatch() if is_xp_array(self.X) else nullcontext()
        with dispatch, configured, collect_fallback_errors() as refused:
            yield refused

    @property
    def work(self) -> Counter[str]:
        """Counts of a `Report` about shared steps, over the folds so far."""
        counts = Counter(self._spent)
        for fold in self._kept.values():
            counts.update(_work(fold.cache))
        return counts

    def work_since(self, before: Mapping[str, int]) -> Counter[str]:
        """What `work` has more than before; negative where counted fits have to be made after all."""
        counts = self.work
        counts.subtract(before)
        return counts


def _work(cache: FoldCache) -> Counter[str]:
    return Counter(
        transformer_fits=cache.fits, transformer_fits_saved=cache.saved, steps_repeated=cache.repeated
    )


def evaluate(
    estimator: Any, params: Mapping[str, Any], i: int, folds: FoldStore, progress: tuple[Any, Any]
) -> Result:
    """Fit and score one setting on split `i` as scikit-learn would, sharing rows and steps.

    Whatever goes wrong is repeated by scikit-learn's own function on rows of its own, so that errors,
    warnings and `error_score` are scikit-learn's: also where an estimator or a scorer that was given copies
    has written into them, as far as `unchanged` sees it, since others may read the same array under
    scikit-learn. Where scikit-learn's function goes through, the error was of sharing: it is logged.
    """
    ready = _ready(estimator, params, i, folds)
    if ready is None:
        return fit_with_sklearn(estimator, params, i, folds, progress)
    print_start(folds.options, params, progress)
    result: Result | None = None
    failed: Exception | None = None
    try:
        with _trial(draws=is_deterministic(ready.model) is not True), folds.at_work():
            result = _shared_fit(ready, folds)
    except InputWritten:
        folds.writers |= ready.strange
    except Exception as error:
        failed = error.with_traceback(None)  # whose frames hold the rows
    # Outside of any handler, so that scikit-learn's texts quote its own traceback only.
    if result is None:
        result = fit_with_sklearn(estimator, params, i, folds, progress, verbose=0)
        known = failed is None or isinstance(failed, Unsupported)
        if not (known or _failed(result, folds.options.error_score)):
            _LOG.debug("%r failed where steps are shared: %r", ready.model, failed)
    print_end(folds.options, params, progress, result)
    return result


@contextmanager
def _trial(draws: bool) -> Iterator[None]:
    """A fit that leaves no trace outside of itself if it raises: it will be made again.

    Warnings are held back until it counts, and what it draws from NumPy's global random state, if it does, is
    taken back. In other threads than the main one neither is done.
    """
    if not in_main_thread():
        yield
        return
    # Reading the state takes a tenth of a millisecond.
    state = np.random.get_state(legacy=False) if draws else None
    held = DeferredWarnings()
    try:
        with held.of("trial"):
            yield
    except Exception:
        held.settle(())
        if state is not None:
            np.random.set_state(state)
        raise
    held.settle(("trial",))


@dataclass(frozen=True)
class _Ready:
    """The estimator of a setting, the fold that it is fitted on, and who of them may write into rows."""

    model: Any
    fold: SharedFold
    strange_steps: frozenset[Hashable]
    strange_scorers: frozenset[Hashable]

    @property
    def strange(self) -> frozenset[Hashable]:
        return self.strange_steps | self.strange_scorers


def _ready(estimator: Any, params: Mapping[str, Any], i: int, folds: FoldStore) -> _Ready | None:
    """What a setting needs to be fitted on rows that others read, too, or None if it needs its own."""
    with suppress(Exception):
        # Before `set_params`, whose calls an estimator may count.
        if not folds.share_steps and any_of(strangers(estimator)):
            return None
        model = clone(estimator).set_params(**clone(dict(params), safe=False))
        if writes_in_place(model):
            return None
        ready = _Ready(model, folds.get(i, model), frozenset(strangers(model)), folds.strange_scorers)
        if ready.strange_steps and not (folds.share_steps and has_shareable_prefix(model)):
            return None
        return ready if folds.writers.isdisjoint(ready.strange) else None
    return None


def _shared_fit(ready: _Ready, folds: FoldStore) -> Result:
    options, fold, model, own = folds.options, ready.fold, ready.model, OwnRows()
    start = time.perf_counter()
    calls_scorer = needs_estimator(options.scorer)
    own_X = bool(ready.strange_steps or (ready.strange_scorers and calls_scorer))

    def given(rows: Any, copied: bool) -> Any:
        lent = None if rows is None else fold.cache.lend(rows)
        return own.of(lent, fold.cache) if copied else lent

    def scored(X: Any, y: Any, rows: Any) -> Any:
        params = folds.cut(options.score_params, rows)
        with label_transfers("scores"):
            return score(model, given(X, own_X), given(y, bool(ready.strange)), strict, params, "raise")

    if folds.share_steps:
        model = share_prefixes(model, fold.cache, handed=own if own_X else None)
    targets = () if fold.y_train is None else (given(fold.y_train, own_X),)
    model.fit(given(fold.X_train, own_X), *targets, **folds.cut(options.fit_params, fold.train))
    fitted = time.perf_counter()
    if calls_scorer:
        model = unshare(model)
    strict = raise_scorer_errors(options.scorer)
    result: Result = {"fit_error": None, "test_scores": scored(fold.X_test, fold.y_test, fold.test)}
    result |= {"fit_time": fitted - start, "score_time": time.perf_counter() - fitted}
    if options.return_train_score:
        result["train_scores"] = scored(fold.X_train, fold.y_train, fold.train)
    own.require_unchanged()
    return result


def fit_with_sklearn(
    estimator: Any,
    params: Mapping[str, Any],
    i: int,
    folds: FoldStore,
    progress: tuple[Any, Any],
    **more: Any,
) -> Result:
    """Fit and score one setting on split `i` by scikit-learn's own function; `more` are arguments of it.

    Raises
    ------
    HostFallbackError
        If a fit or a score failed for a refusal to bring data to the host, whatever ``error_score`` says.
    """
    options = folds.options
    train, test = folds.split(i)
    with folds.at_work_alone() as refused, label_transfers("scores"):  # fits have labels of their own
        result: Result = fit_and_score(
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
            candidate_progress=progress[0],
            split_progress=progress[1],
            **{"verbose": options.verbose, **more},
        )
    if refused and options.error_score != "raise" and _failed(result, options.error_score):
        raise refused[0]
    return result


def _failed(result: Result, error_score: Any) -> bool:
    """Whether a fit, or one of its scores, is what is noted of failures."""
    scores = [result[part] for part in ("test_scores", "train_scores") if part in result]
    values = [value for some in scores for value in (some.values() if isinstance(some, dict) else [some])]
    return result["fit_error"] is not None or any(
        np.array_equal(v, error_score, equal_nan=True) for v in values
    )
