"""Conjugate gradients on moments end at scikit-learn's iterates."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from manyfit.families.least_squares._conjugate_gradients import solve_by_cg

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 8)) * np.arange(1.0, 9.0)
Y = rng.normal(size=(60, 2))
ALPHAS = np.array([1e-2, 1.0, 100.0])


@pytest.mark.filterwarnings("ignore", category=ConvergenceWarning)
@pytest.mark.parametrize(("tol", "max_iter"), [(1e-4, None), (1e-2, None), (1e-8, None), (1e-12, 3)])
def test_iterates_are_scikit_learns(tol, max_iter):
    found, doubtful, _ = solve_by_cg(X.T @ X, X.T @ Y, ALPHAS, tol, max_iter)
    assert found.shape == (8, 3, 2) and not doubtful.any()
    for i, alpha in enumerate(ALPHAS):
        theirs = Ridge(alpha, solver="sparse_cg", tol=tol, max_iter=max_iter, fit_intercept=False)
        theirs.fit(scipy.sparse.csr_array(X), Y)
        np.testing.assert_allclose(found[:, i].T, theirs.coef_, rtol=1e-9)


def test_a_diagonal_is_a_matrix_without_other_entries():
    diagonal, rhs = np.arange(1.0, 6.0), rng.normal(size=(5, 2))
    by_diagonal, *_ = solve_by_cg(diagonal, rhs, ALPHAS, 1e-6, None)
    by_matrix, *_ = solve_by_cg(np.diag(diagonal), rhs, ALPHAS, 1e-6, None)
    np.testing.assert_allclose(by_diagonal, by_matrix, rtol=1e-12)


def test_without_a_right_hand_side_the_solution_is_zero():
    found, doubtful, _ = solve_by_cg(X.T @ X, np.zeros((8, 2)), ALPHAS, 1e-4, None)
    assert not found.any() and not doubtful.any()


def test_a_stop_that_rounding_decides_is_doubtful():
    rhs = X.T @ Y[:, :1]
    first, *_ = solve_by_cg(X.T @ X, rhs, ALPHAS[1:2], 1e-300, 2)
    residual = rhs[:, 0] - (X.T @ X + np.eye(8)) @ first[:, 0, 0]
    tol = float(np.linalg.norm(residual) / np.linalg.norm(rhs))
    _, doubtful, lost = solve_by_cg(X.T @ X, rhs, ALPHAS[1:2], tol, None)
    assert doubtful.tolist() == [True] and lost.tolist() == [False]
    assert solve_by_cg(X.T @ X, rhs, ALPHAS[1:2], 1.01 * tol, None)[1].tolist() == [False]


def test_iterations_that_amplify_rounding_are_doubtful():
    _, doubtful, lost = solve_by_cg(scipy.linalg.hilbert(8), np.ones((8, 1)), np.array([1e-9]), 1e-10, None)
    assert doubtful.tolist() == lost.tolist() == [True]


def test_small_coefficients_of_large_columns_count():
    """The norm of all coefficients would hide how far rounding moves one of them, and its predictions."""
    rng, n = np.random.default_rng(0), 190
    counts = np.where(rng.random((n, 2)) < 0.9, 0.0, np.arange(n)[:, None])
    X = np.concatenate([np.eye(4)[rng.integers(0, 4, n)], counts], axis=1)
    y = X[:, :4] @ [3.0, 0.0, -2.0, 5.0] + rng.normal(size=n)
    Z, z = X - X.mean(axis=0), y - y.mean()
    alphas = np.logspace(-2, 2, 30)
    found, doubtful, _ = solve_by_cg(Z.T @ Z, Z.T @ z[:, None], alphas, 1e-4, None)
    assert doubtful.any() and not doubtful.all()
    for i in np.flatnonzero(~doubtful):
        theirs = Ridge(alphas[i], solver="sparse_cg").fit(scipy.sparse.csr_array(X), y).coef_
        assert np.linalg.norm(Z @ (found[:, i, 0] - theirs)) <= 1e-9 * np.linalg.norm(Z @ theirs)


@pytest.mark.parametrize(("offset", "is_doubtful"), [(10.0, False), (1e7, True)])
def test_columns_far_from_zero_round_more(offset, is_doubtful):
    """scikit-learn does not centre sparse rows: it subtracts the part of the means from each product."""
    Z = X - X.mean(axis=0)
    sizes = np.sqrt((Z**2).sum(axis=0) + len(Z) * offset**2)
    _, doubtful, _ = solve_by_cg(Z.T @ Z, Z.T @ Y, ALPHAS, 1e-4, None, sizes)
    assert (doubtful == is_doubtful).all()
