"""An estimator that is slow, fails, or takes its process with it; workers get it by value."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Awkward(ClassifierMixin, BaseEstimator):
    """Predicts class `value`; each fit leaves a file in `folder`, which counts them over all processes."""

    def __init__(
        self,
        value: Any = 0,
        seconds: float = 0.0,
        folder: str | None = None,
        kills: Any = None,
        raises: Any = None,
        loses: Any = None,
        holds: Any = None,
        exits: Any = None,
    ) -> None:
        self.value, self.seconds, self.folder, self.exits = value, seconds, folder, exits
        self.kills, self.raises, self.loses, self.holds = kills, raises, loses, holds

    def fit(self, X: Any, y: Any) -> Awkward:
        if self.folder:
            Path(self.folder, f"fit-{os.getpid()}-{self.value}-{time.monotonic_ns()}").touch()
        time.sleep(self.seconds)
        if self.value == self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.value == self.exits:
            os._exit(1)
        if self.value == self.raises:
            raise ValueError("no such value")
        if self.value == self.loses and self.folder and not Path(self.folder, "lost").exists():
            Path(self.folder, "lost").touch()
            raise RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")
        self.classes_ = np.unique(y)
        self.centre_ = np.asarray(X).mean(axis=0)
        return self

    def predict(self, X: Any) -> Any:
        codes = ((np.asarray(X) - self.centre_).sum(axis=1) > 0).astype(int) + int(self.value)
        return self.classes_[codes % len(self.classes_)]


def fits(folder: Path) -> list[str]:
    """Of each fit: the process and the value."""
    return sorted("-".join(path.name.split("-")[1:3]) for path in folder.glob("fit-*"))
