"""Losses of probabilities and margins of many settings are scikit-learn's, of each array library."""

from __future__ import annotations

import warnings

import array_api_strict
import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, d2_log_loss_score, hinge_loss, log_loss

from manyfit._compat import d2_brier_score
from manyfit.arrays import to_device, to_host
from manyfit.folds import Unsupported
from manyfit.metrics.kernels._probability_losses import PROBABILITY_METRICS

EXACT = 1e-12
FLOAT32 = 1e-5

rng = np.random.default_rng(0)
N, M = 40, 3
OF_PROBABILITIES = [function for function in PROBABILITY_METRICS if function is not hinge_loss]
ENTROPIES, SQUARES = [log_loss, d2_log_loss_score], [brier_score_loss]
if d2_brier_score is not None:
    SQUARES = [*SQUARES, d2_brier_score]


def ours(function, y, P, xp, device, weight=None, **options):
    """Scores of one call, where no shape may depend on data."""
    y, P, weight = (to_device(a, device, xp) if isinstance(a, np.ndarray) else a for a in (y, P, weight))
    with array_api_strict.ArrayAPIStrictFlags(data_dependent_shapes=False):
        scores = PROBABILITY_METRICS[function](y, P, sample_weight=weight, **options)
    assert scores.shape == P.shape[:1]
    return to_host(scores)


