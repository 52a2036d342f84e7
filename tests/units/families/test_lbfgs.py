"""The solver on problems whose solution is known."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest

from manyfit.families.smooth.solver._lbfgs import LBFGS, State

rng = np.random.default_rng(0)
D, M, K = 6, 5, 2


class Quadratics:
    """``(w - centre)' A (w - centre) / 2``, another A for each column; counts how often columns are asked."""

    def __init__(self, conditions=(1.0, 10.0, 1e2, 1e3, 1e4)):
        self.asked = []
        parts = []
        for c in conditions:
            Q = np.linalg.qr(rng.normal(size=(D * K, D * K)))[0]
            parts.append(Q @ np.diag(np.geomspace(1.0, c, D * K)) @ Q.T)
        self.A = np.stack(parts)
        self.centre = rng.normal(size=(len(conditions), K, D))

    def gradient(self, W, columns):
        self.asked.append(len(columns))
        off = (W - self.centre[columns]).reshape(len(columns), K * D, 1)
        return (self.A[columns] @ off).reshape(len(columns), K, D)

    def size(self, G, columns):
        return np.abs(G).max(axis=(1, 2))

    def precondition(self, G, columns):
        return G


def start_at(problem, W, columns):
    return State(columns, W, problem.gradient(W, columns))


def test_every_column_comes_to_its_minimum():
    problem = Quadratics()
    state = start_at(problem, np.zeros((M, K, D)), np.arange(M))
    solution = LBFGS(max_passes=800).solve(problem, state, np.full(M, 1e-9))
    assert solution.converged.all()
    assert np.all(problem.size(problem.gradient(solution.W, np.arange(M)), None) <= 1e-9)
    np.testing.assert_allclose(solution.W, problem.centre, atol=1e-8)


@pytest.mark.invariant("Converged columns leave the batch, and a gradient that is not finite never converges")
def test_converged_columns_leave_the_batch():
    problem = Quadratics()
    state = start_at(problem, np.zeros((M, K, D)), np.arange(M))
    solution = LBFGS(max_passes=800).solve(problem, state, np.full(M, 1e-9))
    assert problem.asked[0] == M and problem.asked[-1] == 1
    assert solution.passes == len(problem.asked) - 1


def test_what_does_not_converge_says_so():
    problem = Quadratics(conditions=(1.0, 1e6))
    state = start_at(problem, np.zeros((2, K, D)), np.arange(2))
    solution = LBFGS().solve(problem, state, np.full(2, 1e-9), worth=lambda left: 3)
    np.testing.assert_array_equal(solution.converged, [True, False])
    assert solution.passes <= 3
    np.testing.assert_array_equal(solution.G, problem.gradient(solution.W, np.arange(2)))


def test_what_was_left_goes_on_as_if_nothing_had_been():
    problem, columns, W, solver = Quadratics(), np.arange(M), np.zeros((M, K, D)), LBFGS(800)
    whole = solver.solve(problem, start_at(problem, W, columns), np.full(M, 1e-9))
    problem.asked.clear()
    state = start_at(problem, W, columns)
    while columns.size:
        tol = np.full(columns.size, 1e-9)
        part = solver.solve(problem, state, tol, worth=lambda left: 9)
        W[columns] = part.W
        columns, state = columns[~part.converged], part.left
        np.testing.assert_array_equal(state.columns, columns)
        np.testing.assert_array_equal(state.W, W[columns])
    np.testing.assert_allclose(W, problem.centre, atol=1e-7)
    # From the start in each round it would take several times as many.
    assert len(problem.asked) <= 1.5 * whole.passes


def test_an_overflow_is_stepped_back_from():
    class Steep(Quadratics):
        def gradient(self, W, columns):
            with np.errstate(over="ignore"):
                return np.exp(50.0 * W) - 1.0

        def precondition(self, G, columns):
            return 100.0 * G

    start = np.full((1, K, D), -1.0)
    solution = LBFGS().solve(Steep(), start_at(Steep(), start, np.arange(1)), np.full(1, 1e-6))
    assert solution.converged.all()
    np.testing.assert_allclose(solution.W, 0.0, atol=1e-7)


@pytest.mark.invariant("Converged columns leave the batch, and a gradient that is not finite never converges")
def test_a_gradient_that_is_not_finite_never_counts_as_converged():
    class Broken(Quadratics):
        def gradient(self, W, columns):
            return np.full(W.shape, np.nan)

    state = start_at(Broken(), np.zeros((M, K, D)), np.arange(M))
    solution = LBFGS(max_passes=7).solve(Broken(), state, np.full(M, 1e-9))
    assert not solution.converged.any() and solution.passes <= 7


def test_any_namespace():
    """On a device that does not become a host array by itself."""

    class There(Quadratics):
        def gradient(self, W, columns):
            index = [int(c) for c in columns]
            parts = []
            for position, j in enumerate(index):
                off = strict.reshape(W[position, ...] - self.there[j, ...], (-1,))
                parts.append(strict.reshape(self.matrices[j, ...] @ off, (K, D)))
            return strict.stack(parts)

        def size(self, G, columns):
            return strict.max(strict.abs(G), axis=(1, 2))

    device = strict.Device("device1")
    problem = There(conditions=(1.0, 10.0, 100.0))
    problem.there = strict.asarray(problem.centre, device=device, copy=True)
    problem.matrices = strict.asarray(problem.A, device=device, copy=True)
    start = strict.zeros((3, K, D), device=device)
    tol = strict.full((3,), 1e-9, device=device)
    solution = LBFGS().solve(problem, start_at(problem, start, strict.arange(3, device=device)), tol)
    assert solution.W.device == device and bool(strict.all(solution.converged))
    back = np.asarray(strict.from_dlpack(solution.W, device=strict.Device("CPU_DEVICE")))
    np.testing.assert_allclose(back, problem.centre, atol=1e-8)
