"""A view behind steps has the moments that the transformed data have."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold

from manyfit.folds import (
    FoldArrays,
    FoldedMatrix,
    SingleFold,
    Spectrum,
    Splits,
    Unsupported,
    Weights,
    _single_fold,
)
from tests.device.estimators._views import real_moments

rng = np.random.default_rng(0)
N, P = 60, 4
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) + [0.0, 10.0, -3.0, 1e3]
Y = rng.normal(size=(N, 2))
W = rng.random(N) + 0.1
SHIFT, SCALE, KEEP = np.array([1.0, 9.0, -3.0, 999.0]), np.array([2.0, 0.5, 3.0, 10.0]), np.array([0, 3])
Q = np.linalg.qr(rng.normal(size=(P, P)))[0][:, :3]


def assert_features(got, expected):
    xx = np.diag(got.xx) if got.xx.ndim == 1 else got.xx
    size = np.sqrt(np.outer(np.diagonal(expected.xx), np.diagonal(expected.xx)))
    assert np.all(np.abs(xx - expected.xx) <= 1e-10 * size + 1e-12)
    np.testing.assert_allclose(got.x_mean, expected.x_mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(got.xy, expected.xy, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(got.yy, expected.yy, rtol=1e-12)
    np.testing.assert_allclose(got.y_mean, expected.y_mean, rtol=1e-12)
    assert (got.rows, got.weight) == pytest.approx((expected.rows, expected.weight))


CHAINS = {
    "none": [],
    "scaled": [("scaled", SHIFT, SCALE)],
    "selected": [("selected", KEEP)],
    "rotated": [("rotated", SHIFT, Q)],
    "scaled, selected": [("scaled", SHIFT, SCALE), ("selected", KEEP)],
    "selected, scaled": [("selected", KEEP), ("scaled", SHIFT[KEEP], SCALE[KEEP])],
    "scaled, rotated, scaled": [
        ("scaled", SHIFT, SCALE),
        ("rotated", np.zeros(P), Q),
        ("scaled", np.ones(3), np.array([1.0, 2.0, 3.0])),
    ],
    "rotated, selected, rotated": [
        ("rotated", SHIFT, Q),
        ("selected", np.array([2, 0])),
        ("rotated", np.zeros(2), np.eye(2)[:, ::-1]),
    ],
}


def transformed(Z, chain):
    for name, *args in chain:
        if name == "scaled":
            Z = (Z - args[0]) / args[1]
        elif name == "selected":
            Z = Z[:, args[0]]
        else:
            Z = (Z - args[0]) @ args[1]
    return Z


@pytest.mark.invariant("Affine steps map moments as they map data")
@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_steps_map_moments_as_they_map_data(chain, weights):
    splits = Splits.draw(KFold(3), X, Y, N, {})
    view = FoldedMatrix(X, Y, splits, Weights(weights)).view(1)
    for name, *args in chain:
        view = getattr(view, name)(*args)
    train = splits.indices(1)[0]
    Z = transformed(X[train], chain)
    assert view.n_features == Z.shape[1]
    assert_features(view.plain, real_moments(Z, Y[train]))
    assert_features(view.weighted, real_moments(Z, Y[train], None if weights is None else weights[train]))
    assert (view.weighted is view.plain) == (weights is None)
    # The way back: coefficients of features as coefficients of X.
    coef = rng.normal(size=(view.n_features, 2))
    there = transformed(X, chain) @ coef
    back = (X - view.origin) @ view.to_X(coef) + view.plain.x_origin @ coef
    np.testing.assert_allclose(back, there, rtol=1e-9, atol=1e-8)


def test_a_known_diagonal_is_kept_as_a_vector():
    view = FoldedMatrix(X, Y, Splits.draw(KFold(3), X, Y, N, {})).view(0)
    spectrum = view.plain.spectrum
    rotated = view.rotated(view.plain.x_mean, spectrum.vectors[:, :2], spectrum.values[:2])
    train = np.arange(20, N)
    Z = (X[train] - X[train].mean(axis=0)) @ spectrum.vectors[:, :2]
    assert rotated.plain.xx.ndim == 1
    assert_features(rotated.plain, real_moments(Z, Y[train]))
    assert_features(rotated.selected(np.array([1])).plain, real_moments(Z[:, 1:], Y[train]))


def test_spectra_rebuild_the_scatter():
    moments = real_moments(X, Y)
    for spectrum, matrix in [
        (moments.spectrum, moments.xx),
        (moments.raw_spectrum, X.T @ X),
    ]:
        assert np.all(np.diff(spectrum.values) <= 0) and np.all(spectrum.values >= 0)
        rebuilt = spectrum.from_axes(spectrum.values[:, None] * spectrum.onto_axes(np.eye(P)))
        np.testing.assert_allclose(rebuilt, matrix, rtol=1e-9, atol=1e-9 * np.abs(matrix).max())
    np.testing.assert_allclose(moments.raw_xy, X.T @ Y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("diagonal", [[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [1.0, 1.0, 1.0]])
def test_spectrum_of_a_diagonal(diagonal):
    diagonal = np.array(diagonal)
    ours, full = Spectrum.of(diagonal), Spectrum.of(np.diag(diagonal))
    np.testing.assert_allclose(ours.values, full.values)
    b = rng.normal(size=(3, 2))
    np.testing.assert_allclose(ours.from_axes(ours.onto_axes(b)), b)
    np.testing.assert_allclose(
        ours.from_axes(ours.values[:, None] * ours.onto_axes(b)), diagonal[:, None] * b
    )


@pytest.mark.invariant("A column is constant only if its minimum equals its maximum")
def test_constant_columns_are_found_by_their_range():
    Z = X.copy()
    Z[20:, 1] = 0.1  # constant in the training part of fold 0 only
    view = FoldedMatrix(Z, Y, Splits.draw(KFold(3), Z, Y, N, {})).view(0)
    np.testing.assert_array_equal(view.is_constant(np.arange(P)), [False, True, False, False])
    np.testing.assert_array_equal(view.is_constant(np.array([1])), [True])
    other = FoldedMatrix(Z, Y, Splits.draw(KFold(3), Z, Y, N, {})).view(1)
    assert not other.is_constant(np.arange(P)).any()


def test_given_rows_are_folded_data_too():
    rows = FoldArrays(X[:40], Y[:40], X[40:], Y[40:], W[:40], X[:40], Y[:40], Y[40:])
    given = SingleFold(rows)
    assert given.n_splits == 1 and given.fold(0) is rows
    view = given.view(0)
    assert_features(view.plain, real_moments(X[:40], Y[:40]))
    assert_features(view.weighted, real_moments(X[:40], Y[:40], W[:40]))
    np.testing.assert_allclose(given.scoring_moments(0, "test").mean, np.r_[X[40:].mean(0), Y[40:].mean(0)])
    np.testing.assert_allclose(given.scoring_moments(0, "train").rows, 40)


def test_moments_of_given_rows_are_summed_once(monkeypatch):
    given = SingleFold(FoldArrays(X[:40], Y[:40], X[40:], Y[40:], None, X[:40], Y[:40], Y[40:]))
    first = given.view(0), given.scoring_moments(0, "test"), given.scoring_moments(0, "train")
    monkeypatch.delattr(_single_fold, "moments_of_rows")
    again = given.view(0), given.scoring_moments(0, "test"), given.scoring_moments(0, "train")
    assert all(a is b for a, b in zip(first, again, strict=True))


def test_given_rows_with_nan_have_no_moments():
    bad = X[:40].copy()
    bad[0] = np.nan
    with pytest.raises(Unsupported, match="the train rows of split 0 have no finite moments"):
        SingleFold(FoldArrays(bad, Y[:40], X[40:], Y[40:], None, bad, Y[:40], Y[40:])).view(0)


@pytest.mark.invariant("A fold has the splitter's rows in the splitter's order")
def test_a_fold_has_the_rows_in_the_splitters_order():
    split = (np.array([5, 3, 3, -1]), np.array([7, 2]))
    data = FoldedMatrix(X, Y[:, 0], Splits.given([split], N), Weights(W, W * 2))
    fold = data.fold(0)
    np.testing.assert_array_equal(fold.X_train, X[split[0]])
    np.testing.assert_array_equal(fold.X_train_score, X[split[0]])
    np.testing.assert_array_equal(fold.y_train, Y[split[0], 0])
    np.testing.assert_array_equal(fold.X_test, X[split[1]])
    np.testing.assert_array_equal(fold.y_test, Y[split[1], 0])
    np.testing.assert_array_equal(fold.fit_weight, W[split[0]])
    np.testing.assert_array_equal(fold.score_weight("test"), 2 * W[split[1]])
    np.testing.assert_array_equal(fold.score_weight("train"), 2 * W[split[0]])
