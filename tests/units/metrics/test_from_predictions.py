"""Scores of many settings at once are scikit-learn's, or are left to scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import (
    Ridge,
)
from sklearn.metrics import get_scorer, log_loss, make_scorer, mean_squared_error

from manyfit.metrics import ScoredTargets, SharedScoring
from tests._covering import covering
from tests.units.metrics._predictions import (
    COUNTS,
    EXACT,
    LABELS,
    PREDICTED,
    WEIGHT,
    Y,
    assert_left,
    assert_same,
    labelled,
    rng,
    scores,
)

FLOAT32 = 1e-6  # scikit-learn's own sums are of float32 in one version and of float64 in another
CLASS_SCORES = ["accuracy", "balanced_accuracy", "neg_log_loss", "neg_brier_score"]


@pytest.mark.invariant("A shared score is right, or scikit-learn computes it")
@pytest.mark.parametrize(
    ("weighted", "kind", "scoring"),
    covering({"": False, "weights": True}.items(), LABELS, CLASS_SCORES, strength=1),
)
def test_classification(scoring, kind, weighted):
    classes = LABELS[kind]
    y, responses = labelled(classes)
    weight = rng.integers(0, 3, len(y)) + rng.random(len(y)) if weighted else None
    ours, theirs = scores(scoring, y, responses, classes, weight)
    if scoring == "neg_brier_score" and kind in ("texts", "objects"):
        assert_left(ours)
    else:
        # A weighted confusion matrix is summed row by row, in any order of its cells.
        assert_same(ours, theirs, 1e-13 if scoring == "balanced_accuracy" else EXACT)


@pytest.mark.parametrize("scoring", CLASS_SCORES)
def test_a_target_that_is_no_class(scoring):
    y, responses = labelled(LABELS["three"])
    y[0] = 9
    assert_left(scores(scoring, y, responses, LABELS["three"])[0])


def test_one_row():
    y, responses = labelled(LABELS["integers"])
    one = {name: of_all[:, :1] for name, of_all in responses.items()}
    assert_same(*scores("accuracy", y[:1], one, LABELS["integers"]))
    for scoring in CLASS_SCORES[1:]:
        assert_left(scores(scoring, y[:1], one, LABELS["integers"])[0])


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
def test_rows_that_do_not_sum_to_one(scoring):
    """Of two classes scikit-learn reads one column only."""
    y, responses = labelled(LABELS["three"])
    responses["predict_proba"][1] *= 1 - 1e-6
    ours, theirs = scores(scoring, y, responses, LABELS["three"])
    np.testing.assert_array_equal(np.isnan(ours), [False, True, False, False])
    np.testing.assert_array_equal(np.isnan(theirs), np.isnan(ours))
    y, responses = labelled(LABELS["integers"])
    responses["predict_proba"][1, :, 0] *= 0.5
    assert_same(*scores(scoring, y, responses, LABELS["integers"]))


def test_predictions_that_are_no_class():
    y, responses = labelled(LABELS["floats"])
    responses["predict"][0, 3] = 1.5
    ours, theirs = scores("accuracy", y, responses, LABELS["floats"])
    assert np.isnan(ours[0]) and np.isnan(theirs[0])
    assert_same(ours[1:], theirs[1:])
    y, responses = labelled(LABELS["objects"])
    responses["predict"][0, 3] = 7
    assert np.isnan(scores("accuracy", y, responses, LABELS["objects"])[0]).tolist() == [True] + [False] * 3


def test_what_1_7_may_warn_of_is_left():
    classes = np.arange(20)
    y, responses = labelled(classes, n=30)
    assert_left(scores("accuracy", y, responses, classes)[0])


def test_labels_in_another_order_or_of_another_kind_are_left():
    y, responses = labelled(LABELS["three"])
    for classes in (LABELS["three"][::-1], LABELS["three"].astype(float), np.array([1, 1, 2]), None):
        truth = ScoredTargets(y, None, classes, y.dtype)
        for name in CLASS_SCORES:
            shared = SharedScoring(get_scorer(name), {}, DummyClassifier())
            assert_left(shared.from_responses(responses, truth)["score"])


# Regression

NUMBER_SCORES = [
    "r2",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "neg_mean_poisson_deviance",
    "neg_mean_gamma_deviance",
]
WHOLE = COUNTS + 1


def possible(scoring, y):
    return scoring != "neg_mean_gamma_deviance" or y.min() > 0


@pytest.mark.invariant("A shared score is right, or scikit-learn computes it")
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("y", [Y, COUNTS, COUNTS + 1], ids=["floats", "counts", "positive counts"])
@pytest.mark.parametrize("scoring", NUMBER_SCORES)
def test_regression(scoring, y, weight):
    ours, theirs = scores(scoring, y, {"predict": PREDICTED}, weight=weight)
    if possible(scoring, y):
        assert_same(ours, theirs, of_one=scoring == "r2")
    else:
        assert_left(ours)


@pytest.mark.parametrize(
    ("weight", "y", "scoring"),
    covering(
        {"": None, "weights": WEIGHT}.items(),
        {"float32": Y.astype(np.float32), "float64": Y, "a list": Y.tolist(), "integers": WHOLE}.items(),
        NUMBER_SCORES,
        strength=1,
    ),
)
def test_float32_predictions(scoring, y, weight):
    ours, theirs = scores(scoring, y, {"predict": PREDICTED.astype(np.float32)}, weight=weight)
    if y is WHOLE and weight is None:  # scikit-learn computes in single precision, which y does not have
        assert_left(ours)
    else:
        assert_same(ours, theirs, rel=FLOAT32, of_one=scoring == "r2")


@pytest.mark.invariant("A shared score is right, or scikit-learn computes it")
@pytest.mark.parametrize("scoring", NUMBER_SCORES)
def test_values_that_scikit_learn_refuses(scoring):
    for value in (np.nan, np.inf, -np.inf):
        broken = PREDICTED.copy()
        broken[3, 5] = value
        ours, theirs = scores(scoring, Y, {"predict": broken})
        np.testing.assert_array_equal(np.isnan(ours), np.arange(5) == 3)
        np.testing.assert_array_equal(np.isnan(theirs), np.isnan(ours))
        assert_left(scores(scoring, np.r_[Y[1:], value], {"predict": PREDICTED})[0])


def test_r2_of_few_or_equal_targets_is_left():
    assert_left(scores("r2", Y[:1], {"predict": PREDICTED[:, :1]})[0])
    assert_left(scores("r2", np.full(400, 0.1), {"predict": PREDICTED})[0])
    only = np.zeros(400)
    only[7] = 1.0
    assert_left(scores("r2", Y, {"predict": PREDICTED}, weight=only)[0])
    assert_same(*scores("r2", Y, {"predict": np.stack([Y, np.full(400, Y.mean())])}), of_one=False, rel=1e-13)


@pytest.mark.parametrize("scoring", NUMBER_SCORES[1:])
def test_one_row_and_equal_targets(scoring):
    assert_same(*scores(scoring, Y[:1], {"predict": PREDICTED[:, :1]}))
    assert_same(*scores(scoring, np.full(400, 0.1), {"predict": PREDICTED}))


@pytest.mark.parametrize("scoring", NUMBER_SCORES)
def test_what_is_unusual_is_left(scoring):
    two = np.stack([Y, Y], axis=1)
    assert_left(scores(scoring, two, {"predict": np.stack([PREDICTED] * 2, axis=2)})[0])
    assert_left(scores(scoring, Y, {"predict": PREDICTED[:, :, None]})[0])
    assert_left(scores(scoring, Y, {"predict": PREDICTED}, weight=np.zeros(400))[0])
    assert_left(scores(scoring, Y, {"predict": np.ones((5, 400), dtype=int)})[0])
    assert_left(scores(scoring, Y.astype(object), {"predict": PREDICTED})[0])


@pytest.mark.parametrize("n", [1, 100, 20_000, 200_000])
def test_many_settings_and_rows_in_chunks(n):
    m = 200_000 // n
    P = np.random.default_rng(n).random((m, n)) + 0.5
    y = np.random.default_rng(1).random(n) + 0.5
    ours, _ = scores("neg_mean_squared_error", y, {"predict": P[:1]})
    shared = SharedScoring(get_scorer("neg_mean_squared_error"), {}, Ridge())
    all_scores = shared.from_responses({"predict": P}, ScoredTargets(y, given_dtype=y.dtype))["score"]
    np.testing.assert_allclose(all_scores, -((P - y) ** 2).mean(axis=1), rtol=1e-12)  # another formula
    assert all_scores[0] == ours[0]


# Which scorers


OTHERS = {
    "arguments": make_scorer(log_loss, response_method="predict_proba", normalize="no"),
    "their own": make_scorer(lambda y, p: 0.0),
}


@pytest.mark.parametrize("scorer", OTHERS.values(), ids=OTHERS)
def test_other_scorers_are_asked(scorer):
    shared = SharedScoring(scorer, {}, Ridge())
    assert shared.calls_scorers
    assert shared.from_responses({"predict": PREDICTED}, ScoredTargets(Y)) == {}


def test_the_sign_is_the_scorers():
    positive = SharedScoring(make_scorer(mean_squared_error), {}, Ridge())
    negative = SharedScoring(get_scorer("neg_mean_squared_error"), {}, Ridge())
    one, other = (
        s.from_responses({"predict": PREDICTED}, ScoredTargets(Y))["score"] for s in (positive, negative)
    )
    np.testing.assert_array_equal(one, -other)
    assert (one > 0).all()
