"""Searches over sparse chunks, as vectorizers of texts make them, have the scores of the matrix in memory."""

from __future__ import annotations

import importlib
import weakref

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

from manyfit.estimators import GaussianNB as OwnNaiveBayes
from manyfit.estimators import LogisticRegression as OwnLogistic
from manyfit.estimators import Ridge as OwnRidge
from manyfit.estimators import StandardScaler as OwnScaler
from manyfit.estimators import TruncatedSVD
from manyfit.estimators.chunks import methods
from manyfit.folds import Blocks
from manyfit.model_selection import GridSearchCV, cross_val_score
from tests.behaviour.chunks._sparse import (
    COUNTS,
    LIMIT,
    OPTIONS,
    SHARES,
    SIGNED,
    TEXTS,
    N,
    Y,
    blocks,
    lazy,
    require_equal,
)


@pytest.mark.parametrize(
    "cv", [KFold(4), StratifiedKFold(3, shuffle=True, random_state=0)], ids=["KFold", "shuffled"]
)
@pytest.mark.parametrize(
    "X", [COUNTS, SHARES, scipy.sparse.csr_array(SHARES)], ids=["counts", "floats", "array"]
)
@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (MultinomialNB(), {"alpha": [0.01, 1.0], "fit_prior": [True, False]}),
        (ComplementNB(), {"alpha": [0.01, 1.0], "norm": [True, False]}),
        (BernoulliNB(binarize=0.3), {"alpha": [0.1, 1.0]}),
    ],
    ids=["multinomial", "complement", "bernoulli"],
)
def test_families_that_count(model, grid, X, cv):
    scoring = ["accuracy", "neg_log_loss", "roc_auc_ovr"]
    search = GridSearchCV(model, grid, scoring=scoring, cv=cv, **OPTIONS).fit(blocks(X))
    assert search.report_.fits_done == 0
    expected = SklearnSearch(model, grid, scoring=scoring, cv=cv, refit=False, return_train_score=True).fit(
        X, Y
    )
    require_equal(search, expected)


@pytest.mark.parametrize("known", [True, False])
def test_a_dask_array_of_sparse_chunks(known):
    grid = {"alpha": [0.01, 1.0]}
    search = GridSearchCV(MultinomialNB(), grid, **OPTIONS).fit(lazy(SHARES, known=known), Y)
    require_equal(
        search, SklearnSearch(MultinomialNB(), grid, refit=False, return_train_score=True).fit(SHARES, Y)
    )
    small = GridSearchCV(MultinomialNB(), grid, refit=False).fit(lazy(SHARES, known=known), Y)  # it is loaded
    require_equal(small, SklearnSearch(MultinomialNB(), grid, refit=False).fit(SHARES, Y))


def test_weights_of_blocks():
    weights, grid = np.random.default_rng(1).uniform(0.5, 2.0, size=N), {"alpha": [0.01, 1.0]}
    search = GridSearchCV(MultinomialNB(), grid, **OPTIONS).fit(blocks(SHARES, weights=weights))
    expected = SklearnSearch(MultinomialNB(), grid, refit=False, return_train_score=True)
    require_equal(search, expected.fit(SHARES, Y, sample_weight=weights))


def test_counts_of_one_threshold_are_in_memory(monkeypatch):
    earlier, module = [], "manyfit.folds.moments._classes"
    count = importlib.import_module(module).count_classes

    def counted(*args):
        assert all(sums() is None for sums in earlier)
        found = count(*args)
        earlier.append(weakref.ref(found.sums))
        return found

    monkeypatch.setattr(f"{module}.count_classes", counted)
    apart = [[MultinomialNB(), ComplementNB()], *([BernoulliNB(binarize=b)] for b in (0.0, 0.2, 0.3))]
    pipe, shuffled = Pipeline([("model", MultinomialNB())]), ShuffleSplit(3, random_state=0)
    for X, cv, groups in ((SHARES, KFold(3), 1), (COUNTS, shuffled, 2)):

        def fit(models, X=X, cv=cv):
            earlier.clear()
            grid = {"model": models, "model__alpha": [0.1, 1.0]}
            return grid, GridSearchCV(pipe, grid, cv=cv, **OPTIONS).fit(blocks(X))

        passes = [fit(models)[1].report_.passes for models in apart]
        grid, search = fit([one for models in apart for one in models])
        assert len(earlier) == len(apart) * groups  # MultinomialNB and ComplementNB share
        assert search.report_.fits_done == 0
        assert search.report_.passes == pytest.approx(sum(passes))
        expected = SklearnSearch(pipe, grid, cv=cv, refit=False, return_train_score=True)
        require_equal(search, expected.fit(X, Y))


