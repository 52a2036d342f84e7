"""Scores of rows with one target, which are 1 or 0 as a prediction is rounded."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import explained_variance_score, make_scorer
from sklearn.model_selection import GridSearchCV as TheirSearch

from manyfit.model_selection import GridSearchCV
from tests._covering import covering

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(40, 5)), rng.normal(size=40)
WEIGHTS = rng.integers(1, 6, 40).astype(float)
SPLITS = [(np.arange(1, 40), np.array([0])), (np.arange(20), np.arange(20, 40))]


@pytest.mark.parametrize(
    ("model", "weights"), covering([KernelRidge(kernel="rbf"), Ridge()], [True, False], strength=1)
)
def test_explained_variance_of_one_row(model, weights):
    """The mean of one residual with a weight is that residual, but for rounding: scikit-learn scores it."""
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(explained_variance_score).set_score_request(sample_weight=weights)
        model = model.set_fit_request(sample_weight=weights)
        searches = [
            kind(model, {"alpha": np.logspace(-3, 3, 40)}, cv=SPLITS, refit=False, scoring=scorer).fit(
                X, Y, **({"sample_weight": WEIGHTS} if weights else {})
            )
            for kind in (GridSearchCV, TheirSearch)
        ]
    for key in ("split0_test_score", "split1_test_score"):
        ours, theirs = (search.cv_results_[key] for search in searches)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert searches[0].report_.fits_shared == (40 if weights else 80)


@pytest.mark.parametrize("seed", [15, 18, 32])
def test_one_row_with_a_weight(seed):
    """All other rows count for nothing: R2 is 1 if the residual of this one is 0, else it is 0."""
    rng = np.random.default_rng(seed)
    X, y, weights = rng.normal(size=(12, 1)), rng.normal(size=12), np.zeros(12)
    weights[[1, 2, 8]] = 1.0
    ours, theirs = (
        kind(Ridge(), {"alpha": [1e-3]}, cv=2, return_train_score=True, refit=False).fit(
            X, y, sample_weight=weights
        )
        for kind in (GridSearchCV, TheirSearch)
    )
    for key in ("split0_test_score", "split0_train_score", "split1_test_score", "split1_train_score"):
        np.testing.assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], rtol=1e-9, err_msg=key)
