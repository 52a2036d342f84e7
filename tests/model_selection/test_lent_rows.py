"""Whatever a fit does to what it is given or around it, the next fit finds what it finds in scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import model_selection as sk
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Lasso, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from manyfit import model_selection as ours
from tests.model_selection._same import WEIGHTS, X, Y, both


class Constant(RegressorMixin, BaseEstimator):
    """Predicts what its `fit` put in `value_`."""

    def __init__(self, a=1.0):
        self.a = a

    def predict(self, X):
        return np.full(len(X), self.value_)


class ChangesWeights(Constant):
    def fit(self, X, y, sample_weight):
        sample_weight += 0.1
        sample_weight *= np.abs(y) ** self.a
        self.value_ = np.average(y, weights=sample_weight)
        return self


class ChangesInput(Constant):
    def fit(self, X, y):
        X[0] = [value + self.a for value in X[0]]
        y[0] += 100 * self.a
        self.value_ = np.mean(y) + np.mean(X)
        return self


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("sharing", ["auto", "none"])
def test_weights_that_a_fit_changes(sharing, n_jobs):
    grid = {"a": [0.0, 1.0, 2.0]}
    given = {"sample_weight": WEIGHTS.copy()}
    both(ChangesWeights(), grid, fit_params=given, ours={"sharing": sharing}, n_jobs=n_jobs, refit=False)
    np.testing.assert_array_equal(given["sample_weight"], WEIGHTS)


@pytest.mark.parametrize("sharing", ["auto", "none"])
@pytest.mark.parametrize(
    "make", [np.ma.array, np.asarray, np.ndarray.tolist], ids=["masked", "array", "list"]
)
def test_rows_that_a_fit_changes(make, sharing):
    data, y = make(X.copy()), make(Y.copy())
    both(ChangesInput(), {"a": [0.0, 1.0, 2.0, 0.0]}, data, y, ours={"sharing": sharing}, cv=3, refit=False)
    np.testing.assert_array_equal(np.asarray(data), X)


def test_what_cannot_be_lent_is_named_in_the_plan():
    plan = ours.GridSearchCV(Lasso(), {"alpha": [0.1, 1.0]}).plan(np.ma.array(X), Y)
    assert "X is a MaskedArray, which a fit could change for the next one" in str(plan)


def test_a_scorer_that_changes_what_it_is_given():
    """The fitted transformers that settings have in common are each setting's own to a callable scorer."""

    def score(estimator, X, y):
        right = estimator.score(X, y)
        estimator[0].mean_ += 1.0
        return right

    both(
        make_pipeline(StandardScaler(), Lasso()),
        {"lasso__alpha": [0.1, 0.1, 1.0]},
        scoring=score,
        refit=False,
    )


class FailsAfterDrawing(Constant):
    """Draws, warns and then refuses the larger values of `a`."""

    def __init__(self, a=1.0, random_state=None):
        super().__init__(a)
        self.random_state = random_state

    def fit(self, X, y):
        self.value_ = check_random_state(self.random_state).normal()
        warnings.warn("about to fit", UserWarning, stacklevel=1)
        if self.a > 1:
            raise ValueError("too large")
        return self


@pytest.mark.parametrize("action", ["always", "default"])
def test_a_fit_that_fails_leaves_one_trace(action):
    grid, tables, messages = {"a": [0.0, 2.0, 1.0, 2.0, 0.5]}, [], []
    for search in (sk.GridSearchCV, ours.GridSearchCV):
        np.random.seed(0)
        globals().pop("__warningregistry__", None)  # nothing was shown yet
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            tables.append(search(FailsAfterDrawing(), grid, cv=2, refit=False).fit(X, Y).cv_results_)
        messages.append([str(w.message) for w in caught if "about to fit" in str(w.message)])
    for i in range(2):
        np.testing.assert_array_equal(tables[1][f"split{i}_test_score"], tables[0][f"split{i}_test_score"])
    if action == "always":
        assert len(messages[1]) == len(messages[0]) == 10
    else:
        assert messages[1] and messages[0]


@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (Ridge(), {"alpha": [1.0, -1.0]}),
        (Lasso(), {"alpha": [1.0, -1.0]}),
        (make_pipeline(StandardScaler(copy=False), Lasso()), {"lasso__alpha": [0.1, 1.0]}),
        (ChangesInput(), {"a": [0.0, 1.0]}),
    ],
    ids=["shared", "failing", "copy=False", "writes"],
)
def test_each_fit_is_announced_once(estimator, grid, capsys):
    printed = []
    for search in (sk.GridSearchCV, ours.GridSearchCV):
        search(estimator, grid, cv=2, verbose=10, refit=False).fit(X, Y)
        lines = [line.split("total time")[0] for line in capsys.readouterr().out.splitlines()]
        printed.append(sorted(line.replace(".", "") for line in lines))
    assert printed[1] == printed[0] and sum("START" in line for line in printed[0]) == 4
