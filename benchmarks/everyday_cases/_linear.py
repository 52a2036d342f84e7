"""Linear models, naive Bayes and discriminant analysis on arrays."""

from __future__ import annotations

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.everyday_cases._case import grid
from benchmarks.everyday_cases._data import breast_cancer, classes, counts, digits, numbers

_C = np.logspace(-2, 2, 10)
_ALPHAS = np.logspace(-2, 2, 10)

grid("ridge", numbers(20_000, 50), Ridge(), {"alpha": _ALPHAS})
grid("ridge-classifier", classes(20_000, 50), RidgeClassifier(), {"alpha": _ALPHAS})
grid("lasso", numbers(5_000, 200), Lasso(), {"alpha": _ALPHAS})
grid("elastic-net", numbers(5_000, 100), ElasticNet(), {"alpha": _ALPHAS, "l1_ratio": [0.1, 0.5, 0.9]})
grid("huber", numbers(3_000, 20), HuberRegressor(), {"epsilon": [1.2, 1.5, 2.0], "alpha": [1e-4, 1e-1]})
grid("poisson", counts(5_000, 20), PoissonRegressor(), {"alpha": np.logspace(-3, 1, 6)})
grid(
    "polynomial-ridge",
    numbers(2_000, 20),
    make_pipeline(PolynomialFeatures(), StandardScaler(), Ridge()),
    {"polynomialfeatures__degree": [1, 2], "ridge__alpha": _ALPHAS},
)
grid(
    "scaled-logistic",
    breast_cancer,
    make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    {"logisticregression__C": np.logspace(-3, 3, 20)},
)
grid("logistic-digits", digits, LogisticRegression(max_iter=200), {"C": [1e-4, 1e-3, 1e-2]}, cv=3)
grid(
    "logistic-l1",
    classes(1_000, 30),
    LogisticRegression(solver="liblinear", l1_ratio=1.0, random_state=0),
    {"C": _C},
    scoring="neg_log_loss",
)
grid(
    "selected-logistic",
    classes(3_000, 60),
    make_pipeline(StandardScaler(), SelectKBest(), LogisticRegression()),
    {"selectkbest__k": [5, 10, 20, 40], "logisticregression__C": [0.1, 1.0, 10.0]},
)
grid("linear-svc", classes(5_000, 30), LinearSVC(dual=False), {"C": _C})
grid("gaussian-nb", classes(20_000, 30), GaussianNB(), {"var_smoothing": np.logspace(-10, -1, 20)})
grid("bernoulli-nb", classes(20_000, 50), BernoulliNB(), {"alpha": _ALPHAS})
grid(
    "lda",
    classes(10_000, 60, 5),
    LinearDiscriminantAnalysis(solver="lsqr"),
    {"shrinkage": np.linspace(0.0, 0.9, 8)},
)
grid("qda", classes(10_000, 40, 3), QuadraticDiscriminantAnalysis(), {"reg_param": np.linspace(0.1, 0.9, 8)})
