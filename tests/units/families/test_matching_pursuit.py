"""OrthogonalMatchingPursuit from moments chooses scikit-learn's features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import OrthogonalMatchingPursuit

from manyfit.estimators import family_of
from manyfit.folds import Unsupported
from tests.device.estimators._views import folded

rng = np.random.default_rng(0)
N, P = 90, 6
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + 3.0
Y = X @ rng.normal(size=(P, 2)) + rng.normal(size=(N, 2)) + 10.0
FAMILY = family_of(OrthogonalMatchingPursuit)
COUNTS = [1, 2, P, None]


def answers(estimator, X=X, y=Y, counts=COUNTS):
    settings = [{"n_nonzero_coefs": k} for k in counts]
    FAMILY.check(estimator, settings)
    (out,) = FAMILY.fit_many(estimator, settings, folded(X, y))
    return out


@pytest.mark.parametrize("y", [Y, Y[:, :1], Y[:, 0]], ids=["two", "a column", "one"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("Z", [X, (10 * X).astype(int)], ids=["floats", "integers"])
def test_predictions_are_scikit_learns(Z, intercept, y):
    out = answers(OrthogonalMatchingPursuit(fit_intercept=intercept), Z, y)
    assert not out.refused
    predicted = out.respond("test", folded(Z, y).fold(0))["predict"]
    for j, k in enumerate(COUNTS):
        fitted = OrthogonalMatchingPursuit(n_nonzero_coefs=k, fit_intercept=intercept).fit(Z, y)
        np.testing.assert_array_equal(out.linear.coef[:, j] != 0, fitted.coef_.reshape(-1, P).T != 0)
        np.testing.assert_allclose(predicted[j], fitted.predict(Z), rtol=1e-9)


def test_more_features_than_there_are_is_left_to_scikit_learn():
    assert list(answers(OrthogonalMatchingPursuit(), counts=[1, P + 1]).refused) == [1]


@pytest.mark.parametrize("column", [X[:, 0], np.full(N, 7.0)], ids=["equal", "constant"])
def test_dependent_columns_are_left_to_scikit_learn(column):
    with pytest.raises(Unsupported, match=r"the columns are \(nearly\) linearly dependent"):
        answers(OrthogonalMatchingPursuit(), np.c_[X, column])


@pytest.mark.parametrize("Z", [X[:, :1], X[: P + 1], X.astype(np.float32)], ids=["one", "wide", "float32"])
def test_folds_that_are_not_served(Z):
    with pytest.raises(Unsupported, match="one feature|fit the training rows exactly|float32"):
        answers(OrthogonalMatchingPursuit(), Z, Y[: len(Z)])


@pytest.mark.parametrize(
    ("params", "counts", "message"),
    [
        ({"tol": 1.0}, [1], "tol is a sum of squares"),
        ({"precompute": False}, [1], "precompute=False works on rows"),
        ({}, [0], "n_nonzero_coefs=0 is not in the range"),
    ],
)
def test_parameters_that_are_not_served_are_named(params, counts, message):
    with pytest.raises(Unsupported, match=message):
        answers(OrthogonalMatchingPursuit(**params), counts=counts)
