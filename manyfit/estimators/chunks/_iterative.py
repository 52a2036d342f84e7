"""Linear models whose solvers iterate, on an X in chunks: from samples in memory to passes over all rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import column_or_1d

from manyfit._compat import validate_parameters
from manyfit.estimators._method_call import clear_fit
from manyfit.estimators.backends._native import fit_rows_by_passes
from manyfit.estimators.backends._native_registry import fitter_of
from manyfit.estimators.chunks._least_squares import check_rows
from manyfit.exceptions import Unsupported
from manyfit.folds import ChunkRows
from manyfit.introspection.class_names import sklearn_class_of


def refuse_parameters(estimator: Any) -> str | None:
    """The reason why an estimator of these parameters does not read chunks, or None."""
    fitter = fitter_of(sklearn_class_of(type(estimator)))
    assert fitter is not None
    try:
        fitter.check(estimator)
    except Unsupported as reason:
        return f"{type(estimator).__name__} reads X whole: {reason}"
    return None


def fit(
    estimator: Any, inner: Callable[..., Any], X: ChunkRows, y: Any = None, sample_weight: Any = None
) -> Any:
    """Fit the estimator until its gradient meets ``tol``; every pass reads X once."""
    name = type(estimator).__name__
    validate_parameters(estimator)
    if reason := refuse_parameters(estimator):
        raise ValueError(f"{reason}. Load X, or set other parameters.")
    dtype = None if is_classifier(estimator) else np.float64
    y, weights = check_rows(estimator, X, y, sample_weight, dtype)
    y = column_or_1d(y, warn=True)
    clear_fit(estimator)
    try:
        fit_rows_by_passes(estimator, X, y, weights, X.memory)
    except Unsupported as error:
        raise ValueError(f"{name} cannot be fitted to X in chunks: {error}.") from error
    if X.names:
        estimator.feature_names_in_ = np.array(X.names, dtype=object)
    return estimator
