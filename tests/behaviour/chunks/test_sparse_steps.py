"""Steps before the estimator of a search over sparse chunks have the scores of the matrix in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Binarizer, MaxAbsScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks._sparse import (
    COUNTS,
    LIMIT,
    SHARES,
    SIGNED,
    TEXTS,
    Y,
    blocks,
    lazy,
    require_equal,
)

STEPS = [
    (TfidfTransformer(), COUNTS),
    (TfidfTransformer(norm="l1", sublinear_tf=True, smooth_idf=False), COUNTS[:, np.unique(COUNTS.indices)]),
    (TfidfTransformer(use_idf=False), COUNTS),
    (MaxAbsScaler(), COUNTS),
    (Normalizer("max"), COUNTS),
    (Binarizer(threshold=0.2), SHARES),
    (make_pipeline(Binarizer(), TfidfTransformer(), MaxAbsScaler()), COUNTS),
]


KINDS = {"blocks": lambda X, rows: [blocks(X, rows)], "lazy": lambda X, rows: [lazy(X, rows), Y]}


@pytest.mark.cases(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "cv", [KFold(4), StratifiedKFold(3, shuffle=True, random_state=0)], ids=["KFold", "shuffled"]
)
@pytest.mark.parametrize(("step", "X"), STEPS, ids=[str(k) for k in range(len(STEPS))])
def test_steps_before_families_that_count(step, X, cv, kind):
    model = Pipeline([("step", step), ("model", ComplementNB())])
    grid = {"model": [MultinomialNB(), ComplementNB(), BernoulliNB(binarize=0.3)], "model__alpha": [0.1, 1.0]}
    options = {"scoring": ["accuracy", "neg_log_loss"], "cv": cv, "refit": False, "return_train_score": True}
    search = GridSearchCV(model, grid, memory_limit=LIMIT, **options).fit(*KINDS[kind](X, 50))
    assert search.report_.fits_done == 0
    require_equal(search, SklearnSearch(model, grid, **options).fit(X, Y))


@pytest.mark.cases(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("step", "X"),
    [*STEPS, (StandardScaler(with_mean=False), SIGNED)],
    ids=[str(k) for k in range(len(STEPS) + 1)],
)
def test_steps_before_iterations(step, X, kind):
    model = Pipeline([("step", step), ("model", LogisticRegression(tol=1e-6))])
    grid = {"model__C": [0.1, 1.0]}
    options = {"scoring": "neg_log_loss", "cv": KFold(2), "refit": False, "return_train_score": True}
    search = GridSearchCV(model, grid, memory_limit=LIMIT, **options)
    search.fit(*KINDS[kind](X, 100))
    assert search.report_.fits_done == 0
    require_equal(search, SklearnSearch(model, grid, **options).fit(X, Y), rtol=0.0, atol=1e-5)


def test_the_pass_that_counts_the_rows_leaves_out_reads_without_a_training_row():
    for step in (MaxAbsScaler(), StandardScaler(with_mean=False)):
        model = make_pipeline(step, LogisticRegression(tol=1e-6))
        options = {"cv": KFold(4), "refit": False, "scoring": "neg_log_loss"}
        search = GridSearchCV(model, {}, memory_limit=LIMIT, **options).fit(lazy(COUNTS, known=False), Y)
        assert search.report_.fits_done == 0
        require_equal(search, SklearnSearch(model, {}, **options).fit(COUNTS, Y), rtol=0.0, atol=1e-5)


def test_settings_of_steps_before_rows_that_are_not_in_order():
    """Binarizer leaves integers, and other steps do not: neither is left without a score."""
    model = Pipeline([("step", Binarizer()), ("model", MultinomialNB())])
    grid = {"step": [Binarizer(threshold=0.5), Normalizer("max"), MaxAbsScaler(), TfidfTransformer()]}
    options = {"cv": ShuffleSplit(3, random_state=0), "refit": False, "return_train_score": True}
    search = GridSearchCV(model, grid, memory_limit=LIMIT, **options).fit(blocks(COUNTS))
    assert search.report_.fits_done == 0
    require_equal(search, SklearnSearch(model, grid, **options).fit(COUNTS, Y))


def test_passes():
    """Models share them behind the same steps, and splits if these learn nothing."""
    model, grid = (
        Pipeline([("step", TfidfTransformer()), ("model", MultinomialNB())]),
        {"model": [MultinomialNB(), ComplementNB()], "model__alpha": [0.1, 1.0]},
    )
    predicted = []  # passes that predict
    for step, passes in ((TfidfTransformer(), 8), (MaxAbsScaler(), 8), (Normalizer(), 1)):
        search = GridSearchCV(model.set_params(step=step), grid, cv=KFold(4), refit=False, memory_limit=LIMIT)
        assert search.plan(blocks(COUNTS)).passes == passes
        predicted.append(search.fit(blocks(COUNTS)).report_.passes - passes)
    np.testing.assert_allclose(predicted, predicted[0])
    search = GridSearchCV(make_pipeline(TfidfTransformer(), LogisticRegression()), {}, memory_limit=LIMIT)
    assert "each split by itself" in str(search.set_params(refit=False).plan(blocks(COUNTS)))


def test_settings_of_steps_and_columns_without_an_entry():
    wide = HashingVectorizer(n_features=2**12, alternate_sign=False, norm=None).transform(TEXTS)
    model = make_pipeline(TfidfTransformer(), LinearSVC(tol=1e-6, dual=False))
    grid = {"tfidftransformer__norm": ["l1", "l2"], "linearsvc__C": [0.1]}
    y = (Y > 1).astype(int)
    options = {"cv": ShuffleSplit(2, random_state=0), "refit": False}
    search = GridSearchCV(model, grid, memory_limit=LIMIT, **options).fit(lazy(wide, 100), y)
    assert search.report_.fits_done == 0
    require_equal(search, SklearnSearch(model, grid, **options).fit(wide, y))


def test_nan_behind_a_step_names_its_row():
    X = SHARES.copy()
    X.data[X.indptr[200]] = np.nan
    for model in (MultinomialNB(), LogisticRegression()):
        with pytest.raises(ValueError, match="NaN or infinity, first in row 200 of 601"):
            GridSearchCV(make_pipeline(TfidfTransformer(), model), {}, refit=False, memory_limit=LIMIT).fit(
                blocks(X)
            )
