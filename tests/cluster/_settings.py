"""An estimator whose scores tell under which settings it was fitted; workers get it by value."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Tells(ClassifierMixin, BaseEstimator):
    """Of class 1 if X is a frame, else 0; warns."""

    def fit(self, X: Any, y: Any) -> Tells:
        warnings.warn("it is a habit", FutureWarning, stacklevel=2)
        self.classes_ = np.unique(y)
        self.frame_ = int(hasattr(X, "columns"))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.frame_)
