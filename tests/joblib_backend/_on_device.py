"""An estimator that says where its data are."""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import get_worker
from sklearn.base import BaseEstimator

from manyfit.arrays import is_array, is_on_device

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1_500, 5))  # travels apart; what has one number a row does not
Y = X @ np.arange(5.0) + RNG.normal(size=len(X))


class Told(BaseEstimator):
    """Says where its data are."""

    def __init__(self, support: bool = True) -> None:
        self.support = support

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = self.support
        return tags

    def fit(self, X: Any, y: Any = None, **params: Any) -> Told:
        self.seen_ = where(X, y, params)
        return self

    def seen(self, *args: Any, **kwargs: Any) -> Any:
        return where(*args, kwargs)


def where(*things: Any) -> Any:
    """Where arrays are, and the name of the worker."""
    return [_where(thing) for thing in things], str(get_worker().name)


def _where(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {key: _where(one) for key, one in thing.items()}
    if isinstance(thing, list | tuple):
        return [_where(one) for one in thing]
    if not is_array(thing):
        return type(thing).__name__
    return "device" if is_on_device(thing) else "host"
