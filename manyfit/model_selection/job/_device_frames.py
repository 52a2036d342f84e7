"""X and values of each row as arrays, where they came in frames or series of a device."""

from collections.abc import Sequence
from typing import Any

from sklearn.compose import ColumnTransformer

from manyfit.arrays import (
    array_of_frame,
    container_to_host,
    holds_numbers,
    is_array,
    is_device_frame,
    label_transfers,
    warn_host_fallback,
)
from manyfit.introspection.composites import walk
from manyfit.introspection.gpu_support import supports_device_data_natively


def arrays_of_frames(estimator: Any, X: Any, values: Sequence[Any]) -> list[Any]:
    """X and other data of a search, those in device frames as arrays where they lie, or as pandas'.

    X is copied to the host where columns hold other things than numbers, or are chosen by an estimator; this
    is a host fallback. Where an estimator of cuML may read such columns X stays as it is.
    """
    rows = _rows(estimator, X) if is_device_frame(X) else X
    follow = array_of_frame if rows is X or is_array(rows) else container_to_host
    with label_transfers("y and weights"):
        return [rows, *(follow(value) if is_device_frame(value) else value for value in values)]


def _rows(estimator: Any, X: Any) -> Any:
    held = [estimator, *(value for _, value in walk(estimator))]
    by_column = any(isinstance(one, ColumnTransformer) for one in held)
    if holds_numbers(X) and not by_column:
        return array_of_frame(X)
    if any(map(supports_device_data_natively, held)):
        return X
    why = "a ColumnTransformer chooses its columns" if by_column else "it has columns without numbers"
    warn_host_fallback(
        "search of a frame",
        f"X, a {type(X).__module__.partition('.')[0]} {type(X).__name__}, is copied to the host, where "
        f"{type(estimator).__name__} is fitted: {why}.",
    )
    return container_to_host(X, label="X")
