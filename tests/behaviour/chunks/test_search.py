"""Searches on an X that is larger than `memory_limit` have the scores of arrays in memory."""

from __future__ import annotations

import tracemalloc

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import ElasticNet, LogisticRegression, RidgeClassifier
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as SklearnScaler
from sklearn.tree import DecisionTreeRegressor

from manyfit.estimators import PCA as OwnPCA
from manyfit.estimators import GaussianNB as OwnGaussianNB
from manyfit.estimators import Lasso, LinearRegression, Ridge, StandardScaler
from manyfit.estimators import LogisticRegression as OwnLogistic
from manyfit.folds import as_chunk_rows
from manyfit.folds.rows import _some_rows
from manyfit.folds.rows.chunks import _rows
from manyfit.model_selection import GridSearchCV
from tests._covering import covering
from tests.behaviour.chunks._files import Array, Dataset, given_as, limit_for, memory_map

rng = np.random.default_rng(0)
N, P = 1499, 6
X = rng.normal(size=(N, P)) * [1.0, 10.0, 0.1, 1.0, 1.0, 5.0] + 3.0
Y = X @ rng.normal(size=P) + rng.normal(scale=3.0, size=N)
LABELS = np.where(np.median(Y) < Y, "high", "low")
WEIGHTS = rng.uniform(0.5, 1.5, size=N)
GROUPS = rng.integers(0, 9, size=N)
KINDS = ["h5py", "zarr", "dask", "memmap"]
RIDGE = make_pipeline(SklearnScaler(), SklearnRidge())
GRID = {"ridge__alpha": [0.1, 10.0, 1e3]}
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def _assert_same(search, expected, tol):
    assert search.report_.fits_done == 0
    for name, values in expected.cv_results_.items():
        if name.endswith("_score") and not name.startswith(("rank", "std")):
            np.testing.assert_allclose(search.cv_results_[name], values, rtol=tol, err_msg=name)


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
    _assert_same(search, SklearnSearch(RIDGE, GRID, refit=False).fit(X, Y), 1e-12)


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
    _assert_same(search, SklearnSearch(RIDGE, GRID, **options).fit(X, y, **given), 1e-11)
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
    _assert_same(search, SklearnSearch(model, grid, **options).fit(X, y), tol)


@pytest.mark.cases(2)
@pytest.mark.parametrize("dtype", ["float32", "int16", ">f8", "bool"])
def test_numbers_of_any_size(dtype):
    values = (X > 3.0 if dtype == "bool" else X).astype(dtype)
    y = Y + 20.0 * values[:, 1]
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(values, 64))
    search.fit(Dataset(values), y)
    expected = SklearnSearch(RIDGE, GRID, refit=False).fit(values.astype(np.float64), y)
    _assert_same(search, expected, 1e-5 if dtype == "float32" else 1e-12)


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
    _assert_same(search, SklearnSearch(RIDGE, GRID, refit=False).fit(X, Y), 1e-12)


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
    _assert_same(search, expected.fit(X, Y), 1e-12)


# The refit


