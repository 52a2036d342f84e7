"""Voting, stacking and calibration: members that settings share are fitted once a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import model_selection
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from manyfit.families.nested._member_fits import MemberMemory
from manyfit.model_selection import GridSearchCV
from tests._covering import spread
from tests._same_results import both
from tests.differential._subject import sharing_whatever_it_costs

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 5))
CODES = (X[:, 0] + rng.normal(size=120) > 0).astype(int) + (X[:, 1] > 1)
LABELS, NUMBERS = np.array(["no", "so", "yes"])[CODES], X[:, 0] + rng.normal(size=120)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
MEMBERS = [
    ("tree", TREE),
    ("logistic", LogisticRegression()),
    ("bayes", GaussianNB()),
]
REGRESSORS = [("tree", DecisionTreeRegressor(max_depth=3, random_state=0)), ("ridge", Ridge())]
WEIGHTS = [None, [1, 1, 1], [2, 1, 1], [0, 1, 3]]
CS = {"final_estimator__C": [0.1, 10.0]}
# An estimator, its grid, and how many of its settings fit a member that no other has fitted.
CASES: list[tuple[Any, dict[str, Any], int]] = [
    (VotingClassifier(MEMBERS), {"weights": WEIGHTS}, 1),
    (VotingClassifier(MEMBERS, voting="soft"), {"weights": WEIGHTS, "tree__max_depth": [1, 2]}, 2),
    (VotingClassifier(MEMBERS), {"bayes": ["drop", GaussianNB()]}, 2),
    (VotingRegressor(REGRESSORS), {"weights": [None, [2, 1], [0, 1]]}, 1),
    (StackingClassifier(MEMBERS, LogisticRegression(), cv=3), {**CS, "passthrough": [False, True]}, 1),
    (StackingRegressor(REGRESSORS, Ridge()), {"final_estimator__alpha": [0.1, 10.0]}, 1),
    (StackingRegressor(REGRESSORS), {"ridge__alpha": [0.1, 10.0]}, 2),
    (CalibratedClassifierCV(TREE, cv=2), {"method": ["sigmoid", "isotonic"]}, 1),
    (CalibratedClassifierCV(TREE, cv=2, ensemble=False), {"method": ["sigmoid", "isotonic"]}, 1),
]


@pytest.fixture(autouse=True)
def _always_share():
    with sharing_whatever_it_costs():
        yield


def targets(model: Any) -> Any:
    return NUMBERS if "Regressor" in type(model).__name__ else LABELS


@pytest.mark.cases(6)
@pytest.mark.parametrize(("model", "grid", "made"), CASES)
@pytest.mark.parametrize("weighted", spread([False, True], 1))
def test_settings_have_scikit_learns_scores_and_few_fits(model, grid, made, weighted):
    y = targets(model)
    scoring = "r2" if y is NUMBERS else "accuracy"
    given = {"sample_weight": rng.random(120) + 0.1} if weighted else {}
    search = both(model, grid, X, y, fit_params=given, scoring=scoring, cv=2, return_train_score=True)
    assert search.report_.left_to_sklearn == {}
    # Voting and stacking take weights among other parameters of their fit, which families do not read.
    shared = not weighted or isinstance(model, CalibratedClassifierCV)
    assert search.report_.family_fits == 2 * made * shared


@pytest.mark.parametrize(("model", "grid", "made"), spread([CASES[1], CASES[4], CASES[7]], 2))
def test_probabilities(model, grid, made):
    search = both(model, grid, X, LABELS, scoring=["neg_log_loss", "roc_auc_ovr"], refit=False, cv=2)
    assert search.report_.left_to_sklearn == {}


def test_pipelines_as_members():
    members = [("scaled", make_pipeline(StandardScaler(), LogisticRegression())), ("tree", TREE)]
    grid = {"scaled__logisticregression__C": [0.1, 1.0], "weights": [[1, 1], [2, 1]]}
    search = both(VotingClassifier(members, voting="soft"), grid, X, LABELS, scoring="neg_log_loss", cv=3)
    assert search.report_.family_fits == 6


@pytest.mark.parametrize("kind", [sp.csr_matrix, pd.DataFrame])
def test_other_containers(kind):
    members = [("tree", TREE), ("logistic", LogisticRegression())]
    both(VotingClassifier(members, voting="soft"), {"weights": [[1, 1], [2, 1]]}, kind(X), LABELS, cv=3)


def test_a_final_estimator_without_probabilities_is_left_to_scikit_learn():
    grid = {"final_estimator": [LogisticRegression(), RidgeClassifier(), LogisticRegression(C=0.1)]}
    search = both(StackingClassifier(MEMBERS, cv=2), grid, X, LABELS, cv=3)
    assert search.report_.left_to_sklearn == {"it predicts by other methods than the first setting": 3}


def test_settings_whose_fit_warns_are_scikit_learns_and_warn():
    final = LogisticRegression(max_iter=1)
    stack, grid = StackingClassifier(MEMBERS, final, cv=2), {"final_estimator__max_iter": [1, 500]}
    with pytest.warns(ConvergenceWarning):
        theirs = model_selection.GridSearchCV(stack, grid, cv=3).fit(X, LABELS)
    with pytest.warns(ConvergenceWarning):
        ours = GridSearchCV(stack, grid, cv=3).fit(X, LABELS)
    for i in range(3):
        name = f"split{i}_test_score"
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-12)
    assert sum(ours.report_.left_to_sklearn.values()) == 3


class Stranger(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (RandomForestClassifier(5), "random numbers"),
        (Stranger(), "Stranger may draw"),
        (make_pipeline(StandardScaler(copy=False), GaussianNB()), "may write"),
    ],
)
def test_members_that_are_not_remembered(member, reason):
    search = GridSearchCV(VotingClassifier([("one", member), ("tree", TREE)]), {"weights": [[1, 1], [2, 1]]})
    plan = search.plan(X, LABELS)
    assert plan.groups[0].kind == "one by one"
    assert reason in plan.groups[0].reason


def test_a_regressor_that_writes_into_its_rows_is_not_remembered():
    model = VotingRegressor([("lasso", Lasso(copy_X=False)), ("ridge", Ridge())])
    plan = GridSearchCV(model, {"weights": [[1, 1], [2, 1]]}).plan(X, NUMBERS)
    assert plan.groups[0].kind == "one by one"


def test_the_memory_tells_other_rows_and_parameters_apart():
    memory = MemberMemory()
    for member, rows in [(TREE, X), (TREE, X[:60]), (TREE, X), (DecisionTreeClassifier(max_depth=2), X)]:
        memory.fit(member, (rows, LABELS[: len(rows)]), {})
    assert memory.n_fits == 3
    key, fitted = memory.fit(TREE, (X, LABELS), {})
    first = memory.predict(key, "predict_proba", fitted, X)
    first[:] = -1  # a caller's own copy
    np.testing.assert_array_equal(memory.predict(key, "predict_proba", fitted, X), fitted.predict_proba(X))


def test_gradient_boosting_of_breast_cancer_is_shared_only_with_a_seed():
    """Its ties between splits are broken by the seed, without which two fits differ by far."""
    X, y = load_breast_cancer(return_X_y=True)
    grid = {"n_estimators": [3, 10]}
    seeded = GradientBoostingClassifier(random_state=0)
    search = both(seeded, grid, X, y, scoring="neg_log_loss", cv=3, return_train_score=True)
    assert search.report_.family_fits == 3
    ours = GridSearchCV(GradientBoostingClassifier(), grid, cv=3, refit=False).fit(X, y)
    assert ours.report_.family_fits == 0