def test_counts_of_all_splits_need_memory():
    """Splits that are the same have few atoms, and sums of their own."""
    cv = 50 * [(np.arange(400), np.arange(400, N))]
    with pytest.raises(TypeError, match="counts would need 150.00 kiB, more than memory_limit"):
        GridSearchCV(MultinomialNB(), {}, cv=cv, refit=False, memory_limit=LIMIT).fit(blocks(COUNTS))


@pytest.mark.parametrize("rows", [1, 7, 200])
def test_blocks_of_any_size(rows):
    grid = {"alpha": [0.01, 1.0]}
    search = GridSearchCV(ComplementNB(), grid, **OPTIONS).fit(blocks(SHARES, rows))
    expected = SklearnSearch(ComplementNB(), grid, refit=False, return_train_score=True).fit(SHARES, Y)
    require_equal(search, expected)


def test_rows_that_are_not_in_order():
    """Sums of integers are exact in any order; of others, the rows are read in their own order, in parts."""
    drawn = np.random.default_rng(2).integers(0, N, 300)
    splits = [*ShuffleSplit(2, random_state=0).split(COUNTS), (drawn, np.arange(0, N, 7))]
    weights = np.random.default_rng(3).uniform(0.5, 2.0, size=N)
    passes = []
    for X, given in ((COUNTS, None), (SHARES, None), (COUNTS, weights)):
        for model in (BernoulliNB(binarize=0.1), MultinomialNB()):
            search = GridSearchCV(model, {}, **OPTIONS | {"cv": splits}).fit(blocks(X, weights=given))
            assert search.report_.fits_done == 0
            expected = SklearnSearch(model, {}, cv=splits, refit=False, return_train_score=True)
            require_equal(search, expected.fit(X, Y, **{} if given is None else {"sample_weight": given}))
        passes.append(search.report_.passes)
    assert passes[1] == passes[2] == pytest.approx(passes[0] + 13)  # 5 + 5 + 3 parts


@pytest.mark.parametrize(
    ("model", "grid", "scoring"),
    [
        (LogisticRegression(tol=1e-6), {"C": [0.1, 1.0]}, ["neg_log_loss", "accuracy"]),
        (
            LogisticRegression(tol=1e-6, class_weight="balanced"),
            {"C": [1.0]},
            ["neg_log_loss"],
        ),
        (LinearSVC(tol=1e-6, dual=False), {"C": [0.1, 1.0]}, ["accuracy"]),
        (PoissonRegressor(tol=1e-6), {"alpha": [0.1, 1.0]}, ["neg_mean_poisson_deviance", "r2"]),
    ],
    ids=["logistic", "balanced", "svm", "poisson"],
)
def test_iterations(model, grid, scoring):
    y = Y if isinstance(model, LogisticRegression) else (Y > 1).astype(int)
    options = {"scoring": scoring, "cv": KFold(2), "refit": False, "return_train_score": True}
    search = GridSearchCV(model, grid, memory_limit=LIMIT, **options).fit(blocks(SIGNED, 100, y))
    assert search.report_.fits_done == 0
    require_equal(search, SklearnSearch(model, grid, **options).fit(SIGNED, y), rtol=0.0, atol=1e-5)


def test_float32():
    X, limit = SHARES.astype(np.float32), 24_000
    options = {"scoring": "neg_log_loss", "cv": KFold(2), "refit": False}
    for model, grid, atol in ((MultinomialNB(), {}, 1e-12), (LogisticRegression(tol=1e-4), {}, 1e-3)):
        search = GridSearchCV(model, grid, sharing="optimum", memory_limit=limit, **options)
        search.fit(blocks(X, 100))
        assert search.report_.fits_done == 0
        require_equal(search, SklearnSearch(model, grid, **options).fit(X, Y), rtol=0.0, atol=atol)


