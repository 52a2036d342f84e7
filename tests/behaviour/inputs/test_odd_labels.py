"""y whose labels do not sort together, or are no labels at all: scikit-learn's outcome comes."""

from __future__ import annotations

import warnings
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection as theirs
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from manyfit import model_selection as ours
from tests._covering import spread

X = np.random.default_rng(0).normal(size=(60, 3))
YES = X[:, 0] > 0


class Unordered:
    """An object that cannot be compared."""

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        raise ZeroDivisionError("no order")


def objects(values):
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


TWO = [Unordered(0), Unordered(1)]
TEXTS = ["yes" if yes else "no" for yes in YES]
TARGETS = {
    "texts and None": objects([None, *TEXTS[1:]]),
    "None at the end": objects([*TEXTS[:-1], None]),
    "texts and NaN": objects([np.nan, *TEXTS[1:]]),
    "texts and NA": objects([*TEXTS[:-1], pd.NA]),
    "1 and None": objects([1 if yes else None for yes in YES]),
    "1 and a text": objects([1 if yes else "a" for yes in YES]),
    "a list of both": [1 if yes else "a" for yes in YES],
    "a list with None": [None, *TEXTS[1:]],
    "tuples": objects([(1, 2) if yes else (3, 4) for yes in YES]),
    "tuples and None": objects([(1, 2) if yes else None for yes in YES]),
    "arrays": objects([np.arange(2) if yes else np.ones(2) for yes in YES]),
    "unordered": objects([TWO[int(yes)] for yes in YES]),
    "Decimal NaN": objects([Decimal("nan"), *(Decimal(int(yes)) for yes in YES[1:])]),
    "only None": objects([None] * 60),
    "series with None": pd.Series([None, *TEXTS[1:]], dtype=object),
    "series with NA": pd.Series([pd.NA, *TEXTS[1:]], dtype="string"),
    "categories with NA": pd.Series([None, *TEXTS[1:]], dtype="category"),
    "integers as objects": objects([int(yes) for yes in YES]),
    "fractions": np.where(YES, 0.5, 1.5),
    "NaN": np.where(YES, 1.0, np.nan),
    "dates and NaT": np.where(YES, np.datetime64("2020-01-01"), np.datetime64("NaT")),
    "lists of several lengths": [[1, 2] if yes else [3] for yes in YES],
    "complex": YES.astype(complex),
    "digits": np.where(YES, "1", "2"),
}
LOGISTIC = LogisticRegression(tol=1e-10, max_iter=10_000)
ESTIMATORS = {
    "passes": (LOGISTIC, {"C": [0.1, 1.0]}),
    "passes of one class each": (LinearSVC(dual=False, tol=1e-10, max_iter=10_000), {"C": [0.1, 1.0]}),
    "passes behind steps": (make_pipeline(StandardScaler(), LOGISTIC), {"logisticregression__C": [0.1, 1.0]}),
    "family": (make_pipeline(FunctionTransformer(np.tanh), LOGISTIC), {"logisticregression__C": [0.1, 1.0]}),
    "passes of numbers": (PoissonRegressor(tol=1e-10), {"alpha": [0.1, 1.0]}),
    "moments": (Ridge(), {"alpha": [0.1, 1.0]}),
    "steps": (
        make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0)),
        {"decisiontreeclassifier__max_depth": [1, 2]},
    ),
}
SEARCHES = {
    "folds of classes": {"cv": 3},
    "plain folds": {"cv": KFold(3)},
    "raises": {"cv": KFold(3), "error_score": "raise"},
    "several scores": {"cv": KFold(3), "scoring": ["accuracy", "roc_auc"], "refit": "accuracy"},
    # A score that takes any labels: nothing but the fit refuses them.
    "squared errors": {"cv": KFold(3), "scoring": "r2"},
    "0 for a failure": {"cv": KFold(3), "error_score": 0.0, "return_train_score": True},
}


def outcome(call):
    """Numbers or the error of a call, with its warnings by category."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = call()
        except Exception as error:  # whatever scikit-learn raises
            found = type(error), str(error).splitlines()[0]
    return found, Counter(one.category for one in heard)


def assert_same_outcome(call, text):
    (one, heard), (other, expected) = outcome(lambda: call(ours)), outcome(lambda: call(theirs))
    assert heard == expected, text
    if isinstance(other, tuple):
        assert one == other, text
    else:
        np.testing.assert_allclose(one, other, rtol=1e-4, err_msg=text)


def in_turn(names, step):
    """Each kind of target with each name, of which every so many are run at a time."""
    cases = [(i + j, kind, name) for i, kind in enumerate(TARGETS) for j, name in enumerate(names)]
    return [
        pytest.param(turn // step, kind, name, marks=pytest.mark.thorough if turn % step else ())
        for turn, kind, name in cases
    ]


@pytest.mark.cases(14)
@pytest.mark.invariant("scikit-learn takes over from a family that fails")
@pytest.mark.parametrize(("turn", "kind", "name"), in_turn(ESTIMATORS, 4))
def test_searches(turn, kind, name):
    y, (estimator, grid) = TARGETS[kind], ESTIMATORS[name]
    # One way of each, in turn, so that each kind of target and each estimator meets several of them.
    text = list(SEARCHES)[turn % len(SEARCHES)]

    def scores(module):
        search = module.GridSearchCV(clone(estimator), grid, **SEARCHES[text]).fit(X, y)
        return [v for n, v in search.cv_results_.items() if "test_" in n and "rank" not in n]

    assert_same_outcome(scores, text)


@pytest.mark.cases(3)
@pytest.mark.parametrize("kind", spread(TARGETS, 8))
def test_plans_and_checkpoints(kind, tmp_path):
    y, options = TARGETS[kind], {"cv": KFold(3), "error_score": 0.0, "refit": False}
    search = ours.GridSearchCV(
        LOGISTIC, {"C": [0.1, 1.0]}, checkpoint=tmp_path / "search", verify=2, **options
    )
    assert search.plan(X, y).n_candidates == 2

    def scores(module):
        own = search if module is ours else theirs.GridSearchCV(LOGISTIC, {"C": [0.1, 1.0]}, **options)
        return own.fit(X, y).cv_results_["mean_test_score"]

    (one, _), (other, _) = outcome(lambda: scores(ours)), outcome(lambda: scores(theirs))
    np.testing.assert_array_equal(one, other)


FUNCTIONS = {
    "cross_validate": lambda m, y: m.cross_validate(LOGISTIC, X, y, cv=KFold(3))["test_score"],
    "cross_val_score": lambda m, y: m.cross_val_score(LOGISTIC, X, y, cv=KFold(3), error_score="raise"),
    "cross_val_predict": lambda m, y: m.cross_val_predict(Ridge(), X, y, cv=KFold(3)),
    "validation_curve": lambda m, y: m.validation_curve(
        LOGISTIC, X, y, param_name="C", param_range=[0.1, 1.0], cv=KFold(3)
    )[1],
    "learning_curve": lambda m, y: m.learning_curve(LOGISTIC, X, y, cv=KFold(3), train_sizes=[0.5, 1.0])[2],
}


@pytest.mark.cases(10)
@pytest.mark.parametrize(("turn", "kind", "name"), in_turn(FUNCTIONS, 4))
def test_functions(turn, kind, name):
    assert_same_outcome(lambda module: FUNCTIONS[name](module, TARGETS[kind]), name)
