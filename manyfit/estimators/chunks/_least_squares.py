"""Ridge and LinearRegression on an X in chunks: one pass sums moments, scikit-learn does the rest.

The centred sums of squares of ``[X, y]`` are those of p + q rows ``[R, z]``, so that scikit-learn's own fit
on these rows has the same coefficients.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_consistent_length

from manyfit._compat import check_parameters
from manyfit.estimators._method_call import clear_fit
from manyfit.exceptions import Unsupported
from manyfit.folds import ChunkRows, as_weights
from manyfit.introspection.class_names import sklearn_class_of

Array = NDArray[Any]

# Solvers that read no rows, but their sums of squares, or as well as that.
DIRECT = ("auto", "cholesky", "svd")
# Below this ratio of the extreme eigenvalues sums of squares keep too few digits.
MIN_SPECTRAL_RATIO = 1e-12


def refuse_solver(estimator: Any) -> str | None:
    """The reason why an estimator is not fitted from sums of squares, or None."""
    name = type(estimator).__name__
    if getattr(estimator, "solver", "auto") not in DIRECT:
        return f"{name}(solver={estimator.solver!r}) iterates over rows; set solver='auto'"
    return f"{name}(positive=True) iterates; set positive=False" if estimator.positive else None


def fit(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Fit Ridge or LinearRegression in one pass over X; `inner` is scikit-learn's method."""
    name = type(estimator).__name__
    if reason := check_parameters(estimator) or refuse_solver(estimator):
        raise ValueError(reason)
    Y, weights = check_rows(estimator, X, y, sample_weight, np.float64)
    ((moments, _),) = X.moments(Y.reshape(len(Y), -1), [slice(0, X.shape[0])], weights)
    if not moments.weight > 0:
        raise ValueError(f"{name} needs a sample_weight above 0; their sum is {moments.weight}.")
    if not np.isfinite(moments.scatter).all():
        raise ValueError(f"X or y is too large for {name}: its squares have no finite sum.")
    p = X.shape[1]
    scatter = moments.scatter
    if not estimator.fit_intercept:
        scatter = scatter + moments.weight * np.outer(moments.mean, moments.mean)
    _require_rank(estimator, scatter[:p, :p])
    rows = _compressed(scatter)
    small = clone(sklearn_class_of(type(estimator))(**estimator.get_params(deep=False)))
    small.set_params(fit_intercept=False)
    clear_fit(estimator)
    small.fit(rows[:, :p], rows[:, p] if Y.ndim == 1 else rows[:, p:])
    _take_attributes(estimator, small)
    if X.names:
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
    if X.dtype == np.float32:
        estimator.coef_ = estimator.coef_.astype(np.float32)
    if estimator.fit_intercept:
        mean = moments.mean
        intercept = mean[p:] - small.coef_.reshape(-1, p) @ mean[:p]
        scalar = small.coef_.ndim == 1 and Y.ndim == 1
        estimator.intercept_ = (intercept[0] if scalar else intercept).astype(estimator.coef_.dtype)
    return estimator


def check_rows(
    estimator: Any, X: ChunkRows, y: Any, sample_weight: Any, dtype: Any
) -> tuple[Array, Array | None]:
    """Targets and weights of all rows, or scikit-learn's error."""
    name = type(estimator).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    y = check_array(y, ensure_2d=False, dtype=dtype, input_name="y", estimator=name)
    check_consistent_length(X, y)
    return y, check_weights(sample_weight, len(y))


def check_weights(sample_weight: Any, n: int) -> Array | None:
    """The weights of all rows, or None; raises ValueError for those that are not taken."""
    if sample_weight is None:
        return None
    if np.ndim(sample_weight) == 0:
        sample_weight = np.full(n, float(sample_weight))
    try:
        return as_weights(sample_weight, n)
    except Unsupported as reason:
        raise ValueError(f"{reason}; X has {n} rows.") from reason


def _require_rank(estimator: Any, scatter: Array) -> None:
    """Raise ValueError if the equations are so nearly singular that sums of squares do not determine them."""
    values = np.linalg.eigvalsh(scatter)
    damping = float(np.min(getattr(estimator, "alpha", 0.0)))
    if not values[0] + damping > MIN_SPECTRAL_RATIO * (values[-1] + damping):
        name = type(estimator).__name__
        advice = "Set a larger alpha" if hasattr(estimator, "alpha") else "Use Ridge"
        raise ValueError(
            f"{name} is fitted to X in chunks from sums of squares, and columns of X depend on each other so "
            f"nearly that these do not determine the coefficients. {advice}, or leave columns out."
        )


def _compressed(scatter: Array) -> Array:
    """As many rows as columns, with these sums of squares, each column to the rounding of its own size."""
    size = np.sqrt(np.diagonal(scatter))
    scale = np.where(size > 0.0, size, 1.0)
    values, vectors = np.linalg.eigh(scatter / scale[:, None] / scale)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * scale


def _take_attributes(estimator: Any, fitted: Any) -> None:
    for name, value in vars(fitted).items():
        if name.endswith("_") and not name.startswith("_"):
            setattr(estimator, name, value)
