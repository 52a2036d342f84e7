"""A search computes the scores of many settings at once and calls no scorer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.metrics import make_scorer
from sklearn.metrics._scorer import _Scorer

from tests.behaviour.iterations._optimum import Optimum as GridSearchCV
from tests.units.metrics._predictions import COUNTS, GLMS, MEAN, MyPoisson, X, rng

# In a search

X_CLASS, Y_CLASS = make_classification(200, 5, random_state=0)
TIGHT = {"tol": 1e-9, "max_iter": 1000}


@pytest.fixture
def asked(watch):
    """The metrics that scikit-learn's scorers compute, one by one."""
    calls = []
    watch(_Scorer, "_score", lambda self, *args, **kwargs: calls.append(self._score_func))
    return calls


def searched(estimator, grid, X, y, fits_done=0, **params):
    search = GridSearchCV(estimator, grid, refit=False, **params).fit(X, y)
    theirs = model_selection.GridSearchCV(estimator, grid, refit=False, **params).fit(X, y)
    assert search.report_.fits_done == fits_done
    for key in (key for key in theirs.cv_results_ if "_split" in key or key.startswith("split")):
        np.testing.assert_allclose(search.cv_results_[key], theirs.cv_results_[key], rtol=1e-6, err_msg=key)
    return search


@pytest.mark.invariant("Scores of many settings need no call of a scorer")
@pytest.mark.parametrize("train", [False, True])
def test_a_search_calls_no_scorer(asked, train):
    grid = {"C": [0.1, 1.0, 10.0]}
    params = {"scoring": "neg_log_loss", "return_train_score": train, "refit": False}
    search = GridSearchCV(LogisticRegression(), grid, **params).fit(X_CLASS, Y_CLASS)
    assert (search.report_.fits_done, asked) == (0, [])
    model_selection.GridSearchCV(LogisticRegression(), grid, **params).fit(X_CLASS, Y_CLASS)
    assert len(asked) == 15 * (1 + train)  # the counter counts


def test_of_several_scorers_only_some_are_asked(asked):
    grid = {"C": [0.1, 1.0, 10.0]}

    def own(y, p):
        return float(np.mean(y <= p))

    scoring = {"loss": "neg_log_loss", "own": make_scorer(own), "accuracy": "accuracy"}
    search = GridSearchCV(LogisticRegression(**TIGHT), grid, scoring=scoring, refit=False)
    search.fit(X_CLASS, Y_CLASS)
    assert asked == [own] * 15
    searched(LogisticRegression(**TIGHT), grid, X_CLASS, Y_CLASS, scoring=scoring)


def test_a_fold_without_a_class_is_scikit_learns(asked):
    """Log loss raises if the targets have one class: the error score and its warning are scikit-learn's."""
    y = np.zeros(60, dtype=int)
    y[::4] = 1
    cv = [(np.arange(60), np.flatnonzero(y == 0)), (np.arange(60), np.arange(60))]
    params = {"scoring": "neg_log_loss", "cv": cv, "refit": False}
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, **params)
    with (
        pytest.warns(UserWarning, match="y_true contains only one label"),
        pytest.warns(UserWarning, match="scores are non-finite"),
    ):
        search.fit(X_CLASS[:60], y)
    assert search.report_.fits_done == 2
    assert np.isnan(search.cv_results_["split0_test_score"]).all()
    assert np.isfinite(search.cv_results_["split1_test_score"]).all()


@pytest.mark.thorough
@pytest.mark.parametrize("scoring", [None, "r2"])
@pytest.mark.parametrize(("estimator", "y"), GLMS.values(), ids=GLMS)
def test_generalised_linear_models_in_a_search(estimator, y, scoring, asked):
    model = clone(estimator).set_params(tol=1e-7, max_iter=1000)
    GridSearchCV(model, {"alpha": [0.01, 1.0]}, scoring=scoring, refit=False).fit(X, y)
    assert asked == []
    searched(model, {"alpha": [0.01, 1.0]}, X, y, scoring=scoring)


def test_each_group_has_the_score_of_its_own_power():
    model = TweedieRegressor(tol=1e-7, max_iter=1000)
    grid = {"power": [1, 1.5, 2], "alpha": [0.01, 1.0]}
    searched(model, grid, X, MEAN * rng.gamma(2.0, 0.5, 300))


def test_a_subclass_scores_itself():
    searched(MyPoisson(), {"alpha": [0.01, 1.0]}, X, COUNTS[:300], fits_done=10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*non-finite:UserWarning")
@pytest.mark.parametrize(("scoring", "fits_done"), [("r2", 0), (None, 2)])
def test_a_fold_of_equal_targets(scoring, fits_done):
    """R2 is left to the scorer in that fold only; D2 to the fitted estimator."""
    y = rng.poisson(MEAN).astype(float)
    y[:60] = 2.0
    model = PoissonRegressor(tol=1e-7)
    searched(model, {"alpha": [0.01, 1.0]}, X, y.tolist(), scoring=scoring, fits_done=fits_done)
