"""Drop-in estimators on an X in chunks: fitted attributes and predictions of scikit-learn's on an array."""

from __future__ import annotations

import dask
import numpy as np
import pytest
import sklearn.linear_model
import sklearn.preprocessing
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from manyfit.estimators import PCA, LinearRegression, MaxAbsScaler, MinMaxScaler, Ridge, StandardScaler
from manyfit.estimators.chunks import methods
from manyfit.folds import ChunkRows, as_chunk_rows
from tests._covering import covering
from tests.behaviour.chunks._files import Dataset, given_as, limit_for, memory_map

rng = np.random.default_rng(0)
N, P = 397, 5
X = rng.normal(size=(N, P)) * [1.0, 10.0, 0.1, 1.0, 5.0] + [1e3, 0.0, 1.0, -5.0, 3.0]
TARGETS = {
    "vector": X[:, 0] + rng.normal(size=N),
    "column": rng.normal(size=(N, 1)),
    "matrix": rng.normal(size=(N, 3)),
}
V = TARGETS["vector"]
WEIGHTS = rng.uniform(size=N)
MODELS = {
    "Ridge": (Ridge, {"alpha": 3.0}),
    "svd": (Ridge, {"solver": "svd"}),
    "least squares": (LinearRegression, {}),
}


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def _assert_same_attributes(fitted, expected, tol):
    assert {name for name in vars(fitted) if name.endswith("_")} == {
        n for n in vars(expected) if n.endswith("_")
    }
    for name, value in vars(expected).items():
        found = getattr(fitted, name)
        assert np.shape(found) == np.shape(value), name
        if name.endswith("_") and not isinstance(value, str) and value is not None:
            assert np.asarray(found).dtype == np.asarray(value).dtype, name
            np.testing.assert_allclose(found, value, rtol=tol, atol=tol * 1e-2, err_msg=name)
        elif not isinstance(value, np.ndarray):
            assert found == value, name


@pytest.mark.parametrize(
    ("kind", "target", "name", "intercept", "weights"),
    covering(
        ["h5py", "zarr", "dask"],
        TARGETS,
        MODELS,
        [True, False],
        {"plain": None, "weights": WEIGHTS, "number": 2.0}.items(),
    ),
)
def test_least_squares(kind, target, name, intercept, weights, tmp_path):
    (cls, params), y = MODELS[name], TARGETS[target]
    given = given_as(kind, X, 50, tmp_path)
    model = cls(**params, fit_intercept=intercept).fit(given, y, sample_weight=weights)
    expected = getattr(sklearn.linear_model, cls.__name__)(**params, fit_intercept=intercept)
    expected.fit(X, y, sample_weight=weights)
    _assert_same_attributes(model, expected, 1e-9)
    predicted = model.predict(given)
    assert type(predicted) is np.ndarray
    np.testing.assert_allclose(predicted, expected.predict(X), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.score(given, y), expected.score(X, y), rtol=1e-10, atol=1e-12)


def test_an_alpha_for_each_target_and_numbers_in_float32():
    y = TARGETS["matrix"]
    model = Ridge(alpha=np.array([1.0, 10.0, 100.0])).fit(Dataset(X), y)
    expected = sklearn.linear_model.Ridge(alpha=np.array([1.0, 10.0, 100.0])).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    single = Ridge().fit(Dataset(X.astype(np.float32)), y[:, 0])
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    exact = sklearn.linear_model.Ridge().fit(X.astype(np.float32).astype(np.float64), y[:, 0])
    np.testing.assert_allclose(single.coef_, exact.coef_, rtol=1e-6)


