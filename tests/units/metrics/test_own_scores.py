"""Scores by the estimators' own `score` are scikit-learn's, or are left to it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.metrics import check_scoring, get_scorer

from manyfit.folds import Unsupported
from manyfit.metrics import ScoredTargets, SharedScoring
from tests.units.metrics._predictions import (
    COUNTS,
    GLMS,
    LABELS,
    MEAN,
    PREDICTED,
    WEIGHT,
    MyPoisson,
    X,
    assert_left,
    assert_same,
    labelled,
    rng,
    scores,
)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize(("estimator", "y"), GLMS.values(), ids=GLMS)
def test_the_score_of_a_generalised_linear_model(estimator, y, weighted):
    weight = WEIGHT[:300] if weighted else None
    models = [clone(estimator).set_params(alpha=alpha).fit(X, y, weight) for alpha in (0.01, 1.0, 100.0)]
    shared = SharedScoring(check_scoring(estimator), {}, estimator)
    predicted = {"predict": np.stack([model.predict(X) for model in models])}
    ours = shared.from_responses(predicted, ScoredTargets(y, weight, given_dtype=y.dtype))["score"]
    assert_same(ours, np.array([model.score(X, y, weight) for model in models]), rel=1e-13, of_one=True)


def test_the_score_of_a_generalised_linear_model_of_float32():
    y = rng.poisson(MEAN)
    model = PoissonRegressor().fit(X.astype(np.float32), y)
    # Of scikit-learn 1.7 the predictions are of float64.
    predicted = {"predict": model.predict(X.astype(np.float32))[None].astype(np.float32)}
    shared = SharedScoring(check_scoring(model), {}, model)
    ours = shared.from_responses(predicted, ScoredTargets(y, given_dtype=y.dtype))["score"]
    theirs = np.array([model.score(X.astype(np.float32), y)])
    assert_same(ours, theirs, rel=1e-5, of_one=True)  # scikit-learn subtracts sums of float32


def test_d2_that_digits_or_targets_do_not_allow_is_left():
    """Then the stub leaves it to the fitted estimator."""
    shared = SharedScoring(check_scoring(PoissonRegressor()), {}, PoissonRegressor())
    cases = [COUNTS[:1], np.ones(400), np.zeros(400), COUNTS - 5.0, 1e12 + COUNTS]
    for y in cases:
        predicted = PREDICTED[:, : len(y)]
        assert_left(shared.from_responses({"predict": predicted}, ScoredTargets(y))["score"])
    broken = PREDICTED.copy()
    broken[0, 0], broken[1, 1], broken[2, 2] = np.nan, np.inf, 0.0
    ours = shared.from_responses({"predict": broken}, ScoredTargets(COUNTS))["score"]
    np.testing.assert_array_equal(np.isnan(ours), np.arange(5) < 3)
    with pytest.raises(Unsupported, match="own score is not had from these predictions"):
        shared.scorer(shared.stub({"predict": PREDICTED[0]}, None), None, COUNTS)


@pytest.mark.parametrize(
    "estimator",
    [
        MyPoisson(),
        TweedieRegressor(power=0),
        TweedieRegressor(power=3),
        TweedieRegressor(power=1, link="identity"),
    ],
)
def test_other_scores_of_their_own_are_refused(estimator):
    with pytest.raises(Unsupported, match="has a score method of its own"):
        SharedScoring(check_scoring(estimator), {}, estimator)
    assert SharedScoring(get_scorer("r2"), {}, estimator).reads_moments


def test_a_classifier_scores_by_accuracy():
    y, responses = labelled(LABELS["texts"])
    model = LogisticRegression()
    assert_same(*scores(None, y, responses, LABELS["texts"], estimator=model))
    shared = SharedScoring(check_scoring(model), {}, model)
    assert not shared.reads_moments and not shared.calls_scorers
