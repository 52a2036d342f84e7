"""The folds of a task: rows that are cut once for all settings, and how many folds fit in memory."""

from __future__ import annotations

import copy
import weakref
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import get_tags

from manyfit._compat import array_api_dispatch, check_method_params, safe_indexing, safe_split
from manyfit._config import config_context
from manyfit.arrays import TransferCache, collect_fallback_errors, is_xp_array, share_host_copies
from manyfit.exceptions import HostFallbackError
from manyfit.folds import Splits, Unsupported, take_rows
from manyfit.model_selection.early_stopping._fold_stopping import FoldStopping
from manyfit.model_selection.job._fold_rowwise import FoldRowwise
from manyfit.model_selection.job._job import Options
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs
from manyfit.model_selection.sharing._fold_cache import FoldCache, nbytes_of
from manyfit.model_selection.sharing.nested import NestedRequests
from manyfit.model_selection.sharing.rows._known_readers import strangers_among_scorers

if TYPE_CHECKING:
    from manyfit.model_selection.sharing._plain_scores import CheckedTargets, PlainScorer


@dataclass(frozen=True)
class SettingFacts:
    """Classes and functions in a setting that may write into rows, and what is known of its fit.

    `draws`: it may draw random numbers. `blas_and_openmp`: see `uses_blas_and_openmp`. `checked_once`: a fit
    that succeeds has accepted all parameters, also those of estimators inside. `scorer`: see `PlainScorer`.
    """

    strange_steps: frozenset[Hashable] = frozenset()
    draws: bool = True
    blas_and_openmp: bool = False
    checked_once: bool = False
    scorer: PlainScorer | None = None


# A setting that cannot be fitted on rows that others read.
OWN_ROWS = SettingFacts()


