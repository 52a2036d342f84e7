"""Data and grids of the tests of families that iterate, and their comparison with scikit-learn."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn import model_selection

from tests.behaviour.iterations._optimum import Optimum  # `test_sklearn_stops.py` has the default
from tests.differential._subject import sharing_whatever_it_costs

rng = np.random.default_rng(0)
N, P = 300, 6
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + 3.0
SCORE = (X - 3.0) @ rng.normal(size=P) / 3.0
Y = (rng.random(N) < expit(SCORE)).astype(int)
THREE = np.array(["low", "middle", "high"])[np.digitize(SCORE + rng.normal(size=N), [-1.0, 1.0])]
COUNTS = rng.poisson(np.exp(0.3 * SCORE + 1.0)).astype(float)
SIZES = COUNTS + rng.random(N) + 0.1
TIGHT = {"tol": 1e-10, "max_iter": 100_000}
C = {"C": [1e-3, 1.0, 100.0]}
ALPHA = {"alpha": [0.0, 1e-3, 100.0]}
DEVIANCES = ["neg_mean_absolute_error", "neg_mean_squared_error"]


def both(estimator, grid, X=X, y=Y, *, rtol=1e-6, left=0, fit_params=None, **params):
    """Both searches, their scores compared; ours is returned."""
    params = {"refit": False, "return_train_score": True, "cv": 3, **params}
    with sharing_whatever_it_costs():
        ours = Optimum(estimator, grid, **params).fit(X, y, **(fit_params or {}))
    theirs = model_selection.GridSearchCV(estimator, grid, **params).fit(X, y, **(fit_params or {}))
    for key, expected in theirs.cv_results_.items():
        if key.startswith(("split", "mean_t")):
            assert ours.cv_results_[key].dtype == expected.dtype
            np.testing.assert_allclose(ours.cv_results_[key], expected, rtol=rtol, atol=rtol)
    assert ours.report_.fits_done == left, ours.report_
    return ours
