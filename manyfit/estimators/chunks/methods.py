"""The methods of drop-in estimators that read an X in chunks, and whether a chain of estimators does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import d2_tweedie_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from manyfit.arrays import compute_dask_inputs
from manyfit.cluster.chunk_workers import chunk_workers
from manyfit.estimators.chunks import _decomposition, _iterative, _least_squares, _naive_bayes, _transformers
from manyfit.estimators.chunks._lazy import ROWWISE as ROWWISE
from manyfit.estimators.chunks._lazy import lazily as lazily
from manyfit.estimators.chunks.frames import begins_with_columns, why_not_summed
from manyfit.folds import ChunkRows, has_sparse_chunks, is_dask, is_in_file, prepare_rows, read_input
from manyfit.introspection.class_names import sklearn_class_of
from manyfit.metrics.scoring.glm_score import explained_power

Method = Callable[..., Any]
# Memory for the reads of a method, and the size from which memory maps and Dask arrays are read in chunks:
# scikit-learn loads smaller ones, and its numbers stay as they are.
MEMORY = 2**30


def _by_block(name: str) -> Method:
    """A method of scikit-learn's on each block, whose results are joined in memory."""

    def method(estimator: Any, inner: Method, X: ChunkRows) -> Any:
        check_is_fitted(estimator)
        return np.concatenate([getattr(estimator, name)(block) for _, block in X.frames()])

    return method


def _score(estimator: Any, inner: Method, X: ChunkRows, y: Any = None, *more: Any, **weights: Any) -> Any:
    """scikit-learn's score of the predictions."""
    power = explained_power(estimator)
    if power is None:
        return inner(estimator, X, y, *more, **weights)
    weight = more[0] if more else weights.get("sample_weight")
    return d2_tweedie_score(y, estimator.predict(X), sample_weight=weight, power=power)


def _predictor(fit: Method, *responses: str) -> Mapping[str, Method]:
    return {"fit": fit, "score": _score, **{name: _by_block(name) for name in ("predict", *responses)}}


_TRANSFORMS: Mapping[str, Method] = {
    name: getattr(_transformers, name) for name in ("fit_transform", "transform", "inverse_transform")
}
_SCALER = {"fit": _transformers.fit, "partial_fit": _transformers.partial_fit, **_TRANSFORMS}
_LINEAR = _predictor(_least_squares.fit)
_REGRESSOR = _predictor(_iterative.fit)
_LOGS = ("predict_proba", "predict_log_proba")
METHODS: Mapping[str, Mapping[str, Method]] = {
    "Ridge": _LINEAR,
    "LinearRegression": _LINEAR,
    "LogisticRegression": _predictor(_iterative.fit, *_LOGS, "decision_function"),
    "LinearSVC": _predictor(_iterative.fit, "decision_function"),
    "LinearSVR": _REGRESSOR,
    "PoissonRegressor": _REGRESSOR,
    "GammaRegressor": _REGRESSOR,
    "TweedieRegressor": _REGRESSOR,
    "GaussianNB": _predictor(_naive_bayes.fit, *_LOGS, "predict_joint_log_proba"),
    "PCA": {
        **_TRANSFORMS, "fit": _decomposition.fit_pca, "fit_transform": _decomposition.fit_transform_pca,
        "score_samples": _by_block("score_samples"), "score": _score,
    },
    "TruncatedSVD": {
        **_TRANSFORMS, "fit": _decomposition.fit_svd, "fit_transform": _decomposition.fit_transform_svd,
    },
    "StandardScaler": _SCALER,
    "MinMaxScaler": _SCALER,
    "MaxAbsScaler": _SCALER,
}  # fmt: skip


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
    if method is not None and name in ROWWISE and is_dask(X) and not given and len(args) < 2:
        return (lazily(estimator, name, X),)
    names = None if fits else getattr(estimator, "feature_names_in_", None)
    if type(X) is np.memmap and method is None:
        return None
    most = 0 if is_in_file(X) and method is not None else MEMORY
    found = read_input(X, given.get("y"), lambda: MEMORY, most, names)
    if found.rows is None and has_sparse_chunks(X):  # of which scikit-learn makes no matrix
        found = replace(found, X=compute_dask_inputs([X], type(estimator).__name__)[0])
    if found.rows is None and found.X is X and found.y is given.get("y"):
        return None
    if "y" in given or (found.y is not None and (fits or name == "score")):
        given["y"] = found.y
    if found.sample_weight is not None and (fits or name == "score"):
        given.setdefault("sample_weight", found.sample_weight)
    if found.rows is None:
        return (getattr(estimator, name)(found.X, *_positional(given, args), **given),)
    is_sparse = found.rows.nnz is not None
    if method is None or (is_sparse and not _reads_sparse(estimator, name)):
        readers = [one for one, own in METHODS.items() if not is_sparse or own["fit"] is _iterative.fit]
        chunks, loaded = ("sparse chunks", "a sparse matrix") if is_sparse else ("chunks", "an array")
        raise TypeError(
            f"{type(estimator).__name__}.{name} does not read X in {chunks}. Estimators that do are "
            f"{', '.join(readers)}. Load X first, as {loaded}."
        )
    if hasattr(given.get("y"), "__dask_graph__"):
        (given["y"],) = compute_dask_inputs([given["y"]], type(estimator).__name__)
    prepare_rows(found.rows, given.get("y"))
    with chunk_workers(found.rows) if name in ("fit", "fit_transform") else nullcontext():
        return (method(estimator, inner, found.rows, *_positional(given, args), **given),)


def _reads_sparse(estimator: Any, name: str) -> bool:
    """Whether a method reads chunks that are sparse: solvers that iterate do, and predictions."""
    reads_sums = name.startswith(("fit", "partial_fit")) or name.endswith("transform")
    return not reads_sums or METHODS[type(estimator).__name__]["fit"] is _iterative.fit


def _positional(given: dict[str, Any], args: Sequence[Any]) -> list[Any]:
    """The arguments after X that were given without a name, taken out of `given`."""
    return [given.pop("y"), *args[2:]] if len(args) > 1 else []


def why_not_refitted(estimator: Any) -> str | None:
    """The reason why a search cannot refit an estimator to an X in chunks, or None."""
    if begins_with_columns(estimator):
        rest = Pipeline(estimator.steps[1:])
        return why_not_summed(estimator.steps[0][1]) or (why_not_in_chunks(rest) if rest.steps else None)
    return why_not_in_chunks(estimator)


def why_not_in_chunks(estimator: Any) -> str | None:
    """The reason why an estimator or a pipeline cannot be fitted to an X in chunks, or None."""
    if type(estimator) is Pipeline:
        parts = [part for _, part in estimator.steps if part is not None and part != "passthrough"]
        return next((reason for part in parts if (reason := why_not_in_chunks(part))), None)
    cls = type(estimator)
    if sklearn_class_of(cls) is cls:
        return f"{cls.__name__} is a class of {cls.__module__.partition('.')[0]}, which reads X whole"
    fit = METHODS.get(cls.__name__, {}).get("fit")
    if fit is None:
        return f"{cls.__name__} reads X whole"
    if fit is _iterative.fit:
        return _iterative.refuse_parameters(estimator)
    return _least_squares.refuse_solver(estimator) if fit is _least_squares.fit else None
