"""What the plan and the report say of steps that draw random numbers."""

from __future__ import annotations

import random
from html import escape

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    StandardScaler,
)
from sklearn.svm import SVC

from manyfit import model_selection as ours
from manyfit.model_selection import GridSearchCV
from tests._same_results import LABELS, X_CLASS, assert_same_results

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
        "fits keep scikit-learn's order, so that the folds of all 5 splits are in memory at once. Set "
        "randomforestclassifier__random_state to an integer, and the search goes split by split, with one in "
        "memory.",
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


# Code of a user


def add_noise(X):
    return X + np.random.normal(scale=0.5, size=X.shape)


def some_letters(text):
    return text[: random.randint(1, 9)]


class Guess(ClassifierMixin, BaseEstimator):
    """Predicts labels at random; nothing but its code says so."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.guesses_ = np.random.choice(self.classes_, 1_000)
        return self

    def predict(self, X):
        return self.guesses_[: len(X)]


@pytest.fixture
def same_draws_after():
    """The global generators as they were."""
    states = np.random.get_state(), random.getstate()
    yield
    np.random.set_state(states[0])
    random.setstate(states[1])


@pytest.mark.usefixtures("same_draws_after")
@pytest.mark.invariant("Functions and classes of a user whose code draws random numbers draw scikit-learn's")
@pytest.mark.parametrize(
    ("steps", "grid", "texts"),
    [
        ([FunctionTransformer(add_noise), GaussianNB()], {"gaussiannb__var_smoothing": [1e-9, 1e-3]}, False),
        ([MinMaxScaler(), Guess()], {"guess__alpha": [1.0, 2.0]}, False),
        (
            [CountVectorizer(preprocessor=lambda text: text[np.random.randint(3) :]), MultinomialNB()],
            {"multinomialnb__alpha": [0.1, 1.0]},
            True,
        ),
        (
            [
                HashingVectorizer(n_features=9, preprocessor=some_letters),
                SVC(),
            ],
            {"svc__C": [0.1, 1.0]},
            True,
        ),
    ],
    ids=["function", "last step", "texts", "hashes"],
)
def test_code_that_draws_gives_scikit_learns_numbers(steps, grid, texts):
    X = ["one two three", "two four", "three five one", "one"] * 20 if texts else X_CLASS[:80]
    found = []
    for search_class in (model_selection.GridSearchCV, GridSearchCV):
        np.random.seed(3)
        random.seed(3)
        search = search_class(make_pipeline(*steps), grid, cv=3, return_train_score=True)
        found.append(search.fit(X, LABELS[:80]))
        found[-1].drawn_ = np.random.rand(), random.random()
    assert_same_results(*found[::-1])
    assert found[0].drawn_ == found[1].drawn_


# A generator in common


def with_one_generator(splitter):
    """A forest, a splitter and a generator that both draw from."""
    generator = np.random.RandomState(7)
    return RandomForestClassifier(2, random_state=generator), splitter(generator), generator


SPLITTERS = {
    "folds": lambda generator: KFold(3, shuffle=True, random_state=generator),
    "splits": lambda generator: ShuffleSplit(3, random_state=generator),
}
DEPTHS = {"max_depth": [1, 2]}


@pytest.mark.invariant("A generator that estimator and splits have in common draws scikit-learn's numbers")
@pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("name", ["GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV"])
def test_searches_copy_the_estimator_before_splits_draw(name, splitter):
    found = []
    for module in (model_selection, ours):
        forest, cv, generator = with_one_generator(splitter)
        drawn = {} if name == "GridSearchCV" else {"random_state": generator}
        drawn |= {"n_iter": 2} if name == "RandomizedSearchCV" else {}
        cv = 3 if name == "HalvingGridSearchCV" else cv  # which takes no splits that change
        search = getattr(module, name)(forest, DEPTHS, cv=cv, **drawn).fit(X_CLASS, LABELS)
        found.append((search, search.predict(X_CLASS), generator.rand()))
    assert_same_results(found[1][0], found[0][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert found[0][2] == found[1][2]


@pytest.mark.invariant("A generator that estimator and splits have in common draws scikit-learn's numbers")
@pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)
@pytest.mark.parametrize("nested", [False, True], ids=["estimator", "search"])
def test_cross_validation_copies_the_estimator_between_splits_that_draw(nested, splitter):
    found = []
    for module in (model_selection, ours):
        model, cv, generator = with_one_generator(splitter)
        model = module.GridSearchCV(model, DEPTHS, cv=splitter(generator)) if nested else model
        scores = module.cross_val_score(model, X_CLASS, LABELS, cv=cv)
        found.append([*scores, generator.rand()])
    np.testing.assert_allclose(*found, rtol=1e-12)
