"""cross_val_predict for data on a device: answers lie with X, which stays there for drop-in estimators."""

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
from manyfit.model_selection.planning._data_location import warn_moved_to_host
from manyfit.model_selection.validation._device_cv import BoundSplitter, check_device_cv


def predict_on_any_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let cross_val_predict take data of a device.

    Parameters
    ----------
    function : callable
        scikit-learn's, which joins predictions on the host.

    Returns
    -------
    callable
        With its signature. Answers lie with X, labels of classifiers with y. What has to be fitted on the
        host brings X there, which is said, or refused.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def cross_val_predict(*args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(*args, **kwargs).arguments)
        X, params = given["X"], given.get("params") or {}
        data = (X, given.get("y"), given.get("groups"), *params.values())
        there = [value for value in data if is_xp_array(value)]
        if not there:
            return function(**given)
        home = TransferCache()
        moved: dict[str, Any] = {name: home(given.get(name)) for name in ("y", "groups")}
        moved["params"] = {name: home(value) for name, value in params.items()} or None
        if is_xp_array(X) and _stays(given["estimator"]):
            moved |= _on_rows(given)
        else:
            warn_moved_to_host("cross_val_predict", there, "its estimator is fitted there")
            moved["X"] = home(X)
        return _settled(function(**{**given, **moved}), given)

    return cross_val_predict


def _stays(estimator: Any) -> bool:
    """Whether rows of a device are fitted as they are; of a precomputed kernel columns are cut, too."""
    return is_drop_in(estimator) and not get_tags(estimator).input_tags.pairwise


def _on_rows(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments in which the numbers of rows stand for them; one fit after the other, on the device."""
    X, y, estimator = given["X"], given.get("y"), given["estimator"]
    cv = check_device_cv(given.get("cv"), y, classifier=is_classifier(estimator))
    return {
        "X": np.arange(X.shape[0])[:, None],
        "cv": BoundSplitter(cv, X, y),
        "estimator": _OnRows(estimator, X),
        "n_jobs": 1,  # None would be that of a `parallel_config` around it
    }


def _settled(result: Any, given: dict[str, Any]) -> Any:
    labels = given.get("method", "predict") == "predict" and is_classifier(given["estimator"])
    place = container_place(given.get("y") if labels else given["X"])
    return result if place is None else place.move(result)


class _OnRows:
    """An estimator that is fitted to rows of a device, and asked about some, by their numbers."""

    def __init__(self, model: Any, X: Any) -> None:
        self._model, self._X = model, X

    def fit(self, rows: np.ndarray, *y: Any, **params: Any) -> "_OnRows":
        """Fit to rows; y and other values for each lie on the host."""
        self._model.fit(self._cut(rows), *y, **params)
        return self

    def _cut(self, rows: np.ndarray) -> Any:
        """Rows of X: never a view, as the model may write into what it is given."""
        return array_namespace(self._X).take(self._X, to_device_of(rows[:, 0], self._X), axis=0)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name.startswith(("_", "get_")) or not callable(found):
            return _home(found)
        return lambda rows: _home(found(self._cut(rows)))

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._model)

    def __sklearn_clone__(self) -> "_OnRows":
        return _OnRows(clone(self._model), self._X)


def _home(value: Any) -> Any:
    return list(map(_home, value)) if type(value) is list else container_to_host(value)
