"""Scores of a search on which tests of keys look."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = X[:, 0] + 0.3 * RNG.normal(size=90)


def scores(module, model, grid, **more):
    search = module.GridSearchCV(model, grid, cv=3, error_score="raise", refit=False, **more)
    search.fit(X, Y)
    results = search.cv_results_
    return np.array([results[f"split{i}_test_score"] for i in range(3)]), search
