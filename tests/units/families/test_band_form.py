"""The band form of a symmetric matrix beside NumPy's own solutions."""

import numpy as np
import pytest

from manyfit.families.kernels._band_form import NORM_FACTOR, WIDTH, BandForm


def matrix_of(n, rank=None):
    X = np.random.default_rng(n).normal(size=(n, rank or n))
    return X @ X.T


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    "n", [3, 4, WIDTH, WIDTH + 1, WIDTH + 2, 2 * WIDTH + 1, 2 * WIDTH + 2, 301, 7 * WIDTH + 5]
)
@pytest.mark.parametrize("rank", [None, 2])
def test_solutions_and_conditions(n, rank):
    K, Y = matrix_of(n, rank), np.random.default_rng(0).normal(size=(n, 2))
    form = BandForm(K.copy())
    Q = form.turned_back(np.eye(n))
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(form.turned(Y), Q.T @ Y, atol=1e-11)
    size = np.linalg.norm(K)
    assert np.abs(np.tril(Q.T @ K @ Q, -WIDTH - 1)).max(initial=0.0) <= 1e-13 * size
    for alpha in (1e-2, 1.0, 50.0):
        solved, bound = form.solve(alpha, form.turned(Y))
        damped = K + alpha * np.eye(n)
        condition = np.linalg.cond(damped)
        expected = np.linalg.solve(damped, Y)
        gap = np.linalg.norm(form.turned_back(solved) - expected) / np.linalg.norm(expected)
        assert gap <= 1e-14 * condition
        # Both norms are bounded, each by less than `NORM_FACTOR` times itself.
        assert condition <= bound <= 1.001 * NORM_FACTOR**2 * condition


def test_a_matrix_that_is_not_positive_has_an_infinite_condition():
    form = BandForm(-matrix_of(80))
    assert form.solve(1e-3, np.ones((80, 1)))[1] == np.inf


def test_a_matrix_that_is_a_band_already_and_zeros():
    for K in (np.diag(np.arange(1.0, 201.0)), np.zeros((200, 200))):
        form, Y = BandForm(K.copy()), np.ones((200, 1))
        solved, _ = form.solve(1.0, form.turned(Y))
        np.testing.assert_allclose(form.turned_back(solved), np.linalg.solve(K + np.eye(200), Y), rtol=1e-12)
