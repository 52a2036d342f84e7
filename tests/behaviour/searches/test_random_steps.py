"""What the plan and the report say of steps that draw random numbers."""

from __future__ import annotations

from html import escape

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    MinMaxScaler,
    StandardScaler,
)
from sklearn.svm import SVC

from manyfit.model_selection import GridSearchCV
from tests._same_results import LABELS, X_CLASS

# What random numbers cost


def advice_of(estimator, grid, X=X_CLASS, y=LABELS, **params):
    search = GridSearchCV(estimator, grid, **params)
    plan = search.plan(X, y)
    assert all(line in str(plan) and escape(line) in plan._repr_html_() for line in plan.advice)
    assert ("─ advice\n" in str(plan)) == bool(plan.advice)
    report = search.fit(X, y).report_
    assert report.advice[: len(plan.advice)] == list(plan.advice)
    assert all(line in str(report) for line in plan.advice)
    return plan.advice


DRAWS = (
    "RBFSampler draws random numbers (rbfsampler__random_state is None): it is fitted anew for each "
    "setting, and so is every step behind it. Set rbfsampler__random_state to an integer, and they are "
    "fitted once a split."
)
WITHIN = make_union(RBFSampler(n_components=5), StandardScaler())


@pytest.mark.parametrize(
    ("steps", "grid", "params", "advice"),
    [
        ([MinMaxScaler(), RBFSampler(n_components=5)], {}, {}, [DRAWS]),
        ([MinMaxScaler(), RBFSampler(n_components=5, random_state=0)], {}, {}, []),
        ([WITHIN], {}, {}, [DRAWS.replace("rbfsampler__", "featureunion__rbfsampler__")]),
        # No two settings share the step.
        ([RBFSampler()], {"rbfsampler__n_components": [3, 5], "svc__C": [1.0]}, {}, []),
        ([MinMaxScaler()], {}, {"cv": KFold(3, shuffle=True)}, []),
    ],
)
def test_a_step_that_draws_is_named_with_what_to_set(steps, grid, params, advice):
    pipeline = make_pipeline(*steps, SVC(random_state=0))
    assert list(advice_of(pipeline, {"svc__C": [0.1, 1.0], **grid}, **params)) == advice


def test_a_last_step_that_draws_keeps_the_order_of_fits():
    pipeline = make_pipeline(MinMaxScaler(), RandomForestClassifier(2))
    grid = {"randomforestclassifier__max_depth": [1, 2]}
    assert advice_of(pipeline, grid) == (
        "RandomForestClassifier draws random numbers (randomforestclassifier__random_state is None): "
        "fits keep scikit-learn's order, for which the folds of all 5 splits are kept at once. Set "
        "randomforestclassifier__random_state to an integer, and the search goes split by split.",
    )
    (line,) = advice_of(pipeline, grid, memory_limit=4 * 3 * X_CLASS.nbytes)
    assert "3 of 5 folds fit in memory_limit, and on the others steps are fitted anew for each" in line
    assert advice_of(pipeline, grid, n_jobs=2) == ()  # no order is kept
    assert advice_of(pipeline.set_params(randomforestclassifier__random_state=0), grid) == ()


def test_a_step_that_draws_for_its_shape_is_seen_before_the_fit():
    """With so few components of so many columns, PCA chooses its randomized solver."""
    rng = np.random.default_rng(0)
    wide, y = rng.standard_normal((640, 520)), np.arange(640) % 2
    search = GridSearchCV(
        make_pipeline(PCA(3), GaussianNB()), {"gaussiannb__var_smoothing": [1e-9, 1e-3]}, cv=2
    )
    plan = search.plan(wide[:, :520], y)
    assert "PCA draws random numbers (pca__random_state is None)" in plan.advice[0]
    search.fit(wide, y)
    assert plan.transformer_fits == search.report_.transformer_fits == 4
