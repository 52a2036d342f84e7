"""Families that iterate, on weights, targets and features that leave little to hold on to."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from scipy import sparse as sp
from sklearn import model_selection
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC, LinearSVR

from manyfit.estimators import GLMAnswers
from manyfit.families.smooth._glm_answers import Decisions
from manyfit.families.smooth.solver._solution import PathSolution
from manyfit.folds import _blas_threads as _threads
from manyfit.folds import map_threads
from manyfit.metrics import LinearPredictors
from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.strategies._score_answers import blocks_of_settings
from tests.behaviour.iterations._iterated import both

pytestmark = pytest.mark.slow

rng = np.random.default_rng(0)
N = 300
X = rng.normal(size=(N, 4))
Y = (X[:, 0] + rng.normal(size=N) > 0.0).astype(int)
COUNTS = rng.poisson(np.exp(0.3 * X[:, 1])).astype(float)
WEIGHT = rng.random(N)
C = {"C": [0.01, 1.0]}
TIGHT = {"tol": 1e-10, "max_iter": 10_000}
LIBLINEAR = {"tol": 1e-8, "max_iter": 10_000, "dual": False}


def test_targets_that_are_nearly_all_within_epsilon():
    """Few rows alone may have no gradient at zero: they must not say how small it should be."""
    X = rng.normal(size=(4000, 2))
    y = np.where(np.arange(4000) % 201 == 0, 1.0, 0.0)
    both(LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, **LIBLINEAR), C, X, y, cv=KFold(3))


@pytest.mark.parametrize(
    ("estimator", "grid", "y"),
    [
        (LogisticRegression(**TIGHT), C, Y),
        (LinearSVR(loss="squared_epsilon_insensitive", **LIBLINEAR), C, COUNTS),
        (PoissonRegressor(**TIGHT), {"alpha": [0.1, 1.0]}, COUNTS),
    ],
)
def test_weights_that_are_negative_are_left_to_scikit_learn(estimator, grid, y):
    weight = np.where(np.arange(N) % 50 == 0, -0.1, WEIGHT)
    params = {"refit": False, "cv": KFold(3), "error_score": "raise"}
    searches = [s(estimator, grid, **params) for s in (GridSearchCV, model_selection.GridSearchCV)]
    try:
        expected = searches[1].fit(X, y, sample_weight=weight).cv_results_["mean_test_score"]
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20]):
            searches[0].fit(X, y, sample_weight=weight)
    else:
        searches[0].fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(searches[0].cv_results_["mean_test_score"], expected)
        assert searches[0].report_.fits_done == 6


def test_a_training_part_without_weight():
    weight = np.r_[np.ones(100), np.zeros(200)]
    with warnings.catch_warnings(record=True) as caught:  # scikit-learn's of fits and scores that fail
        warnings.simplefilter("always")
        search = GridSearchCV(LogisticRegression(), C, cv=KFold(3), refit=False)
        search.fit(X, Y, sample_weight=weight)
    assert not [w for w in caught if w.category is RuntimeWarning and "manyfit" in w.filename]
    assert search.report_.fits_done == 6


@pytest.mark.parametrize("size", [[1e200] * 4, [1.0, 1e20, 1.0, 1.0]], ids=str)
def test_values_whose_squares_overflow_do_so_without_a_word(size):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*failed to converge|.*encountered", module="sklearn")
        params = {"refit": False, "cv": KFold(3), "scoring": "neg_log_loss"}
        theirs = model_selection.GridSearchCV(LogisticRegression(), C, **params).fit(X * size, Y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = GridSearchCV(LogisticRegression(), C, **params).fit(X * size, Y)
    assert not [w for w in caught if "manyfit" in w.filename or "encountered" in str(w.message)]
    if ours.report_.fits_done == 6:
        np.testing.assert_array_equal(
            ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
        )


def test_one_column_of_each_row():
    X = sp.csr_array(np.diag(rng.normal(size=N)))
    both(LogisticRegression(**TIGHT), C, X, Y, cv=KFold(3), scoring="neg_log_loss")
    both(LinearSVC(**LIBLINEAR), C, X, Y, cv=KFold(3), scoring="accuracy")


def test_predictions_of_many_classes_are_made_in_as_many_parts():
    coef, at_origin = np.zeros((2, 6, 10)), np.zeros((6, 10))
    linear = LinearPredictors(coef, at_origin, np.zeros(2))
    fitted = PathSolution(linear, linear, np.ones(6, dtype=bool), np.zeros(6, dtype=bool), 0.0)
    answers = GLMAnswers(fitted, Decisions(np.arange(10)))
    limit = 8 * 100 * 10 * 2  # the outputs of two settings
    assert blocks_of_settings(list(range(6)), 100, answers, limit) == [[0, 1], [2, 3], [4, 5]]


def test_a_forked_process_does_not_wait_for_threads_that_it_does_not_have():
    before = _threads._workers
    with before._mapping, before._changing:
        _threads._renew_workers()  # what a child does
        done = threading.Thread(target=map_threads, args=(abs, [1]), daemon=True)
        done.start()
        done.join(10.0)
        assert not done.is_alive()
