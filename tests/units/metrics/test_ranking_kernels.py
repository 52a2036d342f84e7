"""Ranking metrics of many settings are scikit-learn's, of each array library."""

from __future__ import annotations

import warnings

import array_api_strict
import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    coverage_error,
    dcg_score,
    label_ranking_average_precision_score,
    label_ranking_loss,
    ndcg_score,
    roc_auc_score,
    top_k_accuracy_score,
)

from manyfit.arrays import to_device, to_host
from manyfit.folds import Unsupported
from manyfit.metrics.kernels import _rank_curve as _ranked
from manyfit.metrics.kernels._rank_curve import ROW, average_precisions, roc_areas
from manyfit.metrics.kernels._ranking import RANKING_METRICS

EXACT = 1e-12
FLOAT32 = 1e-5

rng = np.random.default_rng(0)
N, M = 24, 2


def ours(metrics, function, y, P, xp, device, weight=None, **options):
    """Scores of one call, where no shape may depend on data."""
    y, P, weight = (None if a is None else to_device(a, device, xp) for a in (y, P, weight))
    with array_api_strict.ArrayAPIStrictFlags(data_dependent_shapes=False):
        scores = metrics[function](y, P, sample_weight=weight, **options)
    assert scores.shape == P.shape[:1]
    return to_host(scores)


def theirs(function, y, P, weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([function(y, scores, sample_weight=weight, **options) for scores in P])


def check(function, y, P, xp, device, weight=None, tolerance=EXACT, **options):
    expected = theirs(function, y, P, weight, **options)
    scores = ours(RANKING_METRICS, function, y, P, xp, device, weight, **options)
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)


def of_two(ties, n=N, m=M):
    y = rng.integers(0, 2, n)
    scores = rng.normal(size=(m, n)) + y
    return y, np.round(scores, 1) if ties else scores


def of_many(K=4, n=N, m=M, ties=False):
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    P = rng.random((m, n, K)) + 0.3 * (y[:, None] == np.arange(K))
    P = np.round(P, 1) + 0.1 if ties else P
    return y, P / P.sum(axis=2, keepdims=True)


def of_labels(L=5, n=N, m=M):
    Y = rng.integers(0, 2, (n, L))
    Y[0], Y[1] = 0, 1
    return Y, np.round(rng.normal(size=(m, n, L)), 1)


def weights(kind, n=N):
    if kind is None:
        return None
    weight = rng.random(n)
    weight[::3] = 0
    return weight


WEIGHTS = pytest.mark.parametrize("weighted", [None, "with zeros"])
TIES = pytest.mark.parametrize("ties", [False, True])
APART = pytest.mark.parametrize("n", [N, ROW])  # all scores in one order; NumPy's two classes apart


RANKED = {
    "apart": lambda P: P,
    "ties": lambda P: np.round(P, 1),
    "equal": np.zeros_like,
    "float32": lambda P: P.astype(np.float32),
    "integers": lambda P: np.rint(3 * P).astype(np.int64),
}


@pytest.mark.cases(32)
@WEIGHTS
@pytest.mark.parametrize("ranked", RANKED)
@APART
@pytest.mark.parametrize("function", [roc_auc_score, average_precision_score])
def test_two_classes(xp, device, function, n, ranked, weighted):
    y, P = of_two(False, n)
    P, tolerance = RANKED[ranked](P), FLOAT32 if ranked == "float32" else EXACT
    for settings in (P, P[:1]):
        check(function, y, settings, xp, device, weights(weighted, n), tolerance)


@WEIGHTS
@APART
@pytest.mark.parametrize("max_fpr", [0.01, 0.3, 0.999, 1])
def test_partial_area(xp, device, weighted, max_fpr, n):
    check(roc_auc_score, *of_two(True, n), xp, device, weights(weighted, n), max_fpr=max_fpr)


@APART
@pytest.mark.parametrize("only", [0, 1])
def test_one_class(xp, device, only, n):
    _, P = of_two(True, n)
    y, classes = np.full(n, only), np.array([0, 1])
    for known in (classes, None):
        assert np.isnan(ours(RANKING_METRICS, roc_auc_score, y, P, xp, device, classes=known)).all()
        precision = ours(RANKING_METRICS, average_precision_score, y, P, xp, device, classes=known)
        np.testing.assert_allclose(precision, theirs(average_precision_score, y, P), rtol=EXACT)


