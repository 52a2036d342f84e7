"""Scalers on an X that is read in chunks: they are fitted block by block, and their output is read lazily."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from manyfit.estimators._method_call import clear_fit
from manyfit.folds import ChunkRows

Array = NDArray[Any]


class TransformedRows(ChunkRows):
    """The rows of another source behind a function of blocks, which is called when they are read."""

    ndim = 2

    def __init__(self, rows: ChunkRows, apply: Callable[[Any], Any]) -> None:
        n = rows.shape[0]
        first = np.asarray(apply(rows.load_frame(0, 1)))
        super().__init__(rows.kind, (n, first.shape[1]), first.dtype, rows.borders, rows.memory)
        self._rows, self._apply = rows, apply
        self.recomputed = rows.recomputed
        self.identity = (*rows.identity, id(self))

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self._apply(self._rows.load_frame(start, stop)))

    def __getitem__(self, rows: Any) -> Array:
        """Some rows in memory, as an `h5py.Dataset` has them."""
        return self.take(rows)


def fit(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Fit a scaler whose ``partial_fit`` on all blocks is its ``fit``."""
    clear_fit(estimator)
    return partial_fit(estimator, inner, X, y, sample_weight)


def partial_fit(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Continue a fit with the blocks of X, by scikit-learn's own ``partial_fit``."""
    more = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)}
    if more and more["sample_weight"].shape != (len(X),):
        raise ValueError(f"sample_weight.shape == {more['sample_weight'].shape}, expected {(len(X),)}!")
    for rows, block in X.frames():
        estimator.partial_fit(block, **{name: value[rows] for name, value in more.items()})
    return estimator


def transform(estimator: Any, inner: Callable[..., Any], X: ChunkRows) -> TransformedRows:
    """The scaled rows, which are read when they are needed."""
    check_is_fitted(estimator)
    return TransformedRows(X, copy.copy(estimator).transform)  # a later fit does not change the copy


def inverse_transform(estimator: Any, inner: Callable[..., Any], X: ChunkRows) -> TransformedRows:
    """The rows before they were transformed, which are read when they are needed."""
    check_is_fitted(estimator)
    return TransformedRows(X, copy.copy(estimator).inverse_transform)


def fit_transform(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Fit, and the scaled rows."""
    more = {} if sample_weight is None else {"sample_weight": sample_weight}
    return estimator.fit(X, y, **more).transform(X)
