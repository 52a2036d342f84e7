"""Moments against longdouble, and their merges."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from manyfit.folds import FoldedMatrix, MixedRows, NumPyRows, Splits, Unsupported, Weights
from manyfit.folds._mixed_matrix import MixedMatrix, OneHot
from manyfit.folds._single_fold import moments_of_rows
from manyfit.folds.moments import _host
from manyfit.folds.moments._host import BLOCK_VALUES, SAMPLED_ROWS
from manyfit.folds.moments._moments import AllButOne, AtomMoments, moments_from_sums, require_squares
from tests.units.folds._exact_moments import assert_moments, exact, rng


@pytest.mark.invariant("Moments lose no digits far from the origin")
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("n", [1, 2, 300, 3 * BLOCK_VALUES // 5])  # one block, and several
def test_far_from_the_origin_nothing_cancels(n, offset):
    X, Y = rng.normal(size=(n, 4)) + offset, rng.normal(size=(n, 1)) - offset
    moments = moments_of_rows(X, Y, slice(0, n))
    assert moments.rows == n
    # A sum of n squares; at 1e8 a value itself has eps * 1e8 digits.
    assert_moments(moments, np.c_[X, Y], rtol=1e-13 + 4e-16 * offset)


@pytest.mark.invariant("Moments lose no digits far from the origin")
def test_the_naive_formula_would_have_failed():
    X = rng.normal(size=(1000, 1)) + 1e8
    naive = (X.T @ X - len(X) * X.mean() ** 2)[0, 0]
    good = moments_of_rows(X, X, slice(0, 1000)).scatter[0, 0]
    truth = float(exact(X)[2][0, 0])
    assert abs(naive - truth) > 0.1 * truth  # this test can fail
    assert abs(good - truth) < 1e-7 * truth


@pytest.fixture
def summed_about_zero(watch):
    """The calls of the sums about zero."""
    calls = []
    watch(_host, "_sums_about_zero", lambda *args: calls.append(args))
    return calls


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("as_rows", [lambda n: slice(0, n), np.arange], ids=["slice", "index"])
@pytest.mark.parametrize("n", [1, 2, 300, 3 * BLOCK_VALUES // 5])
def test_rows_about_zero_are_summed_without_a_copy(summed_about_zero, n, as_rows, order):
    X, Y = np.random.default_rng(1).normal(size=(n, 4)), rng.normal(size=(n, 2)) + 1e8
    X[:: max(n // 2, 1)] = 0.0  # with one row, or two, the sample is these
    X[:, 3] = 0.0
    moments = moments_of_rows(np.asarray(X, order=order), Y, as_rows(n))
    assert summed_about_zero
    assert_moments(moments, np.c_[X, Y], rtol=1e-7)  # Y has few digits
    expected = exact(X)[2].astype(float)
    np.testing.assert_allclose(moments.scatter[:4, :4], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("offset", [3.0, 1e4, 1e8])
def test_rows_that_only_seem_to_lie_about_zero_are_summed_again(summed_about_zero, offset):
    """The sampled rows lie about zero, and all others far from it."""
    n = 3000
    X, Y = rng.normal(size=(n, 3)) + offset, rng.normal(size=(n, 1))
    sampled = np.arange(SAMPLED_ROWS) * (n - 1) // (SAMPLED_ROWS - 1)
    X[sampled] = np.linspace(-1.0, 1.0, SAMPLED_ROWS)[:, None] * offset
    moments = moments_of_rows(X, Y, slice(0, n))
    assert summed_about_zero
    assert_moments(moments, np.c_[X, Y], rtol=1e-13 + 4e-16 * offset)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_about_zero_that_are_not_finite_show_it(value):
    X = rng.normal(size=(3000, 3))
    X[1, 1] = value  # not among the sampled rows
    scatter = moments_of_rows(X, X[:, :1], slice(0, 3000)).scatter
    assert np.isfinite(scatter[np.ix_([0, 2, 3], [0, 2, 3])]).all()
    assert not np.isfinite(scatter[1]).any()


def test_weights_with_zeros():
    X, Y = rng.normal(size=(500, 3)), rng.normal(size=(500, 2))
    weights = rng.integers(0, 3, 500).astype(float)
    assert_moments(moments_of_rows(X, Y, slice(0, 500), weights), np.c_[X, Y], weights)
    repeated = np.repeat(np.arange(500), weights.astype(int))  # whole weights are repetitions
    again = moments_of_rows(X, Y, repeated)
    np.testing.assert_allclose(
        again.scatter, moments_of_rows(X, Y, slice(0, 500), weights).scatter, rtol=1e-12, atol=1e-10
    )


def test_a_block_without_any_weight_is_left_out():
    n = 3000
    X = rng.normal(size=(n, 60))  # blocks of about 1000 rows
    for zero in (slice(0, 2000), slice(1000, n)):
        weights = np.ones(n)
        weights[zero] = 0.0
        assert_moments(moments_of_rows(X, X[:, :1], slice(0, n), weights), np.c_[X, X[:, :1]], weights)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, np.int64])
def test_other_dtypes_are_summed_in_float64(dtype):
    X = rng.integers(0, 100, size=(400, 3)).astype(dtype)
    Y = rng.integers(0, 100, size=(400, 1)).astype(dtype)
    moments = moments_of_rows(X, Y, slice(0, 400))
    assert moments.scatter.dtype == np.float64
    assert_moments(moments, np.c_[X, Y])


def test_rows_are_read_in_place():
    X = rng.normal(size=(50, 3))
    X.flags.writeable = False
    before = X.copy()
    moments_of_rows(X, X[:, :1], np.array([3, 1, 1, 40]))
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("layout", ["C", "F", "strided"])
def test_any_memory_layout(layout):
    X = rng.normal(size=(600, 4))
    given_ = {"C": X, "F": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=0)[::2]}[layout]
    assert_moments(moments_of_rows(given_, X[:, :1], slice(0, 600)), np.c_[X, X[:, :1]])


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4).filter(any), st.sampled_from([0.0, 1e6]))
def test_merges_with_multiplicity(counts, offset):
    X = np.random.default_rng(1).normal(size=(40, 3)) + offset
    group = Splits.draw(KFold(4), X, None, 40, {}).atom_groups[0]
    atoms = AtomMoments([one for one, _ in NumPyRows(X).moments(X[:, :1], group.rows)])
    merged = atoms.merged(np.array(counts, dtype=float))
    rows = np.concatenate(
        [np.arange(40)[r] for r, c in zip(group.rows, counts, strict=True) for _ in range(c)]
    )
    assert merged.rows == rows.size
    assert_moments(merged, np.c_[X, X[:, :1]][rows], rtol=1e-12 + 1e-15 * offset)


def test_merging_is_associative_and_commutative():
    X = rng.normal(size=(90, 3)) * [1, 1e3, 1e-3]
    by = {}
    for k in (1, 2, 3, 9):  # KFold(1) does not exist: one atom is all rows
        if k == 1:
            by[k] = moments_of_rows(X, X[:, :1], slice(0, 90))
            continue
        group = Splits.draw(KFold(k), X, None, 90, {}).atom_groups[0]
        by[k] = AtomMoments([one for one, _ in NumPyRows(X).moments(X[:, :1], group.rows)]).merged(np.ones(k))
    for k in (2, 3, 9):
        np.testing.assert_allclose(by[k].scatter, by[1].scatter, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(by[k].mean, by[1].mean, rtol=1e-12)
    backwards = moments_of_rows(X, X[:, :1], np.arange(90)[::-1])
    np.testing.assert_allclose(backwards.scatter, by[1].scatter, rtol=1e-12, atol=1e-12)


@pytest.mark.invariant("NaN and infinity affect only the splits that use their rows")
def test_nan_stays_in_the_splits_that_use_it():
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    X[35, 1] = np.nan
    data = FoldedMatrix(X, y, Splits.draw(KFold(4), X, y, 40, {}))
    view = data.view(3)  # trains on rows 0 to 29
    np.testing.assert_allclose(view.plain.x_mean, X[:30].mean(axis=0), rtol=1e-13)
    for i in range(3):
        with pytest.raises(Unsupported, match=f"the train rows of split {i} have no finite moments"):
            data.view(i)
    with pytest.raises(Unsupported, match="the test rows of split 3 have no finite moments"):
        data.scoring_moments(3, "test")
    assert np.isfinite(data.scoring_moments(0, "test").scatter).all()


def test_infinity_makes_no_warning_of_its_own():
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    X[0, 0] = np.inf
    data = FoldedMatrix(X, y, Splits.draw(KFold(4), X, y, 40, {}))
    with pytest.raises(Unsupported, match="no finite moments"):
        data.view(1)  # warnings are errors here


def test_infinities_of_both_signs_make_no_warning_of_their_own():
    moments = replace(
        moments_of_rows(np.ones((6, 2)), np.ones((6, 1)), slice(0, 6)),
        scatter=np.diag([np.inf, -np.inf, 1.0]),
    )
    with pytest.raises(Unsupported, match="no finite moments"):
        require_squares(moments, 0, "train", np.dtype(float))  # warnings are errors here


def test_a_split_without_weight_has_no_moments():
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    weights = np.r_[np.ones(10), np.zeros(30)]
    data = FoldedMatrix(X, y, Splits.draw(KFold(4), X, y, 40, {}), Weights(fit=weights))
    data.view(1)
    with pytest.raises(Unsupported, match="no weight"):
        data.view(0)


@pytest.mark.invariant("Training moments are sums of other atoms: nothing is subtracted")
@pytest.mark.parametrize("k", [2, 3, 4, 5, 10, 17])
@pytest.mark.parametrize("order", [1, -1])
def test_all_sets_but_one(k, order):
    ends = np.cumsum([0, *rng.integers(1, 9, size=k)])
    Z = rng.normal(size=(ends[-1], 3)) + np.linspace(0, 5, ends[-1])[:, None] + 1e6
    rows = [slice(*pair) for pair in itertools.pairwise(ends)]
    all_but_one = AllButOne([moments_of_rows(Z[:, :2], Z[:, 2:], one) for one in rows])
    for a in range(k)[::order]:
        left = np.delete(Z, rows[a], axis=0)
        merged = all_but_one(a)
        assert merged.rows == len(left)
        np.testing.assert_allclose(merged.mean, left.mean(axis=0), rtol=1e-14)
        expected = exact(left)[2].astype(float)
        np.testing.assert_allclose(merged.scatter, expected, rtol=1e-8, atol=1e-8)


def test_sets_without_weight_and_with_nan_harm_no_others():
    X, w = rng.normal(size=(60, 2)), np.ones(60)
    X[3], w[10:30] = np.nan, 0.0
    sets = [moments_of_rows(X, X[:, :1], slice(i, i + 10), w) for i in range(0, 60, 10)]
    all_but_one = AllButOne(sets)
    assert_moments(all_but_one(0), np.c_[X, X[:, 0]][30:])
    assert np.isnan(all_but_one(1).scatter).any()
    nothing = AllButOne([sets[1], sets[2], sets[1]])(0)
    assert nothing.weight == 0.0 and nothing.rows == 20


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("frequent", [0.3, 1.0 - 1e-3])
def test_moments_of_mixed_rows(weighted, frequent):
    n = 3000
    numbers = np.c_[rng.normal(size=n) + 1e6, np.arange(n) // 10.0]
    codes = np.where(rng.random(n) < frequent, 2, rng.integers(4, size=n))
    blocks = (OneHot(0, 4, codes), OneHot(5, 3, rng.integers(3, size=n)))
    X, Y = MixedRows(MixedMatrix(numbers, np.array([4, 8]), blocks)), rng.normal(size=(n, 2))
    weights = rng.random(n) if weighted else None
    atoms = [slice(0, 1000), rng.permutation(np.arange(1000, n)), slice(5, 5 + 1000**weighted)]
    for (moments, _), rows in zip(X.moments(Y, atoms, weights), atoms, strict=True):
        own = None if weights is None else weights[rows]
        assert_moments(moments, np.c_[X.take(rows), Y[rows]], own, rtol=1e-12)
    columns = np.array([8, 2, 6, 3])
    dense = NumPyRows(X.take(slice(None)))
    np.testing.assert_array_equal(X.ranges(atoms, columns), dense.ranges(atoms, columns))


def test_a_set_of_no_atoms_has_moments_of_nothing():
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)[:, None]
    X[5] = np.nan  # a part that is not merged stays out
    atoms = AtomMoments([one for one, _ in NumPyRows(X).moments(y, [slice(0, 3), slice(3, 5), slice(5, 6)])])
    nothing = atoms.merged(np.zeros(3))
    assert (nothing.rows, nothing.weight) == (0.0, 0.0)
    assert not nothing.scatter.any()
    twice = atoms.merged(np.array([2.0, 1.0, 0.0]))
    Z = np.column_stack([X, y])[[0, 0, 1, 1, 2, 2, 3, 4]]
    np.testing.assert_allclose(twice.mean, Z.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(twice.scatter, (Z - Z.mean(axis=0)).T @ (Z - Z.mean(axis=0)), rtol=1e-12)


def test_the_scatter_of_a_column_of_one_value_is_not_negative():
    """What rounding leaves of it would be the square of a number that is none."""
    below = 0
    for value in np.linspace(0.1, 1.0, 40):
        ones = np.array([value, 1.0])
        sums = sum(np.outer(ones, ones) for _ in range(7))
        below += sums[0, 0] - sums[0, 1] * (sums[0, 1] / sums[1, 1]) < 0.0
        moments, is_far = moments_from_sums(sums, np.zeros(1), np.zeros(1), 7)
        assert is_far and moments.scatter[0, 0] >= 0.0
    assert below  # this test can fail
