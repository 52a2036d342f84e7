"""Waves of settings: in which order, from where, and when they end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from manyfit.families import Shape
from manyfit.families.smooth._cost import pass_cost
from manyfit.families.smooth.solver import _penalty_path as _stage
from manyfit.families.smooth.solver import _preconditioner as _hessians
from manyfit.families.smooth.solver._lbfgs import LBFGS
from manyfit.families.smooth.solver._losses import HalfBinomial
from manyfit.families.smooth.solver._objective import RowLoss
from manyfit.families.smooth.solver._penalty_path import Stage, Tolerance, WarmStart
from manyfit.families.smooth.solver._problems import PathProblems, TrainingRows
from manyfit.folds import wrap_rows
from manyfit.model_selection.planning._cost_checks import LEAST_GAIN

rng = np.random.default_rng(0)
N, P = 300, 4
X = rng.normal(size=(N, P))
Y = (X[:, 0] + rng.normal(size=N) > 0).astype(float)
ATOMS = [slice(0, 100), slice(100, N)]
COUNTS = np.array([[1.0, 0.0], [0.0, 1.0]])
PENALTIES = np.array([1e-2, 1.0, 1e-3, 1e-1])


def stage(X=X, *, penalties=PENALTIES, memory_limit=2**30, max_passes=200, intercept="none", origin=0.0):
    passes = wrap_rows(X).passes(ATOMS)
    passes.origin[...] = origin
    rowwise, totals = RowLoss(HalfBinomial(), Y[None]), np.array([100.0, 200.0])
    rows = TrainingRows(wrap_rows(X), passes, rowwise, totals)
    problems = PathProblems(COUNTS, np.tile(penalties, (2, 1)), [None, None], intercept, "largest")
    return Stage(rows, problems, LBFGS(max_passes), memory_limit)


def optimum(penalty, rows):
    A, y = X[rows], Y[rows]

    def objective(w):
        z = A @ w
        return np.mean(np.logaddexp(0.0, z) - y * z) + penalty / 2 * w @ w

    return minimize(objective, np.zeros(P), method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("wide", "waves"),
    [
        (1, [[1, 5], [3, 7], [0, 4], [2, 6]]),
        (6, [[1, 3, 5, 7], [0, 2, 4, 6]]),
        (100, [[1, 3, 0, 2, 5, 7, 4, 6]]),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_every_wave_ends_at_the_optimum_of_its_settings(wide, waves, make, watch):
    one = stage(make(X))
    one.passes.quick_columns = wide
    followed = []
    watch(one, "_follow", lambda columns, *rest: followed.append(columns.tolist()))
    reached = one.solve(None, np.zeros((2, 1, P + 1)), Tolerance(1e-9, 1e-9, 1.0))
    assert followed == waves
    assert reached.size.max() <= 1e-9
    # So far leads a gradient of size one; the Hessians serve several penalties.
    columns = np.arange(len(reached.W))
    there = one.problem.size(one.problem.gradient(reached.W + 1e-4 * reached.sensitivity, columns), columns)
    assert (there > 0.5e-4).all() and (there < 2e-4).all()
    expected = [optimum(penalty, rows) for rows in ATOMS for penalty in PENALTIES]
    np.testing.assert_allclose(reached.W[:, 0, :-1], expected, atol=1e-5)
    assert not one.hessians._factors  # they are needed no more


@pytest.mark.parametrize(("make", "first"), [(np.asarray, np.float32), (sp.csr_array, np.float64)])
def test_hessians_are_in_single_precision_only_where_that_is_quicker(make, first, watch):
    one, taken = stage(make(X)), []
    watch(one.passes, "gram", lambda theta, curvature, dtype, features: taken.append(dtype))
    one.solve(None, np.zeros((2, 1, P + 1)), Tolerance(1e-9, 1e-9, 1.0))
    assert taken and set(taken) == {first}


def test_the_way_that_tol_leaves_open_is_that_of_scikit_learns_coordinates():
    """Where columns are around 30, a gradient of the intercept leads far, wherever the passes count from."""
    Z, zero = X + 30.0, np.zeros((2, 1, P + 1))
    one = stage(Z, intercept="free", origin=30.0)
    reached = one.solve(None, zero, Tolerance(1e-9, 1e-9, 1.0))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=P + 1)
    for j, (rows, penalty) in enumerate((rows, penalty) for rows in ATOMS for penalty in PENALTIES):
        A = np.c_[Z[rows], np.ones(len(Z[rows]))]
        w = np.append(reached.W[j, 0, :-1], reached.W[j, 0, -1] - 30.0 * reached.W[j, 0, :-1].sum())
        p = 1.0 / (1.0 + np.exp(-A @ w))
        hessian = (A * (p * (1 - p))[:, None]).T @ A / len(A) + penalty * np.diag([1.0] * P + [0.0])
        expected = A @ np.linalg.solve(hessian, signs)
        found = X[rows] @ reached.sensitivity[j, 0, :-1] + reached.sensitivity[j, 0, -1]
        far = np.abs(found - expected).max() / np.abs(expected).max()
        assert far < 0.5, (rows, penalty, far)


def test_hessians_of_the_way_are_renewed_where_the_loss_has_become_flatter(monkeypatch):
    """As at the edge of a hinge: else what tol leaves open would look as if it were held."""
    stiff, solve, renewed = stage(), _hessians.Hessians.precondition, []
    renew = stiff.hessians.renew

    def stiffer(self, G, columns):
        return solve(self, G, columns) / (1.0 if renewed else 100.0)

    def follow(columns, W, G, goal):
        found = follow_first(columns, W, G, goal)
        monkeypatch.setattr(_hessians.Hessians, "precondition", stiffer)
        stiff.hessians.renew = lambda *given: (renewed.append(given[1].tolist()), renew(*given))
        return found

    follow_first, stiff._follow = stiff._follow, follow
    stiff._waves = lambda _: [np.argsort(-PENALTIES)]
    reached = stiff.solve(None, np.zeros((2, 1, P + 1)), Tolerance(1e-9, 1e-9, 1.0))
    assert len(renewed) == 1
    assert sorted(renewed[0]) == list(range(8))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=P + 1)[:-1]
    for j, (rows, penalty) in enumerate((rows, penalty) for rows in ATOMS for penalty in PENALTIES):
        p = 1.0 / (1.0 + np.exp(-X[rows] @ reached.W[j, 0, :-1]))
        hessian = (X[rows] * (p * (1 - p))[:, None]).T @ X[rows] / len(p) + penalty * np.eye(P)
        expected = np.linalg.solve(hessian, signs)
        far = np.abs(reached.sensitivity[j, 0, :-1] - expected).max() / np.abs(expected).max()
        assert far < 0.3, (rows, penalty, far)


@pytest.mark.parametrize("factor", [0.6, 1.4])
def test_a_hessian_that_is_a_little_off_is_corrected_without_another(factor, monkeypatch):
    own, solve = stage(), _hessians.Hessians.precondition
    own._waves = lambda _: [np.argsort(-PENALTIES)]
    zero, goal = np.zeros((2, 1, P + 1)), Tolerance(1e-9, 1e-9, 1.0)
    columns = np.arange(8)
    W = own.solve(None, zero, goal).W
    own.hessians.renew(W, columns, 1e-3)
    G = own.problem.gradient(W, columns)
    expected = own._sensitivity(W, G, columns, np.full(len(columns), 1e-9))
    monkeypatch.setattr(own.hessians, "renew", None)  # is not called
    monkeypatch.setattr(_hessians.Hessians, "precondition", lambda *given: factor * solve(*given))
    found = own._sensitivity(W, G, columns, np.full(len(columns), 1e-9))
    assert np.abs(found - expected).max() <= 0.17 * np.abs(expected).max()  # 0.4 squared


def test_a_start_of_their_own_and_one_that_is_worse_than_zero():
    one, zero = stage(), np.zeros((2, 1, P + 1))
    goal = Tolerance(1e-9, 0.0, 0.5)
    best = one.solve(None, zero, goal).W
    before = one.passes.rows_read
    again = one.solve(best, zero, goal)
    assert one.passes.rows_read - before <= 2 * N + len(one.hessians._references) * N
    np.testing.assert_array_equal(again.W, best)
    far = best.copy()
    far[0], far[5] = 1e6, np.nan
    np.testing.assert_allclose(one.solve(far, zero, goal).W, best, atol=1e-7)


def test_memory_makes_waves_smaller():
    sizes = [len(stage(memory_limit=limit)._waves(False)) for limit in (2**30, 12_000, 1)]
    assert sizes[0] == 1 < sizes[1] < sizes[2] == 4


def test_after_some_passes_what_was_asked_for_is_enough(monkeypatch):
    monkeypatch.setattr(_stage, "ENOUGH_PASSES", 3)
    one, zero = stage(max_passes=50), np.zeros((2, 1, P + 1))
    monkeypatch.setattr(one, "_passes_of_round", lambda n: 3)
    size = one.solve(None, zero, Tolerance(0.0, 1e-2, 1.0)).size
    assert (size > 1e-12).any() and (size <= 1e-2).all()  # else the passes would have gone on


def test_what_makes_no_progress_is_left(monkeypatch):
    monkeypatch.setattr(_stage, "IDLE_PASSES", 5)
    one = stage(max_passes=10**6)
    reached = one.solve(None, np.zeros((2, 1, P + 1)), Tolerance(0.0, 0.0, 1.0))  # would go on for ever
    assert reached.size.max() < 1e-12


def test_the_way_goes_on_as_far_as_it_came():
    way = WarmStart(np.full((2, 1, 3), 5.0))
    np.testing.assert_array_equal(way.points(np.array([1.0, 0.1])), np.full((4, 1, 3), 5.0))
    way.update(np.zeros((2, 1, 3)), 1.0)
    np.testing.assert_array_equal(way.points(np.array([0.5])), np.zeros((2, 1, 3)))  # one point is no way
    way.update(np.ones((2, 1, 3)), 0.1)
    ahead = way.points(np.array([0.1, 0.1**1.5, 0.01, 1e-9, 0.0]))
    np.testing.assert_allclose(ahead[:, 0, 0], [1.0, 1.5, 2.0, 2.0, 2.0] * 2)
    way.update(np.full((2, 1, 3), 7.0), 0.1)  # the same penalty again
    np.testing.assert_array_equal(way.points(np.array([0.01])), np.full((2, 1, 3), 7.0))


@pytest.mark.parametrize(("levels", "is_shared"), [(25, True), (200, False)])
def test_frames_are_shared_unless_their_categories_are_rare(levels, is_shared):
    shape = Shape(16_000, 6 + 4 * levels, 1, 5, 2, n_test=4000, row_entries=10)
    cost = pass_cost(8, shape)
    assert (LEAST_GAIN * cost.shared <= cost.individual) == is_shared
