"""
An estimator of your own
========================

Volumes of yesterday, of the day before, and so on predict the volume of a day. Their coefficients should
change smoothly from one day to the next. The estimator below penalizes the differences of neighbouring
coefficients.

A *family* of some twenty lines tells manyfit how to answer all values of ``alpha`` at once. The estimator
reads nothing of X but its means and its scatter matrix, and so does the family: one pass over the rows
serves all settings and splits.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook
from sklearn.base import BaseEstimator, RegressorMixin

from manyfit.estimators import Cost, Family, LinearAnswers, MomentSums, register_family
from manyfit.folds import Unsupported
from manyfit.metrics import LinearPredictors
from manyfit.model_selection import GridSearchCV, TimeSeriesSplit, one_standard_error


def smooth_coefficients(xx, xy, alpha):
    """Solve (xx + alpha D'D) w = xy, where D takes differences of neighbours."""
    D = np.diff(np.eye(len(xx)), axis=0)
    return np.linalg.solve(xx + alpha * D.T @ D, xy)


class SmoothRegression(RegressorMixin, BaseEstimator):
    """Linear regression whose neighbouring coefficients differ little."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        Z = X - X.mean(axis=0)
        self.coef_ = smooth_coefficients(Z.T @ Z, Z.T @ (y - y.mean()), self.alpha)
        self.intercept_ = y.mean() - X.mean(axis=0) @ self.coef_
        return self

    def predict(self, X):
        return X @ self.coef_ + self.intercept_


# %%
# ``reads`` says what the family needs. ``check`` refuses what it cannot answer: then the estimator itself
# is fitted, and the plan gives the reason. ``view.weighted`` has the moments of the training rows of a
# fold.


class SmoothFamily(Family):
    serves, free, result = (SmoothRegression,), frozenset({"alpha"}), "exact"
    reads = MomentSums()

    def check(self, estimator, settings):
        if not all(setting["alpha"] > 0 for setting in settings):
            raise Unsupported("alpha is not positive")

    def cost(self, estimator, settings, shape):
        return Cost(shared=1.0, individual=float(len(settings)))

    def fit_many(self, estimator, settings, folded):
        for view in map(folded.view, range(folded.n_splits)):
            m = view.weighted
            xx = np.diag(m.xx) if m.xx.ndim == 1 else m.xx
            coef = np.stack([smooth_coefficients(xx, m.xy, one["alpha"]) for one in settings], axis=1)
            at_origin = m.y_mean - np.tensordot(m.x_offset, coef, axes=1)
            on_X = view.to_X(coef.reshape(view.n_features, -1)).reshape(-1, *coef.shape[1:])
            yield LinearAnswers(LinearPredictors(on_X, at_origin, view.origin))


register_family(SmoothFamily())

# %%
# From now on every search of this process knows the family. It chooses the smoothest model that is at most
# one standard error worse than the best.

volume = np.log(cbook.get_sample_data("goog.npz")["price_data"]["volume"].astype(float))
X = np.lib.stride_tricks.sliding_window_view(volume, 60)[:-1, ::-1]
y = volume[60:]
grid = {"alpha": np.logspace(-1, 5, 25)}
smoothest = one_standard_error({"alpha": "larger"})
search = GridSearchCV(SmoothRegression(), grid, cv=TimeSeriesSplit(10), refit=smoothest, verify=10)
print(search.fit(X, y).report_)

# %%
# ``verify=10`` fits ten pairs of a setting and a split again, by ``fit`` of the estimator. Do that
# whenever you write a family.

_, ax = plt.subplots(layout="constrained")
days = np.arange(1, 61)
ax.plot(days, SmoothRegression(1e-6).fit(X, y).coef_, color="0.7", label="hardly a penalty")
ax.plot(days, search.best_estimator_.coef_, label=f"alpha = {search.best_params_['alpha']:.0f}, chosen")
ax.set(xlabel="days ago", ylabel="coefficient")
ax.legend()