@APART
def test_class_without_weight(xp, device, n):
    y, P = of_two(True, n)
    for weight in ((y == 1).astype(float), (y == 0).astype(float)):
        area = ours(RANKING_METRICS, roc_auc_score, y, P, xp, device, weight)
        assert np.isnan(area).all()
        check(average_precision_score, y, P, xp, device, weight)


@APART
@pytest.mark.parametrize("function", [roc_auc_score, average_precision_score])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_refused_scores_are_nan(xp, device, function, value, n):
    y, P = of_two(False, n)
    P[1, 3] = value
    scores = ours(RANKING_METRICS, function, y, P, xp, device)
    np.testing.assert_array_equal(np.isnan(scores), [False, True])
    with pytest.raises(ValueError, match="contains"):
        function(y, P[1])


@APART
def test_positive_label(xp, device, n):
    y, P = of_two(True, n)
    check(average_precision_score, y, P, xp, device, pos_label=0)
    check(average_precision_score, 2 * y + 1, P, xp, device, pos_label=3)
    with pytest.raises(Unsupported, match="pos_label=7"):
        ours(RANKING_METRICS, average_precision_score, y, P, xp, device, pos_label=7)


@pytest.mark.cases(8)
@WEIGHTS
@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@TIES
def test_area_of_one_against_the_rest(xp, device, weighted, average, ties):
    options = {"multi_class": "ovr", "average": average, "labels": [0, 1, 2, 3] if ties else None}
    check(roc_auc_score, *of_many(ties=ties), xp, device, weights(weighted), **options)


@pytest.mark.cases(3)
@pytest.mark.parametrize("average", ["macro", "weighted"])
@TIES
def test_area_of_one_against_one(xp, device, average, ties):
    y, P = of_many(ties=ties)
    check(roc_auc_score, y, P, xp, device, multi_class="ovo", average=average)
    # Only two of four classes are there.
    y, labels = np.where(y < 2, 1, 3), [0, 1, 2, 3]
    check(roc_auc_score, y, P, xp, device, multi_class="ovo", average=average, labels=labels)


def test_absent_class(xp, device):
    y, P = of_many()
    some, classes = np.where(y == 2, 1, y), np.arange(4)
    area = ours(RANKING_METRICS, roc_auc_score, some, P, xp, device, classes=classes, multi_class="ovr")
    precision = ours(RANKING_METRICS, average_precision_score, some, P, xp, device, classes=classes)
    assert np.isnan(area).all() and np.isnan(precision).all()
    labels = {"labels": [0, 1, 2, 3], "multi_class": "ovr"}
    check(roc_auc_score, some, P, xp, device, average="weighted", **labels)
    assert np.isnan(ours(RANKING_METRICS, roc_auc_score, some, P, xp, device, **labels)).all()


def test_area_needs_rows_that_sum_to_one(xp, device):
    y, P = of_many()
    P[1, 0] *= 1.001
    scores = ours(RANKING_METRICS, roc_auc_score, y, P, xp, device, multi_class="ovr")
    np.testing.assert_array_equal(np.isnan(scores), [False, True])


@pytest.mark.cases(6)
@WEIGHTS
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "samples"])
def test_precision_of_many_classes(xp, device, weighted, average):
    check(average_precision_score, *of_many(), xp, device, weights(weighted), average=average)


@pytest.mark.cases(12)
@WEIGHTS
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "samples"])
@pytest.mark.parametrize("function", [roc_auc_score, average_precision_score])
def test_indicators(xp, device, weighted, average, function):
    Y, P = of_labels()
    if function is roc_auc_score and average == "samples":
        Y, P = Y[2:], P[:, 2:]  # the others are NaN, and so is the mean
        varied = Y.any(axis=1) & ~Y.all(axis=1)
        Y, P = Y[varied], P[:, varied]
    check(function, Y, P, xp, device, weights(weighted, len(Y)), average=average)


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_indicators_of_no_row(xp, device, average):
    Y, P = of_labels()
    Y[:, 1] = 0
    check(average_precision_score, Y, P, xp, device, average=average)
    check(average_precision_score, 0 * Y, P, xp, device, average=average)


@WEIGHTS
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_top_k(xp, device, weighted, normalize, k):
    options = {"k": k, "normalize": normalize}
    check(top_k_accuracy_score, *of_many(ties=True), xp, device, weights(weighted), **options)
    y, P = of_two(False)
    check(top_k_accuracy_score, y, P, xp, device, weights(weighted), **options)
    check(top_k_accuracy_score, y, 1 / (1 + np.exp(-P)), xp, device, weights(weighted), **options)


