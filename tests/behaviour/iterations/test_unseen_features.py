"""Columns, words and labels that only test rows have are unknown to a split."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.linear_model import GammaRegressor, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from manyfit.estimators import family_of
from manyfit.folds import PassData, Splits
from tests._covering import covering
from tests.behaviour.iterations._iterated import DEVIANCES, SIZES, TIGHT, C, N, X, Y, both
from tests.behaviour.iterations._optimum import Optimum  # `test_sklearn_stops.py` has the default
from tests.differential._subject import sharing_whatever_it_costs

pytestmark = pytest.mark.slow


@pytest.mark.invariant("A split learns nothing from its test rows")
def test_nothing_of_the_test_rows_is_left_in_a_split():
    """A column that is zero in a training part has a coefficient of zero, however wide `tol` is."""
    Z = np.c_[np.zeros(N), X[:, 0]]
    Z[:60, 0] = 30.0 * (2 * Y[:60] - 1)
    grid = {"C": [1.0, 1e4]}
    both(
        LogisticRegression(tol=1e-2, max_iter=1000), grid, X=Z, cv=KFold(5), scoring="neg_log_loss", rtol=1e-2
    )
    splits = Splits.draw(KFold(5), Z, Y, N, {})
    data = PassData(Z, Y, splits.atom_groups, None, [None] * 5)
    estimator = LogisticRegression(tol=1e-2)
    first = next(
        iter(family_of(LogisticRegression).fit_many(estimator, [{"C": C_} for C_ in grid["C"]], data))
    )
    np.testing.assert_allclose(first.linear.coef[0], 0.0, atol=1e-6)


@pytest.mark.invariant("A split learns nothing from its test rows")
@pytest.mark.parametrize(
    ("make", "estimator"),
    covering(
        {"sparse": sp.csr_array, "dense": np.asarray}.items(),
        [LogisticRegression(), LinearSVC(tol=1e-2)],
        strength=1,
    ),
)
def test_labels_that_nothing_tells_are_not_known(make, estimator):
    """More features than rows: training rows leave directions open in which test rows would tell theirs."""
    own = np.random.default_rng(0)
    Z, y = make(own.poisson(0.05, size=(200, 400)) * 1.0), own.integers(0, 2, 200)
    with sharing_whatever_it_costs():
        search = Optimum(estimator, {"C": [1.0, 1e6]}, refit=False).fit(Z, y)
    assert search.report_.fits_done == 0
    assert np.all(np.abs(search.cv_results_["mean_test_score"] - 0.5) < 0.15)


@pytest.mark.invariant("A split learns nothing from its test rows")
@pytest.mark.parametrize("make", [sp.csr_array, np.asarray], ids=["sparse", "dense"])
def test_features_that_no_training_row_has(make):
    """Each row has one of its own: without an intercept a prediction is zero, and not a little more."""
    y = np.random.default_rng(0).integers(0, 3, 30)
    with sharing_whatever_it_costs():
        both(LinearSVC(dual=False, fit_intercept=False), C, X=make(np.eye(30)), y=y, cv=3)
        both(LinearSVC(dual=False, fit_intercept=False), C, X=make(np.eye(30)), y=y % 2, cv=3)


def test_steps_that_keep_other_numbers_of_columns_on_each_split():
    Z = X[:90].copy()
    Z[:30, 0] *= 5.0
    model = make_pipeline(PCA(0.8), GammaRegressor(**TIGHT))
    sizes = {model[0].fit(Z[train]).n_components_ for train, _ in KFold(3).split(Z)}
    assert len(sizes) > 1
    both(model, {"gammaregressor__alpha": [0.01, 1.0]}, X=Z, y=SIZES[:90], cv=3, scoring=DEVIANCES)
