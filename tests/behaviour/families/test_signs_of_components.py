"""A family whose answers depend on the signs of principal components gives scikit-learn's scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.estimators import Cost, Family, LinearAnswers, MomentSums
from manyfit.metrics import LinearPredictors
from tests._covering import spread
from tests._same_results import both


class PriorRidge(RegressorMixin, BaseEstimator):
    """Shrinks its coefficients towards `prior`: its predictions depend on the signs of the features."""

    def __init__(self, alpha=1.0, prior=0.0):
        self.alpha, self.prior = alpha, prior

    def fit(self, X, y):
        Z, penalty = X - X.mean(axis=0), self.alpha * np.eye(X.shape[1])
        right = Z.T @ (y - y.mean()) + self.alpha * self.prior
        self.coef_ = np.linalg.solve(Z.T @ Z + penalty, right)
        self.intercept_ = y.mean() - X.mean(axis=0) @ self.coef_
        return self

    def predict(self, X):
        return X @ self.coef_ + self.intercept_


class PriorRidgeFamily(Family):
    serves, free, result = (PriorRidge,), frozenset({"alpha", "prior"}), "exact"
    reads = MomentSums()

    def cost(self, estimator, settings, shape):
        return Cost(1.0, 2.0)

    def fit_many(self, estimator, settings, folded):
        for view in map(folded.view, range(folded.n_splits)):
            m, identity = view.weighted, np.eye(view.n_features)
            scatter = np.diag(m.xx) if m.xx.ndim == 1 else m.xx
            coef = np.stack(
                [
                    np.linalg.solve(scatter + s["alpha"] * identity, m.xy + s["alpha"] * s["prior"])
                    for s in settings
                ],
                axis=1,
            )
            at_origin = m.y_mean - np.tensordot(m.x_offset, coef, axes=1)
            on_X = view.to_X(coef.reshape(view.n_features, -1)).reshape(-1, *coef.shape[1:])
            yield LinearAnswers(LinearPredictors(on_X, at_origin, view.origin))


@pytest.mark.parametrize("pca", spread([PCA(4), PCA(4, whiten=True), PCA(svd_solver="full")], 2))
def test_components_have_the_signs_of_sklearn(pca, registered):
    registered(PriorRidgeFamily())
    model = make_pipeline(StandardScaler(), pca, PriorRidge())
    grid = {"priorridge__alpha": [0.1, 10.0], "priorridge__prior": [0.0, 5.0, 20.0]}
    assert both(model, grid, return_train_score=True).report_.fits_done == 0
