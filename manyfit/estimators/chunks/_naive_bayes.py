"""GaussianNB on an X in chunks: one pass sums each class, and scikit-learn checks the rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from manyfit._compat import validate_parameters
from manyfit.estimators._method_call import clear_fit
from manyfit.estimators.chunks._least_squares import check_rows
from manyfit.folds import ChunkRows, SetwiseMerge, merge_two_spreads
from manyfit.introspection.class_names import sklearn_class_of

Array = NDArray[Any]


@dataclass(frozen=True)
class _ClassSpreads:
    """The weight, the means and the squares about them of each class in a read, and of all its rows.

    The last has no weights: scikit-learn smooths by the variance without them.
    """

    codes: Array
    weights: Array | None
    n_classes: int

    def __call__(self, X: ChunkRows, rows: slice, block: Any, local: Any) -> list[Any]:
        Z, own = block.take(slice(None)).astype(np.float64), self.codes[rows]
        weights = None if self.weights is None else self.weights[rows]
        found: list[Any] = [None] * (self.n_classes + 1)
        for c in np.unique(own):
            mine = own == c
            found[c] = _spread(Z[mine], None if weights is None else weights[mine])
        found[-1] = _spread(Z, None)
        if not np.isfinite(found[-1][2]).all():
            X.require_finite(rows, block)
            raise ValueError("Input X contains NaN, infinity or a value too large for GaussianNB.")
        return found


def _spread(Z: Array, weights: Array | None) -> tuple[float, Array, Array] | None:
    """Weight, means and squares about them of rows of float64, which are overwritten; None without weight."""
    size = float(len(Z)) if weights is None else float(weights.sum())
    if not size:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.average(Z, axis=0, weights=weights)
        Z -= mean
        squares = np.einsum("np,np->p", Z, Z) if weights is None else weights @ (Z * Z)
    return size, mean, squares


def fit(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Fit GaussianNB in one pass over X."""
    name = type(estimator).__name__
    validate_parameters(estimator)
    y, weights = check_rows(estimator, X, y, sample_weight, None)
    labels, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    p = X.n_columns
    codes = codes.astype(np.min_scalar_type(len(labels)))
    work, none = _ClassSpreads(codes, weights, len(labels)), (0.0, *np.zeros((2, p)))
    found = X.reduced(work, SetwiseMerge(merge_two_spreads))
    *classes, (n, _, squares) = (none if one is None else one for one in found)
    if not np.isfinite(squares).all():
        raise ValueError(f"Input X contains a value too large for {name}.")
    counts = np.array([weight for weight, _, _ in classes])
    seen = ~np.isclose(counts, 0.0)[:, None]  # scikit-learn leaves other classes at zero
    means = np.where(seen, [mean for _, mean, _ in classes], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = np.where(seen, np.array([own for _, _, own in classes]) / counts[:, None], 0.0)
    small = sklearn_class_of(type(estimator))(**estimator.get_params(deep=False))
    small.fit(means, labels, sample_weight=counts)  # checks the priors
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    clear_fit(estimator)
    estimator.classes_, estimator.n_features_in_ = labels, p
    estimator.epsilon_ = dtype.type(estimator.var_smoothing * float((squares / n).max()))
    estimator.theta_, estimator.var_ = means.astype(dtype), (variances + estimator.epsilon_).astype(dtype)
    estimator.class_count_, estimator.class_prior_ = counts.astype(dtype), small.class_prior_.astype(dtype)
    if X.names:
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
    return estimator
