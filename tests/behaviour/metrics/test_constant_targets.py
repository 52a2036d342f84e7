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