@pytest.mark.parametrize("cls", [StandardScaler, MinMaxScaler, MaxAbsScaler])
def test_scalers_and_their_lazy_output(cls):
    values = X.copy()
    values[5, 1] = np.nan  # which they accept
    file = Dataset(values)
    scaler, expected = cls(), getattr(sklearn.preprocessing, cls.__name__)().fit(values)
    scaled = scaler.fit_transform(as_chunk_rows(file, limit_for(X, 30)))
    _assert_same_attributes(scaler, expected, 1e-12)
    assert isinstance(scaled, ChunkRows) and max(file.reads) == 30
    transformed = expected.transform(values)
    scaler.fit(Dataset(X + 1.0))  # does not change what was scaled before
    np.testing.assert_allclose(scaled.take(slice(0, N)), transformed, rtol=1e-10, atol=1e-12)
    again = cls().partial_fit(Dataset(X[:100])).partial_fit(Dataset(X[100:]))
    _assert_same_attributes(again, getattr(sklearn.preprocessing, cls.__name__)().fit(X), 1e-12)


def test_weights_of_a_scaler():
    expected = sklearn.preprocessing.StandardScaler().fit(X, sample_weight=WEIGHTS)
    _assert_same_attributes(StandardScaler().fit(Dataset(X), sample_weight=WEIGHTS), expected, 1e-12)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\), expected \(397,\)"):
        StandardScaler().fit(Dataset(X), sample_weight=WEIGHTS[:3])


def test_a_pipeline():
    y, file = V, Dataset(X, (40, P))
    model = make_pipeline(StandardScaler(), Ridge(alpha=2.0)).fit(file, y)
    expected = make_pipeline(sklearn.preprocessing.StandardScaler(), sklearn.linear_model.Ridge(alpha=2.0))
    expected.fit(X, y)
    np.testing.assert_allclose(model.predict(file), expected.predict(X), rtol=1e-10)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-10)


def test_a_large_memory_map_is_read_in_chunks(tmp_path, monkeypatch):
    y, given = V, memory_map(X, tmp_path)
    exact = Ridge().fit(given, y)  # by scikit-learn
    monkeypatch.setattr(methods, "MEMORY", limit_for(X, 20))
    np.testing.assert_allclose(Ridge().fit(given, y).coef_, exact.coef_, rtol=1e-9)
    np.testing.assert_array_equal(exact.predict(given), exact.predict(X))
    np.testing.assert_array_equal(PCA(2).fit(given).mean_, PCA(2).fit(X).mean_)  # scikit-learn reads it


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Ridge().fit(Dataset(X), V[:-1]), ValueError, "inconsistent numbers of samples"),
        (lambda: Ridge().fit(Dataset(X)), (TypeError, ValueError), "y"),
        (lambda: Ridge().fit(Dataset(X), np.full(N, np.nan)), ValueError, "Input y contains NaN"),
        (lambda: Ridge().fit(Dataset(X * np.nan), V), ValueError, "Input X contains NaN"),
        (lambda: Ridge(alpha=-1.0).fit(Dataset(X), V), ValueError, "'alpha' parameter"),
        (lambda: Ridge(positive=True).fit(Dataset(X), V), ValueError, "positive=True"),
        (lambda: Ridge().fit(Dataset(X), V, -WEIGHTS), ValueError, "sample_weight has values"),
        (lambda: Ridge().fit(Dataset(X), V, WEIGHTS * 0.0), ValueError, "a sample_weight above 0"),
        (
            lambda: LinearRegression().fit(Dataset(np.c_[X, X[:, 0]]), V),
            ValueError, "do not determine the coefficients. Use Ridge",
        ),
        (lambda: Ridge().fit(Dataset(X[:0]), V[:0]), ValueError, r"0 sample\(s\)"),
        (lambda: Ridge().predict(Dataset(X)), NotFittedError, "not fitted yet"),
        (lambda: StandardScaler().transform(Dataset(X)), NotFittedError, "not fitted yet"),
        (lambda: Ridge().fit(X, V).predict(Dataset(X[:, :2])), ValueError, "2 features"),
        (lambda: PCA().fit(as_chunk_rows(Dataset(X), 10**6)), TypeError, "PCA.fit does not read X in chunks"),
        (
            lambda: sklearn.linear_model.Ridge().fit(as_chunk_rows(Dataset(X), 10**6), V),
            TypeError, "needed here as one array",
        ),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
