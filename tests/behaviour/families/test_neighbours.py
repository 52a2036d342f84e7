"""Searches over neighbours give scikit-learn's scores wherever they run and whatever X is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier, RadiusNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.model_selection import GridSearchCV, cross_validate
from tests._covering import covering, spread

rng = np.random.default_rng(0)
X = rng.integers(0, 5, size=(120, 4)).astype(float)
LABELS = rng.integers(0, 3, 120)
NUMBERS = X[:, 0] + rng.normal(size=120)
WHERE = {
    "array": X,
    "frame": pd.DataFrame(X, columns=list("abcd")),
    "sparse": sp.csr_matrix(X),
}
RADII = {"radius": [2.0, 3.0, 5.0, 9.0], "weights": ["uniform", "distance"]}
KS = {"n_neighbors": [1, 2, 3, 5, 8], "weights": ["uniform", "distance"]}
MODELS = [
    (KNeighborsClassifier(), KS, LABELS),
    (RadiusNeighborsClassifier(outlier_label=0), RADII, LABELS),
    (RadiusNeighborsRegressor(), {"radius": [5.0, 6.0, 9.0], "weights": ["uniform", "distance"]}, NUMBERS),
]


def assert_scores_of_sklearn(search, rows, y):
    theirs = sklearn.model_selection.GridSearchCV(
        search.estimator, search.param_grid, cv=search.cv, return_train_score=search.return_train_score
    ).fit(rows, y)
    for name, scores in theirs.cv_results_.items():
        if name.startswith(("split", "mean_t", "std_t")):
            np.testing.assert_allclose(search.cv_results_[name], scores, rtol=0, atol=1e-14)


@pytest.mark.cases(2)
@pytest.mark.parametrize(("model", "grid", "y", "where"), covering(MODELS, WHERE, strength=1))
@pytest.mark.parametrize("n_jobs", spread([None, 2], 1))
def test_rows_of_all_kinds(model, grid, y, where, n_jobs):
    search = GridSearchCV(model, grid, n_jobs=n_jobs, cv=3, return_train_score=True).fit(WHERE[where], y)
    assert search.report_.fits_shared > 0
    assert_scores_of_sklearn(search, WHERE[where], y)


@pytest.mark.parametrize(("model", "grid", "y"), spread(MODELS, 1))
def test_behind_steps_and_in_an_outer_search(model, grid, y):
    name = type(model).__name__.lower()
    inner = {f"{name}__{key}": values for key, values in grid.items()}
    search = GridSearchCV(make_pipeline(StandardScaler(), model), inner, cv=3).fit(X, y)
    assert search.report_.fits_shared > 0
    assert_scores_of_sklearn(search, X, y)
    outer = KFold(2)
    ours = cross_validate(GridSearchCV(model, grid, cv=3), X, y, cv=outer)["test_score"]
    theirs = sklearn.model_selection.GridSearchCV(model, grid, cv=3)
    expected = sklearn.model_selection.cross_validate(theirs, X, y, cv=outer)["test_score"]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-14)
