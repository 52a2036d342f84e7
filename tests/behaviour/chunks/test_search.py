"""Searches on an X that is larger than `memory_limit` have the scores of arrays in memory."""

from __future__ import annotations

import tracemalloc

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import ElasticNet, LogisticRegression, RidgeClassifier
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as SklearnScaler

from manyfit.folds.rows import _some_rows
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.behaviour.chunks._files import Array, Dataset, given_as, limit_for, memory_map
from tests.behaviour.chunks._searches import (
    GRID,
    GROUPS,
    KINDS,
    LABELS,
    RIDGE,
    WEIGHTS,
    N,
    P,
    X,
    Y,
    assert_same,
)


@pytest.mark.cases(2)
@pytest.mark.invariant("a search on X in chunks has the scores of the same X in memory")
@pytest.mark.parametrize(("kind", "rows"), covering(KINDS, [89, N, 1], strength=1))
def test_scores_from_moments_are_those_of_an_array(kind, rows, tmp_path):
    if rows == N:
        rows, limit = N // 2, X.nbytes - 1  # two chunks are in memory at a time
    else:
        limit = max(limit_for(X, rows), 8000)  # which moments need
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit)
    search.fit(given_as(kind, X, rows, tmp_path), Y)
    assert search.report_.passes == 1
    # A point amid the rows is found from 15 of them: of few chunks that reads each almost whole.
    assert X.nbytes <= search.report_.bytes_read < (2.0 if rows > 89 else 1.3) * X.nbytes
    assert_same(search, SklearnSearch(RIDGE, GRID, refit=False).fit(X, Y), 1e-12)


SPLITTERS = {
    "k folds": KFold(5, shuffle=True, random_state=0),
    "of classes": StratifiedKFold(3),
    "of groups": GroupKFold(3),
    "draws": ShuffleSplit(3, random_state=0),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize(("kind", "cv"), covering(KINDS, SPLITTERS.items(), strength=1))
def test_folds_are_scikit_learns_and_move_no_rows(kind, cv, tmp_path):
    y = (Y.mean() < Y).astype(float) if isinstance(cv, StratifiedKFold) else Y
    given = {"ridge__sample_weight": WEIGHTS, **({"groups": GROUPS} if isinstance(cv, GroupKFold) else {})}
    options = {"cv": cv, "refit": False, "return_train_score": True}
    search = GridSearchCV(RIDGE, GRID, memory_limit=limit_for(X, 53), **options)
    search.fit(given_as(kind, X, 53, tmp_path), y, **given)
    assert_same(search, SklearnSearch(RIDGE, GRID, **options).fit(X, y, **given), 1e-11)
    # Moments with and without weights; ShuffleSplit has no sets of rows in common.
    assert search.report_.passes <= 2 * (3 if isinstance(cv, ShuffleSplit) else 1)


SHARED = {
    "PCA": (
        make_pipeline(SklearnScaler(), PCA(), SklearnRidge()), {"pca__n_components": [2, 4]}, Y, None, 1e-10,
    ),
    "ElasticNet": (ElasticNet(tol=1e-12), {"alpha": [0.01, 0.1]}, Y, "neg_mean_squared_error", 1e-8),
    "classifier": (RidgeClassifier(), {"alpha": [1.0, 100.0]}, LABELS, "accuracy", 1e-12),
    "predictions": (RIDGE, GRID, Y, "neg_mean_absolute_error", 1e-11),
    "two targets": (RIDGE, GRID, np.c_[Y, X[:, 0] ** 2], None, 1e-11),
    "iterations": (
        make_pipeline(SklearnScaler(), LogisticRegression(tol=1e-6)),
        {"logisticregression__C": [1e-4, 1e-2]}, LABELS, "neg_log_loss", 1e-5,  # as near as tol asks
    ),
}  # fmt: skip


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("kind", "model", "grid", "y", "scoring", "tol"), covering(["dask", "h5py"], SHARED.items(), strength=1)
)
def test_every_way_of_sharing_fits(kind, model, grid, y, scoring, tol, tmp_path):
    options = {"cv": KFold(3, shuffle=True, random_state=1), "refit": False, "scoring": scoring}
    search = GridSearchCV(model, grid, memory_limit=limit_for(X, 83), **options)
    search.fit(given_as(kind, X, 83, tmp_path), y)
    assert_same(search, SklearnSearch(model, grid, **options).fit(X, y), tol)