def test_top_k_takes_the_greater_class_of_equal_scores(xp, device):
    y, P = np.array([0, 1, 2, 2]), np.zeros((1, 4, 3))
    scores = ours(RANKING_METRICS, top_k_accuracy_score, y, P, xp, device, k=1)
    np.testing.assert_array_equal(scores, [0.5])
    check(top_k_accuracy_score, y, P, xp, device, k=1)


def test_top_k_of_labels(xp, device):
    y, P = of_many()
    few = np.where(y < 2, 1, 3)
    check(top_k_accuracy_score, few, P, xp, device, labels=[0, 1, 2, 3])
    scores = ours(RANKING_METRICS, top_k_accuracy_score, few, P, xp, device, classes=np.arange(4))
    assert np.isnan(scores).all()
    with pytest.raises(Unsupported, match="sorted"):
        ours(RANKING_METRICS, top_k_accuracy_score, few, P, xp, device, labels=[3, 2, 1, 0])


@pytest.mark.cases(8)
@WEIGHTS
@pytest.mark.parametrize(
    "function", [label_ranking_average_precision_score, label_ranking_loss, coverage_error]
)
@pytest.mark.parametrize("L", [2, 9])
def test_label_rankings(xp, device, weighted, function, L):
    Y, P = of_labels(L)
    check(function, Y, P, xp, device, weights(weighted))
    check(function, Y, 0 * P, xp, device, weights(weighted))


@pytest.mark.cases(6)
@WEIGHTS
@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("ignore_ties", [False, True])
def test_gains(xp, device, weighted, k, ignore_ties):
    Y, P = of_labels()
    P = rng.normal(size=P.shape) if ignore_ties else P
    options = {"k": k, "ignore_ties": ignore_ties}
    check(ndcg_score, Y, P, xp, device, weights(weighted), **options)
    check(dcg_score, Y, P, xp, device, weights(weighted), log_base=10, **options)
    gains = rng.normal(size=Y.shape)
    check(dcg_score, gains, P, xp, device, weights(weighted), **options)
    check(ndcg_score, np.abs(gains), P, xp, device, weights(weighted), **options)


def test_negative_gains_are_refused(xp, device):
    Y, P = of_labels()
    assert np.isnan(ours(RANKING_METRICS, ndcg_score, -1.0 * Y, P, xp, device)).all()


@pytest.mark.parametrize(
    ("function", "options", "K", "text"),
    [
        (roc_auc_score, {}, 4, "multi_class='raise'"),
        (roc_auc_score, {"multi_class": "ovr", "max_fpr": 0.5}, 4, "max_fpr=0.5"),
        (roc_auc_score, {"multi_class": "ovo", "average": None}, 4, "average=None"),
        (roc_auc_score, {"max_fpr": 2.0}, None, "max_fpr=2.0"),
        (roc_auc_score, {"multi_class": "ovr"}, None, "of 4 classes"),
        (average_precision_score, {"pos_label": 2}, 4, "pos_label=2"),
        (label_ranking_loss, {}, 4, "n_labels"),
    ],
)
def test_left_to_scikit_learn(function, options, K, text):
    y, P = of_many()
    with pytest.raises(Unsupported, match=text):
        RANKING_METRICS[function](y, P if K and text != "of 4 classes" else P[:, :, 0], **options)


def test_one_against_one_takes_no_weights():
    y, P = of_many()
    with pytest.raises(Unsupported, match="these weights"):
        RANKING_METRICS[roc_auc_score](y, P, multi_class="ovo", sample_weight=weights("with zeros"))


@pytest.mark.parametrize("function", RANKING_METRICS)
def test_one_setting_at_a_time(xp, device, function):
    Y, P = of_many(m=3) if function is top_k_accuracy_score else of_labels(m=3)
    scores = ours(RANKING_METRICS, function, Y, P, xp, device)
    one_by_one = ours(RANKING_METRICS, function, Y, P, xp, device, max_bytes=1)
    np.testing.assert_allclose(one_by_one, scores, rtol=EXACT)


@WEIGHTS
def test_classes_apart_are_the_second_route(monkeypatch, weighted):
    y, P = of_two(True, 2 * ROW)
    weight, values = weights(weighted, 2 * ROW), {}
    for row in (ROW, 10 * ROW):
        monkeypatch.setattr(_ranked, "ROW", row)
        values[row] = roc_areas(P, y == 1, weight), average_precisions(P, y == 1, weight)
    np.testing.assert_allclose(values[ROW], values[10 * ROW], rtol=EXACT)
