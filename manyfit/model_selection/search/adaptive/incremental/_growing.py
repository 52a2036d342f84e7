"""Models that can be trained further: by `partial_fit`, by `warm_start`, or from a boosted model."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

Grow = Callable[[Any, int, tuple[Any, ...], dict[str, Any]], Any]
"""Trains a model further; gets it, its calls so far, the arrays of a fit and the other arguments."""


def grow_function(estimator: Any) -> Grow | None:
    """How an estimator is trained further, or None if it cannot be."""
    if hasattr(estimator, "partial_fit"):
        return _partial_fit
    if _is_one_of(estimator, "xgboost", "XGBModel"):
        return _grow_xgboost
    if _is_one_of(estimator, "lightgbm", "LGBMModel"):
        return _grow_lightgbm
    return None if _size_of(estimator) is None else _grow_warm


def _size_of(estimator: Any) -> str | None:
    """The parameter that says how large a model with `warm_start` is in all."""
    params = estimator.get_params(deep=False)
    if "warm_start" not in params:
        return None
    if isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return "max_iter"
    return "n_estimators" if "n_estimators" in params else None  # `max_iter` of solvers is no size


def _is_one_of(estimator: Any, module: str, name: str) -> bool:
    """Whether it is an object of a library's class; the library is not imported for that."""
    return module in sys.modules and isinstance(estimator, getattr(sys.modules[module], name, ()))


def _partial_fit(model: Any, made: int, data: tuple[Any, ...], params: dict[str, Any]) -> Any:
    if "classes" in params and "classes" not in inspect.signature(model.partial_fit).parameters:
        del params["classes"]
    return model.partial_fit(*data, **params)


def _grow_warm(model: Any, made: int, data: tuple[Any, ...], params: dict[str, Any]) -> Any:
    params.pop("classes", None)
    size = str(_size_of(model))
    if made:
        each = getattr(model, size) // made
        model.set_params(**{"warm_start": True, size: each * (made + 1)})
    else:
        model.set_params(warm_start=True)
    return model.fit(*data, **params)


def _grow_xgboost(model: Any, made: int, data: tuple[Any, ...], params: dict[str, Any]) -> Any:
    params.pop("classes", None)
    return model.fit(*data, xgb_model=model.get_booster() if made else None, **params)


def _grow_lightgbm(model: Any, made: int, data: tuple[Any, ...], params: dict[str, Any]) -> Any:
    params.pop("classes", None)
    return model.fit(*data, init_model=model.booster_ if made else None, **params)
