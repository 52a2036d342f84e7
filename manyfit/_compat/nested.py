"""Parts of scikit-learn's transformers by which one fit serves several numbers of columns or neighbours."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_selection import RFE, SequentialFeatureSelector, _rfe
from sklearn.feature_selection._base import _get_feature_importances
from sklearn.impute import KNNImputer, _knn
from sklearn.metrics import pairwise_distances_chunked
from sklearn.utils.validation import validate_data

from manyfit._compat._replaced import replaced

__all__ = [
    "ImputerWithMemory",
    "RFEPath",
    "SequentialPath",
    "cut_tree",
    "eliminations_by",
    "impute",
]

Array = NDArray[Any]
# The distances that a fit keeps take at most so many bytes.
MOST_BYTES = 2**30


def cut_tree(n_clusters: int, children: Any, n_leaves: int) -> Any:
    """The labels of the leaves that ``AgglomerativeClustering`` cuts from a whole tree."""
    from sklearn.cluster._agglomerative import _hc_cut  # only now: few searches need scikit-learn's clusters

    return _hc_cut(n_clusters, children, n_leaves)


@contextmanager
def eliminations_by(of_split: Callable[..., Any], of_all: Callable[..., Any]) -> Iterator[None]:
    """Let RFECV, in this thread, call functions of ours in place of two of its own.

    ``of_split(original, ...)`` stands for the elimination and its scores on one split, all in this process;
    ``of_all(**params)`` for the RFE that RFECV fits to all rows.
    """
    original = _rfe._rfe_single_fit
    with (
        replaced(_rfe, "_rfe_single_fit", partial(of_split, original)),
        replaced(_rfe, "RFE", of_all),
        replaced(_rfe, "effective_n_jobs", lambda n_jobs: 1),
    ):
        yield


class RFEPath(RFE):  # type: ignore[misc]
    """RFE whose fit keeps what RFE for other numbers of features finds.

    Its ``path_`` holds (features, ranking, fitted estimator) by the number of features, for those in `kept`.
    A number within one elimination takes a fit more; it is left out if features tie there, since the order of
    ties depends on the version.
    """

    def __init__(self, kept: frozenset[int], **params: Any) -> None:
        super().__init__(**params)
        self.kept = kept

    def fit(self, X: Any, y: Any) -> "RFEPath":
        """Fit down to the smallest number of features."""
        self._validate_params()
        X, y = validate_data(
            self, X, y, accept_sparse="csc", ensure_min_features=2, ensure_all_finite=False, multi_output=True
        )
        names = vars(self).get("feature_names_in_")
        self.path_: dict[int, tuple[Any, Any, Any]] = {}
        self._rows, self._rank = (X, y), np.ones(X.shape[1], dtype=int)
        self._fit(X, y, self._keep)
        if names is not None:
            self.feature_names_in_ = names
        for name in ("step_n_features_", "step_scores_", "step_support_", "step_ranking_", "_rows", "_rank"):
            delattr(self, name)
        return self

    def _keep(self, estimator: Any, features: Any) -> None:
        n, n_all = len(features), len(self._rank)
        if n < n_all:
            self._rank[np.setdiff1d(np.arange(n_all), features)] += 1
        if n in self.kept:
            self.path_[n] = features, self._rank.copy(), estimator
        step = int(max(1, self.step * n_all)) if self.step < 1 else int(self.step)
        within = [k for k in self.kept if max(n - step, min(self.kept)) < k < n]
        if within:
            importances = _get_feature_importances(estimator, self.importance_getter, transform_func="square")
            orders = [np.ravel(np.argsort(importances, kind=kind)) for kind in (None, "stable")]
            for k in within:
                left, other = (np.sort(features[order[n - k :]]) for order in orders)
                if np.array_equal(left, other):
                    self._fit_within(k, left)

    def _fit_within(self, k: int, features: Any) -> None:
        X, y = self._rows
        ranking = self._rank.copy()
        ranking[np.setdiff1d(np.arange(len(ranking)), features)] += 1
        self.path_[k] = features, ranking, clone(self.estimator).fit(X[:, features], y)

    def narrow(self, rfe: Any, k: int) -> None:
        """Give an unfitted RFE what its own fit of `k` features learns, but for the names of its input."""
        features, rfe.ranking_, rfe.estimator_ = self.path_[k]
        rfe.support_ = np.zeros(len(self.support_), dtype=bool)
        rfe.support_[features] = True
        rfe.n_features_ = rfe.support_.sum()


class SequentialPath(SequentialFeatureSelector):  # type: ignore[misc]
    """SequentialFeatureSelector whose fit notes each feature that it chooses, and the score with it."""

    def _get_best_new_feature_score(self, *args: Any, **params: Any) -> Any:
        found = super()._get_best_new_feature_score(*args, **params)
        self.path_: list[Any] = [*getattr(self, "path_", []), found]
        return found


class DistanceMemory:
    """Keeps the distances of some rows to the training rows, in one buffer, as long as they have room.

    A copy of it has no room: it keeps nothing.
    """

    def __init__(self, room: int) -> None:
        self._buffer, self._used = np.empty(room, dtype=np.uint8), 0
        self._lock, self._found = threading.Lock(), dict[Any, list[Array]]()

    def chunks(
        self, X: Array, Y: Array, *, reduce_func: Callable[[Array, int], None], **options: Any
    ) -> Iterator[None]:
        """Take the place of ``pairwise_distances_chunked`` in ``KNNImputer.transform`` for one `Y`."""
        key = X.shape, X.dtype.str, hashlib.sha256(X.tobytes()).digest()
        known, kept, start = self._found.get(key), list[Array](), 0
        for chunk in pairwise_distances_chunked(X, Y, **options) if known is None else known:
            if known is None and (room := self._room_for(chunk)) is not None:
                room[...] = chunk
                kept.append(room)
            reduce_func(chunk, start)
            start += len(chunk)
            yield
        if known is None and sum(map(len, kept)) == start:
            self._found[key] = kept

    def _room_for(self, chunk: Array) -> Array | None:
        with self._lock:
            start, end = self._used, self._used + chunk.nbytes
            if end > self._buffer.size:
                return None
            self._used = end
        return self._buffer[start:end].view(chunk.dtype).reshape(chunk.shape)

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return DistanceMemory, (0,)


class ImputerWithMemory(KNNImputer):  # type: ignore[misc]
    """KNNImputer whose fit may serve any `n_neighbors` and `weights`, with one set of distances."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fit, and make room for the distances of the training rows, and of as many others."""
        super().fit(X, y)
        gaps = self._mask_fit_X[:, self._valid_mask].any(axis=1).sum()
        self.distances_ = DistanceMemory(min(MOST_BYTES, 2 * 8 * int(gaps) * len(self._fit_X)))
        return self


def impute(fitted: Any, memory: DistanceMemory, X: Any) -> Any:
    """``fitted.transform(X)`` with the distances of a memory."""
    with replaced(_knn, "pairwise_distances_chunked", memory.chunks):
        return fitted.transform(X)
