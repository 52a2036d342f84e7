"""Scalers on an X that is read in chunks: they are fitted block by block, and their output is read lazily."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from manyfit.estimators._method_call import clear_fit
from manyfit.folds import ChunkRows

Array = NDArray[Any]

# So many times the variance that scikit-learn takes for rounding is none.
DOUBTFUL = 1e3


class TransformedRows(ChunkRows):
    """The rows of another source behind a function of blocks, which is called when they are read.

    `affine` is the shift (p,) and the matrix (p, k) of a function ``(X - shift) @ matrix``.
    """

    ndim = 2

    def __init__(
        self, rows: ChunkRows, apply: Callable[[Any], Any], affine: tuple[Array, Array] | None = None
    ) -> None:
        n = rows.shape[0]
        first = np.asarray(apply(rows.load_frame(0, 1)))
        super().__init__(rows.kind, (n, first.shape[1]), first.dtype, rows.borders, rows.memory)
        self._rows, self._apply = rows, apply
        self._read_at = rows.times_anew
        self.recomputed = rows.recomputed
        self.identity = (*rows.identity, id(self))
        self.workers = rows.workers
        if affine is not None and self.dtype == np.float64:
            self.known_sums = rows.known_sums.mapped(*affine)

    def start_anew(self) -> None:
        self._rows.start_anew()
        if self._rows.times_anew != self._read_at:  # the sums here come from rows that may have changed
            self._read_at = self._rows.times_anew
            self._sample = None
            vars(self).pop("known_sums", None)
        super().start_anew()

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(self._apply(self._rows.load_frame(start, stop)))

    def why_not_on_workers(self) -> str:
        return self._rows.why_not_on_workers()

    def lets_workers_read(self) -> bool:
        return self._rows.lets_workers_read()

    def inputs(self, reads: range) -> list[Any]:
        return self._rows.inputs(reads)

    def take_inputs(self, inputs: Sequence[Any], reads: range) -> None:
        self._rows.take_inputs(inputs, reads)

    def for_thread(self) -> "TransformedRows":
        other = super().for_thread()
        other._rows = self._rows.for_thread()
        return other

    def __getitem__(self, rows: Any) -> Array:
        """Some rows in memory, as an `h5py.Dataset` has them."""
        return self.take(rows)


def fit(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Fit a scaler whose ``partial_fit`` on all blocks is its ``fit``."""
    clear_fit(estimator)
    if sample_weight is None and hasattr(estimator, "with_std") and _fit_to_known(estimator, X):
        return estimator
    return partial_fit(estimator, inner, X, y, sample_weight)


def _fit_to_known(estimator: Any, X: ChunkRows) -> bool:
    """Fit StandardScaler to moments that an earlier pass has summed; False if that does not do."""
    known = X.known_sums.of_columns(X.n_columns)
    if known is None:
        return False
    n, mean, eps = known.rows, known.mean, np.finfo(np.float64).eps
    variance = np.diagonal(known.scatter) / n
    # scikit-learn takes a column for constant below this.
    if not (variance > DOUBTFUL * (n * eps * variance + (n * mean * eps) ** 2)).all():
        return False
    spread = np.sqrt(variance)
    estimator.partial_fit(
        np.stack([mean - spread, mean + spread]).astype(X.dtype if X.dtype.kind == "f" else float)
    )
    estimator.n_samples_seen_ = type(estimator.n_samples_seen_)(n)
    if estimator.mean_ is not None:
        estimator.mean_ = mean
    if estimator.var_ is not None:
        estimator.var_, estimator.scale_ = variance, spread
    if X.names:
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
    return True


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
    fitted = copy.copy(estimator)  # a later fit does not change the copy
    return TransformedRows(X, fitted.transform, _affine(fitted, X.n_columns))


def _affine(fitted: Any, p: int) -> tuple[Array, Array] | None:
    """The shift and the matrix of a transformer, or None."""
    shift, scale = np.zeros(p), getattr(fitted, "scale_", None)
    mean = getattr(fitted, "mean_", None)
    if hasattr(fitted, "components_"):
        matrix = fitted.components_.T.astype(np.float64)
        if getattr(fitted, "whiten", False):
            matrix = matrix / np.sqrt(fitted.explained_variance_)
        return shift if mean is None else mean, matrix
    if getattr(fitted, "clip", False):
        return None
    if hasattr(fitted, "min_"):
        return -fitted.min_ / fitted.scale_, np.diag(fitted.scale_)
    if mean is not None and fitted.with_mean:
        shift = mean
    return shift, np.diag(np.ones(p) if scale is None else 1.0 / np.asarray(scale))


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
