"""Estimators whose fits take a known time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


class _Takes(BaseEstimator):
    """An estimator with a cheap score that differs between settings and splits."""

    def __init__(self, seconds: float = 1e-3, value: float = 0.0) -> None:
        self.seconds = seconds
        self.value = value

    def fit(self, X: Any, y: Any) -> _Takes:
        """Take the time."""
        self._pass()
        self.mean_ = float(np.mean(y))
        return self

    def score(self, X: Any, y: Any) -> float:
        """Compare the value with means of the rows to train on and to score."""
        return -abs(self.value - self.mean_) - abs(float(np.mean(y)) - self.mean_)

    def _pass(self) -> None:
        raise NotImplementedError


class Spins(_Takes):
    """Uses a processor for so many seconds; takes longer if it has to share it."""

    def _pass(self) -> None:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass


class Sleeps(_Takes):
    """Sleeps for so many seconds."""

    def _pass(self) -> None:
        time.sleep(self.seconds)
