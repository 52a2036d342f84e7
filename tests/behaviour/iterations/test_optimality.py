"""Families that iterate end at the optimum within tol, and the report says how."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn import model_selection
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyfit.estimators import family_of
from manyfit.folds import PassData, Splits
from manyfit.folds.passes._dense import DensePasses
from tests._covering import covering
from tests.behaviour.iterations._iterated import COUNTS, THREE, N, X, Y
from tests.behaviour.iterations._optimum import Optimum  # `test_sklearn_stops.py` has the default
from tests.differential._subject import sharing_whatever_it_costs

pytestmark = pytest.mark.slow


def mean_gradient(kind, X, y, coef, at_zero, penalty):
    """Of scikit-learn's objective, by its definition; the second route to the certificate."""
    Z = X @ coef + at_zero
    residual = expit(Z) - y if kind == "logistic" else np.exp(Z) - y
    return np.r_[X.T @ residual / len(X) + penalty * coef, residual.mean()]


@pytest.mark.invariant("The gradient of a converged answer is as small as tol asks")
@pytest.mark.parametrize(
    ("tol", "kind", "offset"), covering([1e-2, 1e-4, 1e-8], ["logistic", "poisson"], [0.0, 1e3], strength=1)
)
def test_the_gradient_is_as_small_as_tol_asks(kind, tol, offset):
    estimator, y, name, values = {
        "logistic": (LogisticRegression(tol=tol), Y, "C", [1e-3, 1.0, 1e3]),
        "poisson": (PoissonRegressor(tol=tol), COUNTS, "alpha", [1e-6, 1e-2, 10.0]),
    }[kind]
    Z = X + offset
    splits = Splits.draw(KFold(3), Z, y, N, {})
    data = PassData(Z, y, splits.atom_groups, None, [None] * 3)
    answers = family_of(type(estimator)).fit_many(estimator, [{name: value} for value in values], data)
    for (train, _), one in zip(splits, answers, strict=True):
        assert not one.refused
        for j, value in enumerate(values):
            penalty = value if kind == "poisson" else 1.0 / (value * len(train))
            coef = one.linear.coef[:, j, 0]
            at_zero = one.linear.at_origin[j, 0] - one.linear.origin @ coef
            gradient = mean_gradient(kind, Z[train], y[train], coef, at_zero, penalty)
            assert np.abs(gradient).max() <= tol


@pytest.mark.invariant("The gradient of a converged answer is as small as tol asks")
def test_no_further_from_the_optimum_than_scikit_learn():
    """At the default tol, on data that are not scaled: scikit-learn stops early there."""
    data, target = load_breast_cancer(return_X_y=True)
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.01, 1.0, 100.0]}
    best = clone_with(estimator, tol=1e-10, max_iter=100_000)
    scores = [
        search.fit(data, target).cv_results_["mean_test_score"]
        for search in (
            Optimum(estimator, grid, scoring="neg_log_loss", refit=False),
            model_selection.GridSearchCV(estimator, grid, scoring="neg_log_loss", refit=False),
            model_selection.GridSearchCV(best, grid, scoring="neg_log_loss", refit=False),
        )
    ]
    ours, theirs, truth = scores
    assert np.all(np.abs(ours - truth) <= np.abs(theirs - truth) + 1e-9)


def clone_with(pipeline, **params):
    last = {f"logisticregression__{name}": value for name, value in params.items()}
    return make_pipeline(StandardScaler(), LogisticRegression()).set_params(**last)


def test_the_report_counts_passes_over_the_rows(monkeypatch):
    read, blocks = [], DensePasses._blocks

    def counted(self, piece, size):
        for block, B in blocks(self, piece, size):
            read.append(len(B))
            yield block, B

    monkeypatch.setattr(DensePasses, "_blocks", counted)
    search = Optimum(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, refit=False).fit(X, Y)
    assert search.report_.passes == pytest.approx(sum(read) / len(X)) and sum(read) > len(X)


@pytest.mark.invariant("A small memory limit does not change scores")
def test_a_small_memory_limit_gives_the_same_scores():
    """Fewer settings at a time, and diagonals for Hessians."""
    Z = StandardScaler().fit_transform(X)
    few = {"C": [0.01, 0.1, 1.0]}
    roomy = Optimum(LogisticRegression(), few, scoring="neg_log_loss", refit=False).fit(Z, THREE)
    tight = Optimum(LogisticRegression(), few, scoring="neg_log_loss", refit=False, memory_limit=20_000)
    assert tight.fit(Z, THREE).report_.fits_done == 0
    np.testing.assert_allclose(
        tight.cv_results_["mean_test_score"], roomy.cv_results_["mean_test_score"], rtol=1e-4
    )


@pytest.mark.parametrize(
    ("y", "scoring"),
    covering(
        {"two classes": Y, "three classes": THREE}.items(),
        ["accuracy", "neg_log_loss", ["roc_auc_ovr", "f1_macro"]],
        strength=1,
    ),
)
def test_settings_that_tol_leaves_as_good_as_the_best_are_named(y, scoring):
    """A rough tolerance leaves all scores open, a fine one tells them apart."""
    grid, refit = {"C": [0.5, 0.51, 0.52, 1e-4]}, scoring if isinstance(scoring, str) else scoring[0]
    named = []
    for tol in (1e-9, 0.3):
        model = LogisticRegression(tol=tol, max_iter=1000)
        with sharing_whatever_it_costs():
            search = Optimum(model, grid, scoring=scoring, refit=refit).fit(X, y)
        assert search.report_.fits_done == 0
        named.append([one["C"] for one in search.report_.as_good_as_best])
        assert search.best_params_["C"] not in named[-1]
    assert named[0] == []
    assert len(named[1]) >= 2
    assert "settings as good as the best within tol" in str(search.report_)
