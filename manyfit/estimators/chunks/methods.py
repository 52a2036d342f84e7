"""The methods of drop-in estimators that read an X in chunks, and whether a chain of estimators does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from manyfit.estimators.chunks import _least_squares, _transformers
from manyfit.folds import ChunkRows, as_chunk_rows, is_in_file, size_in_chunks
from manyfit.introspection.drop_in_classes import sklearn_class_of

Method = Callable[..., Any]
# Memory for the reads of a method, and the size from which memory maps and Dask arrays are read in chunks:
# scikit-learn loads smaller ones, and its numbers stay as they are.
MEMORY = 2**30


def _predict(estimator: Any, inner: Method, X: ChunkRows) -> Any:
    """scikit-learn's predictions of each block, joined in memory."""
    check_is_fitted(estimator)
    return np.concatenate([estimator.predict(block) for _, block, _ in X.chunks()])


def _score(estimator: Any, inner: Method, X: ChunkRows, y: Any, sample_weight: Any = None) -> Any:
    return inner(estimator, X, y, sample_weight)  # of the predictions


_LINEAR: Mapping[str, Method] = {"fit": _least_squares.fit, "predict": _predict, "score": _score}
_SCALER: Mapping[str, Method] = {
    name: getattr(_transformers, name) for name in ("fit", "partial_fit", "fit_transform", "transform")
}
METHODS: Mapping[str, Mapping[str, Method]] = {
    "Ridge": _LINEAR,
    "LinearRegression": _LINEAR,
    "StandardScaler": _SCALER,
    "MinMaxScaler": _SCALER,
    "MaxAbsScaler": _SCALER,
}


def chunk_method(estimator: Any, name: str, X: Any) -> tuple[Method, ChunkRows] | None:
    """The method for an X that is read in chunks, with its rows; None if X is another, or read in memory.

    Raises TypeError if X can only be read in chunks, and the estimator does not read them.
    """
    size = size_in_chunks(X)
    if size is None or (size <= MEMORY and not (isinstance(X, ChunkRows) or is_in_file(X))):
        return None
    method = METHODS.get(type(estimator).__name__, {}).get(name)
    if method is None:
        if isinstance(X, ChunkRows):
            raise TypeError(
                f"{type(estimator).__name__}.{name} does not read X in chunks. Estimators that do are "
                f"{', '.join(METHODS)}. Load X first, as an array."
            )
        return None
    rows = as_chunk_rows(X, MEMORY)
    return None if rows is None else (method, rows)


def why_not_in_chunks(estimator: Any) -> str | None:
    """The reason why an estimator or a pipeline cannot be fitted to an X in chunks, or None."""
    if type(estimator) is Pipeline:
        parts = [part for _, part in estimator.steps if part is not None and part != "passthrough"]
        return next((reason for part in parts if (reason := why_not_in_chunks(part))), None)
    cls = type(estimator)
    if sklearn_class_of(cls) is cls:
        return f"{cls.__name__} is a class of {cls.__module__.partition('.')[0]}, which reads X whole"
    methods = METHODS.get(cls.__name__)
    if methods is None:
        return f"{cls.__name__} reads X whole"
    return _least_squares.refuse_solver(estimator) if methods is _LINEAR else None
