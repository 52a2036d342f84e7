"""GaussianNB on an X in chunks: one pass sums each class, and scikit-learn checks the rest."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from manyfit._compat import validate_parameters
from manyfit.estimators._method_call import clear_fit
from manyfit.estimators.chunks._least_squares import check_weights
from manyfit.folds import ChunkRows, NumPyRows, merge_spreads
from manyfit.introspection.drop_in_classes import sklearn_class_of

Array = NDArray[Any]


class _Spread:
    """The weight, the means and the squares about them of some rows, which are added block by block."""

    def __init__(self, p: int) -> None:
        self.weight, self.mean, self.squares = 0.0, np.zeros(p), np.zeros(p)

    def add(self, Z: Array, weight: Array | None) -> None:
        """Add rows of float64, which are overwritten."""
        own = float(len(Z)) if weight is None else float(weight.sum())
        if not own:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.average(Z, axis=0, weights=weight)
            Z -= mean
            squares = np.einsum("np,np->p", Z, Z) if weight is None else weight @ (Z * Z)
            merged = merge_spreads(
                np.array([self.weight, own]), np.stack([self.mean, mean]), self.squares + squares
            )
        self.weight, self.mean, self.squares = float(merged[0]), merged[1], merged[2]


def fit(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Fit GaussianNB in one pass over X."""
    name = type(estimator).__name__
    validate_parameters(estimator)
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y", estimator=name), warn=True)
    check_consistent_length(X, y)
    weights, p = check_weights(sample_weight, len(y)), X.n_columns
    labels, codes = np.unique(y, return_inverse=True)
    classes, every = [_Spread(p) for _ in labels], _Spread(p)
    for rows, block, _ in X.chunks():
        Z, own = block.astype(np.float64), codes[rows]
        for c in np.unique(own):
            mine = own == c
            classes[c].add(Z[mine], None if weights is None else weights[rows][mine])
        every.add(Z, None)  # scikit-learn smooths by the variance without weights
        if not np.isfinite(every.squares).all():
            X.require_finite(rows, NumPyRows(block))
            raise ValueError(f"Input X contains NaN, infinity or a value too large for {name}.")
    counts = np.array([one.weight for one in classes])
    seen = ~np.isclose(counts, 0.0)[:, None]  # scikit-learn leaves other classes at zero
    means = np.where(seen, [one.mean for one in classes], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = np.where(seen, np.array([one.squares for one in classes]) / counts[:, None], 0.0)
    small = sklearn_class_of(type(estimator))(**estimator.get_params(deep=False))
    small.fit(means, labels, sample_weight=counts)  # checks the priors
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    clear_fit(estimator)
    estimator.classes_, estimator.n_features_in_ = labels, p
    estimator.epsilon_ = dtype.type(estimator.var_smoothing * float((every.squares / every.weight).max()))
    estimator.theta_, estimator.var_ = means.astype(dtype), (variances + estimator.epsilon_).astype(dtype)
    estimator.class_count_, estimator.class_prior_ = counts.astype(dtype), small.class_prior_.astype(dtype)
    if X.names:
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
    return estimator
