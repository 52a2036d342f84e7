"""Scalers on an X that is read in chunks: they are fitted to sums, and their output is read lazily."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from manyfit.estimators._method_call import clear_fit
from manyfit.folds import ChunkRows, Spreads, Workers

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
        made = apply(rows.load_frame(0, 1))
        if scipy.sparse.issparse(made):
            raise TypeError(
                f"The rows of X, a {rows.kind}, become sparse, and transformed rows are read as dense ones. "
                "Transform block by block, or give X as a Dask array."
            )
        first = np.asarray(made)
        super().__init__(rows.kind, (n, first.shape[1]), first.dtype, rows.borders, rows.memory)
        self._rows, self._apply = rows, apply
        self._read_at = rows.times_anew
        self.recomputed = rows.recomputed
        self.identity = (*rows.identity, id(self))
        if affine is not None and self.dtype == np.float64:
            self.known_sums = rows.known_sums.mapped(*affine)

    def start_anew(self) -> None:
        self._rows.start_anew()
        if self._rows.times_anew != self._read_at:  # the sums here come from rows that may have changed
            self._read_at = self._rows.times_anew
            self._sample = None
            vars(self).pop("known_sums", None)
        super().start_anew()

    @property
    def original(self) -> ChunkRows:
        return self._rows.original

    @property
    def workers(self) -> Workers | None:  # type: ignore[override]
        """Who reads the other source."""
        return self._rows.workers

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
    """Fit a scaler to sums of its columns, or block by block where these do not do."""
    clear_fit(estimator)
    weights = None if sample_weight is None else _check_weights(X, sample_weight)
    is_summed = X.dtype != object and (weights is None or bool((weights >= 0.0).all() and weights.any()))
    if is_summed and _fit_to_sums(estimator, X, weights):
        return estimator
    return partial_fit(estimator, inner, X, y, weights)


def _check_weights(X: ChunkRows, sample_weight: Any) -> Array:
    weights = np.asarray(sample_weight)
    if weights.shape != (len(X),):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(len(X),)}!")
    return weights


def _fit_to_sums(estimator: Any, X: ChunkRows, weights: Array | None) -> bool:
    """Fit a scaler to sums of the columns, those of an earlier pass if they do; False if none will do."""
    standardizes = hasattr(estimator, "with_std")
    known = X.known_sums.of_columns(X.n_columns) if standardizes and weights is None else None
    if known is not None:
        n, no_ends = np.full(X.n_columns, float(known.rows)), np.full((2, X.n_columns), [[-np.inf], [np.inf]])
        if _standardize(estimator, X, Spreads(n, known.mean, np.diagonal(known.scatter), *no_ends)):
            return True
    found: Spreads = X.reduced(_SpreadColumns(weights), Spreads.merged)
    empty = found.counts == 0.0
    if not (np.isfinite(found.low) & np.isfinite(found.high) | empty).all():
        return False  # scikit-learn refuses infinity
    if standardizes:
        return _standardize(estimator, X, found, weights is not None)
    estimator.partial_fit(_as_rows(X, *(np.where(empty, np.nan, end) for end in (found.low, found.high))))
    _note_rows(estimator, X, X.shape[0])
    return True


@dataclass(frozen=True)
class _SpreadColumns:
    """The columns of a read."""

    weights: Array | None

    def __call__(self, X: ChunkRows, rows: slice, block: Any, local: Any) -> Spreads:
        own = None if self.weights is None else self.weights[rows].astype(np.float64)
        return Spreads.of_columns(block.take(slice(None)).astype(np.float64), own)


def _standardize(estimator: Any, X: ChunkRows, sums: Spreads, has_weights: bool = False) -> bool:
    """Fit StandardScaler to sums; False where scikit-learn may take a column for constant by rounding."""
    counts, mean, eps, empty = sums.counts, sums.means, np.finfo(np.float64).eps, sums.counts == 0.0
    variance = sums.squares / np.where(empty, 1.0, counts)
    constant = empty | (sums.low == sums.high)
    least = counts * eps * variance + (counts * mean * eps) ** 2  # of scikit-learn
    if not (constant | (variance > DOUBTFUL * least)).all() or not np.isfinite(variance).all():
        return False
    variance = np.where(constant, 0.0, variance)
    spread = np.sqrt(variance)
    rows = [np.where(empty, np.nan, end) for end in (mean - spread, mean + spread)]
    rows += [np.where(counts < counts.max(), np.nan, mean)] if np.ptp(counts) else []  # counts of each column
    made = _as_rows(X, *rows)
    estimator.partial_fit(made, sample_weight=np.ones(len(made)) if has_weights else None)
    dtype = np.asarray(estimator.n_samples_seen_).dtype
    _note_rows(estimator, X, counts.astype(dtype) if np.ptp(counts) else dtype.type(counts[0]))
    # What scikit-learn makes of a column of gaps stays.
    if estimator.mean_ is not None:
        estimator.mean_ = np.where(empty, estimator.mean_, mean)
    if estimator.var_ is not None:
        scale = np.where(constant, 1.0, spread)
        estimator.var_ = np.where(empty, estimator.var_, variance)
        estimator.scale_ = np.where(empty, estimator.scale_, scale)
    return True


def _as_rows(X: ChunkRows, *rows: Array) -> Array:
    """Made rows of X, in the dtype in which scikit-learn has it."""
    return np.stack(rows).astype(X.dtype if X.dtype.kind == "f" else np.float64)


def _note_rows(estimator: Any, X: ChunkRows, n: Any) -> None:
    """Give a scaler that was fitted to made rows the number of rows of X, and its names."""
    estimator.n_samples_seen_ = n
    if X.names:
        estimator.feature_names_in_ = np.array(X.names, dtype=object)


def partial_fit(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Continue a fit with the blocks of X, by scikit-learn's own ``partial_fit``."""
    if sample_weight is None:
        for _, block in X.frames():
            estimator.partial_fit(block)
        return estimator
    weights = _check_weights(X, sample_weight)
    for rows, block in X.frames():
        if weights[rows].any() or not weights.any():
            estimator.partial_fit(block, sample_weight=weights[rows])
        else:  # scikit-learn would divide by the sum of the weights
            assert_all_finite(block, allow_nan=True)
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
