"""Each warning of a scorer is shown as often as scikit-learn's searches show it."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from tests._covering import covering
from tests._same_results import LABELS, X_CLASS, X, Y, assert_same_results
from tests.behaviour.iterations._optimum import Optimum as GridSearchCV

ALPHAS, CS = [1.0, 50.0, 200.0], [0.1, 1.0, 10.0]
SEARCHES = {
    "moments": (Ridge(), {"alpha": ALPHAS}, X, Y),
    "passes": (LogisticRegression(tol=1e-8), {"C": CS}, X_CLASS, LABELS),
    "family": (make_pipeline(MinMaxScaler(clip=True), Ridge()), {"ridge__alpha": ALPHAS}, X, Y),
    "steps": (
        make_pipeline(StandardScaler(), LogisticRegression(solver="liblinear")),
        {"logisticregression__C": CS},
        X_CLASS,
        LABELS % 2,
    ),
}


def warned_by(search, X, y, action="always"):
    """The fitted search, and how often it warned of what."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        search.fit(X, y)
    return search, Counter((w.category, str(w.message).split("\n")[0]) for w in caught)


def warns(y, predicted):
    warnings.warn("of this score", UserWarning, stacklevel=1)
    return 1.0


def warns_and_raises(y, predicted):
    warns(y, predicted)
    raise ValueError("no score")


def warns_and_raises_at_times(y, predicted):
    warns(y, predicted)
    if abs(np.sum(predicted) - np.sum(y)) > 1e-6:  # which rounding does not decide
        raise ValueError("no score")
    return 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scorer", "train", "with_another", "kind"),
    covering([warns, warns_and_raises, warns_and_raises_at_times], [(True, True)], SEARCHES, strength=1),
)
def test_a_scorer_that_warns_and_fails(kind, train, with_another, scorer):
    estimator, grid, X, y = SEARCHES[kind]
    scoring = make_scorer(scorer)
    if with_another:
        scoring = {"warns": make_scorer(warns), "fails": scoring}
    params = {"scoring": scoring, "cv": 3, "return_train_score": train, "refit": False}
    theirs, expected = warned_by(model_selection.GridSearchCV(estimator, grid, **params), X, y)
    ours, found = warned_by(GridSearchCV(estimator, grid, **params), X, y)
    assert found == expected and sum(expected.values()) >= 9
    assert_same_results(ours, theirs)
    assert kind == "steps" or (ours.report_.fits_done == 0) is (scorer is warns)


def test_a_metric_that_is_undefined_beside_one_that_fails():
    """Of a fold of one class, precision warns and the area under the curve is refused."""
    y = np.sort(LABELS)
    params = {"scoring": ["precision_macro", "roc_auc_ovr"], "refit": False, "cv": KFold(10)}
    estimator, grid, X, _ = SEARCHES["passes"]
    theirs, expected = warned_by(model_selection.GridSearchCV(estimator, grid, **params), X, y)
    ours, found = warned_by(GridSearchCV(estimator, grid, **params), X, y)
    assert found == expected
    assert any(category is UndefinedMetricWarning for category, _ in expected)
    assert_same_results(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("action", ["default", "once", "module"])
def test_what_is_shown_once_is_shown(action):
    """The attempt whose warnings are forgotten does not count as the one time."""
    estimator, grid, X, y = SEARCHES["moments"]
    globals().pop("__warningregistry__", None)
    search = GridSearchCV(estimator, grid, scoring=make_scorer(warns_and_raises), cv=3, refit=False)
    _, found = warned_by(search, X, y, action)
    assert found[UserWarning, "of this score"] >= 1
