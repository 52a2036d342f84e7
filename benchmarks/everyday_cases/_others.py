"""Kernels, neighbours and a small network."""

from __future__ import annotations

import numpy as np
from scipy.stats import loguniform
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.everyday_cases._case import grid, randomized
from benchmarks.everyday_cases._data import breast_cancer, classes, digits, numbers

grid("svc-ten-fits", breast_cancer, SVC(), {"C": [1.0, 10.0]})
grid(
    "svc",
    breast_cancer,
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": [0.001, 0.01, 0.1, 1.0]},
)
grid(
    "components-svc",
    digits,
    make_pipeline(StandardScaler(), PCA(random_state=0), SVC()),
    {"pca__n_components": [16, 32], "svc__C": [1.0, 10.0]},
    cv=3,
)
grid("svr", numbers(800), make_pipeline(StandardScaler(), SVR()), {"svr__C": np.logspace(0, 3, 8)})
randomized(
    "random-svc-settings",
    classes(800),
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": loguniform(0.1, 100.0), "svc__gamma": loguniform(0.001, 1.0)},
    n_iter=10,
)
grid(
    "kernel-ridge",
    numbers(800),
    KernelRidge(kernel="rbf"),
    {"alpha": np.logspace(-3, 1, 5), "gamma": [0.01, 0.1]},
)
grid("neighbours-digits", digits, KNeighborsClassifier(), {"n_neighbors": list(range(1, 12))})
grid(
    "neighbours",
    numbers(3_000, 10),
    make_pipeline(StandardScaler(), KNeighborsRegressor()),
    {
        "kneighborsregressor__n_neighbors": [3, 5, 10, 20],
        "kneighborsregressor__weights": ["uniform", "distance"],
    },
)
grid(
    "network",
    breast_cancer,
    make_pipeline(StandardScaler(), MLPClassifier((20,), max_iter=40, random_state=0)),
    {"mlpclassifier__alpha": [1e-4, 1e-2], "mlpclassifier__learning_rate_init": [1e-3, 1e-2]},
)
