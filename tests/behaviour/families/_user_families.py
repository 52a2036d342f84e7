"""Estimators and families such as a user would write."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone

from manyfit.estimators import (
    Cost,
    Family,
    FoldRows,
    LinearAnswers,
    MomentSums,
    Predictions,
)
from manyfit.folds import Unsupported
from manyfit.metrics import LinearPredictors


class Shrunk(RegressorMixin, BaseEstimator):
    """Predicts a multiple of the mean of y."""

    def __init__(self, factor=1.0, flag=False):
        self.factor = factor
        self.flag = flag

    def fit(self, X, y):
        if self.factor < 0:
            raise ValueError(f"factor={self.factor!r} is negative")
        self.value_ = self.factor * np.mean(y) + 50 * self.flag
        return self

    def predict(self, X):
        return np.full(len(X), self.value_)


class ShrunkFamily(Family):
    serves = (Shrunk,)
    free = frozenset({"factor"})
    result = "exact"
    reads = MomentSums()
    calls = 0

    def check(self, estimator, settings):
        if estimator.flag or any(s["factor"] < 0 for s in settings):
            raise Unsupported("flags and negative factors are not served")

    def cost(self, estimator, settings, shape):
        return Cost(1.0, 2.0)

    def fit_many(self, estimator, settings, folded):
        for i in range(folded.n_splits):
            self.calls += 1
            view = folded.view(i)
            factors = np.array([s["factor"] for s in settings])
            at_origin = factors[:, None] * view.weighted.y_mean
            coef = np.zeros((view.origin.size, len(settings), at_origin.shape[1]))
            yield LinearAnswers(LinearPredictors(coef, at_origin, view.origin))


class RowsFamily(ShrunkFamily):
    reads = FoldRows()

    def fit_many(self, estimator, settings, folded):
        for i in range(folded.n_splits):
            fold = folded.fold(i)
            answers = {}
            for role, rows in (("test", fold.X_test), ("train", fold.X_train_score)):
                values = [np.full(len(rows), s["factor"] * fold.y_train.mean()) for s in settings]
                answers[role] = {"predict": np.stack(values)}
            yield Predictions(**answers)


GRID = {"factor": [0.5, 1.0, 2.0]}


class ByAverage(RegressorMixin, BaseEstimator):
    """Predicts a multiple of the weighted mean of y."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y, sample_weight=None):
        self.value_ = self.factor * np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.value_)


class AverageFamily(Family):
    """One real fit for all factors."""

    serves, free, result = (ByAverage,), frozenset({"factor"}), "exact"
    reads = FoldRows(sparse=True, weights=True)

    def cost(self, estimator, settings, shape):
        return Cost(1.0, 2.0, fits=shape.n_splits)

    def fit_many(self, estimator, settings, folded):
        for fold in map(folded.fold, range(folded.n_splits)):
            self.read(fold)
            model = clone(estimator).set_params(factor=1.0)
            model.fit(fold.X_train, fold.y_train, sample_weight=fold.fit_weight)
            factors = np.array([setting["factor"] for setting in settings])[:, None]
            test, train = (factors * model.predict(rows) for rows in (fold.X_test, fold.X_train_score))
            yield Predictions({"predict": test}, {"predict": train}, fits_made=1)

    def read(self, fold):
        pass