@pytest.mark.cases(2)
@every_kind
def test_our_estimators_are_refitted_and_predict_in_chunks(kind, tmp_path):
    given, more = given_as(kind, X, 40, tmp_path), {"ridge__sample_weight": WEIGHTS}
    model = make_pipeline(StandardScaler(), Ridge())
    search = GridSearchCV(model, GRID, memory_limit=limit_for(X, 90)).fit(given, Y, **more)
    expected = SklearnSearch(RIDGE, GRID).fit(X, Y, **more)
    assert search.best_params_ == expected.best_params_
    for name in ("coef_", "intercept_"):
        np.testing.assert_allclose(
            getattr(search.best_estimator_[-1], name), getattr(expected.best_estimator_[-1], name), rtol=1e-10
        )
    predicted = search.predict(given)
    assert type(predicted) is np.ndarray
    np.testing.assert_allclose(predicted, expected.predict(X), rtol=1e-10)
    np.testing.assert_allclose(search.score(given, Y), expected.score(X, Y), rtol=1e-10)
    if kind in ("h5py", "zarr"):
        assert max(given.reads) <= 120


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("own", "model", "grid", "y", "tol"),
    [
        (
            make_pipeline(StandardScaler(), OwnLogistic(tol=1e-6, max_iter=1000)),
            make_pipeline(SklearnScaler(), LogisticRegression(tol=1e-6, max_iter=1000)),
            {"logisticregression__C": [1e-3, 1e-1]}, LABELS, 1e-4,
        ),
        (
            make_pipeline(StandardScaler(), OwnPCA(), Ridge()),
            make_pipeline(SklearnScaler(), PCA(), SklearnRidge()),
            {"pca__n_components": [2, 4], "ridge__alpha": [1.0, 100.0]}, Y, 1e-9,
        ),
        (OwnGaussianNB(), GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, LABELS, 0.0),
    ],
    ids=["logistic", "pca", "nb"],
)  # fmt: skip
def test_our_estimators_are_refitted_by_sums_decompositions_and_iterations(own, model, grid, y, tol):
    file = Dataset(X, (40, P))
    search = GridSearchCV(own, grid, memory_limit=max(limit_for(X, 90), X.nbytes // 2)).fit(file, y)
    expected = SklearnSearch(model, grid).fit(X, y)
    assert search.report_.fits_done == 0 and search.best_params_ == expected.best_params_
    if tol:
        last, wanted = search.best_estimator_, expected.best_estimator_
        np.testing.assert_allclose(last[-1].coef_, wanted[-1].coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(
        search.predict(file) if y is Y else search.predict_proba(file),
        expected.predict(X) if y is Y else expected.predict_proba(X),
        atol=max(tol, 1e-10),
    )
    np.testing.assert_allclose(search.score(file, y), expected.score(X, y), rtol=max(tol, 1e-10))
    assert max(file.reads) < N


@pytest.mark.parametrize(
    ("model", "grid", "reason"),
    [
        (RIDGE, GRID, "StandardScaler is a class of sklearn"),
        (make_pipeline(StandardScaler(), SklearnRidge()), GRID, "Ridge is a class of sklearn"),
        (Lasso(), {"alpha": [0.1]}, "Lasso reads X whole"),
        (Ridge(), {"solver": ["auto", "sag"]}, r"Ridge\(solver='sag'\) iterates over rows"),
    ],
)
def test_a_refit_that_needs_x_in_memory_is_refused_before_anything_is_read(model, grid, reason):
    file = Dataset(X, (10, P))
    search = GridSearchCV(model, grid, memory_limit=limit_for(X, 90))
    for call in (search.plan, search.fit):
        with pytest.raises(TypeError, match=f"the refit cannot read: {reason}.* Set refit=False, or use est"):
            call(file, Y)
    assert not file.reads


def test_verify_and_single_fits_are_refused():
    file = Dataset(X, (10, P))
    options = {"refit": False, "memory_limit": limit_for(X, 90)}
    with pytest.raises(TypeError, match="verify=1 needs a fit by scikit-learn"):
        GridSearchCV(RIDGE, GRID, verify=1, **options).fit(file, Y)
    with pytest.raises(TypeError, match="15 of 15 fits are not shared: sharing='none'"):
        GridSearchCV(RIDGE, GRID, sharing="none", **options).fit(file, Y)
    assert not file.reads


# Bad input


@pytest.mark.parametrize(
    ("model", "y"),
    [(RIDGE, Y), (make_pipeline(SklearnScaler(), LogisticRegression()), LABELS)],
    ids=["ridge", "logistic"],
)
def test_nan_in_one_chunk_is_named_by_its_row(model, y):
    values = X.copy()
    values[407, 2] = np.nan
    file = Dataset(values)
    with pytest.raises(ValueError, match="Input X contains NaN or infinity, first in row 407 of 1499"):
        GridSearchCV(model, {}, refit=False, memory_limit=limit_for(X, 50)).fit(file, y)
    assert sum(file.reads) < N + 50  # no second pass


def test_scikit_learn_is_left_the_nan_of_a_memory_map(tmp_path):
    values = X.copy()
    values[407, 2] = np.nan
    search = GridSearchCV(RIDGE, {}, refit=False, error_score="raise", memory_limit=limit_for(X, 50))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        search.fit(memory_map(values, tmp_path), Y)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (Dataset(X[:-1]), ValueError, "inconsistent numbers of samples"),
        (Dataset(X[:, 0]), ValueError, "Expected 2D array, got 1D array instead"),
        (Dataset(X.astype(complex)), ValueError, "X is a h5py.Dataset of dtype complex128"),
        (Dataset(X.astype(object)), ValueError, "X is a h5py.Dataset of dtype object"),
        (Array(X, (600, P)), MemoryError, "A chunk of rows of X, with all columns, takes"),
    ],
    ids=["lengths", "1-d", "complex", "object", "chunk"],
)
def test_input_that_cannot_be_read_is_refused_before_it_is_read(given, error, message):
    with pytest.raises(error, match=message):
        GridSearchCV(RIDGE, GRID, refit=False, memory_limit=1000).fit(given, Y)
    assert not given.reads


def test_an_empty_file_is_refused_as_scikit_learn_does():
    with pytest.raises(ValueError, match=r"0 sample|n_samples|Cannot have number of splits"):
        GridSearchCV(RIDGE, GRID, refit=False, memory_limit=10).fit(Dataset(X[:0]), Y[:0])


class Broken(Dataset):
    """Blocks from row 300 on cannot be read the first `times`."""

    def __init__(self, values, times):
        super().__init__(values)
        self.times, self.tried = times, 0

    def __getitem__(self, rows):
        if isinstance(rows, slice) and rows.stop > 300 and rows.stop - rows.start > 1:
            self.tried += 1
            if self.tried <= self.times:
                raise OSError("the disk is gone")
        return super().__getitem__(rows)


def test_a_block_that_cannot_be_read_is_tried_again_and_named_by_its_rows(monkeypatch):
    monkeypatch.setattr(_rows, "RETRY_AFTER_S", (0.0, 0.001))
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 90))
    with pytest.raises(OSError, match="the disk is gone") as got:
        search.fit(gone := Broken(X, 9), Y)
    assert "Rows 270 to 359 of X, a h5py.Dataset, could not be read." in got.value.__notes__
    assert gone.tried == 3
    _assert_same(search.fit(Broken(X, 2), Y), SklearnSearch(RIDGE, GRID, refit=False).fit(X, Y), 1e-12)


