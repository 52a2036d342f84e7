"""Boosting estimators whose fits on the same rows bin them once."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from manyfit._compat._replaced import replaced

__all__ = ["bytes_of_boosting", "keep_bins", "keep_lightgbm_bins", "keep_xgboost_bins", "without_names"]


def bytes_of_boosting(fitted: Mapping[str, Any]) -> int:
    """Bytes of the trees among the fitted attributes of histogram boosting."""
    return sum(tree.nodes.nbytes for trees in fitted["_predictors"] for tree in trees)


@contextmanager
def keep_bins(estimator: Any, kept: dict[str, Any]) -> Iterator[None]:
    """Let one fit of histogram boosting take its bins from `kept`, or put them there.

    `kept` is for fits on the same rows, with equal parameters of bins and of their random numbers.
    """
    if not hasattr(estimator, "_bin_data"):
        yield
        return
    bin_data = estimator._bin_data
    names = inspect.signature(bin_data)

    def binned(*args: Any, **params: Any) -> Any:
        training = names.bind(*args, **params).arguments["is_training_data"]
        part = "training" if training else "validation"
        if part not in kept:
            rows = bin_data(*args, **params)
            rows.flags.writeable = False
            kept[part] = estimator._bin_mapper, rows
        estimator._bin_mapper, rows = kept[part]
        return rows

    estimator._bin_data = binned
    try:
        yield
    finally:
        del estimator._bin_data


@contextmanager
def keep_xgboost_bins(estimator: Any, kept: dict[str, Any]) -> Iterator[None]:
    """Let one fit of XGBoost take its quantised rows from `kept`, or put them there."""
    if not hasattr(estimator, "_create_dmatrix"):
        yield
        return
    from xgboost import QuantileDMatrix

    create = estimator._create_dmatrix

    def created(*args: Any, **params: Any) -> Any:
        matrix = kept.get("training")
        if matrix is None:
            matrix = create(*args, **params)
            if isinstance(matrix, QuantileDMatrix):  # others keep what a fit has sorted or sampled
                kept["training"] = matrix
        return matrix

    estimator._create_dmatrix = created
    try:
        yield
    finally:
        del estimator._create_dmatrix


@contextmanager
def keep_lightgbm_bins(estimator: Any, kept: dict[str, Any]) -> Iterator[None]:
    """Let one fit of LightGBM take its ``Dataset`` from `kept`, or put it there."""
    from lightgbm import Dataset, sklearn

    def dataset(*args: Any, **params: Any) -> Any:
        if "training" not in kept:
            kept["training"] = Dataset(*args, **params)
        return kept["training"]

    if not hasattr(sklearn, "Dataset"):
        yield
        return
    with replaced(sklearn, "Dataset", dataset):
        yield


def without_names(model: Any) -> Any:
    """Let a fitted model of LightGBM expect no names of columns: before 4.7 it makes up those of arrays."""
    model.__class__ = type(type(model).__name__, (type(model),), {"feature_names_in_": property(_no_names)})
    return model


def _no_names(model: Any) -> Any:
    raise AttributeError("feature_names_in_")
