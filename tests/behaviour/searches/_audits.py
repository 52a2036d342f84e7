"""Searches whose refit stops at max_iter, and the fits that their audit makes."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from manyfit.model_selection import GridSearchCV
from tests.behaviour.iterations.test_sklearn_stops import searched

DATA, TARGET = (part[::2] for part in load_breast_cancer(return_X_y=True))
GRID = {"C": [0.01, 1.0, 100.0]}
MODEL = LogisticRegression(max_iter=30)
PAIRS = 15


class Fits:
    """The C of each fit of scikit-learn's LogisticRegression, some of which a user interrupts."""

    def __init__(self):
        self.made, self._most = [], None

    def count(self, C):
        if len(self.made) == self._most:
            raise KeyboardInterrupt
        self.made.append(C)

    @contextmanager
    def interrupted(self, after):
        self._most = after
        with pytest.raises(KeyboardInterrupt):
            yield
        self._most = None


def ours_of(estimator=MODEL, grid=GRID, **params):
    """Our search, and how many ConvergenceWarnings it gave."""
    return searched(GridSearchCV, estimator, grid, DATA, TARGET, **params)


def adds_up(report):
    done = report.fits_done + report.fits_shared + report.fits_restored
    assert done == report.fits_requested, report


def least_loss(results):
    return int(np.argmax(results["mean_test_neg_log_loss"]))


SEVERAL = ["accuracy", "neg_log_loss"]
OF_STEPS = {"logisticregression__C": GRID["C"]}
CENTRED = make_pipeline(StandardScaler(with_std=False), MODEL)
SEARCHES = {
    "several metrics": (MODEL, GRID, {"scoring": SEVERAL, "refit": "neg_log_loss"}),
    "refit is a function": (MODEL, GRID, {"scoring": SEVERAL, "refit": least_loss}),
    "errors are raised": (MODEL, GRID, {"error_score": "raise"}),
    "training scores": (MODEL, GRID, {"return_train_score": True}),
    "behind affine steps": (CENTRED, OF_STEPS, {}),
    "behind other steps": (make_pipeline(MinMaxScaler((0, 500), clip=True), MODEL), OF_STEPS, {}),
    "in nested pipelines": (
        make_pipeline(CENTRED),
        {f"pipeline__{name}": OF_STEPS[name] for name in OF_STEPS},
        {},
    ),
    "two jobs": (MODEL, GRID, {"n_jobs": 2}),
}
