"""Trees, forests, boosting, bagging and ensembles of several estimators."""

from __future__ import annotations

import numpy as np
from scipy.stats import randint
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.everyday_cases._case import grid, randomized
from benchmarks.everyday_cases._data import breast_cancer, classes, numbers

grid(
    "tree",
    classes(3_000),
    DecisionTreeClassifier(random_state=0),
    {"max_depth": [2, 4, 8, 12], "min_samples_leaf": [1, 5, 20]},
)
grid(
    "tree-pruned",
    classes(3_000),
    DecisionTreeClassifier(random_state=0),
    {"ccp_alpha": np.linspace(0.0, 0.02, 6)},
)
grid(
    "forest-sizes",
    classes(1_000),
    RandomForestClassifier(random_state=0),
    {"n_estimators": [25, 50, 100]},
    cv=3,
)
grid(
    "forest-features",
    numbers(800),
    RandomForestRegressor(40, random_state=0),
    {"max_features": [0.3, 0.6], "min_samples_leaf": [1, 5]},
    cv=3,
)
grid(
    "extra-trees",
    classes(1_500),
    ExtraTreesClassifier(60, random_state=0),
    {"max_depth": [5, None], "min_samples_leaf": [1, 3]},
    cv=3,
)
grid(
    "gradient-boosting",
    classes(800),
    GradientBoostingClassifier(random_state=0),
    {"n_estimators": [30, 60], "max_depth": [2, 3]},
    cv=3,
)
grid(
    "hist-boosting",
    numbers(4_000),
    HistGradientBoostingRegressor(random_state=0),
    {"max_iter": [30, 60], "learning_rate": [0.05, 0.1]},
    cv=3,
)
grid(
    "ada-boost",
    classes(1_000),
    AdaBoostClassifier(random_state=0),
    {"n_estimators": [25, 50], "learning_rate": [0.5, 1.0]},
    cv=3,
)
grid(
    "bagging",
    classes(1_000),
    BaggingClassifier(random_state=0),
    {"n_estimators": [10, 30], "max_samples": [0.5, 1.0]},
    cv=3,
)
grid(
    "voting",
    breast_cancer,
    VotingClassifier(
        [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0)), ("svc", SVC())]
    ),
    {"svc__C": [0.1, 1.0, 10.0], "tree__max_depth": [3, 6]},
)
grid(
    "stacking",
    breast_cancer,
    StackingClassifier(
        [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0))],
        LogisticRegression(),
    ),
    {"tree__max_depth": [2, 4, 6], "final_estimator__C": [0.1, 1.0]},
)
grid(
    "calibrated",
    classes(1_000),
    CalibratedClassifierCV(SVC(), cv=3),
    {"method": ["sigmoid", "isotonic"], "estimator__C": [0.1, 1.0, 10.0]},
)
randomized(
    "random-forest-settings",
    classes(1_000),
    RandomForestClassifier(30, random_state=0),
    {"max_depth": randint(3, 15), "min_samples_leaf": randint(1, 10)},
    n_iter=5,
)
