"""Rows of three classes, and searches over them with and without sharing."""

from __future__ import annotations

import warnings

import numpy as np

from manyfit.model_selection import GridSearchCV

rng = np.random.default_rng(0)
N = 150
Y = rng.integers(0, 3, N)
NUMBERS = rng.normal(size=(N, 5)) + 0.4 * Y[:, None]
COUNTS = rng.poisson(1.0 + np.eye(3, 5)[Y])
PRIORS = [0.2, 0.3, 0.5]
WEIGHTS = rng.random(N) * (rng.random(N) < 0.7)
TRAIN, TEST = np.arange(N) >= 40, np.arange(N) < 40


def both(model, grid, X, y, cv=3):
    kind = {"scoring": "accuracy", "refit": False, "cv": cv}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = GridSearchCV(model, grid, **kind).fit(X, y)
        alone = GridSearchCV(model, grid, **kind, sharing="none").fit(X, y)
    found, expected = ours.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    return ours.report_
