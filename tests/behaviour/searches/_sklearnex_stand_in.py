"""Classes that stand in for scikit-learn-intelex's: they count fits, and most are wrong by a known amount."""

from __future__ import annotations

from collections import Counter

from sklearn import ensemble, naive_bayes, neighbors, svm

FITS: Counter[str] = Counter()
NEAR, FAR = 1e-9, 0.1


class SVR(svm.SVR):
    """Near the truth, but far from it with a sigmoid kernel; and it has a parameter of its own."""

    def __init__(self, kernel="rbf", C=1.0, n_jobs=None, **others):
        super().__init__(kernel=kernel, C=C, **others)
        self.n_jobs = n_jobs

    @classmethod
    def _get_param_names(cls):
        return sorted([*svm.SVR._get_param_names(), "n_jobs"])

    def fit(self, X, y, sample_weight=None):
        FITS[self.kernel] += 1
        return super().fit(X, y, sample_weight)

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, sample_weight) + (FAR if self.kernel == "sigmoid" else NEAR)


class NuSVR(svm.NuSVR):
    """It fails with C = 2."""

    def fit(self, X, y, sample_weight=None):
        FITS["nu"] += 1
        if self.C == 2.0:
            raise ValueError("no fit with C = 2")
        return super().fit(X, y, sample_weight)


class SVC(svm.SVC):
    """As scikit-learn's."""

    def fit(self, X, y, sample_weight=None):
        FITS["classes"] += 1
        return super().fit(X, y, sample_weight)


class RandomForestRegressor(ensemble.RandomForestRegressor):
    """It draws."""

    def fit(self, X, y, sample_weight=None):
        FITS["forest"] += 1
        return super().fit(X, y, sample_weight)


MODULES = {
    "sklearnex": {},
    "sklearnex.svm": {"SVR": SVR, "NuSVR": NuSVR, "SVC": SVC},
    "sklearnex.ensemble": {"RandomForestRegressor": RandomForestRegressor},
    # Names that scikit-learn-intelex hands on from scikit-learn.
    "sklearnex.neighbors": {"KNeighborsRegressor": neighbors.KNeighborsRegressor},
    "sklearnex.naive_bayes": {"GaussianNB": naive_bayes.BernoulliNB},
}
