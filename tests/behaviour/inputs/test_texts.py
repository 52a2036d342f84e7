"""X of one dimension, such as a column of texts: every public function takes it where scikit-learn does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import model_selection as theirs
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from manyfit import model_selection as ours
from manyfit.cluster import local_cluster
from tests._covering import covering
from tests._same_results import assert_same_results
from tests.cluster._clusters import forking

WORDS = ["red", "apple", "pie", "green", "car", "fast", "blue", "train", "tree", "slow", "bike", "sea"]
TEXTS = [" ".join(np.random.default_rng(seed).choice(WORDS, 4)) for seed in range(60)]
LABELS = np.array(["fruit" if "apple" in text or "pie" in text else "move" for text in TEXTS])


class OnlyArray:
    """What NumPy makes an array of, and nothing more."""

    def __init__(self, values):
        self.values = np.array(values, dtype=object)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index]


CONTAINERS = {
    "list": TEXTS,
    "tuple": tuple(TEXTS),
    "array of objects": np.array(TEXTS, dtype=object),
    "array of texts": np.array(TEXTS),
    "series": pd.Series(TEXTS, index=[f"row {j}" for j in range(60)]),
    "series of objects": pd.Series(TEXTS, dtype=object),
    "series of Arrow": pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string())),
    "categories": pd.Series(TEXTS, dtype="category"),
    "column": pd.DataFrame({"text": TEXTS, "number": range(60)})["text"],
    "polars": pl.Series("text", TEXTS),
    "Arrow": pa.chunked_array([TEXTS[:25], TEXTS[25:]]),
    "only __array__": OnlyArray(TEXTS),
}
DRAWS = make_pipeline(TfidfVectorizer(), RandomForestClassifier(3))
COUNTS = make_pipeline(make_union(TfidfVectorizer(), CountVectorizer(binary=True)), MultinomialNB())
HASHED = make_pipeline(HashingVectorizer(n_features=32), LogisticRegression(tol=1e-10))
DEPTHS, SMOOTHED = {"randomforestclassifier__max_depth": [1, 3]}, {"multinomialnb__alpha": [0.1, 1.0]}
SEARCHES = {
    "draws": (DRAWS, DEPTHS, {}),
    "raises": (COUNTS, SMOOTHED, {"error_score": "raise"}),
    "steps": (COUNTS, SMOOTHED, {"return_train_score": True}),
    "family": (HASHED, {"logisticregression__C": [0.1, 1.0, 10.0]}, {}),
    "nothing to share": (RandomForestClassifier(3), {"max_depth": [1, 2]}, {}),
}


def outcome(call):
    """What a call returns under one global random state, or the type and end of its error."""
    np.random.seed(0)
    try:
        return call()
    except Exception as error:  # whatever scikit-learn raises
        return type(error).__name__, str(error)[-60:]


@pytest.mark.cases(4)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize(("name", "kind"), covering(SEARCHES, CONTAINERS, strength=1))
def test_searches(kind, name):
    X, (estimator, grid, options) = CONTAINERS[kind], SEARCHES[name]
    one, other = (
        outcome(lambda s=module: s.GridSearchCV(clone(estimator), grid, cv=2, **options).fit(X, LABELS))
        for module in (ours, theirs)
    )
    if isinstance(other, tuple):
        assert one == other
        return
    assert_same_results(one, other, rtol=1e-6)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.score(X, LABELS) == other.score(X, LABELS)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("kind", "options"),
    covering(
        ["series", "polars", "array of objects", "list"],
        [{"sharing": "none"}, {"verify": 2}, {"n_jobs": 2}, {"checkpoint": True}],
        strength=1,
    ),
)
def test_options_of_a_search(kind, options, tmp_path):
    X = CONTAINERS[kind]
    if "checkpoint" in options:
        options = {"checkpoint": tmp_path / "search"}
    search = ours.GridSearchCV(clone(COUNTS), SMOOTHED, cv=3, error_score="raise", **options)
    assert search.plan(X, LABELS).n_candidates == 2
    assert_same_results(search.fit(X, LABELS), theirs.GridSearchCV(COUNTS, SMOOTHED, cv=3).fit(X, LABELS))


FUNCTIONS = {
    "cross_validate": lambda m, e, X: m.cross_validate(e, X, LABELS, cv=3, error_score="raise")["test_score"],
    "cross_val_score": lambda m, e, X: m.cross_val_score(e, X, LABELS, cv=3),
    "cross_val_predict": lambda m, e, X: m.cross_val_predict(e, X, LABELS, cv=3),
    "validation_curve": lambda m, e, X: m.validation_curve(
        e, X, LABELS, param_name="randomforestclassifier__max_depth", param_range=[1, 3], cv=3
    )[1],
    "learning_curve": lambda m, e, X: m.learning_curve(e, X, LABELS, cv=3, train_sizes=[0.5, 1.0])[2],
    "RandomizedSearchCV": lambda m, e, X: (
        m.RandomizedSearchCV(e, DEPTHS, n_iter=2, cv=3, random_state=0)
        .fit(X, LABELS)
        .cv_results_["mean_test_score"]
    ),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("kind", "name"),
    covering(["series", "polars", "array of objects", "list", "Arrow"], FUNCTIONS, strength=1),
)
def test_functions(kind, name):
    estimator = clone(DRAWS).set_params(randomforestclassifier__random_state=0)
    call, X = FUNCTIONS[name], CONTAINERS[kind]
    one, other = (outcome(lambda m=module: call(m, estimator, X)) for module in (ours, theirs))
    np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_on_a_cluster():
    expected = theirs.GridSearchCV(COUNTS, SMOOTHED, cv=3).fit(TEXTS, LABELS)
    with forking(), local_cluster(1) as client:
        for kind in ("series", "polars", "array of objects", "list"):
            search = ours.GridSearchCV(clone(COUNTS), SMOOTHED, cv=3, error_score="raise", client=client)
            assert_same_results(search.fit(CONTAINERS[kind], LABELS), expected)


class CountedVectorizer(CountVectorizer):
    fits = 0

    def fit_transform(self, raw_documents, y=None):
        type(self).fits += 1
        return super().fit_transform(raw_documents, y)


def lowered(texts):
    return [text.lower() for text in texts]


ALL_LOWERED = {True: [], False: []}


def lowered_and_kept(texts):
    kept = ALL_LOWERED[len(texts) > 30]
    kept[:] = [text.lower() for text in texts]
    return kept


@pytest.mark.parametrize(
    ("function", "fits", "container"),
    covering([(lowered, 4), (tuple, 4), (np.array, 4), (lowered_and_kept, 7)], [list, np.array], strength=1),
)
def test_steps_behind_one_that_returns_a_list_are_shared(function, fits, container):
    model = make_pipeline(FunctionTransformer(function), CountedVectorizer(), SVC())
    grid, X = {"svc__C": [0.1, 3.0]}, container(TEXTS)
    expected = theirs.GridSearchCV(model, grid, cv=3).fit(X, LABELS)
    CountedVectorizer.fits = 0
    search = ours.GridSearchCV(model, grid, cv=3).fit(X, LABELS)
    assert_same_results(search, expected)
    assert CountedVectorizer.fits == fits
