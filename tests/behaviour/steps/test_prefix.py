"""Shared prefixes: how often transformers are fitted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline

from manyfit.folds import Unsupported
from manyfit.model_selection.sharing._fold_cache import FoldCache
from manyfit.model_selection.sharing.transformers._cached_transformer import CachedTransformer
from manyfit.model_selection.sharing.transformers._step_wrappers import share_prefixes
from tests.behaviour.steps._prefixes import (
    ALPHAS,
    CALLS,
    Counting,
    Exploding,
    Mutating,
    OwnFitTransform,
    agree,
    data,
    fold,
)

X, y, X_test, _ = fold(*data())


@pytest.mark.invariant("Equal steps on equal input are fitted once per fold, and only equal ones")
def test_equal_steps_are_fitted_and_applied_once():
    cache = agree(make_pipeline(Counting("a"), Counting("b"), Ridge()), ALPHAS, X, y, X_test)
    plain = 3  # of the three plain fits, which count too
    assert CALLS["a.fit"] == CALLS["b.fit"] == plain + 1
    # plain: at fit, on test, on train; shared: at fit, on test
    assert CALLS["a.transform"] == CALLS["b.transform"] == 3 * plain + 2
    assert cache.fits == 2


def test_a_step_is_fitted_once_for_each_value_and_each_input():
    base = Pipeline([("a", Counting("a")), ("b", Counting("b")), ("ridge", Ridge())])
    settings = [
        {"a__shift": a, "b__shift": b, "ridge__alpha": alpha}
        for a in (0.0, 1.0)
        for b in (0.0, 1.0, 2.0)
        for alpha in (1.0, 2.0)
    ]
    cache = agree(base, settings, X, y, X_test)
    assert cache.fits == 2 + 2 * 3
    assert CALLS["a.fit"] == len(settings) + 2 and CALLS["b.fit"] == len(settings) + 6


@pytest.mark.invariant("Equal steps on equal input are fitted once per fold, and only equal ones")
def test_types_of_values_are_told_apart():
    base = Pipeline([("a", Counting("a")), ("ridge", Ridge())])
    cache = agree(
        base, [{"a__shift": s} for s in (1, 1.0, True, np.float64(1.0), np.float32(1.0))], X, y, X_test
    )
    assert cache.fits == 5


@pytest.mark.invariant("Equal steps on equal input are fitted once per fold, and only equal ones")
def test_another_fold_or_target_is_another_fit():
    X, y = data()
    cache = FoldCache(None)
    base = make_pipeline(Counting("a"), Ridge())
    agree(base, [{}], X[:40], y[:40], X[40:], cache)
    agree(base, [{}], X[20:], y[20:], X[:20], cache)
    agree(base, [{}], X[:40], -y[:40], X[40:], cache)
    assert cache.fits == 3


@pytest.mark.invariant("A training score reads the rows that it reads in scikit-learn")
def test_a_training_score_reads_the_output_of_fit_transform_only_where_it_is_inherited():
    cache = agree(make_pipeline(OwnFitTransform("own"), Ridge()), ALPHAS, X, y, X_test)
    plain = 3 * 3  # of the three plain fits: at fit, on test, on train
    assert cache.fits == 1 and CALLS["own.transform"] == plain + 3
    cache = agree(make_pipeline(Counting("a"), Ridge()), ALPHAS, X, y, X_test)
    assert cache.fits == 1 and CALLS["a.transform"] == plain + 2  # at fit, on test


def test_lookups_by_fit_and_by_fit_transform_are_separate():
    X, _ = data()
    cache = FoldCache(None)
    first, second = (CachedTransformer(OwnFitTransform("own"), cache) for _ in range(2))
    lent = cache.share(X)
    assert_array_equal(first.fit_transform(lent), second.fit(lent).transform(lent) + 1000.0)
    assert cache.fits == 2


def test_the_exception_of_a_failed_fit_passes_and_nobody_tries_again():
    """A setting that fails is fitted by scikit-learn's own function, which raises its own exception."""
    X, y = data()
    cache = FoldCache(None)
    model = make_pipeline(Counting("a"), Exploding(shift=7), Ridge())
    for error, text in ((ArithmeticError, "^shift 7$"), (Unsupported, r"^shared work failed \(Arithm")):
        with pytest.raises(error, match=text):
            share_prefixes(clone(model), cache).fit(cache.share(X), y)
    assert CALLS["exploding.fit"] == 1 and CALLS["a.fit"] == 1 and cache.fits == 1


def test_a_transformer_that_changes_its_own_parameters():
    cache = agree(make_pipeline(Mutating(), Ridge()), ALPHAS, X, y, X_test)
    assert cache.fits == 1


def test_data_that_was_not_lent_is_found_by_content():
    X, y = data()
    cache = FoldCache(None)
    for _ in range(3):
        share_prefixes(make_pipeline(Counting("a"), Ridge()), cache).fit(X.copy(), y.copy())
    assert CALLS["a.fit"] == 1
    X[0, 0] += 1
    share_prefixes(make_pipeline(Counting("a"), Ridge()), cache).fit(X, y)
    assert CALLS["a.fit"] == 2


def test_text_is_found_by_content():
    texts = ["aa bb cc", "bb cc dd", "cc dd ee", "aa dd"] * 5
    y = np.arange(20) % 2
    base = make_pipeline(TfidfVectorizer(), LogisticRegression())
    cache = agree(base, [{"logisticregression__C": c} for c in (1.0, 2.0)], texts, y, texts[:7])
    assert cache.fits == 1
