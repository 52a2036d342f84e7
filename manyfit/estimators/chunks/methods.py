"""The methods of drop-in estimators that read an X in chunks, and whether a chain of estimators does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from manyfit.arrays import compute_dask_inputs
from manyfit.estimators.chunks import _least_squares, _transformers
from manyfit.folds import ChunkRows, expect_rows, is_in_file, read_input
from manyfit.introspection.drop_in_classes import sklearn_class_of

Method = Callable[..., Any]
# Memory for the reads of a method, and the size from which memory maps and Dask arrays are read in chunks:
# scikit-learn loads smaller ones, and its numbers stay as they are.
MEMORY = 2**30


def _predict(estimator: Any, inner: Method, X: ChunkRows) -> Any:
    """scikit-learn's predictions of each block, joined in memory."""
    check_is_fitted(estimator)
    return np.concatenate([estimator.predict(block) for _, block in X.frames()])


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


def in_chunks(
    estimator: Any, name: str, inner: Method, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any] | None:
    """The result of a method, in a tuple, if X is read in chunks or has to be loaded first; else None.

    Raises TypeError if X is too large to be loaded, and the estimator does not read it in chunks.
    """
    given = {**dict(zip(("X", "y"), args, strict=False)), **kwargs}
    if "X" not in given:
        return None
    method = METHODS.get(type(estimator).__name__, {}).get(name)
    X, fits = given.pop("X"), name.startswith(("fit", "partial_fit"))
    names = None if fits else getattr(estimator, "feature_names_in_", None)
    if type(X) is np.memmap and method is None:
        return None
    most = 0 if is_in_file(X) and method is not None else MEMORY
    found = read_input(X, given.get("y"), lambda: MEMORY, most, names)
    if found.rows is None and found.X is X and found.y is given.get("y"):
        return None
    if "y" in given or (found.y is not None and (fits or name == "score")):
        given["y"] = found.y
    if found.sample_weight is not None and (fits or name == "score"):
        given.setdefault("sample_weight", found.sample_weight)
    if found.rows is None:
        return (getattr(estimator, name)(found.X, *_positional(given, args), **given),)
    if method is None:
        raise TypeError(
            f"{type(estimator).__name__}.{name} does not read X in chunks. Estimators that do are "
            f"{', '.join(METHODS)}. Load X first, as an array."
        )
    if hasattr(given.get("y"), "__dask_graph__"):
        (given["y"],) = compute_dask_inputs([given["y"]], type(estimator).__name__)
    expect_rows(found.rows, given.get("y"))
    return (method(estimator, inner, found.rows, *_positional(given, args), **given),)


def _positional(given: dict[str, Any], args: Sequence[Any]) -> list[Any]:
    """The arguments after X that were given without a name, taken out of `given`."""
    return [given.pop("y"), *args[2:]] if len(args) > 1 else []


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
