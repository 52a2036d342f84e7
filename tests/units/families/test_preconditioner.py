"""Factors against NumPy, and which columns share a Hessian."""

from __future__ import annotations

import warnings
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

from manyfit.families.smooth.solver._curvatures import choose_references
from manyfit.families.smooth.solver._factor import HessianFactor, PartialHessian
from manyfit.families.smooth.solver._losses import HalfBinomial, HalfMultinomial
from manyfit.families.smooth.solver._objective import Columns, LinearProblem, RowLoss
from manyfit.families.smooth.solver._preconditioner import Hessians
from manyfit.folds import wrap_rows
from tests._covering import covering

rng = np.random.default_rng(0)
INTERCEPTS = ["free", "penalised", "none"]


def gram(d, rank=None):
    A = rng.normal(size=(rank or 10 * d, d))
    return A.T @ A


def joint(d, K):
    """A Hessian of several outputs, of which only differences matter."""
    A, P = rng.normal(size=(40 * d, d)), rng.dirichlet(np.ones(K), size=40 * d)
    own = P[:, :, None] * np.eye(K) - P[:, :, None] * P[:, None, :]
    return np.einsum("nkl,ni,nj->kilj", own, A, A).reshape(K * d, K * d)


def alike(G):
    """Gradients by several outputs sum to zero."""
    return G - G.mean(axis=-2, keepdims=True) if G.shape[-2] > 1 else G


def shifted(matrix, penalty, intercept, K):
    shift = np.full((K, len(matrix) // K), penalty)
    shift[:, -1] = {"free": 0.0, "penalised": penalty, "none": 1.0}[intercept]
    return matrix + np.diag(shift.ravel())


def known(matrix):
    """All of a matrix, or its diagonal."""
    if matrix.ndim == 1:
        return PartialHessian(matrix, np.empty((0, 0)), slice(0))
    return PartialHessian(np.diagonal(matrix), matrix, slice(None))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-3)])
@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1.0, 1e8, 1e30])
def test_a_factor_solves(intercept, K, dtype, rtol, scale):
    d = 4
    matrix = (gram(d) if K == 1 else joint(d, K)) * scale
    if intercept == "none":
        matrix[d - 1 :: d] = matrix[:, d - 1 :: d] = 0.0
    g = alike(rng.normal(size=(K, d))).ravel()
    if intercept == "none":
        g[d - 1 :: d] = 0.0
    got = HessianFactor(known(matrix), 0.1 * scale, intercept, K, dtype).solve(g)
    expected = shifted(matrix, 0.1 * scale, intercept, K)
    if K > 1 and intercept == "free":  # nothing holds all intercepts together
        expected[d - 1 :: d, d - 1 :: d] += scale
    expected = np.linalg.solve(expected, g)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("rare", [1.0, 1e-2, 1e-4])
def test_outputs_of_which_only_differences_matter_need_no_penalty_to_be_held(rare):
    d, K = 4, 3
    size = np.repeat(np.array([rare, 1.0, 1.0]), d)
    A = rng.normal(size=(1000, d))
    P = rng.dirichlet([1.0, 1.0, 1.0], size=1000) * [rare, 1.0, 1.0]
    P /= P.sum(axis=1, keepdims=True)
    own = P[:, :, None] * np.eye(K) - P[:, :, None] * P[:, None, :]
    matrix = np.einsum("nkl,ni,nj->kilj", own, A, A).reshape(K * d, K * d)
    factor = HessianFactor(known(matrix), 1e-12, "free", K, np.float32)
    assert factor.weakest > 1e-2 * np.sqrt(rare)
    g = alike(rng.normal(size=(K, d))).ravel()
    got = factor.solve(g)
    np.testing.assert_allclose(matrix @ got / np.sqrt(size), g / np.sqrt(size), atol=1e-2 / np.sqrt(rare))


@pytest.mark.parametrize(("weak", "weakest"), [(1.0, 0.5), (1e-8, 1e-6)])
def test_the_weakest_pivot_is_told(weak, weakest):
    matrix = np.array([[1.0, np.sqrt(1.0 - weak)], [np.sqrt(1.0 - weak), 1.0]])
    assert (HessianFactor(known(matrix), 0.0, "free", 1, np.float64).weakest > weakest) == (weak == 1.0)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_diagonal_is_divided_by(intercept):
    own = np.array([1e-20, 2.0, 0.0, 5.0])
    got = HessianFactor(known(own), 0.5, intercept, 1, np.float32).solve(np.ones(4))
    np.testing.assert_allclose(got, 1.0 / np.diagonal(shifted(np.diag(own), 0.5, intercept, 1)), rtol=1e-9)


