"""``cross_validate`` and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.everyday_cases._case import Outcome, case
from benchmarks.everyday_cases._data import breast_cancer, classes, numbers


def _cross_validate(library: Any, X: Any, y: Any, n_jobs: int | None) -> Outcome:
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    metrics = ("accuracy", "roc_auc", "neg_log_loss")
    found = library.cross_validate(estimator, X, y, cv=10, scoring=metrics, n_jobs=n_jobs)
    return np.array([found[f"test_{name}"] for name in metrics]), None


def _cross_val_score(library: Any, X: Any, y: Any, n_jobs: int | None) -> Outcome:
    return library.cross_val_score(GradientBoostingRegressor(random_state=0), X, y, n_jobs=n_jobs), None


def _cross_val_predict(library: Any, X: Any, y: Any, n_jobs: int | None) -> Outcome:
    forest = RandomForestClassifier(50, random_state=0)
    return library.cross_val_predict(forest, X, y, method="predict_proba", n_jobs=n_jobs), None


def _learning_curve(library: Any, X: Any, y: Any, n_jobs: int | None) -> Outcome:
    _, *scores = library.learning_curve(SVC(), X, y, n_jobs=n_jobs)
    return np.array(scores), None


def _validation_curve(library: Any, X: Any, y: Any, n_jobs: int | None) -> Outcome:
    tree = DecisionTreeClassifier(random_state=0)
    scores = library.validation_curve(
        tree, X, y, param_name="max_depth", param_range=range(1, 11), n_jobs=n_jobs
    )
    return np.array(scores), None


case("cross-validate-logistic", classes(10_000, 30), _cross_validate)
case("cross-val-score-boosting", numbers(1_000, 10), _cross_val_score)
case("cross-val-predict-forest", breast_cancer, _cross_val_predict)
case("learning-curve-svc", classes(1_500), _learning_curve)
case("validation-curve-tree", classes(3_000), _validation_curve)
