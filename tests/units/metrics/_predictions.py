"""Targets, predictions, and the comparison of shared scores with scikit-learn's."""

from __future__ import annotations

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import (
    GammaRegressor,
    PoissonRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.metrics import check_scoring

from tests.units.metrics._shared_scores import shared_and_own

# What the order of summation may do to a score, or to 1 - score where the score is 1 minus a quotient.
EXACT = 1e-14
rng = np.random.default_rng(0)


def scores(scoring, y, responses, classes=None, weight=None, estimator=None):
    """Our scores and scikit-learn's of a scorer by name, or of an estimator's own score."""
    estimator = estimator or (Ridge() if classes is None else DummyClassifier())
    return shared_and_own(check_scoring(estimator, scoring=scoring), estimator, y, responses, classes, weight)


def assert_same(ours, theirs, rel=EXACT, of_one=False):
    assert np.isfinite(theirs).all()
    scale = 1 - theirs if of_one else theirs
    assert np.all(np.abs(ours - theirs) <= rel * np.abs(scale)), (ours, theirs)


def assert_left(ours):
    assert np.isnan(ours).all(), ours


LABELS = {
    "integers": np.array([0, 1]),
    "other integers": np.array([-3, 7], dtype=np.int8),
    "booleans": np.array([False, True]),
    "floats": np.array([1.0, 2.0]),
    "texts": np.array(["no", "yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "three": np.array([1, 2, 5]),
    "three texts": np.array(["a", "b", "c"]),
    "ten": np.arange(10),
}


def labelled(classes, n=300, m=4):
    """Targets, and what m settings say of them."""
    local = np.random.default_rng(len(classes))
    y = classes[np.concatenate([np.arange(len(classes)), local.integers(0, len(classes), n - len(classes))])]
    P = local.random((m, n, len(classes)))
    P = P / P.sum(axis=2, keepdims=True)
    if len(classes) == 2:
        P[:, :, 0] = 1 - P[:, :, 1]
    return y, {"predict": classes[P.argmax(axis=2)], "predict_proba": P}


PREDICTED = np.exp(rng.normal(size=(5, 400)) / 2)
Y = PREDICTED[0] * rng.gamma(2.0, 0.5, 400)
COUNTS = rng.poisson(PREDICTED[0])
WEIGHT = rng.integers(0, 3, 400) + rng.random(400)
X = rng.normal(size=(300, 4))
MEAN = np.exp(X @ [0.3, -0.2, 0.1, 0.4])
GLMS = {
    "poisson": (PoissonRegressor(), rng.poisson(MEAN)),
    "poisson, floats": (PoissonRegressor(), MEAN * rng.gamma(2.0, 0.5, 300)),
    "gamma": (GammaRegressor(), MEAN * rng.gamma(2.0, 0.5, 300)),
    "tweedie 1": (TweedieRegressor(power=1), rng.poisson(MEAN)),
    "tweedie 1.5": (TweedieRegressor(power=1.5, link="log"), rng.poisson(MEAN) * 1.5),
    "tweedie 2": (TweedieRegressor(power=2), MEAN * rng.gamma(2.0, 0.5, 300)),
    "large": (PoissonRegressor(), rng.poisson(1e4 * MEAN)),
}


class MyPoisson(PoissonRegressor):
    pass
