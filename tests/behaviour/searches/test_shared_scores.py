"""Shared answers are scored by the scorer, and with the weights, that scikit-learn would use."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer

from manyfit.estimators import Cost, Family, FoldRows, Predictions
from tests._same_results import WEIGHTS, both

ALPHAS = {"alpha": [1.0, 50.0, 200.0]}


@pytest.mark.parametrize("requests", [(True, False), (False, True), (True, True), (False, False)])
def test_each_scorer_has_the_weights_that_it_requested(requests):
    names = ("r2", "neg_mean_squared_error")
    with config_context(enable_metadata_routing=True):
        scoring = {
            name: get_scorer(name).set_score_request(sample_weight=request)
            for name, request in zip(names, requests, strict=True)
        }
        search = both(
            Ridge().set_fit_request(sample_weight=True),
            ALPHAS,
            scoring=scoring,
            refit=names[1],
            fit_params={"sample_weight": WEIGHTS},
        )
    alike = len(set(requests)) == 1
    assert search.report_.fits_done == (0 if alike else 15)
    assert ("not every scorer is given the sample_weight" in search.report_.groups[0]["reason"]) is not alike


class ScoredByItself(RegressorMixin, BaseEstimator):
    """Predicts a multiple of the mean, and has its own idea of a score."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        self.value_ = self.factor * np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)

    def score(self, X, y):
        return -float(np.abs(y - self.predict(X)).mean())


class FamilyOfIt(Family):
    serves, free, result, reads = (ScoredByItself,), frozenset({"factor"}), "exact", FoldRows()

    def check(self, estimator, settings):
        pass

    def cost(self, estimator, settings, shape):
        return Cost(1.0, 2.0)

    def fit_many(self, estimator, settings, folded):
        for fold in map(folded.fold, range(folded.n_splits)):
            values = [np.full(len(fold.X_test), s["factor"] * fold.y_train.mean()) for s in settings]
            yield Predictions({"predict": np.stack(values)})


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_an_estimators_own_score_is_its_own(scoring, registered):
    registered(FamilyOfIt())
    search = both(ScoredByItself(), {"factor": [0.5, 1.0, 2.0]}, scoring=scoring)
    assert search.report_.fits_done == (15 if scoring is None else 0)
    assert ("ScoredByItself has a score method of its own" in search.report_.groups[0]["reason"]) is (
        scoring is None
    )
