"""cross_val_predict for device data: X stays on its device for drop-in estimators; predictions follow X."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from manyfit.arrays import (
    TransferCache,
    array_namespace,
    container_place,
    container_to_host,
    is_xp_array,
    to_device_of,
)
from manyfit.introspection.gpu_support import is_drop_in
from manyfit.model_selection.planning.places._data_location import warn_moved_to_host
from manyfit.model_selection.validation._device_cv import BoundSplitter, check_device_cv


def predict_on_any_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make scikit-learn's ``cross_val_predict`` accept device data.

    Predictions are returned on the device of X, labels of classifiers on that of y. Estimators that need host
    data get a copy of X, with a warning or an error, as configured.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def cross_val_predict(*args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(*args, **kwargs).arguments)
        X, estimator, params = given["X"], given["estimator"], given.get("params") or {}
        data = (X, given.get("y"), given.get("groups"), *params.values())
        on_device = [value for value in data if is_xp_array(value)]
        if not on_device:
            return function(**given)
        to_host = TransferCache()
        moved: dict[str, Any] = {name: to_host(given.get(name)) for name in ("y", "groups")}
        moved["params"] = {name: to_host(value) for name, value in params.items()} or None
        # A precomputed kernel is cut in columns, too.
        on_rows = is_drop_in(estimator) and not get_tags(estimator).input_tags.pairwise
        if is_xp_array(X) and on_rows:
            moved |= _by_row_numbers(given)
        else:
            warn_moved_to_host("cross_val_predict", on_device, "its estimator is fitted on the host")
            moved["X"] = to_host(X)
        labels = given.get("method", "predict") == "predict" and is_classifier(estimator)
        place, result = container_place(given.get("y") if labels else X), function(**{**given, **moved})
        return result if place is None else place.move(result)

    return cross_val_predict


def _by_row_numbers(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments with row numbers in place of rows, for one fit after the other on the device."""
    X, y, estimator = given["X"], given.get("y"), given["estimator"]
    cv = check_device_cv(given.get("cv"), y, classifier=is_classifier(estimator))
    return {
        "X": np.arange(X.shape[0])[:, None],
        "cv": BoundSplitter(cv, X, y),
        "estimator": _RowNumberEstimator(estimator, X),
        "n_jobs": 1,  # None would take `n_jobs` of a surrounding `parallel_config`
    }


class _RowNumberEstimator:
    """An estimator that fits and predicts on device rows, given by their numbers."""

    def __init__(self, model: Any, X: Any) -> None:
        self._model, self._X = model, X

    def fit(self, rows: np.ndarray, *y: Any, **params: Any) -> "_RowNumberEstimator":
        """Fit to rows; y and other values of each row are on the host."""
        self._model.fit(self._cut(rows), *y, **params)
        return self

    def _cut(self, rows: np.ndarray) -> Any:
        """A copy of rows of X, since the model may write into it."""
        return array_namespace(self._X).take(self._X, to_device_of(rows[:, 0], self._X), axis=0)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name.startswith(("_", "get_")) or not callable(found):
            return _to_host(found)
        return lambda rows: _to_host(found(self._cut(rows)))

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._model)

    def __sklearn_clone__(self) -> "_RowNumberEstimator":
        return _RowNumberEstimator(clone(self._model), self._X)


def _to_host(value: Any) -> Any:
    return list(map(_to_host, value)) if type(value) is list else container_to_host(value)
