"""Curves of scores on a device, against scikit-learn's: points, warnings, errors, and what crosses."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sm

from manyfit import metrics
from manyfit.metrics.functions._binary_scores import true_places
from tests._covering import covering, spread
from tests.behaviour.metrics._crossings import crossings, here, there
from tests.units.metrics._alike import OWN_DTYPES, Raised, at_home, check

CURVES = ["roc_curve", "precision_recall_curve", "det_curve"]
DROPPING = [(name, {"drop_intermediate": drop}) for name in CURVES for drop in (True, False)]
if hasattr(sm, "confusion_matrix_at_thresholds"):  # since 1.8
    DROPPING.append(("confusion_matrix_at_thresholds", {}))
IDS = [f"{name}-{'-'.join(map(str, options.values()))}" for name, options in DROPPING]


def scores_of(rng: Any, y: Any) -> list[Any]:
    """Different ones, with ties, all the same, integers, unsigned, booleans, in single precision."""
    n = len(y)
    Z = rng.normal(size=n) + y
    some = [Z, np.round(Z), 0 * Z, np.round(3 * Z).astype(np.int64), rng.integers(0, 5, n).astype(np.uint8)]
    return [*some, Z > 0, np.round(Z, 1).astype(np.float32)]


def weights_of(rng: Any, n: int) -> list[Any]:
    """None, some of them zero, integers, all zero; sums of them are exact."""
    return [None, rng.integers(0, 9, n) / 4, rng.integers(1, 4, n), np.zeros(n)]


@pytest.mark.invariant("Tables, reports and curves on a device are scikit-learn's, errors included")
@pytest.mark.parametrize(("name", "options"), spread(DROPPING, 2))
def test_points(name: str, options: dict[str, Any]) -> None:
    rng, numbers = np.random.default_rng(0), 0
    for n in (1, 2, 3, 60):
        y = rng.integers(0, 2, n)
        for truth, label in (
            (y, None),
            (2 * y - 1, None),
            (y + 3, 3),
            (y + y[::-1], 1),
            (0 * y, 1),
            (y > 0, None),
        ):
            for scores, w in product(scores_of(rng, y), weights_of(rng, n)):
                if rng.random() < (0.2 if n == 60 else 0.06):
                    expected, crossed = check(
                        name, truth, scores, sample_weight=w, pos_label=label, **options
                    )
                    if not isinstance(expected, Raised):
                        numbers += 1
                        assert crossed["to_device"] == sum(crossed.values()) - crossed["bytes"] == 1
                        assert crossed["bytes"] <= 56
    assert numbers > 20


@pytest.mark.cases(3)
@pytest.mark.parametrize(("name", "options"), DROPPING, ids=IDS)
def test_any_weights(name: str, options: dict[str, Any]) -> None:
    """Whether a step changes may hang on a rounding, so sums are taken in scikit-learn's order."""
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 2, 300), rng.normal(size=300)
    for w in (rng.random(300), np.full(300, 0.37), rng.random(300) * rng.integers(0, 2, 300)):
        check(name, y, scores, sample_weight=w, pos_label=1, **options)
        if OWN_DTYPES:  # older versions sum ties the other way around
            check(name, y, np.round(scores), sample_weight=w, pos_label=1, **options)
    check(name, y, scores, sample_weight=w.astype(np.float32), pos_label=1, tol=1e-5, **options)


