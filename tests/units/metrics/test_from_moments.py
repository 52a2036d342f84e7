"""Scores from moments are scikit-learn's scores of the predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    explained_variance_score,
    mean_squared_error,
    r2_score,
    root_mean_squared_error,
)

from manyfit.folds._single_fold import moments_of_rows
from manyfit.metrics import (
    LinearPredictors,
    Rounding,
    lost_to_rounding,
    residuals_from_moments,
    scores_from_moments,
)
from manyfit.metrics.scoring._from_moments import MAX_ERROR, MIN_RESIDUAL

METRICS = [r2_score, explained_variance_score, mean_squared_error, root_mean_squared_error]
N, P, M = 80, 3, 5


def problem(q=1, offset=0.0, noise=1.0, seed=0):
    """Rows, targets and M predictors, the first of them close to the truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P)) + offset
    coef = rng.normal(size=(P, M, q))
    origin = X.mean(axis=0)
    Y = (X - origin) @ coef[:, 0] + 2.0 + noise * rng.normal(size=(N, q)) + offset
    return X, Y, LinearPredictors(coef, rng.normal(size=(M, q)) + offset, origin)


def routes(metric, X, Y, linear, weights=None):
    """Scores from moments, and scikit-learn's from predictions."""
    moments = moments_of_rows(X, Y, slice(0, len(X)), weights)
    ours = scores_from_moments(metric, residuals_from_moments(linear, moments))
    flat = Y[:, 0] if Y.shape[1] == 1 else Y
    predictions = [p[:, 0] if Y.shape[1] == 1 else p for p in linear(X)]
    return ours, [metric(flat, p, sample_weight=weights) for p in predictions]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_sklearns(metric, q, weighted):
    X, Y, linear = problem(q)
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float) if weighted else None
    ours, theirs = routes(metric, X, Y, linear, weights)
    assert ours.shape == (M,)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_far_from_the_origin(metric):
    X, Y, linear = problem(2, offset=1e5)
    ours, theirs = routes(metric, X, Y, linear)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.invariant("A shared score is right, or scikit-learn computes it")
@given(st.integers(0, 10**6), st.sampled_from(METRICS), st.floats(-8, 2), st.integers(1, 2))
def test_a_score_is_right_or_not_given(seed, metric, log_noise, q):
    X, Y, linear = problem(q, noise=10.0**log_noise, seed=seed)
    good = LinearPredictors(linear.coef, np.full((M, q), 2.0), linear.origin)  # the first one fits
    ours, theirs = routes(metric, X, Y, good)
    known = np.isfinite(ours)
    assert known[1:].all()
    np.testing.assert_allclose(ours[known], np.array(theirs)[known], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_a_residual_lost_in_rounding_is_not_given(metric):
    X, Y, linear = problem(noise=1e-9)
    linear.at_origin[0] = 2.0
    ours, _ = routes(metric, X, Y, linear)
    assert np.isnan(ours[0]) and np.isfinite(ours[1:]).all()


@pytest.mark.filterwarnings("ignore:R\\^2 score is not well-defined")
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e6, None])
@pytest.mark.parametrize("metric", METRICS)
def test_a_constant_target_or_a_single_row_is_left_to_predictions(metric, value):
    X, Y, linear = problem(2)
    if value is None:
        X, Y = X[:1], Y[:1]
    else:
        Y[:, 1] = value
    ours, theirs = routes(metric, X, Y, linear)
    if metric in (r2_score, explained_variance_score):  # they have rules of their own for it
        assert np.isnan(ours).all()
    else:
        np.testing.assert_allclose(ours[np.isfinite(ours)], np.array(theirs)[np.isfinite(ours)], rtol=1e-12)


def test_no_warning_about_what_is_not_given():
    X, _, linear = problem()
    moments = moments_of_rows(X, np.zeros((N, 1)), slice(0, N))
    scores = scores_from_moments(r2_score, residuals_from_moments(linear, moments))
    assert np.isnan(scores).all()  # warnings are errors here


@pytest.mark.parametrize(("dtype", "expected"), [("f4", "f4"), ("f8", "f8"), ("i4", "f8")])
def test_predictions_have_sklearns_dtype(dtype, expected):
    X, _, linear = problem(2)
    predicted = linear(X.astype(dtype))
    assert predicted.shape == (M, N, 2)
    assert predicted.dtype == np.dtype(expected)


def test_predictions_are_the_definition():
    X, _, linear = problem(2, offset=100.0)
    for j in range(M):
        expected = (X - linear.origin) @ linear.coef[:, j] + linear.at_origin[j]
        np.testing.assert_allclose(linear(X)[j], expected, rtol=1e-12)


def rounding(linear, size):
    """Errors along two directions, of a size for each predictor."""
    p, m, q = linear.coef.shape
    rng = np.random.default_rng(5)
    noise = np.asarray(size) * rng.uniform(0.5, 1.0, size=(2, m))
    return Rounding(linear.origin, rng.normal(size=(p, 2)), rng.normal(size=2), noise, np.ones((m, q)))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_error_of_predictions_is_the_definition(weighted):
    X, Y, linear = problem(2, offset=3.0)
    weights = np.random.default_rng(1).random(N) if weighted else None
    given_ = rounding(linear, 1e-3)
    got = given_.error(moments_of_rows(X, Y, slice(0, N), weights))
    along = (X - given_.origin) @ given_.along + given_.at_origin
    squares = np.average(along**2, axis=0, weights=weights) @ given_.noise**2
    np.testing.assert_allclose(got, np.sqrt(squares)[:, None] * given_.norms, rtol=1e-12)
    assert not Rounding.none(linear).error(moments_of_rows(X, Y, slice(0, N))).any()


@pytest.mark.parametrize("fits", [False, True], ids=["residual", "no residual"])
def test_predictors_are_lost_where_their_error_is_a_part_of_the_residual(fits):
    X, Y, linear = problem(2)
    if fits:
        Y = linear(X)[0]
        linear = LinearPredictors(linear.coef[:, :1], linear.at_origin[:1], linear.origin)
    moments = moments_of_rows(X, Y, slice(0, N))
    residual = np.sqrt(((linear(X) - Y) ** 2).mean(axis=1))
    floor = MIN_RESIDUAL * (Y.std(axis=0) + np.abs(Y.mean(axis=0)))
    one = rounding(linear, 1.0)
    # The size at which the first target that counts reaches the limit.
    limit = MAX_ERROR * (np.maximum(residual, floor) / one.error(moments)).min(axis=1)
    residuals = residuals_from_moments(linear, moments)
    for factor, lost in ((0.99, False), (1.01, True)):
        near = replace(one, noise=one.noise * limit * factor)
        np.testing.assert_array_equal(lost_to_rounding(residuals, [near], moments), lost)
    assert not lost_to_rounding(residuals, [Rounding.none(linear)], moments).any()


def test_roundings_follow_one_another():
    X, Y, linear = problem()
    parts = [
        LinearPredictors(linear.coef[:, s], linear.at_origin[s], linear.origin)
        for s in (slice(0, 2), slice(2, M))
    ]
    roundings = [rounding(parts[0], 1.0), Rounding.none(parts[1])]
    moments = moments_of_rows(X, Y, slice(0, N))
    lost = lost_to_rounding(residuals_from_moments(linear, moments), roundings, moments)
    np.testing.assert_array_equal(lost, [True, True, False, False, False])
