"""Selectors of columns: one fit of a fold serves every k, and nothing else can be seen of it."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.model_selection
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.feature_selection import (
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    chi2,
    f_classif,
    mutual_info_classif,
    r_regression,
)
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from manyfit.model_selection import GridSearchCV
from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.transformers._step_wrappers import share_prefixes, unshare
from tests._covering import covering

X, y = load_iris(return_X_y=True)
# Columns that tie, and one that is constant.
X = np.column_stack([X, X[:, ::-1], np.ones(len(X)), np.round(X[:, :2])])[::3]
y = y[::3]
SEEDED = partial(mutual_info_classif, random_state=0)
FORMS = {
    "array": X,
    "float32": X.astype(np.float32),
    "frame": pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "sparse": scipy.sparse.csr_matrix(X),
}
CASES = [
    (SelectKBest(chi2), "k", [5, 0, 1, 11, "all", np.int64(3)]),
    (SelectKBest(SEEDED), "k", [4, 2]),
    (SelectKBest(r_regression), "k", [4, 2]),  # scores without p-values; the constant column has NaN
    (SelectPercentile(chi2), "percentile", [10, 33.3, 100, 0]),
    (SelectFpr(chi2), "alpha", [0.01, 1, 1e-9]),
    (SelectFdr(chi2), "alpha", [0.5, 0.01]),
    (SelectFwe(chi2), "alpha", [0.5, 0.01]),
    (GenericUnivariateSelect(chi2, mode="k_best"), "param", [5, 1, "all"]),
    (GenericUnivariateSelect(chi2, mode="fwe"), "param", [0.5, 1e-3]),
    (VarianceThreshold(0.5), "threshold", [0.1, 0.3, 0.7]),
]


@pytest.fixture(autouse=True)
def quiet():
    """Constant columns, and selectors that leave none, are warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def assert_same(one, other):
    assert type(one) is type(other)
    if scipy.sparse.issparse(one):
        one, other = one.toarray(), other.toarray()
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    else:
        assert_array_equal(one, other)
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.strides) == (other.dtype, other.strides)


@pytest.mark.cases(4)
@pytest.mark.parametrize(("form", "step", "param", "values"), covering(FORMS, CASES, strength=1))
def test_every_value_gives_what_its_own_fit_gives(step, param, values, form):
    rows = FORMS[form]
    step = clone(step).set_output(transform="pandas") if form == "frame" else step
    cache = FoldCache(None)
    for value in values:
        one = clone(step).set_params(**{param: value})
        shared = share_prefixes(make_pipeline(clone(one), MinMaxScaler(), GaussianNB()), cache)
        wrapped = shared.steps[0][1]
        train = wrapped.fit_transform(cache.share(rows), cache.share(y))
        test = wrapped.transform(cache.share(rows[:20]))
        plain = clone(one)
        assert_same(np.asarray(train) if form == "array" else train, plain.fit_transform(rows, y))
        assert_same(np.asarray(test) if form == "array" else test, plain.transform(rows[:20]))
        ours = unshare(wrapped)
        assert vars(ours).keys() == vars(plain).keys()
        assert getattr(ours, param) == value
        for name in set(vars(plain)) - {"score_func"}:
            np.testing.assert_equal(vars(ours)[name], vars(plain)[name])
    assert (cache.fits, cache.saved) == (1, len(values) - 1)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_counts_what_it_made_and_what_it_saved(n_jobs):
    pipe = make_pipeline(MinMaxScaler(clip=True), SelectKBest(chi2), DecisionTreeClassifier(random_state=0))
    grid = {"selectkbest__k": [2, 4, 6, 8], "decisiontreeclassifier__max_depth": [1, 3]}
    search = GridSearchCV(pipe, grid, cv=3, n_jobs=n_jobs, return_train_score=True)
    with joblib.parallel_config("threading"):
        plan, report = search.plan(X, y), search.fit(X, y).report_
    assert "fits of transformers; a fit of SelectKBest serves every k" in str(plan)
    assert "a fit of" in plan._repr_html_()
    made, saved = report.transformer_fits, report.transformer_fits_saved
    assert made + saved == 2 * report.fits_requested
    assert made == plan.transformer_fits
    assert made == 2 * 3 if n_jobs is None else made <= 2 * 2 * 3  # each worker may have a part of each split
    reference = sklearn.model_selection.GridSearchCV(pipe, grid, cv=3, return_train_score=True).fit(X, y)
    for name, values in reference.cv_results_.items():
        if "score" in name and "time" not in name:
            assert_array_equal(search.cv_results_[name], values)


def test_inside_of_composites_and_in_front_of_a_family():
    union = make_union(SelectKBest(r_regression), MinMaxScaler())
    columns = ColumnTransformer([("best", SelectKBest(r_regression), [0, 1, 2, 3])], remainder="passthrough")
    for step, name in ((union, "featureunion__selectkbest"), (columns, "columntransformer__best")):
        pipe = make_pipeline(step, Ridge())
        grid = {f"{name}__k": [1, 2, 3], "ridge__alpha": [0.1, 1.0]}
        search = GridSearchCV(pipe, grid, cv=3).fit(X, X[:, 0] + y)
        reference = sklearn.model_selection.GridSearchCV(pipe, grid, cv=3).fit(X, X[:, 0] + y)
        gap = np.abs(search.cv_results_["mean_test_score"] - reference.cv_results_["mean_test_score"])
        assert np.max(gap) < 1e-9
        report = search.report_
        assert report.transformer_fits <= (2 + 3) * 3
        assert report.transformer_fits_saved > 0