def test_columns_of_any_size_are_alike():
    size = 1e15 * 10.0 ** np.array([-4, 0, -1, -3, -2])
    matrix, g = gram(5), rng.normal(size=5)
    factor = HessianFactor(known(matrix * size * size[:, None]), 0.0, "free", 1, np.float32)
    expected = np.linalg.solve(matrix, g) / size
    np.testing.assert_allclose(factor.solve(g * size), expected, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("g_size", [1e-200, 1e-50, 1.0, 1e50, 1e200])
def test_gradients_of_any_size(dtype, g_size):
    matrix, g = gram(4), rng.normal(size=4)
    got = HessianFactor(known(matrix), 0.1, "free", 1, dtype).solve(g * g_size) / g_size
    expected = np.linalg.solve(shifted(matrix, 0.1, "free", 1), g)
    # Of the whole: an entry that is small by chance is the difference of larger ones in single precision.
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_no_gradient_no_step():
    assert not HessianFactor(known(gram(3)), 0.1, "free", 1, np.float32).solve(np.zeros(3)).any()


INDEFINITE = gram(6) - 2.0 * np.eye(6)
DOUBTFUL = {
    "zero": np.zeros((6, 6)),
    "singular": gram(6, rank=2),
    "one column twice": np.ones((6, 6)),
    "indefinite": INDEFINITE + 10.0 * np.outer(np.r_[1, 1, 0, 0, 0, 0], np.r_[1, 1, 0, 0, 0, 0]),
    "rounded": (gram(6, rank=2).astype(np.float32) * (1 + 1e-6 * rng.normal(size=(6, 6)))),
    "infinite": np.where(np.eye(6) > 0, 1e300, np.inf),
    "infinite on the diagonal": np.diag([np.inf, 1, 1, 1, 1, 1.0]),
    "nan": np.full((6, 6), np.nan),
    "nan, diagonal": np.array([np.nan, np.inf, 1.0, 0.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("penalty", [0.0, 1e-3])
@pytest.mark.parametrize("matrix", DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_doubtful_matrix_still_gives_a_descent(matrix, penalty, dtype):
    factor = HessianFactor(known(matrix.copy()), penalty, "free", 1, dtype)
    inverse = np.stack([factor.solve(e) for e in np.eye(6)], axis=1)
    scale = np.sqrt(np.diagonal(inverse))
    unit = inverse / scale / scale[:, None]
    assert np.isfinite(unit).all()
    tol = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(unit, unit.T, atol=tol)
    assert np.linalg.eigvalsh((unit + unit.T) / 2).min() > -tol


def test_what_is_not_known_whole_goes_by_its_diagonal_whatever_the_rest_is():
    matrix = PartialHessian(np.full(4, 100.0), 100.0 * np.eye(2), np.array([0, 3]))
    factor = HessianFactor(matrix, 0.0, "free", 1, np.float64)
    for g in ([0.0, 1.0, 1.0, 0.0], [1e-9, 1.0, 1.0, 0.0]):
        np.testing.assert_allclose(factor.solve(np.array(g)), np.array(g) / 100.0, rtol=1e-9)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_part_behind_an_origin_is_positive(intercept):
    hess, _ = hessians([1e-6], head=np.array([0, 1]), X=X + 50.0 * Y[:, None], intercept=intercept)
    hess.renew(np.zeros((3, 1, P + 1)), np.arange(3), 0.1)
    for c in range(3):
        matrix = hess._hessian(hess._used[c], c, 1)
        np.testing.assert_array_equal(matrix.diagonal[matrix.place], np.diagonal(matrix.block))
        assert np.linalg.eigvalsh(matrix.block).min() >= -1e-9 * matrix.block.max()


def test_the_first_serves_all_as_well_as_one_can():
    place = np.array([0.0, 1.0, 2.0, 9.0])
    own = np.abs(place[:, None] - place)
    assert choose_references(own[:0], own, 10.0, 3) == [1]  # of 1 and 2, whose sums are least, 10 both
    assert choose_references(own[:0], own, 3.0, 3) == [1, 3]  # and then the farthest
    assert choose_references(own[:0], own, 0.0, 4) == [1, 3, 0, 2]
    assert choose_references(own[:0], own, 0.0, 2) == [1, 3]  # no room


def test_what_is_there_serves_first():
    place, there = np.array([0.0, 1.0, 9.0]), np.array([0.5])
    own, away = np.abs(place[:, None] - place), np.abs(there[:, None] - place)
    assert choose_references(away, own, 0.5, 3) == [2]
    assert choose_references(away, own, 9.0, 3) == []


N, P = 400, 3
X = rng.normal(size=(N, P))
Y = (X[:, 0] + rng.normal(size=N) > 0).astype(float)
ATOMS = [slice(0, 150), slice(150, N)]
COUNTS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def hessians(
    penalties, *, head=None, most=10, K=1, sets=3, X=X, intercept="free", dtype=np.float64, taken=None
):
    """Of settings on each half of the rows and on all."""
    passes = wrap_rows(X).passes(ATOMS)
    if K == 1:
        rowwise = RowLoss(HalfBinomial(), Y[None])
    else:
        rowwise = RowLoss(HalfMultinomial(K), np.eye(K)[:, rng.integers(0, K, N)])
    split = np.repeat(np.arange(sets), len(penalties))
    weight = np.array([150.0, 250.0, 400.0])[split]
    columns = Columns(split, np.tile(np.asarray(penalties, dtype=float), sets), weight, COUNTS[split])
    problem = LinearProblem(passes, rowwise, columns, [None] * sets, intercept)
    if taken is not None:
        counted(passes, taken)
    return Hessians(problem, head, passes.sample(slice(0, N, 2)), most, dtype), problem


def counted(passes, taken):
    gram = passes.gram

    def counting(theta, curvature, dtype, features=None):
        taken.append(dtype)
        return gram(theta, curvature, dtype, features)

    passes.gram = counting


def by_differences(problem, w, column, step=1e-6):
    """The Hessian of a column from its gradients."""
    c, d = np.array([column]), w.size
    out = np.empty((d, d))
    for i in range(d):
        e = step * np.eye(d)[i].reshape(w.shape)
        out[i] = (problem.gradient(w + e, c) - problem.gradient(w - e, c)).ravel() / (2 * step)
    return out


@pytest.mark.parametrize("K", [1, 3])
def test_a_column_is_solved_with_the_hessian_of_its_own_rows_and_penalty(K):
    taken = []
    hess, problem = hessians([1e-3, 1.0], K=K, taken=taken)
    columns = np.arange(6)
    w = 0.3 * rng.normal(size=(1, K, P + 1))
    hess.renew(np.repeat(w, 6, axis=0), columns, 0.1)
    assert len(taken) == 1  # all are at one place
    G = alike(rng.normal(size=(6, K, P + 1)))
    got = hess.precondition(G, columns)
    for c in columns:
        matrix = by_differences(problem, w, c)
        np.testing.assert_allclose(matrix @ got[c].ravel(), G[c].ravel(), rtol=1e-5, atol=1e-5)


def test_near_columns_share_a_hessian():
    taken = []
    hess, _ = hessians([1e-3] * 100, sets=1, taken=taken)
    W = np.zeros((100, 1, P + 1))
    W[:, 0, 0] = np.repeat([0.0, 0.01, 6.0, 6.01], 25)
    columns = np.arange(100)
    hess.renew(W, columns, 0.25)
    assert len(taken) == len(hess._references) == 2
    assert hess._used[0] is hess._used[30] is not hess._used[60]
    assert hess._used[60] is hess._used[99]
    # What is there and near is not taken again, be it for others.
    hess.renew(W, columns, 0.25)
    hess.release(columns)
    assert not hess._factors
    hess.renew(W[:30], columns[70:], 0.25)
    assert len(taken) == 2 and set(hess._factors) == set(columns[70:])


@pytest.mark.parametrize("most", [1, 2, 4])
def test_no_more_are_kept_than_fit(most):
    hess, _ = hessians([1e-3] * 200, sets=1, most=most)
    columns = np.arange(200)
    for times in (1.0, 2.0, 3.0):
        W = times * np.linspace(0, 6, 200)[:, None, None] * np.ones((1, 1, P + 1))
        hess.renew(W, columns, 1e-3)
        assert len(hess._references) <= most
    assert set(hess._factors) == set(columns)


def test_what_serves_stays_and_then_the_newest():
    hess, _ = hessians([1e-3], sets=1, most=2)
    places = np.array([0.0, 3.0, 6.0, 3.0])[:, None, None, None] * np.ones((1, 1, 1, P + 1))
    for place in places[:3]:
        hess.renew(place, np.array([0]), 0.05)
    first, second = hess._references
    hess.renew(places[3], np.array([0]), 0.05)  # the last but one is still there
    assert hess._used[0] is first and hess._references == [first, second]


@pytest.mark.parametrize("near", [1e-1, 1e-6])
def test_single_precision_where_nothing_is_weak(near):
    taken, columns = [], np.arange(3)
    other = X.copy()
    other[:, 1] = X[:, 0] + near * X[:, 1]
    hess, _ = hessians([1e-9], X=other, dtype=np.float32, taken=taken)
    W = np.zeros((3, 1, P + 1))
    hess.renew(W, columns, 0.25)
    assert taken == [np.float32] if near == 1e-1 else taken == [np.float32, np.float64]
    assert all(anchor.dtype == taken[-1] for anchor in hess._references)
    hess.renew(W + 9.0, columns, 0.25)  # nor is it tried again
    assert taken.count(np.float32) == (2 if near == 1e-1 else 1)


def test_squares_too_large_for_a_narrow_type_are_summed_in_a_wide_one():
    size = 10.0 ** np.array([25, 0, -3])
    hess, _ = hessians([1e-3], sets=1, X=X * size, dtype=np.float32)
    w = np.zeros((1, 1, P + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hess.renew(w, np.array([0]), 0.25)
    assert hess._references[0].dtype == np.float64
    expected, plain = hessians([1e-3 / 1e50], sets=1)[0], np.r_[size, 1.0]
    expected.renew(w, np.array([0]), 0.25)
    g = np.zeros((1, 1, P + 1))
    g[0, 0, 0] = 1.0
    got = hess.precondition(g * plain, np.array([0]))[0, 0, 0] * size[0]
    # The large column alone: the penalty weighs on the others, but not on it.
    assert 0.5 < got / expected.precondition(g, np.array([0]))[0, 0, 0] < 1.5


@pytest.mark.parametrize(
    ("make", "intercept", "K", "head"),
    covering(
        [(np.asarray, "free"), *((sp.csr_array, intercept) for intercept in INTERCEPTS)],
        [1, 3],
        [[], [1], [0, 2]],
        strength=1,
    ),
)
def test_a_part_is_known_whole_and_the_rest_by_its_diagonal(head, K, make, intercept):
    head, d = np.array(head, dtype=int), P + 1
    hess, problem = hessians([1e-3, 1.0], head=head, K=K, X=make(X + 2.0), intercept=intercept)
    columns = np.arange(6)
    w = 0.3 * rng.normal(size=(1, K, d))
    hess.renew(np.repeat(w, 6, axis=0), columns, 0.1)
    G = rng.normal(size=(6, K, d))
    if intercept == "none":
        G[:, :, -1] = 0.0
    if head.size:
        G = alike(G)
    got = hess.precondition(G, columns)
    known = np.isin(np.arange(K * d) % d, np.append(head, d - 1) if head.size else [])
    for c in columns:
        matrix = by_differences(problem, w, c) * (np.outer(known, known) | np.eye(K * d, dtype=bool))
        if intercept == "none":
            matrix[d - 1 :: d] = 0.0
        np.testing.assert_allclose(matrix @ got[c].ravel(), G[c].ravel(), rtol=1e-5, atol=1e-5)


def test_hessians_that_are_not_kept_take_no_memory():
    """One after the other each column gets a Hessian of its own, and only one is kept."""
    made, _ = hessians([0.1], most=1)
    taken = []
    for c in range(3):
        made.renew(np.full((1, 1, P + 1), 3.0 * c), np.array([c]), 1e-9)
        taken.append(weakref.ref(made._references[-1]))
    assert [one() is not None for one in taken] == [False, False, True]
    assert np.isfinite(made.precondition(np.ones((3, 1, P + 1)), np.arange(3))).all()  # factors stay