@pytest.mark.cases(2)
@pytest.mark.parametrize("dtype", ["float32", "int16", ">f8", "bool"])
def test_numbers_of_any_size(dtype):
    values = (X > 3.0 if dtype == "bool" else X).astype(dtype)
    y = Y + 20.0 * values[:, 1]
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(values, 64))
    search.fit(Dataset(values), y)
    expected = SklearnSearch(RIDGE, GRID, refit=False).fit(values.astype(np.float64), y)
    assert_same(search, expected, 1e-5 if dtype == "float32" else 1e-12)


def test_no_read_is_larger_than_the_limit_allows_and_a_shard_is_read_whole():
    file = Dataset(X, (10, P))
    GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 55)).fit(file, Y)
    assert max(file.reads) == 50
    sharded = Array(X, (10, P), (60, P))
    GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 55)).fit(sharded, Y)
    assert max(sharded.reads) == 60


def test_the_peak_of_memory_is_a_few_blocks(tmp_path):
    values = np.random.default_rng(1).normal(size=(150_000, 20)) + 3.0
    y, file = values[:, 0] + values[:, 1] ** 2, Dataset(memory_map(values, tmp_path))
    nbytes = values.nbytes
    del values
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit="4MB")
    tracemalloc.start()
    try:
        search.fit(file, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        file[:]
        whole = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < nbytes / 3 < nbytes <= whole  # y and the folds take 1/10


def test_an_array_in_a_file_that_fits_is_loaded_once():
    file, target = Dataset(X, (10, P)), Dataset(Y)
    search = GridSearchCV(RIDGE, GRID).fit(file, target)
    assert file.reads == [N] and target.reads == [N]
    expected = SklearnSearch(RIDGE, GRID).fit(X, Y)
    np.testing.assert_array_equal(search.best_estimator_[-1].coef_, expected.best_estimator_[-1].coef_)
    assert search.report_.bytes_read == 0


# Dask


def test_the_same_bits_whatever_the_number_of_workers():
    lazy, found = da.from_array(X, chunks=(50, 4)), []
    for workers in (1, 4):
        with dask.config.set(scheduler="threads", num_workers=workers):
            search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 90)).fit(lazy, Y)
        found.append(search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(*found)


def test_targets_may_have_other_chunks():
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 90))
    search.fit(da.from_array(X, chunks=(50, 4)), da.from_array(Y, chunks=77))
    assert_same(search, SklearnSearch(RIDGE, GRID, refit=False).fit(X, Y), 1e-12)


def test_the_plan_says_how_x_is_read_and_that_dask_computes_it_anew():
    lazy = da.from_array(X, chunks=(100, P)) + 0.0
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 90))
    plan = search.plan(lazy, Y)
    assert f"X, a dask.array.Array, is read in chunks: each pass reads {X.nbytes:,} bytes in 15 parts" in str(
        plan
    )
    assert "Dask computes the chunks of X anew in each pass: persist X" in str(plan)
    assert "anew" in plan._repr_html_() and len(plan.reading) == 2
    assert "anew" not in str(search.plan(lazy.persist(), Y))
    assert GridSearchCV(RIDGE, GRID).plan(X, Y).reading == ()


def test_a_plan_draws_the_splits_of_the_fit():
    cv, same = (KFold(3, shuffle=True, random_state=np.random.RandomState(0)) for _ in range(2))
    file = Dataset(X, (10, P))
    search = GridSearchCV(RIDGE, GRID, cv=cv, refit=False, memory_limit=limit_for(X, 90))
    search.plan(file, Y)
    assert not file.reads
    search.fit(file, Y)
    expected = SklearnSearch(RIDGE, GRID, cv=same, refit=False)
    assert_same(search, expected.fit(X, Y), 1e-12)


def test_passes_of_predictions_are_counted_and_test_rows_stay_in_the_file(monkeypatch):
    file, cv = Dataset(X), KFold(5, shuffle=True, random_state=0)
    options = {"refit": False, "scoring": "neg_mean_absolute_error", "cv": cv}
    expected = SklearnSearch(RIDGE, GRID, **options).fit(X, Y)
    for parts, largest in ((4, 90), (1000, 90)):  # test rows are kept, or read for each prediction
        monkeypatch.setattr(_some_rows, "SAMPLE_PARTS", parts)
        search = GridSearchCV(RIDGE, GRID, memory_limit=max(limit_for(X, 90), 4 * X.nbytes // 5), **options)
        assert_same(search.fit(file, Y), expected, 1e-11)
        assert search.report_.passes == 6.0 and max(file.reads) <= largest  # one for moments, one a fold
    search = GridSearchCV(RIDGE, GRID, memory_limit=limit_for(X, 90), **{**options, "cv": 5}).fit(file, Y)
    assert 2.0 <= search.report_.passes < 2.5  # folds begin amid a block