@pytest.mark.parametrize("name", CURVES)
def test_labels_on_the_host(name: str) -> None:
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 2, 50), np.round(rng.normal(size=50), 1)
    for truth, label in (
        (np.array(["no", "yes"])[y], "yes"),
        (np.array(["no", "yes"], dtype=object)[y], "no"),
        (np.array(["no", "yes"])[y], "what"),
        (np.array(["no", "yes"])[y], None),  # refused
        (np.array(["a", "b", "c"])[y + y[::-1]], "b"),
        (y, None),
        (y > 0, True),
        (y + 0.5, 1),  # refused
        (y.astype(object), 1),  # refused
    ):
        _, crossed = check(name, truth, scores, texts=True, pos_label=label)
        assert crossed["bytes"] < 200
    found = at_home(getattr(metrics, name)(y.tolist(), there(scores)))
    for one, other in zip(found, getattr(sm, name)(y, scores), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_positive_label_of_another_type() -> None:
    y, scores = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.7, 0.3, 0.2, 0.9])
    for label in (1.0, True, 0.5, 300, -1, "1", np.int8(1)):
        for kind in (np.int64, np.uint8, np.float32, bool):
            check("roc_curve", y.astype(kind), scores, pos_label=label)
    largest = np.array([2**62, 2**62 + 1, 2**62, 2**62 + 1])
    check("roc_curve", largest, scores[:4], pos_label=2**62 + 1)


STRANGE = {
    "fractions": (np.array([0.5, 1.0, 2.0]), np.ones(3), {}),
    "three classes": (np.array([0, 1, 2]), np.ones(3), {}),
    "other classes": (np.array([3, 4, 4]), np.ones(3), {}),
    "another class": (np.array([5, 5, 5]), np.ones(3), {}),
    "one class": (np.array([1, 1, 1]), np.ones(3), {}),
    "NaN": (np.array([0.0, 1.0, np.nan]), np.ones(3), {"pos_label": 1}),
    "infinite targets": (np.array([0.0, 1.0, np.inf]), np.ones(3), {"pos_label": 1}),
    "NaN among scores": (np.array([0, 1, 1]), np.array([0.0, np.nan, 1.0]), {}),
    "infinite scores": (np.array([0, 1, 1]), np.array([0.0, np.inf, 1.0]), {}),
    "infinite scores in single precision": (
        np.array([0, 1, 1]),
        np.array([0, np.inf, 1], dtype=np.float32),
        {},
    ),
    "scores of several": (np.array([0, 1, 1]), np.ones((3, 2)), {}),
    "targets of several": (np.array([[0, 1], [1, 1], [1, 0]]), np.ones(3), {}),
    "lengths": (np.array([0, 1, 1]), np.ones(4), {}),
    "weights of another length": (np.array([0, 1, 1]), np.ones(3), {"sample_weight": np.ones(2)}),
    "NaN among weights": (np.array([0, 1]), np.ones(2), {"sample_weight": np.array([np.nan, 1.0])}),
    "weights of several": (np.array([0, 1]), np.ones(2), {"sample_weight": np.ones((2, 2))}),
    "no rows": (np.array(1), np.array(1.0), {}),
    "empty": (np.zeros(0), np.zeros(0), {}),
    "option": (np.array([0, 1]), np.ones(2), {"drop_intermediate": "some"}),
    "positive label": (np.array([0, 1]), np.ones(2), {"pos_label": [1]}),
}


@pytest.mark.invariant("Tables, reports and curves on a device are scikit-learn's, errors included")
@pytest.mark.parametrize(("name", "what"), covering(CURVES, STRANGE, strength=1))
def test_what_scikit_learn_refuses(name: str, what: str) -> None:
    y, scores, options = STRANGE[what]
    expected, crossed = check(name, y, scores, **options)
    assert isinstance(expected, Raised) == (what != "one class" or name == "det_curve")
    assert crossed["bytes"] < 250


def test_columns_are_rows() -> None:
    y, scores = np.array([0, 1, 1, 0]), np.array([0.1, 0.7, 0.3, 0.2])
    for one, other in zip(
        metrics.roc_curve(there(y[:, None]), there(scores[:, None])), sm.roc_curve(y, scores), strict=True
    ):
        np.testing.assert_allclose(here(one), other, rtol=1e-12)