def test_columns_without_an_entry_are_left_out():
    wide = HashingVectorizer(n_features=2**14).transform(TEXTS)
    model, grid = LogisticRegression(tol=1e-6), {"C": [0.1, 1.0]}
    options = {"scoring": "neg_log_loss", "cv": KFold(2), "refit": False}
    search = GridSearchCV(model, grid, memory_limit=LIMIT, **options).fit(blocks(wide, 100))
    require_equal(search, SklearnSearch(model, grid, **options).fit(wide, Y), rtol=0.0, atol=1e-5)


def test_the_refit_by_our_own_class():
    search = GridSearchCV(OwnLogistic(tol=1e-6), {"C": [0.1, 1.0]}, cv=2, memory_limit=LIMIT)
    search.fit(blocks(SIGNED, 100))
    expected = LogisticRegression(tol=1e-6, C=search.best_params_["C"]).fit(SIGNED, Y)
    np.testing.assert_allclose(search.best_estimator_.coef_, expected.coef_, atol=1e-3)
    np.testing.assert_array_equal(search.predict(blocks(SIGNED)), expected.predict(SIGNED))
    np.testing.assert_array_equal(search.predict(lazy(SIGNED)).compute(), expected.predict(SIGNED))
    np.testing.assert_array_equal(search.predict(SIGNED), expected.predict(SIGNED))


def test_estimators_of_sparse_chunks(monkeypatch):
    expected = StandardScaler(with_mean=False).fit(SHARES).scale_
    small = OwnScaler(with_mean=False).fit(lazy(SHARES))  # is loaded
    np.testing.assert_array_equal(small.scale_, expected)
    monkeypatch.setattr(methods, "MEMORY", LIMIT)
    model = OwnLogistic(tol=1e-6).fit(lazy(SIGNED), Y)
    np.testing.assert_allclose(model.coef_, LogisticRegression(tol=1e-6).fit(SIGNED, Y).coef_, atol=1e-3)
    assert model.score(blocks(SIGNED)) == model.score(SIGNED, Y)
    for other in (OwnScaler(with_mean=False), TruncatedSVD(2), OwnRidge(), OwnNaiveBayes()):
        with pytest.raises(TypeError, match=r"does not read X in sparse chunks. .* are LogisticRegression"):
            other.fit(lazy(SHARES), Y)
    fitted = OwnRidge().fit(SHARES, Y)
    np.testing.assert_allclose(fitted.predict(blocks(SHARES)), fitted.predict(SHARES), rtol=1e-12)


def test_a_plan_of_rows_in_memory_says_nothing_of_chunks():
    plan = str(GridSearchCV(MultinomialNB(), {"alpha": [0.1, 1.0]}, refit=False).plan(SHARES, Y))
    assert "class moments" not in plan and "counts" not in plan
    plan = str(GridSearchCV(MultinomialNB(), {}, refit=False, memory_limit=LIMIT).plan(blocks(SHARES)))
    assert "a Blocks of sparse matrices, is read in chunks" in plan


def test_validation_and_predictions(monkeypatch):
    monkeypatch.setattr("manyfit.model_selection.job._chunk_inputs.half_of_memory", lambda: LIMIT)
    from sklearn.model_selection import cross_val_score as expected_scores

    found = cross_val_score(MultinomialNB(), blocks(SHARES))
    np.testing.assert_array_equal(found, expected_scores(MultinomialNB(), SHARES, Y))


