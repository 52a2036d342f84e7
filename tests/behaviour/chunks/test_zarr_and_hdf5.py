"""Arrays of zarr and h5py as X and y: formats, shards, compression, byte order, and closed files."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
import zarr
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as SklearnScaler

from manyfit.estimators import PCA, Ridge, StandardScaler
from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks._files import limit_for

rng = np.random.default_rng(0)
N, P = 499, 6
X = rng.normal(size=(N, P)) * [1.0, 10.0, 0.1, 1.0, 1.0, 5.0] + 3.0
Y = X @ rng.normal(size=P) + rng.normal(size=N)
LABELS = (np.median(Y) < Y).astype(np.int8)
GRID = {"ridge__alpha": [0.1, 10.0, 1e3]}
RIDGE = make_pipeline(SklearnScaler(), SklearnRidge())
OWN = make_pipeline(StandardScaler(), Ridge())
KINDS = ["zarr 2", "zarr 3", "zarr shards", "hdf5", "hdf5 compressed"]
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def stored(tmp_path):
    """Store values as an array of a kind; files of HDF5 are closed in the end."""
    files = []

    def store(kind, values, name="X", rows=40):
        chunks = (rows, -(-values.shape[1] // 2)) if values.ndim == 2 else (rows,)
        if kind.startswith("hdf5"):
            files.append(file := h5py.File(tmp_path / f"{name}.h5", "w"))
            more = {"chunks": chunks, "compression": "gzip"} if "compressed" in kind else {}
            return file.create_dataset(name, data=values, **more)
        shards = (2 * rows, *values.shape[1:]) if "shards" in kind else None
        return _as_zarr(tmp_path / f"{name}.zarr", values, chunks, shards, 2 if "2" in kind else 3)

    yield store
    for file in files:
        file.close()


def _as_zarr(path, values, chunks, shards, zarr_format):
    array = zarr.create_array(
        path, shape=values.shape, chunks=chunks, shards=shards, dtype=values.dtype, zarr_format=zarr_format
    )
    array[...] = values
    return zarr.open_array(path, mode="r")


def _assert_same(search, expected, tol=1e-12):
    assert search.report_.fits_done == 0
    for name, values in expected.cv_results_.items():
        if name.startswith(("split", "mean_test")):
            np.testing.assert_allclose(search.cv_results_[name], values, rtol=tol, err_msg=name)


@pytest.mark.cases(2)
@every_kind
def test_x_and_y_in_files_have_the_scores_and_the_refit_of_arrays(kind, stored):
    file, target = stored(kind, X), stored(kind, Y, "y", 77)
    cv = KFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(OWN, GRID, cv=cv, memory_limit=limit_for(X, 20)).fit(file, target)
    expected = SklearnSearch(RIDGE, GRID, cv=cv).fit(X, Y)
    _assert_same(search, expected)
    assert search.report_.passes == 1 and search.report_.bytes_read >= X.nbytes
    np.testing.assert_allclose(search.predict(file), expected.predict(X), rtol=1e-10)
    np.testing.assert_allclose(search.score(file, target), expected.score(X, Y), rtol=1e-10)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["zarr shards", "hdf5 compressed"])
def test_iterations_and_predictions(kind, stored):
    file, model = stored(kind, X), make_pipeline(SklearnScaler(), LogisticRegression(tol=1e-6))
    grid, options = {"logisticregression__C": [1e-3, 1e-1]}, {"refit": False, "scoring": "neg_log_loss"}
    search = GridSearchCV(model, grid, memory_limit=limit_for(X, 20), **options)
    search.fit(file, stored(kind, LABELS, "y"))
    _assert_same(search, SklearnSearch(model, grid, **options).fit(X, LABELS), 1e-5)  # as near as tol asks


@pytest.mark.cases(2)
@every_kind
def test_an_array_that_fits_is_loaded_whole(kind, stored):
    search = GridSearchCV(RIDGE, GRID).fit(stored(kind, X), stored(kind, Y, "y"))
    expected = SklearnSearch(RIDGE, GRID).fit(X, Y)
    np.testing.assert_array_equal(search.best_estimator_[-1].coef_, expected.best_estimator_[-1].coef_)
    assert search.report_.bytes_read == 0


@pytest.mark.cases(3)
@pytest.mark.parametrize("dtype", [">f4", "<i2", "bool"])
@pytest.mark.parametrize("kind", ["zarr 2", "zarr 3", "hdf5"])
def test_numbers_of_any_kind(kind, dtype, stored):
    values = np.tile(X, (4, 1))
    values = (values > 3.0 if dtype == "bool" else values).astype(dtype)
    y = np.tile(Y, 4) + values[:, 0]
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=9_000)
    search.fit(stored(kind, values), y)
    expected = SklearnSearch(RIDGE, GRID, refit=False).fit(values.astype(np.float64), y)
    _assert_same(search, expected, 1e-5 if dtype == ">f4" else 1e-12)


@every_kind
def test_estimators_read_them_without_a_search(kind, stored):
    file = stored(kind, X)
    model = PCA(3, svd_solver="covariance_eigh").fit(file)
    expected = type(model).__mro__[1](3, svd_solver="covariance_eigh").fit(X)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-10)
    rows = model.transform(file)
    np.testing.assert_allclose(rows[10:50], expected.transform(X[10:50]), atol=1e-9)


@pytest.mark.parametrize("kind", ["zarr 3", "hdf5"])
def test_functions_of_validation_load_them(kind, stored):
    from manyfit.model_selection import cross_val_predict as ours

    np.testing.assert_allclose(
        ours(RIDGE, stored(kind, X), stored(kind, Y, "y")), cross_val_predict(RIDGE, X, Y), rtol=1e-12
    )


def test_a_file_that_was_closed_says_so(stored):
    file = stored("hdf5", X)
    search = GridSearchCV(RIDGE, GRID, refit=False, memory_limit=limit_for(X, 20))
    file.file.close()
    with pytest.raises(ValueError, match="X, an h5py.Dataset, belongs to a file that is closed"):
        search.fit(file, Y)