class SharedFold:
    """The rows of one split, cut once for all settings that are fitted on it, and their cache.

    The estimator says whether X is a kernel, which is cut in rows and columns. `memory_limit`: bytes of
    cached outputs. `rowwise`: outputs of steps that transform all rows of the search at once. `requests`:
    transformers of all settings that are fitted on the fold, where one fit may serve several.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        split: tuple[Any, Any],
        memory_limit: int,
        rowwise: RowwiseOutputs | None = None,
        requests: NestedRequests | None = None,
    ) -> None:
        # As arrays, as in scikit-learn, which thereby refuses slices.
        self.train, self.test = train, test = tuple(map(np.asarray, split))
        self.cache = FoldCache(memory_limit, device_arrays=is_xp_array(X))
        self.cache.requests = requests
        if is_xp_array(X):
            self.X_train, self.y_train = _device_rows(X, y, train)
            self.X_test, self.y_test = _device_rows(X, y, test)
        else:
            self.X_train, self.y_train = safe_split(estimator, X, y, train)
            self.X_test, self.y_test = safe_split(estimator, X, y, test, train)
        self._targets: dict[str, CheckedTargets] = {}
        if rowwise is not None:
            self.cache.rowwise = FoldRowwise(rowwise, weakref.WeakMethod(self._tokens))

    def checked_targets(self, role: str) -> CheckedTargets:
        """The targets of the training or test rows, which are checked once."""
        if role not in self._targets:
            from manyfit.model_selection.sharing._plain_scores import CheckedTargets

            self._targets[role] = CheckedTargets(self.y_test if role == "test" else self.y_train)
        return self._targets[role]

    def _tokens(self) -> list[tuple[int | None, Any]]:
        cache = self.cache
        rows = ((self.X_train, self.train), (self.X_test, self.test))
        return [(cache.token(cache.share(X)), index) for X, index in rows]


def _device_rows(X: Any, y: Any, rows: Any) -> tuple[Any, Any]:
    """Rows of X on its device, and of y wherever it lies: views of neighbouring rows."""
    targets = y if y is None else take_rows(y, rows) if is_xp_array(y) else safe_indexing(y, rows)
    return take_rows(X, rows), targets


class FoldStore:
    """The folds of a task, by split; it keeps as many as the memory limit allows.

    `in_turn`: the task reads one fold after the other, so that only the last one is kept. `writers`: classes
    and functions of settings in which something wrote into its input. `facts`: those of settings, by the
    identities of estimator and parameters, and with both, so that no others take their place in memory.
    `checked`: settings, by the same identities, whose parameters a fit has checked.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        splits: Mapping[int, tuple[Any, Any]] | Splits,
        options: Options,
        share_steps: bool,
        in_turn: bool = True,
        rowwise: RowwiseOutputs | None = None,
        requests: NestedRequests | None = None,
    ) -> None:
        self.X, self.y, self.options, self.share_steps = X, y, options, share_steps
        self._rowwise, self._requests = (rowwise, requests) if share_steps else (None, None)
        self._splits = splits
        self.writers = set[Hashable]()
        self.facts: dict[tuple[int, int], tuple[Any, Any, SettingFacts]] = {}
        self.checked = set[tuple[int, int]]()
        self._folds: dict[tuple[int, bool], SharedFold] = {}
        self._dropped_counts = Counter[str]()
        self._host_copies = TransferCache(weak=True)
        self._n_splits = splits.n_splits if isinstance(splits, Splits) else len(splits)
        self._max_folds = 1 if in_turn else retained_folds(X, self._n_splits, options.memory_limit)

    @property
    def keeps_all(self) -> bool:
        """Whether all folds are kept at once."""
        return self._max_folds >= self._n_splits

    def with_options(self, options: Options) -> FoldStore:
        """The same folds, for fits with other options."""
        other = copy.copy(self)
        other.options = options
        return other

    @cached_property
    def strange_scorers(self) -> frozenset[Hashable]:
        """Scorers and metrics that may write into their input."""
        return frozenset(strangers_among_scorers(self.options.scorer))

    @cached_property
    def n_bytes(self) -> int | None:
        """Bytes of X, if they are known."""
        return data_bytes(self.X)

    def split(self, i: int) -> tuple[Any, Any]:
        return self._splits.indices(i) if isinstance(self._splits, Splits) else self._splits[i]

    def get(self, i: int, estimator: Any) -> SharedFold:
        key = (i, bool(get_tags(estimator).input_tags.pairwise))
        if key[1] and is_xp_array(self.X):
            raise Unsupported("scikit-learn cuts a kernel on a device")
        if key not in self._folds:
            while len(self._folds) >= self._max_folds:
                # The newest one: where folds are read in turn, again and again, the next one is the oldest.
                _, newest = self._folds.popitem()
                self._dropped_counts.update(newest.cache.counts)
            limit = self.options.memory_limit // 2 // self._max_folds
            rowwise = None if key[1] else self._rowwise  # a kernel is cut in columns, too
            self._folds[key] = SharedFold(
                estimator, self.X, self.y, self.split(i), limit, rowwise, self._requests
            )
        return self._folds[key]

    def cut(self, params: Mapping[str, Any], rows: Any) -> dict[str, Any]:
        """Fit or score parameters for some rows: copies that each fit may change."""
        return dict(check_method_params(self.X, params=dict(params), indices=rows))

    def stopping(self, X_test: Any, y_test: Any, test: Any) -> FoldStopping:
        """The early stopping of a fit by these test rows."""
        return FoldStopping(X_test, y_test, lambda: self.cut(self.options.fit_params, test))

    @contextmanager
    def shared_fits(self) -> Iterator[None]:
        """The context of shared fits: steps work on device arrays, and a host copy is made once a fold."""
        if not is_xp_array(self.X):
            yield
            return
        configured = config_context(host_fallback=self.options.host_fallback)
        with array_api_dispatch(), share_host_copies(self._host_copies), configured:
            yield

    @contextmanager
    def sklearn_fits(self) -> Iterator[list[HostFallbackError]]:
        """The context of fits by scikit-learn's own function, which cuts device arrays by its dispatch.

        It yields the errors of ``host_fallback="error"``, which that function takes for failed fits.
        """
        configured = config_context(host_fallback=self.options.host_fallback)
        dispatch = array_api_dispatch() if is_xp_array(self.X) else nullcontext()
        with dispatch, configured, collect_fallback_errors() as errors:
            yield errors

    @property
    def work(self) -> Counter[str]:
        """A report's counts of shared steps, over the folds so far."""
        counts = Counter(self._dropped_counts)
        for fold in self._folds.values():
            counts.update(fold.cache.counts)
        return counts

    def work_since(self, before: Mapping[str, int]) -> Counter[str]:
        counts = self.work
        counts.subtract(before)
        return counts


def retained_folds(X: Any, n_splits: int, memory_limit: int) -> int:
    """How many folds are kept at once where each is read several times: a quarter of the limit is for them.

    A fold is about as large as X; one is kept of data whose size is not known.
    """
    size = data_bytes(X)
    return 1 if size is None else max(1, min(n_splits, memory_limit // 4 // max(size, 1)))


def data_bytes(X: Any) -> int | None:
    """Bytes of X, if known; of a list its references, since a fold has the same items."""
    if is_xp_array(X):
        return nbytes_of(X)
    if isinstance(X, list | tuple | range):
        return 8 * len(X)
    with suppress(Exception):  # a class of a user, whose attributes of these names may be anything
        if callable(getattr(X, "memory_usage", None)):  # pandas
            return int(np.sum(X.memory_usage()))  # one number for a series, one a column for a frame
        if callable(getattr(X, "estimated_size", None)):  # polars
            return int(X.estimated_size())
        size = getattr(X, "nbytes", None) or getattr(getattr(X, "data", None), "nbytes", None)
        return int(size) if isinstance(size, Integral) else None
    return None
