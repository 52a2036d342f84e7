"""Fixtures of the tests of audits."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.linear_model import LogisticRegression

from manyfit.families.smooth.solver import _coarse_to_fine as _path
from manyfit.families.smooth.solver._trial import Trial
from manyfit.model_selection.strategies import _doubts
from tests.behaviour.iterations.test_sklearn_stops import searched
from tests.behaviour.searches._audits import DATA, GRID, MODEL, TARGET, Fits


@pytest.fixture
def trust(monkeypatch):
    """Let the trial trust all settings, or none on some of the splits."""

    def on_splits(refused=()):
        def trusting(problem, zero, columns, *_):
            split = problem.columns.split[columns]
            trusted, n = ~np.isin(split, refused), len(columns)
            return Trial(trusted, zero[split], np.ones(n, dtype=int), np.zeros(n))

        monkeypatch.setattr(_path, "try_columns", trusting)
        monkeypatch.setattr(_doubts, "MOST_OPEN", np.inf)
        monkeypatch.setattr(_doubts, "MOST_LABELS_OPEN", np.inf)

    return on_splits


@pytest.fixture
def fits(monkeypatch):
    counted, real = Fits(), LogisticRegression.fit

    @functools.wraps(real)  # or the class would not be shared
    def fit(self, X, y, sample_weight=None):
        counted.count(self.C)
        return real(self, X, y, sample_weight)

    monkeypatch.setattr(LogisticRegression, "fit", fit)
    return counted


@pytest.fixture(scope="module")
def expected():
    """scikit-learn's search of the model over the grid, and how many ConvergenceWarnings it gave."""
    return searched(model_selection.GridSearchCV, MODEL, GRID, DATA, TARGET)