@pytest.mark.parametrize(("scaled", "fails"), [(False, "rows"), (True, "rows"), (True, "what is scaled")])
def test_a_source_whose_read_failed_is_read_again_by_a_later_search(scaled, fails, monkeypatch):
    monkeypatch.setattr(_rows, "RETRY_AFTER_S", ())
    file = Broken(X.copy(), 0)
    rows = as_chunk_rows(file, limit_for(X, 90))
    plain = rows
    if scaled:
        rows = StandardScaler().fit(X).transform(rows)
    search = GridSearchCV(RIDGE, GRID, refit=False).fit(rows, Y)  # which keeps sums of all rows
    file.times, file.tried = 1, 0
    with pytest.raises(OSError, match="the disk is gone"):
        search.fit(rows if fails == "rows" else plain, Y)
    file._values[7:11] *= 3.0  # as if the file had been written again
    expected = SklearnSearch(RIDGE, GRID, refit=False).fit(file._values, Y)
    _assert_same(search.fit(rows, Y), expected, 1e-10)


def test_passes_of_predictions_are_counted_and_test_rows_stay_in_the_file(monkeypatch):
    file, cv = Dataset(X), KFold(5, shuffle=True, random_state=0)
    options = {"refit": False, "scoring": "neg_mean_absolute_error", "cv": cv}
    expected = SklearnSearch(RIDGE, GRID, **options).fit(X, Y)
    for parts, largest in ((4, 90), (1000, 90)):  # test rows are kept, or read for each prediction
        monkeypatch.setattr(_some_rows, "SAMPLE_PARTS", parts)
        search = GridSearchCV(RIDGE, GRID, memory_limit=max(limit_for(X, 90), 4 * X.nbytes // 5), **options)
        _assert_same(search.fit(file, Y), expected, 1e-11)
        assert search.report_.passes == 6.0 and max(file.reads) <= largest  # one for moments, one a fold
    search = GridSearchCV(RIDGE, GRID, memory_limit=limit_for(X, 90), **{**options, "cv": 5}).fit(file, Y)
    assert 2.0 <= search.report_.passes < 2.5  # folds begin amid a block


def test_blocks_of_other_dtypes_are_refused():
    lazy = da.from_array(X.astype(np.float32), chunks=(100, P)).map_blocks(
        lambda block: block.astype(np.float64), dtype=np.float32, meta=X[:0].astype(np.float32)
    )
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 30))
    with pytest.raises(ValueError, match="X gave numbers of dtype float64, not float32"):
        search.fit(lazy, Y)