def check(function, y, P, xp, device, weight=None, tolerance=EXACT, **options):
    """Ours are scikit-learn's, all settings at once and one by one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.array([function(y, p, sample_weight=weight, **options) for p in P])
    for max_bytes in (None, 1):
        scores = ours(function, y, P, xp, device, weight, max_bytes=max_bytes, **options)
        np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)


def of_two(dtype=np.float64):
    y = np.concatenate([[0, 1], rng.integers(0, 2, N - 2)])
    P = rng.random((M, N))
    P[0, :4] = 0, 0, 1, 1  # clipped
    return y, P.astype(dtype)


def of_many(K=4, dtype=np.float64):
    y = np.concatenate([np.arange(K), rng.integers(0, K, N - K)])
    P = rng.dirichlet(np.ones(K), size=(M, N))
    P[0, :2] = np.eye(K)[:2]
    return y, P.astype(dtype)


def weights(kind):
    if kind is None:
        return None
    weight = rng.random(N)
    weight[::3] = 0
    return weight


WEIGHTS = pytest.mark.parametrize("weighted", [None, "with zeros"])


@pytest.mark.cases(7)
@WEIGHTS
@pytest.mark.parametrize("function", PROBABILITY_METRICS)
def test_two_classes(xp, device, function, weighted):
    y, P = of_two()
    check(function, y, P, xp, device, weights(weighted))
    check(function, 3 * y + 2, P, xp, device, weights(weighted))
    check(function, y, P[:1], xp, device, weights(weighted))


@pytest.mark.cases(12)
@WEIGHTS
@pytest.mark.parametrize("function", OF_PROBABILITIES)
@pytest.mark.parametrize("K", [2, 4])
def test_columns(xp, device, function, weighted, K):
    check(function, *of_many(K), xp, device, weights(weighted))
    check(function, *of_many(K), xp, device, weights(weighted), labels=list(range(K)))


@pytest.mark.cases(4)
@pytest.mark.parametrize("function", PROBABILITY_METRICS)
def test_float32(xp, device, function):
    check(function, *of_two(np.float32), xp, device, tolerance=FLOAT32)
    check(function, *of_many(3, np.float32), xp, device, tolerance=FLOAT32)


@WEIGHTS
def test_log_loss_that_is_a_sum(xp, device, weighted):
    check(log_loss, *of_two(), xp, device, weights(weighted), normalize=False)
    check(log_loss, *of_many(), xp, device, weights(weighted), normalize=False)


@pytest.mark.cases(4)
@pytest.mark.parametrize("scale_by_half", [True, False, np.True_, np.False_, "auto"])
def test_scale_of_squares(xp, device, scale_by_half):
    for y, P in (of_two(), of_many(2), of_many(4)):
        check(brier_score_loss, y, P, xp, device, scale_by_half=scale_by_half)


@pytest.mark.parametrize("function", SQUARES)
def test_positive_label(xp, device, function):
    y, P = of_two()
    for labels, pos_label in (([0, 1], 0), ([0, 1], 1), ([-1, 1], -1), ([3, 5], None), ([3, 5], 3)):
        check(function, np.array(labels)[y], P, xp, device, pos_label=pos_label)
    with pytest.raises(Unsupported, match="pos_label=7"):
        ours(function, y, P, xp, device, pos_label=7)


@pytest.mark.parametrize("function", SQUARES)
@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [3, 5]])
def test_squares_of_one_class(xp, device, function, labels):
    _, P = of_two()
    for only in labels:
        y = np.full(N, only)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [function(y, p) for p in P]
        for classes in (np.array(labels), np.array([only])):
            scores = ours(function, y, P, xp, device, classes=classes)
            np.testing.assert_allclose(scores, expected, rtol=EXACT)


@pytest.mark.parametrize("function", ENTROPIES)
def test_entropies_of_one_class(xp, device, function):
    y, (_, P) = np.ones(N, dtype=int), of_two()
    for classes in (np.array([0, 1]), np.array([1])):
        assert np.isnan(ours(function, y, P, xp, device, classes=classes)).all()
    with pytest.raises(ValueError, match="only one label"):
        function(y, P[0])
    check(function, y, P, xp, device, labels=[0, 1])


@pytest.mark.parametrize("function", PROBABILITY_METRICS)
def test_absent_class(xp, device, function):
    y, P = of_many()
    y = np.where(y == 2, 1, y)
    assert np.isnan(ours(function, y, P, xp, device, classes=np.arange(4))).all()
    check(function, y, P, xp, device, labels=[0, 1, 2, 3])


@pytest.mark.parametrize("function", OF_PROBABILITIES)
@pytest.mark.parametrize("value", [-1e-17, 1 + 3e-16, np.nan, np.inf])
def test_refused_probabilities_are_nan(xp, device, function, value):
    for y, P in (of_two(), of_many()):
        P[(1, 5, 0)[: P.ndim]] = value
        np.testing.assert_array_equal(np.isnan(ours(function, y, P, xp, device)), [False, True, False])
        with pytest.raises(ValueError, match="contains"):
            function(y, P[1])


@pytest.mark.parametrize("function", OF_PROBABILITIES)
def test_rows_of_another_sum_are_taken(xp, device, function):
    y, P = of_many()
    check(function, y, 0.5 * P, xp, device)


@pytest.mark.parametrize("function", PROBABILITY_METRICS)
def test_weights_of_zero_are_nan(xp, device, function):
    for y, P in (of_two(), of_many()):
        assert np.isnan(ours(function, y, P, xp, device, np.zeros(N))).all()


@pytest.mark.parametrize("function", [f for f in PROBABILITY_METRICS if f.__name__.startswith("d2")])
def test_one_row_explains_nothing(xp, device, function):
    scores = ours(function, np.array([1]), np.full((M, 1), 0.3), xp, device, classes=np.array([0, 1]))
    assert np.isnan(scores).all()


@WEIGHTS
def test_hinge_loss(xp, device, weighted):
    y, P = of_many()
    P = rng.normal(size=P.shape)
    check(hinge_loss, y, P, xp, device, weights(weighted))
    check(hinge_loss, y, np.round(P), xp, device, weights(weighted), labels=[0, 1, 2, 3])
    check(hinge_loss, y % 2, P[:, :, 0], xp, device, weights(weighted))
    check(hinge_loss, y % 2, np.rint(2 * P[:, :, 0]).astype(np.int64), xp, device, weights(weighted))


def test_hinge_loss_of_one_class(xp, device):
    P = rng.normal(size=(M, N))
    for only in (0, 1):
        check(hinge_loss, np.full(N, only), P, xp, device)
        scores = ours(hinge_loss, np.full(N, only), P, xp, device, classes=np.array([0, 1]))
        np.testing.assert_allclose(scores, [hinge_loss(np.full(N, only), p) for p in P], rtol=EXACT)


def test_hinge_loss_of_infinite_scores(xp, device):
    y, P = of_two()
    P[1, 3] = np.inf
    np.testing.assert_array_equal(np.isnan(ours(hinge_loss, y, P, xp, device)), [False, True, False])


def test_labels_that_are_texts():
    (y, P), (z, Q) = of_two(), of_many(3)
    y, z = np.array(["no", "yes"])[y], np.array(["a", "b", "c"])[z]
    for function in ENTROPIES:
        check(function, y, P, np, "cpu")
        check(function, z, Q, np, "cpu", labels=["a", "b", "c"])
    for function in SQUARES:
        check(function, y, P, np, "cpu", pos_label="yes")
        check(function, z, Q, np, "cpu")
        with pytest.raises(Unsupported, match="texts"):
            ours(function, y, P, np, "cpu")


@pytest.mark.parametrize("function", PROBABILITY_METRICS)
def test_left_to_scikit_learn(function):
    y, P = of_many()
    with pytest.raises(Unsupported, match="of 4 classes"):
        PROBABILITY_METRICS[function](y, P[:, :, 0])
    with pytest.raises(Unsupported, match="of 4 classes"):
        PROBABILITY_METRICS[function](y, P[:, :, :3])
    with pytest.raises(Unsupported, match="sorted"):
        PROBABILITY_METRICS[function](y, P, labels=[3, 2, 1, 0])
    with pytest.raises(Unsupported, match="not one label a row"):
        PROBABILITY_METRICS[function](np.eye(4)[y], P)
    with pytest.raises(Unsupported, match="strange"):
        PROBABILITY_METRICS[function](y, P, strange=1)
