"""Metrics of labels of many settings, against scikit-learn's for each setting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sm

from manyfit._compat import negative_likelihood_ratio, positive_likelihood_ratio
from tests._covering import covering
from tests.units.metrics._label_kernels import (
    BINARY,
    CLUSTERS,
    PLACES,
    RATIOS,
    SETS,
    WEIGHTED,
    check,
    data,
    many,
    one_by_one,
)


def names(cases: list[tuple[Any, dict[str, Any]]]) -> list[str]:
    return [f"{metric.__name__}-{options}" for metric, options in cases]


@pytest.mark.cases(40)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("metric", "options"), WEIGHTED + CLUSTERS, ids=names(WEIGHTED + CLUSTERS))
def test_several_classes(metric: Any, options: dict[str, Any], place: str) -> None:
    y, P, _ = data()
    expected = check(metric, y, P, place, **options)
    assert np.isfinite(expected).all() and len(set(expected)) > 2


@pytest.mark.parametrize(("place", "metric", "options"), covering(PLACES, WEIGHTED, strength=1))
def test_weights(metric: Any, options: dict[str, Any], place: str) -> None:
    y, P, weight = data(1)
    weight[y == 2] = 0.0  # a class of no weight is present nonetheless
    expected = check(metric, y, P[[0, 2, 3]], place, weight, **options)
    assert not np.allclose(expected[:1], one_by_one(metric, y, P[:1], **options), rtol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_weights_in_single_precision(place: str) -> None:
    y, P, weight = data(1)
    for metric, options in WEIGHTED[::4]:
        check(metric, y, P[[0, 3]], place, weight.astype(np.float32), tol=1e-5, **options)


@pytest.mark.parametrize("place", PLACES)
def test_integers_as_weights(place: str) -> None:
    y, P, weight = data(1)
    weight = (weight * 10).astype(np.int64)
    for metric in (sm.accuracy_score, sm.matthews_corrcoef):
        check(metric, y, P, place, weight)
    check(sm.f1_score, y, P, place, weight, average="macro")


@pytest.mark.parametrize("place", PLACES)
def test_without_any_weight_nothing_is_scored(place: str) -> None:
    """As scikit-learn 1.9, which refuses it; older versions did not for all metrics."""
    y, P, weight = data(2, k=2)
    for metric, options in (WEIGHTED + BINARY)[::3]:
        assert np.isnan(many(metric, y, P, place, 0 * weight, **options)).all()


@pytest.mark.cases(8)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("metric", "options"), BINARY + RATIOS, ids=names(BINARY + RATIOS))
def test_two_classes(metric: Any, options: dict[str, Any], place: str) -> None:
    y, P, weight = data(3, k=2)
    expected = check(metric, y, P, place, **options)
    # The fourth predicts a third class.
    assert np.isnan(expected).tolist() == [False] * 3 + [True, False]
    for constant in (0 * y, 0 * y + 1):
        check(metric, constant, P[[0, 2]], place, **options)
    if metric not in (positive_likelihood_ratio, negative_likelihood_ratio):
        check(metric, y, P[:1], place, weight, **options)
        check(metric, 0 * y + 5, P[4:] + 5, place, **options)


@pytest.mark.parametrize(("place", "metric", "options"), covering(PLACES, WEIGHTED + CLUSTERS, strength=1))
def test_one_class(metric: Any, options: dict[str, Any], place: str) -> None:
    y, P, weight = data(4, k=3)
    y[:], P[1], P[2] = 2, 2, 7
    check(metric, y, P[:3], place, weight if (metric, options) in WEIGHTED else None, **options)


@pytest.mark.cases(20)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("metric", [*SETS, sm.cohen_kappa_score])
@pytest.mark.parametrize("labels", [[2, 0], [3, 9, 1], [5], np.array([0, 1, 2, 3])])
def test_labels(metric: Any, labels: Any, place: str) -> None:
    y, P, weight = data(5)
    many_options = [{"average": average} for average in ("micro", "macro", "weighted")]
    if metric is sm.cohen_kappa_score:
        many_options = [{}, {"weights": "linear"}, {"weights": "quadratic", "replace_undefined_by": 0.25}]
        if not hasattr(sm, "metric_at_thresholds"):  # new in the version that has replace_undefined_by
            many_options = many_options[:2]
    for options in many_options:
        check(metric, y, P[[0, 3]], place, weight, labels=labels, **options)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("metric", SETS)
def test_values_of_all_labels(metric: Any, place: str) -> None:
    y, P, weight = data(6)
    found = many(metric, y, P, place, weight, average=None)
    assert found.shape == (5, 5)  # with the class that only one setting predicts
    assert np.isnan(found[:, 4]).tolist() == [True] * 3 + [False, True]
    for one, values in zip(P, found, strict=True):
        expected = one_by_one(metric, y, [one], weight, average=None)[0]
        np.testing.assert_allclose(values[: len(expected)], expected, rtol=1e-12)
    check(metric, y, P, place, average=None, labels=[3, 0, 8])


MULTILABEL = [
    *((metric, {}) for metric in (sm.accuracy_score, sm.zero_one_loss, sm.hamming_loss)),
    (sm.accuracy_score, {"normalize": False}),
    *((m, {"average": a}) for m in SETS for a in (None, "micro", "macro", "weighted", "samples")),
    *((metric, {"average": "samples", "labels": [2, 0], "zero_division": 1}) for metric in SETS),
    *((metric, {"average": "macro", "labels": [1]}) for metric in SETS),
    (sm.f1_score, {"average": "samples", "zero_division": np.nan}),
    (sm.fbeta_score, {"average": "samples", "beta": 2}),
]


@pytest.mark.parametrize(("place", "metric", "options"), covering(PLACES, MULTILABEL, strength=1))
def test_indicators(metric: Any, options: dict[str, Any], place: str) -> None:
    rng = np.random.default_rng(7)
    y, P = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, (2, 40, 3))
    y[:4], P[1, :8] = 0, 0
    check(metric, y, P, place, **options)
    check(metric, y, P[1:], place, rng.integers(0, 3, 40) * 0.3, **options)


@pytest.mark.parametrize("place", PLACES)
def test_boolean_indicators_and_no_weight(place: str) -> None:
    rng = np.random.default_rng(7)
    y, P = rng.integers(0, 2, (40, 3)), rng.integers(0, 2, (2, 40, 3))
    for metric, options in MULTILABEL[::3]:
        found = many(metric, y > 0, P > 0, place, **options)
        np.testing.assert_array_equal(found, many(metric, y, P, place, **options))
        assert np.isnan(many(metric, y, P, place, np.zeros(40), **options)).all()


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_indicator_is_refused(place: str) -> None:
    y = np.array([[0, 1], [1, 1], [1, 0]])
    P = np.stack([y, y])
    P[1, 0, 0] = 3
    for metric, options in [
        (sm.accuracy_score, {}),
        (sm.hamming_loss, {}),
        (sm.f1_score, {"average": "samples"}),
    ]:
        assert np.isnan(many(metric, y, P, place, **options)).tolist() == [False, True]
