"""Trials of scikit-learn's solver: they take as many steps from the same start, and see the scale of X."""

from __future__ import annotations

import functools
import warnings
from bisect import bisect_left

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from manyfit.families.smooth.solver._losses import HalfBinomial
from manyfit.families.smooth.solver._objective import Columns, LinearProblem, RowLoss
from manyfit.families.smooth.solver._trial import Stopping, loss_resolution, try_columns
from manyfit.folds import wrap_rows

rng = np.random.default_rng(0)
N, P = 400, 6
X = rng.normal(size=(N, P))
Y = (X[:, 0] + X[:, 1] + rng.logistic(size=N) > 0).astype(float)
C = np.array([0.01, 1.0, 100.0])
TOL = 1e-4
PLENTY = Stopping(max_iter=1000, enough=None, resolution=loss_resolution(wrap_rows(X)), loss=1.0)


def problem(X, *, origin=0.0, intercept="free", norm="largest"):
    passes = wrap_rows(X).passes([slice(0, N)])
    if not sp.issparse(X):
        passes.origin[...] = origin
    columns = Columns(np.zeros(3, dtype=int), 1 / (C * N), np.full(3, float(N)), np.ones((3, 1)))
    return LinearProblem(passes, RowLoss(HalfBinomial(), Y[None]), columns, [None], intercept, norm)


def tried(X, stopping=PLENTY, *, memory_limit=2**20, margin=1.0, tol=TOL, **options):
    zero = np.zeros((1, 1, P + 1))
    return try_columns(problem(X, **options), zero, np.arange(3), tol, stopping, margin, memory_limit)


def iterations(X, **params):
    """Of scikit-learn's own fits."""
    fits = [LogisticRegression(C=one, tol=TOL, max_iter=10_000, **params).fit(X, Y) for one in C]
    return np.array([int(fit.n_iter_[0]) for fit in fits])


def steps_needed(X, **options):
    """The least `max_iter` with which each column is trusted, without a margin, less what is spared."""

    @functools.cache
    def trusted(n):
        return tried(X, Stopping(n, None, 1e-30, 1.0), **options).trusted

    return np.array([bisect_left(range(300), True, lo=1, key=lambda n: trusted(n)[j]) for j in range(3)]) - 10


@pytest.mark.cases(2)
@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("scale", [1.0, np.logspace(-1, 1, P)], ids=["alike", "other scales"])
def test_a_trial_takes_about_as_many_steps_as_scikit_learn(intercept, scale):
    Z = X * scale + 0.5
    found = steps_needed(Z, intercept=intercept, origin=0.3)
    expected = iterations(Z, fit_intercept=intercept == "free")
    assert (np.abs(found - expected) <= 3 + 0.3 * expected).all(), (found, expected)


def test_where_the_passes_count_from_changes_nothing():
    Z = X + 3.0
    one, other = tried(Z, origin=0.0), tried(Z, origin=2.0)
    np.testing.assert_array_equal(one.trusted, other.trusted)
    # Intercepts are values at the origin of the passes.
    moved = one.W.copy()
    moved[:, :, -1] += 2.0 * moved[:, :, :-1].sum(axis=2)
    np.testing.assert_allclose(other.W, moved, atol=1e-8)


def test_a_trial_ends_where_the_gradient_is_small():
    own = problem(X)
    found = tried(X)
    assert found.trusted.all()
    assert (own.size(own.gradient(found.W, np.arange(3)), np.arange(3)) <= TOL).all()


def test_few_columns_at_a_time_come_to_the_same():
    np.testing.assert_allclose(tried(X, memory_limit=1).W, tried(X).W, atol=1e-10)


def test_sparse_rows():
    Z = sp.csr_array(X * (rng.random((N, P)) < 0.3))
    np.testing.assert_allclose(tried(Z).W, tried(Z.toarray()).W, atol=1e-10)


@pytest.mark.parametrize("factor", [1.0, 1e6])
def test_a_gradient_that_the_loss_does_not_show_is_not_trusted(factor):
    Z = X * np.array([factor, *[1.0] * (P - 1)])
    newton = Stopping(1000, 100, loss_resolution(wrap_rows(Z)), 1.0)
    assert (tried(Z, newton).trusted == (factor == 1.0)).all()


def test_float32_resolves_less():
    assert loss_resolution(wrap_rows(X.astype(np.float32))) > 1e6 * loss_resolution(wrap_rows(X))
    # A gradient of 1e-4 changes the loss by less than float32 shows.
    few = Stopping(1000, None, loss_resolution(wrap_rows(X.astype(np.float32))), 1.0)
    assert not tried(X, few).trusted.any()
    assert tried(X, few, tol=1e-2).trusted.all()


def test_newtons_method_needs_no_trial_where_it_has_enough_iterations():
    Z = X * np.logspace(-2, 2, P)  # L-BFGS takes hundreds of steps
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in C:
            LogisticRegression(C=one, tol=TOL, solver="newton-cholesky").fit(Z, Y)
    resolution = loss_resolution(wrap_rows(Z))
    assert tried(Z, Stopping(100, 100, resolution, 1.0)).trusted.all()
    assert not tried(Z, Stopping(99, 100, resolution, 1.0)).trusted.any()


@pytest.mark.parametrize("norm", ["largest", "euclidean"])
def test_a_tolerance_that_the_loss_does_not_show_is_followed_as_far_as_it_shows(norm):
    """scikit-learn's own fits end with gradients that are no larger."""
    own, zero = problem(X, norm=norm), np.zeros((1, 1, P + 1))
    short = try_columns(own, zero, np.arange(3), 1e-12, PLENTY, 1.0, 2**20, may_stop_short=True)
    assert not tried(X, tol=1e-12, norm=norm).trusted.any()
    assert short.trusted.all()
    assert (short.tol > 1e-12).all()
    sizes = own.size(own.gradient(zero.repeat(3, axis=0), np.arange(3)), np.arange(3))
    allowed = short.tol * (sizes if norm == "euclidean" else 1.0)
    assert (own.size(own.gradient(short.W, np.arange(3)), np.arange(3)) <= allowed).all()
    for one, size in zip(C, allowed, strict=True):
        fit = LogisticRegression(C=one, tol=1e-12, max_iter=1000).fit(X, Y)
        A, w = np.column_stack([X, np.ones(N)]), np.append(fit.coef_[0], 0.0)
        residual = fit.predict_proba(X)[:, 1] - Y
        assert np.abs(A.T @ residual / N + w / (one * N)).max() <= size
    large = try_columns(own, zero, np.arange(3), TOL, PLENTY, 1.0, 2**20, may_stop_short=True)
    np.testing.assert_array_equal(large.tol, TOL)
