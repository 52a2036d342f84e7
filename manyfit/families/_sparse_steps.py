"""Steps over sparse rows in chunks: each is fitted to the training rows of a split, in one pass at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import Binarizer, MaxAbsScaler, Normalizer, StandardScaler
from sklearn.utils.sparsefuncs import mean_variance_axis

from manyfit.families.protocol import Array, SparseStep, register_sparse_step
from manyfit.folds import Unsupported, merge_two_spreads

EPS = float(np.finfo(np.float64).eps)
# A variance that is fewer times its rounding may be taken for zero by one of two sums, and not by the other.
DOUBTFUL = 1e4


class RowStep(SparseStep):
    """Normalizer and Binarizer (1.9), which learn nothing from the rows."""

    serves = (Normalizer, Binarizer)


class MaxAbsStep(SparseStep):
    """MaxAbsScaler (1.9): the largest absolute number of each column."""

    serves = (MaxAbsScaler,)

    def reads_rows(self, step: Any) -> bool:
        return True

    def learned(self, step: Any, reduced: Callable[..., Any], dtype: Any) -> dict[str, Any]:
        n, largest = reduced(_largest, _merge_largest)
        scale = np.where(largest < 10 * np.finfo(dtype).eps, 1.0, largest)
        return {"max_abs_": largest, "scale_": scale.astype(dtype), "n_samples_seen_": n}


class ScalerStep(SparseStep):
    """StandardScaler (1.9) that does not centre, up to rounding; a constant column is not scaled."""

    serves = (StandardScaler,)
    is_exact = False

    def check(self, step: Any) -> None:
        if step.with_mean:
            raise Unsupported("StandardScaler cannot centre sparse rows: set with_mean=False")

    def reads_rows(self, step: Any) -> bool:
        return bool(step.with_std)

    def learned(self, step: Any, reduced: Callable[..., Any], dtype: Any) -> dict[str, Any]:
        if dtype == np.float32:
            raise Unsupported("scikit-learn rounds variances to float32")
        n, mean, squares = reduced(_spread, merge_two_spreads)
        variance, bound = squares / n, (n * mean * EPS) ** 2
        constant = variance <= n * EPS * variance + bound
        if (~constant & (variance <= DOUBTFUL * bound)).any() or (constant & (variance > 0)).any():
            raise Unsupported("a feature is nearly constant: rounding decides")
        scale = np.where(constant, 1.0, np.sqrt(variance))
        return {"mean_": mean, "var_": variance, "scale_": scale, "n_samples_seen_": int(n)}


class TfidfStep(SparseStep):
    """TfidfTransformer (1.9): idf from the number of rows that have an entry in a column."""

    serves = (TfidfTransformer,)

    def reads_rows(self, step: Any) -> bool:
        return bool(step.use_idf)

    def learned(self, step: Any, reduced: Callable[..., Any], dtype: Any) -> dict[str, Any]:
        n, entries = reduced(_entries, _add)
        frequency = entries.astype(dtype) + dtype.type(step.smooth_idf)
        if not frequency.all():
            raise Unsupported("smooth_idf=False divides by a column that has no entry in the training rows")
        idf = np.full_like(frequency, n + int(step.smooth_idf)) / frequency
        return {"idf_": np.log(idf) + dtype.type(1.0)}


def _rows_of(block: Any, local: Any) -> Any:
    return scipy.sparse.csr_array(block.take(local[0]))


def _largest(X: Any, rows: slice, block: Any, local: Any) -> tuple[int, Array]:
    """The number of rows, and the largest absolute number of each column."""
    own = _rows_of(block, local)
    return own.shape[0], np.asarray(abs(own).max(axis=0).todense()).ravel()


def _merge_largest(one: tuple[int, Array], other: tuple[int, Array]) -> tuple[int, Array]:
    return one[0] + other[0], np.maximum(one[1], other[1])


def _entries(X: Any, rows: slice, block: Any, local: Any) -> tuple[int, Array]:
    """The number of rows, and of the entries of each column."""
    own = _rows_of(block, local)
    return own.shape[0], np.bincount(own.indices, minlength=own.shape[1])


def _add(one: tuple[int, Array], other: tuple[int, Array]) -> tuple[int, Array]:
    return one[0] + other[0], one[1] + other[1]


def _spread(X: Any, rows: slice, block: Any, local: Any) -> tuple[float, Array, Array]:
    """The number of rows, and means and squares about them."""
    own = _rows_of(block, local)
    mean, variance = mean_variance_axis(own, axis=0)
    return float(own.shape[0]), mean, variance * own.shape[0]


register_sparse_step(RowStep())
register_sparse_step(MaxAbsStep())
register_sparse_step(ScalerStep())
register_sparse_step(TfidfStep())
