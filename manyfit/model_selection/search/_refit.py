"""The refit of the best setting, with outputs of row-wise steps and tokens that the search has kept.

The search has tokenised each text once. The refit's vectorizer takes terms and counts from these tokens, as
on each fold, and its attributes are scikit-learn's to the bit.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import clone

from manyfit._compat import has_callbacks
from manyfit.folds import ChunkRows
from manyfit.model_selection.job._fold_rowwise import FoldRowwise
from manyfit.model_selection.job._rowwise_prefix import RowwiseOutputs
from manyfit.model_selection.planning._pipeline_spec import PipelineReader
from manyfit.model_selection.sharing._deferred_warnings import DeferredWarnings, in_main_thread
from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.rows._known_readers import any_of, strangers
from manyfit.model_selection.sharing.rows._own_rows import OwnRows
from manyfit.model_selection.sharing.transformers._step_wrappers import (
    has_shareable_prefix,
    share_prefixes,
    unshare,
)


def refit_shared(
    estimator: Any, evaluation: Any, best: int, data: tuple[Any, ...], params: Mapping[str, Any]
) -> Any:
    """Fit the best estimator by what its search has made; None if it is fitted in the usual way."""
    own = evaluation.round_of(best)
    if own.data is None:
        return fit_on_all_rows(estimator, own.arrivals.rowwise, data, params)
    if not isinstance(data[0], ChunkRows):
        return None
    from manyfit.estimators.chunks.frames import begins_with_columns, fit_behind_columns

    if not begins_with_columns(estimator):
        return None
    steps = PipelineReader(estimator).read({}).opened.steps
    return fit_behind_columns(estimator, data[0], own.data.columns.encoding_behind(steps), data[1], params)


def fit_on_all_rows(
    estimator: Any, rowwise: RowwiseOutputs | None, data: tuple[Any, ...], params: Mapping[str, Any]
) -> Any:
    """Fit a clone of an estimator to X and y by the outputs that a search has made; None if it cannot be.

    A fit that raises leaves no trace: scikit-learn makes it again, and raises.
    """
    if rowwise is None or not rowwise.fits or rowwise.X is not data[0] or not in_main_thread():
        return None
    # What may write into its input, or is called back, is fitted in the usual way.
    if any_of(strangers(estimator)) or has_callbacks(estimator) or not has_shareable_prefix(estimator):
        return None
    state, deferred, model = np.random.get_state(legacy=False), DeferredWarnings(), None
    with suppress(Exception), deferred.under("refit"):
        model = _AllRows(rowwise, data).fit(clone(estimator), params)
    deferred.emit(() if model is None else ("refit",))
    if model is None:
        np.random.set_state(state)
    return model


class _AllRows:
    """All rows of a search as a fold without test rows."""

    def __init__(self, rowwise: RowwiseOutputs, data: tuple[Any, ...]) -> None:
        self.cache = cache = FoldCache(rowwise.limit)
        self._X, *self._targets = data
        self._X = cache.share(self._X)
        for y in self._targets:
            cache.register(y, cache.number("targets"))
        cache.rowwise = FoldRowwise(rowwise, weakref.WeakMethod(self._tokens))

    def fit(self, model: Any, params: Mapping[str, Any]) -> Any:
        """Fit a model, and give it transformers of its own.

        The last step may keep its input, so it gets a copy: what a cache lends is read-only.
        """
        wrapped = share_prefixes(model, self.cache, copies=OwnRows())
        return unshare(wrapped.fit(self._X, *self._targets, **params))

    def _tokens(self) -> list[tuple[int | None, Any]]:
        return [(self.cache.token(self._X), slice(None))]
