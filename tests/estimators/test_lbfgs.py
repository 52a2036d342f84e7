"""The solver on problems whose solution is known, in NumPy and in array-api-strict."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest

from manyfit.estimators._lbfgs import LBFGS

rng = np.random.default_rng(0)
D, M, K = 6, 5, 2


class Quadratics:
    """``(w - centre)' A (w - centre) / 2``, another A for each column; counts how often columns are asked."""

    def __init__(self, xp=np, conditions=(1.0, 10.0, 1e2, 1e3, 1e4)):
        self.xp, self.asked = xp, []
        parts = []
        for c in conditions:
            Q = np.linalg.qr(rng.normal(size=(D * K, D * K)))[0]
            parts.append(Q @ np.diag(np.geomspace(1.0, c, D * K)) @ Q.T)
        self.A = xp.asarray(np.stack(parts))
        self.centre = xp.asarray(rng.normal(size=(D, len(conditions), K)))

    def gradient(self, W, columns):
        n = columns.shape[0]
        self.asked.append(n)
        xp = self.xp
        off = W - self.centre[:, columns, :]
        flat = xp.reshape(xp.permute_dims(off, (1, 0, 2)), (n, D * K, 1))
        G = xp.matmul(self.A[columns, :, :], flat)
        return xp.permute_dims(xp.reshape(G, (n, D, K)), (1, 0, 2))

    def size(self, G, columns):
        return self.xp.max(self.xp.abs(G), axis=(0, 2))

    def precondition(self, G, columns):
        return G


@pytest.mark.parametrize("xp", [np, strict])
def test_every_column_comes_to_its_minimum(xp):
    problem = Quadratics(xp)
    tol = xp.asarray(np.full(M, 1e-9))
    solution = LBFGS(max_passes=400).solve(problem, xp.zeros((D, M, K)), xp.arange(M), tol)
    assert bool(xp.all(solution.converged))
    assert bool(xp.all(problem.size(problem.gradient(solution.W, xp.arange(M)), None) <= 1e-9))
    np.testing.assert_allclose(np.asarray(solution.W), np.asarray(problem.centre), atol=1e-8)


def test_converged_columns_leave_the_batch():
    problem = Quadratics()
    solution = LBFGS(max_passes=400).solve(problem, np.zeros((D, M, K)), np.arange(M), np.full(M, 1e-9))
    assert problem.asked[0] == M and problem.asked[-1] == 1
    assert solution.passes == len(problem.asked)


def test_what_does_not_converge_says_so():
    problem = Quadratics(conditions=(1.0, 1e6))
    solution = LBFGS().solve(problem, np.zeros((D, 2, K)), np.arange(2), np.full(2, 1e-9), max_passes=3)
    np.testing.assert_array_equal(solution.converged, [True, False])
    assert solution.passes <= 3
    np.testing.assert_array_equal(solution.G, problem.gradient(solution.W, np.arange(2)))


def test_an_overflow_is_stepped_back_from():
    class Steep(Quadratics):
        def gradient(self, W, columns):
            with np.errstate(over="ignore"):
                return np.exp(50.0 * W) - 1.0

        def precondition(self, G, columns):
            return 100.0 * G

    start = np.full((D, 1, K), -1.0)
    solution = LBFGS().solve(Steep(), start, np.arange(1), np.full(1, 1e-6))
    assert solution.converged.all()
    np.testing.assert_allclose(solution.W, 0.0, atol=1e-7)


def test_a_gradient_that_is_not_finite_never_counts_as_converged():
    class Broken(Quadratics):
        def gradient(self, W, columns):
            return np.full(W.shape, np.nan)

    solution = LBFGS(max_passes=7).solve(Broken(), np.zeros((D, M, K)), np.arange(M), np.full(M, 1e-9))
    assert not solution.converged.any() and solution.passes <= 7