@pytest.mark.parametrize("model", [MultinomialNB(), ComplementNB()])
def test_a_negative_number_fails_the_fits_that_train_on_it(model):
    X = COUNTS.copy()
    X.data[X.indptr[200]] = -1.0
    options = {"cv": KFold(3), "refit": False, "return_train_score": True}
    with pytest.warns(FitFailedWarning, match="2 fits failed"), pytest.warns(UserWarning, match="non-finite"):
        expected = SklearnSearch(model, {"alpha": [0.1]}, **options).fit(X, Y)
    with (
        pytest.warns(FitFailedWarning, match="training rows have negative numbers"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search = GridSearchCV(model, {"alpha": [0.1]}, memory_limit=LIMIT, **options).fit(blocks(X))
    assert search.report_.fits_done == 0 and np.isnan(search.cv_results_["split1_test_score"]).all()
    require_equal(search, expected)


# What is refused


@pytest.mark.parametrize(
    ("model", "X", "reason"),
    [
        (Ridge(), SHARES, "X is a Blocks of sparse matrices, not a dense array or DataFrame"),
        (GaussianNB(), SHARES, "X is sparse"),
        *(
            (
                make_pipeline(step, model),
                SHARES,
                f"steps before {type(model).__name__}, here {type(step).__name__}, "
                "do not read sparse chunks. .* Leave the steps out, or apply those that need no fit",
            )
            for step, model in ((MaxAbsScaler(), Ridge()), (SelectKBest(chi2), MultinomialNB()))
        ),
        (
            make_pipeline(StandardScaler(with_mean=False), MultinomialNB()),
            SHARES,
            "rounding in StandardScaler could decide which class is predicted",
        ),
        (make_pipeline(StandardScaler(), LogisticRegression()), SHARES, "cannot centre .* with_mean=False"),
        (
            make_pipeline(Normalizer().set_output(transform="pandas"), MultinomialNB()),
            SHARES,
            "the output of Normalizer is set to 'pandas'",
        ),
        (MultinomialNB(), SIGNED, "the training rows have negative numbers, and counts have none"),
        (
            MultinomialNB(),
            COUNTS.toarray(),
            r"reads sparse chunks, as scipy.sparse.csr_array\(block\) makes them",
        ),
    ],
    ids=[
        "moments",
        "GaussianNB",
        "scaled",
        "selected",
        "rounded",
        "centred",
        "frames",
        "negative",
        "dense",
    ],
)
def test_refusals(model, X, reason):
    with pytest.raises(TypeError, match=reason):
        GridSearchCV(model, {}, refit=False, memory_limit=LIMIT).fit(blocks(X, 20))


def test_a_dask_array_that_says_it_is_dense():
    X = lazy(SHARES).map_blocks(lambda block: block, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match="X is a sparse .* and its Dask array says .* Give it meta="):
        GridSearchCV(LogisticRegression(), {}, refit=False, memory_limit=200_000).fit(X, Y)


def test_nan_in_one_chunk_names_its_row():
    X = SHARES.copy()
    X.data[X.indptr[200]] = np.nan
    for model in (MultinomialNB(), BernoulliNB(), BernoulliNB(binarize=None), LogisticRegression()):
        with pytest.raises(ValueError, match="NaN or infinity, first in row 200 of 601"):
            GridSearchCV(model, {}, refit=False, memory_limit=LIMIT).fit(blocks(X))


def test_blocks_that_do_not_go_together():
    def read(second):
        return Blocks(lambda: iter([(SHARES[:100], Y[:100]), (second, Y[100:200])]))

    for second, message in (
        (SHARES[100:200].toarray(), "Block 1 of X is dense, and block 0 is sparse"),
        (SHARES[100:200, :50], "Block 1 of X has 50 columns, and block 0 has 64"),
        (SHARES[100:199], "Block 1 has 99 rows of X, and 100 of y"),
        (SHARES[100:200].astype(complex), "Block 1 of X is of dtype complex128"),
    ):
        with pytest.raises(ValueError, match=message):
            GridSearchCV(MultinomialNB(), {}, refit=False, memory_limit=LIMIT).fit(read(second))


@pytest.mark.parametrize("change", ["a number", "a column"])
def test_blocks_that_change_are_found(change):
    calls = []

    def read():
        calls.append(0)
        X = SHARES.copy()
        if len(calls) > 1 and change == "a number":
            X.data[7] += 0.5
        if len(calls) > 1 and change == "a column":
            X.indices[7] += 1 if X.indices[7] < 63 else -1
        for start in range(0, N, 50):
            yield X[start : start + 50], Y[start : start + 50]

    with pytest.raises(ValueError, match="Block 0 of X has other numbers than in the first pass"):
        GridSearchCV(MultinomialNB(), {}, refit=False, memory_limit=LIMIT).fit(Blocks(read))