def test_a_score_function_of_a_user_is_called_once_a_fold():
    calls = Counter()

    def scores(X, y):
        calls[id(type(X))] += 1
        return np.abs(X).sum(axis=0)

    grid = {"selectkbest__k": [1, 2, 3, 4]}
    pipe = make_pipeline(SelectKBest(scores), GaussianNB())
    GridSearchCV(pipe, grid, cv=3, refit=False).fit(X, y)
    assert sum(calls.values()) == 3


def test_a_score_function_that_returns_the_same_memory_each_time():
    buffer = np.empty(X.shape[1])

    def scores(X, y):
        buffer[:] = np.abs(X).sum(axis=0)
        return buffer

    cache = FoldCache(None)
    step = SelectKBest(scores, k=3)
    pipes = [share_prefixes(make_pipeline(clone(step), GaussianNB()), cache) for _ in range(2)]
    pipes[0].fit(cache.share(X), cache.share(y))
    buffer[:] = -buffer
    pipes[1].set_params(selectkbest__k=4).fit(cache.share(X), cache.share(y))
    support = pipes[1].steps[0][1].get_support()
    assert_array_equal(support, clone(step).set_params(k=4).fit(X, y).get_support())
    assert cache.fits == 1


def test_a_score_function_that_draws_is_called_for_every_k():
    cache = FoldCache(None)
    for k in (1, 2, 3):
        step = SelectKBest(mutual_info_classif, k=k)
        pipe = share_prefixes(make_pipeline(step, GaussianNB()), cache)
        pipe.fit(cache.share(X), cache.share(y))
    assert (cache.fits, cache.saved) == (3, 0)


def test_another_score_function_target_or_input_is_another_fit():
    cache = FoldCache(None)
    rows, targets = cache.share(X), cache.share(y)
    turned, fewer = y[::-1].copy(), X[:, :5].copy()
    for k in (1, 2):
        for function in (chi2, f_classif):
            for one, other in ((rows, targets), (rows, cache.share(turned)), (fewer, targets)):
                share_prefixes(make_pipeline(SelectKBest(function, k=k), GaussianNB()), cache).fit(one, other)
    assert (cache.fits, cache.saved) == (6, 6)


@pytest.mark.parametrize(
    ("step", "param", "good", "odd", "message"),
    [
        (SelectKBest(chi2), "k", 3, -1, "must be a str among"),
        (SelectKBest(chi2), "k", 3, 2.5, "must be a str among"),
        (SelectPercentile(chi2), "percentile", 30, 101, "must be a float in the range"),
        (SelectFdr(chi2), "alpha", 0.5, float("nan"), "must be a float in the range"),
        (VarianceThreshold(0.1), "threshold", 0.2, 1e9, "No feature in X meets"),
    ],
)
def test_a_value_that_a_fit_refuses_is_refused(step, param, good, odd, message):
    cache = FoldCache(None)

    def fit(value):
        one = clone(step).set_params(**{param: value})
        pipe = share_prefixes(make_pipeline(one, GaussianNB()), cache)
        return pipe.fit(cache.share(X), cache.share(y))

    fit(good)
    with pytest.raises(ValueError, match=message):
        fit(odd)
    assert cache.saved == 0


def test_the_fit_with_a_threshold_of_zero_compares_ranges_and_serves_no_other():
    rows = np.column_stack([X[:, :2], np.full(len(X), 1e-13) + 0.1])
    cache = FoldCache(None)
    for threshold in (0, 0.1, 0.0, 0.2):
        one = VarianceThreshold(threshold)
        pipe = share_prefixes(make_pipeline(clone(one), GaussianNB()), cache)
        pipe.fit(cache.share(rows), cache.share(y))
        assert_array_equal(pipe.steps[0][1].variances_, one.fit(rows).variances_)
    assert (cache.fits, cache.saved) == (3, 1)


def test_a_k_larger_than_the_number_of_columns_is_warned_of_for_each_setting():
    cache = FoldCache(None)
    for k in (3, 40, 41):
        pipe = share_prefixes(make_pipeline(SelectKBest(chi2, k=k), GaussianNB()), cache)
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            pipe.fit(cache.share(X), cache.share(y))
        assert [w for w in shown if f"k={k} is greater" in str(w.message)] or k == 3
    assert cache.fits == 3


def test_a_fit_that_was_dropped_is_made_again():
    cache = FoldCache(1)
    for k in (1, 2):
        share_prefixes(make_pipeline(SelectKBest(chi2, k=k), GaussianNB()), cache).fit(
            cache.share(X), cache.share(y)
        )
    assert (cache.fits, cache.saved) == (2, 0)