def test_blocks_of_other_columns_are_refused():
    def narrow(block):
        return block[:, :-1]

    lazy = da.from_array(X, chunks=(100, P)).map_blocks(narrow, dtype=float, meta=X[:0])
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 90))
    with pytest.raises(ValueError, match=r"X gave an array of shape \(.*, 5\), not \(.*, 6\)"):
        search.fit(lazy, Y)


@pytest.mark.parametrize("model", [DecisionTreeRegressor(), DecisionTreeRegressor(random_state=0)])
def test_the_reason_why_a_tree_reads_no_chunks(model):
    search = GridSearchCV(model, {"max_depth": [2, 3]}, refit=False, memory_limit=limit_for(X, 90))
    with pytest.raises(TypeError, match="10 of 10 .*: DecisionTreeRegressor reads the rows of a fold as one"):
        search.fit(Dataset(X), Y)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("own", "grid", "more"),
    [
        (make_pipeline(StandardScaler(), Ridge()), GRID, {}),
        (make_pipeline(StandardScaler(with_mean=False), OwnPCA(3, whiten=True), Ridge()), GRID, {}),
        (make_pipeline(OwnPCA(3), StandardScaler(with_std=False), LinearRegression()), {}, {}),
        (Ridge(), {"alpha": [1.0, 10.0]}, {"sample_weight": WEIGHTS}),
    ],
)
@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=0)])
def test_a_refit_to_moments_takes_no_pass(own, grid, more, cv):
    file = Dataset(X, (10, P))
    search = GridSearchCV(own, grid, cv=cv, memory_limit=limit_for(X, 90)).fit(file, Y, **more)
    assert search.report_.passes == 1 + bool(more)
    assert sum(file.reads) == search.report_.bytes_read // X[0].nbytes + (len(own) - 1 if not more else 0)
    again = clone(search.best_estimator_).fit(X, Y, **more)  # by scikit-learn
    for own_step, step in zip(_steps(search.best_estimator_), _steps(again), strict=True):
        for name, value in vars(step).items():
            if name.endswith("_") and isinstance(value, np.ndarray):
                found = getattr(own_step, name)
                assert found.dtype == value.dtype and found.shape == value.shape
                np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-10, err_msg=name)
        assert getattr(own_step, "n_samples_seen_", 0) == getattr(step, "n_samples_seen_", 0)
    np.testing.assert_allclose(search.predict(file), again.predict(X), rtol=1e-9, atol=1e-9)


def _steps(model):
    return model[:] if hasattr(model, "steps") else [model]


def test_moments_of_other_targets_weights_or_rows_are_summed_anew():
    file = Dataset(X, (10, P))
    rows = as_chunk_rows(file, limit_for(X, 90))
    for y, weights in ((Y, None), (Y + 1.0, None), (Y, WEIGHTS), (Y, WEIGHTS + 1.0), (Y[::-1], None)):
        before = sum(file.reads)
        for _ in range(2):
            model = Ridge().fit(rows, y, sample_weight=weights)
        assert N <= sum(file.reads) - before <= N + 150  # the first fit reads, the second does not
        expected = SklearnRidge().fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    constant = np.c_[X, np.full(N, 7.0)]
    rows = as_chunk_rows(Dataset(constant, (10, P + 1)), limit_for(X, 90))
    PCA_of_all = OwnPCA().fit(rows)
    assert PCA_of_all.n_components_ == P + 1
    scaler = StandardScaler().fit(rows)
    assert scaler.scale_[-1] == 1.0 and scaler.var_[-1] == 0.0