def test_extreme_integers_are_in_order() -> None:
    y, low, high = np.array([0, 1, 0, 1]), np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for scores in (np.array([low, high, 0, low + 1]), np.array([0, 2**64 - 1, 1, 2**63], dtype=np.uint64)):
        expected, _ = check("precision_recall_curve", y, scores)
        assert expected[2].tolist() == sorted(scores.tolist())


def test_areas_under_curves_are_the_scores() -> None:
    """A second route: the kernels of the scores, which make no curves."""
    rng = np.random.default_rng(3)
    y, scores, w = (
        rng.integers(0, 2, 3000),
        there(np.round(rng.normal(size=3000), 2)),
        there(rng.random(3000)),
    )
    for drop in (True, False):
        with crossings() as crossed:
            fpr, tpr, _ = metrics.roc_curve(there(y), scores, sample_weight=w, drop_intermediate=drop)
            area = metrics.auc(fpr, tpr)
        assert crossed["to_device"] == 2 and crossed["bytes"] < 60
        wanted = metrics.roc_auc_score(there(y), scores, sample_weight=w)
        assert abs(float(here(area)) - float(here(wanted))) < 1e-12
    precision, recall, _ = metrics.precision_recall_curve(there(y), scores, sample_weight=w)
    steps = here(recall)[:-1] - here(recall)[1:]
    wanted = metrics.average_precision_score(there(y), scores, sample_weight=w)
    assert abs((steps * here(precision)[:-1]).sum() - float(here(wanted))) < 1e-12


def test_area() -> None:
    rng = np.random.default_rng(4)
    for n in (2, 3, 50):
        y = rng.random(n)
        for x in (np.sort(rng.random(n)), np.sort(rng.random(n))[::-1].copy(), np.zeros(n), np.arange(n)):
            _, crossed = check("auc", x, y)
            assert crossed["to_device"] == 1 and crossed["bytes"] == 1
            check("auc", x.astype(np.float32), y.astype(np.float32), tol=1e-5)
            check("auc", x, np.arange(n))
        # Of unsigned integers that fall, scikit-learn's differences wrap.
        falling = np.arange(n)[::-1].copy()
        found = here(metrics.auc(there(falling.astype(np.uint8)), there(y)))
        np.testing.assert_allclose(found, sm.auc(falling, y), rtol=1e-12)
    found = here(metrics.auc([0.0, 0.5, 1.0], there(np.array([1.0, 2.0, 3.0]))))
    assert abs(found - 2.0) < 1e-12


@pytest.mark.parametrize("n", [3, 1000, 1001, 5000])
def test_points_in_no_order_have_no_area(n: int) -> None:
    x = np.random.default_rng(5).random(n)
    expected, crossed = check("auc", x, x)
    assert "x is neither increasing nor decreasing" in expected.says
    assert crossed["bytes"] <= 8 * min(n, 1000) + 1


def test_area_of_strange_points() -> None:
    for x, y in (
        (np.ones(1), np.ones(1)),
        (np.ones(3), np.ones(2)),
        (np.ones((3, 2)), np.ones(3)),
        (np.ones(0),) * 2,
    ):
        expected, _ = check("auc", x, y)
        assert isinstance(expected, Raised)
    check("auc", np.array([0.0, np.nan, 1.0]), np.ones(3))


def test_places_of_a_mask() -> None:
    for mask in ([True], [False], [False, True, False, True, True, False], [False] * 3):
        places, count = true_places(np.array(mask))
        true = np.flatnonzero(mask)
        assert count == len(true)
        assert places.tolist() == (
            true.tolist() + [true[-1]] * (len(mask) - len(true)) if count else [0] * len(mask)
        )


def test_the_docstrings_say_what_the_host_reads() -> None:
    assert "together, and nothing large" in " ".join(metrics.roc_curve.__doc__.split())
    assert "the labels, and which of them are true" in " ".join(metrics.confusion_matrix.__doc__.split())
    assert "The host waits twice to find the labels" in metrics.accuracy_score.__doc__
    assert "The host waits for nothing." in metrics.mean_squared_error.__doc__
