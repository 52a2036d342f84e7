"""An estimator that says which fits it made, and fails or stops where it is told to."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

FITS: list[float] = []
STOP_AFTER: list[int] = []  # fits, and then Ctrl-C


class Counted(BaseEstimator):
    def __init__(self, a=1.0, fails=False):
        self.a = a
        self.fails = fails

    def fit(self, X, y, sample_weight=None):
        if STOP_AFTER and len(FITS) >= STOP_AFTER[0]:
            raise KeyboardInterrupt
        FITS.append(self.a)
        if self.fails and X[0, 0] != X[0, 0] * 2:
            raise ValueError(f"a = {self.a} is refused")
        self.mean_ = float(np.mean(X)) * self.a
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)

    def score(self, X, y):
        return float(np.sin(self.mean_ + np.sum(X[0])))
