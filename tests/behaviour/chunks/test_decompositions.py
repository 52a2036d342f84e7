"""PCA and TruncatedSVD on an X in chunks: attributes and output of scikit-learn's on an array."""

from __future__ import annotations

from itertools import cycle

import dask.array as da
import numpy as np
import pytest
import sklearn.decomposition
from sklearn.utils.extmath import svd_flip

from manyfit.estimators import PCA, TruncatedSVD
from manyfit.estimators.chunks import _decomposition
from manyfit.folds import as_chunk_rows
from tests.behaviour.chunks._files import Dataset, given_as, limit_for

rng = np.random.default_rng(0)
N, P = 397, 12
X = rng.normal(size=(N, P)) @ rng.normal(size=(P, P)) * np.linspace(1.0, 3.0, P) + 50.0
RANDOMIZED = {"svd_solver": "randomized", "random_state": 3, "n_oversamples": 2}
PCAS = {
    "all": {},
    "some": {"n_components": 3},
    "full": {"n_components": 3, "svd_solver": "full", "whiten": True},
    "share": {"n_components": 0.9},
    "mle": {"n_components": "mle"},
    "arpack": {"n_components": 3, "svd_solver": "arpack", "random_state": 0},
    "randomized": {"n_components": 3, **RANDOMIZED},
    "one power": {"n_components": 2, "iterated_power": 1, "whiten": True, **RANDOMIZED},
    "no power": {"n_components": 4, "iterated_power": 0, **RANDOMIZED},
}
SVDS = {
    "randomized": {"n_components": 3, "random_state": 0, "n_oversamples": 4},
    "no power": {"n_components": 3, "random_state": 1, "n_iter": 0, "n_oversamples": 1},
    "arpack": {"n_components": 3, "algorithm": "arpack"},
}


def _rows(values, size=50):
    """The values in chunks of so many rows, in which memory the squares of their columns fit."""
    return as_chunk_rows(Dataset(values, (size, 5)), max(limit_for(values, size), 30_000))


def _assert_same_attributes(fitted, expected, tol):
    assert vars(fitted).keys() == vars(expected).keys()
    for name, value in vars(expected).items():
        found = getattr(fitted, name)
        if isinstance(value, np.ndarray | np.floating):
            assert np.shape(found) == np.shape(value) and np.asarray(found).dtype == np.asarray(value).dtype
            np.testing.assert_allclose(found, value, rtol=tol, atol=tol, err_msg=name)
        else:
            assert found == value, name


def _by_products(monkeypatch):
    """Let no matrix of squares fit memory, so that each product with the vectors takes a pass."""
    monkeypatch.setattr(_decomposition, "matrix_bytes", lambda p: 2**62)


@pytest.mark.cases(3)
@pytest.mark.invariant("PCA and TruncatedSVD on X in chunks are those of the same X in memory")
@pytest.mark.parametrize(
    ("name", "kind"), list(zip(PCAS, cycle(["h5py", "zarr", "dask", "memmap"]), strict=False))
)
def test_pca_from_the_squares_of_columns(name, kind, tmp_path):
    given = as_chunk_rows(given_as(kind, X, 50, tmp_path), max(limit_for(X, 50), 30_000))
    model, expected = PCA(**PCAS[name]), sklearn.decomposition.PCA(**PCAS[name])
    found, wanted = model.fit_transform(given), expected.fit_transform(X.copy())
    _assert_same_attributes(model, expected, 1e-10)
    assert given.bytes_read < 1.2 * X.nbytes + 15 * 50 * P * 8
    np.testing.assert_allclose(found[:], wanted, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found[30:80:7], wanted[30:80:7], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.transform(given)[:], expected.transform(X), rtol=1e-9, atol=1e-10)
    back = model.inverse_transform(found)
    np.testing.assert_allclose(back[:], expected.inverse_transform(wanted), rtol=1e-9)
    if name not in ("all", "mle"):  # a likelihood without noise divides by rounding
        np.testing.assert_allclose(model.score(given), expected.score(X), rtol=1e-9)


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", ["randomized", "one power", "no power"])
@pytest.mark.parametrize("rows", [1, 37, N])
def test_pca_by_products_with_few_vectors(name, rows, monkeypatch):
    _by_products(monkeypatch)
    given = _rows(X, rows)
    before = given.bytes_read
    model, expected = PCA(**PCAS[name]).fit(given), sklearn.decomposition.PCA(**PCAS[name])
    wanted = expected.fit_transform(X.copy())
    _assert_same_attributes(model, expected, 1e-10)
    passes = {"randomized": 5, "one power": 2, "no power": 1}[name]
    assert passes * X.nbytes <= given.bytes_read - before <= passes * X.nbytes + 15 * rows * P * 8
    again = PCA(**PCAS[name]).fit_transform(given)
    np.testing.assert_allclose(again[:], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("by_products", [False, True])
@pytest.mark.parametrize("name", SVDS)
def test_truncated_svd(name, by_products, monkeypatch):
    if by_products and name == "arpack":
        _by_products(monkeypatch)
        with pytest.raises(ValueError, match="TruncatedSVD is fitted .* Set algorithm='randomized'"):
            TruncatedSVD(**SVDS[name]).fit(_rows(X))
        return
    if by_products:
        _by_products(monkeypatch)
    given = _rows(X)
    model, expected = TruncatedSVD(**SVDS[name]), sklearn.decomposition.TruncatedSVD(**SVDS[name])
    found, wanted = model.fit_transform(given), expected.fit_transform(X)
    _assert_same_attributes(model, expected, 1e-9)
    np.testing.assert_allclose(found[:], wanted, rtol=1e-9, atol=1e-9)
    back = model.inverse_transform(found)
    np.testing.assert_allclose(back[:], expected.inverse_transform(wanted), rtol=1e-9)


@pytest.mark.parametrize("by_products", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_numbers_of_any_size(dtype, by_products, monkeypatch):
    if by_products:
        _by_products(monkeypatch)
    values = (X / np.abs(X).max() * 100.0).astype(dtype)
    params = {"n_components": 2, **RANDOMIZED, "iterated_power": 4}
    model, expected = PCA(**params).fit(_rows(values)), sklearn.decomposition.PCA(**params).fit(values.copy())
    exact = sklearn.decomposition.PCA(2, svd_solver="full").fit(values.astype(np.float64))
    assert model.components_.dtype == expected.components_.dtype
    tol = 1e-4 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(model.components_, expected.components_, atol=tol)
    np.testing.assert_allclose(model.singular_values_, expected.singular_values_, rtol=tol)
    np.testing.assert_allclose(model.mean_, exact.mean_, rtol=tol * 1e-1)


def test_a_large_mean_costs_no_digits(monkeypatch):
    values = X + 1e7
    expected = sklearn.decomposition.PCA(3, svd_solver="full").fit(values)
    for by_products in (False, True):
        if by_products:
            _by_products(monkeypatch)
        model = PCA(3, **{**RANDOMIZED, "iterated_power": 40}).fit(_rows(values))
        np.testing.assert_allclose(model.singular_values_, expected.singular_values_, rtol=1e-8)
        np.testing.assert_allclose(model.components_, expected.components_, atol=1e-7)


def test_columns_that_depend_on_each_other_and_constants():
    values = np.c_[X[:, :4], X[:, 0] + X[:, 1], np.full(N, 7.0)]
    model, expected = PCA().fit(_rows(values)), sklearn.decomposition.PCA(svd_solver="full").fit(values)
    largest = expected.singular_values_[0]
    np.testing.assert_allclose(model.singular_values_, expected.singular_values_, atol=1e-7 * largest)
    np.testing.assert_allclose(model.components_[:4], expected.components_[:4], atol=1e-8)
    params = {"n_components": 5, "algorithm": "randomized", "random_state": 0, "n_oversamples": 1}
    few = TruncatedSVD(**params).fit(_rows(np.c_[X[:, :3], X[:, 0] + X[:, 1], np.zeros((N, 2))]))
    assert few.singular_values_[3:].max() < 1e-7 * few.singular_values_[0]


def test_more_columns_than_rows():
    values = X.T.copy()  # 12 rows, 397 columns
    given = as_chunk_rows(Dataset(values, (5, 397)), 2**26)
    for params in ({}, {"n_components": 4, "svd_solver": "covariance_eigh"}):
        model, expected = PCA(**params).fit(given), sklearn.decomposition.PCA(**params).fit(values)
        k = 4  # the last of 12 is rounding
        np.testing.assert_allclose(model.components_[:k], expected.components_[:k], atol=1e-9)
        np.testing.assert_allclose(model.explained_variance_[:k], expected.explained_variance_[:k], rtol=1e-9)
        assert model.components_.shape == expected.components_.shape
        assert model.explained_variance_ratio_.shape == expected.explained_variance_ratio_.shape
    for model in (PCA(3, **RANDOMIZED), TruncatedSVD(3, random_state=0)):
        with pytest.raises(ValueError, match="fewer rows than columns, here 12 and 397"):
            model.fit(given)


def test_unknown_lengths_are_counted_in_the_first_pass(monkeypatch):
    lazy = da.from_array(X, chunks=(90, P))
    lazy = lazy[da.ones(N, chunks=90, dtype=bool)]  # of chunks of unknown lengths
    for by_products in (False, True):
        if by_products:
            _by_products(monkeypatch)
        given = as_chunk_rows(lazy, 2**20)
        model = PCA(2, **{**RANDOMIZED, "iterated_power": 0}).fit(given)
        expected = sklearn.decomposition.PCA(2, **{**RANDOMIZED, "iterated_power": 0}).fit(X.copy())
        _assert_same_attributes(model, expected, 1e-10)
        assert given.bytes_read <= X.nbytes + 90 * P * 8  # and a look at the first


def test_the_same_bits_whatever_the_number_of_threads(monkeypatch):
    _by_products(monkeypatch)
    found = []
    for n_threads in (1, 4):
        monkeypatch.setattr("manyfit.estimators.chunks._scatter.blas_threads", lambda n=n_threads: n)
        found.append(PCA(3, **RANDOMIZED).fit(_rows(X, 20)).components_)
    np.testing.assert_array_equal(*found)


def test_the_signs_are_scikit_learns():
    model = PCA().fit(_rows(X))
    np.testing.assert_array_equal(svd_flip(None, model.components_.copy(), False)[1], model.components_)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PCA(3, svd_solver="randomised").fit(_rows(X)), "'svd_solver' parameter of PCA"),
        (lambda: PCA(13).fit(_rows(X)), r"13 must be between 0 and min\(n_samples, n_features\)=12"),
        (lambda: PCA(12, svd_solver="arpack").fit(_rows(X)), "- 1=11 with svd_solver='arpack'"),
        (lambda: PCA("mle", svd_solver="arpack").fit(_rows(X)), "cannot be a string"),
        (lambda: PCA(0.5, svd_solver="randomized").fit(_rows(X)), "n_components=0.5 must be between 1"),
        (
            lambda: PCA(0.5).fit(_rows(np.tile(np.c_[np.eye(4), -np.eye(4)].reshape(-1, 4), (9, 1)))),
            "share of variance of 2 components but for rounding",
        ),
        (lambda: PCA(2).fit(as_chunk_rows(Dataset(X), 1000)), "take 4,608 bytes, and half of the memory"),
        (lambda: TruncatedSVD(13).fit(_rows(X)), r"n_components\(13\) must be <= n_features\(12\)"),
        (lambda: TruncatedSVD(12, algorithm="arpack").fit(_rows(X)), "must be < n_features"),
        (lambda: TruncatedSVD(1).fit(_rows(X[:, :1])), "minimum of 2 is required by TruncatedSVD"),
        (lambda: PCA().fit(_rows(np.where(X[7, 1] == X, np.nan, X))), "first in row 7 of 397"),
        (lambda: PCA(2).fit(_rows(X * 1e200)), "too large: the squares of its columns"),
        (lambda: PCA(2).fit(_rows(X)).transform(_rows(X[:, :5])), "5 features"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_nan_is_named_by_products_too(monkeypatch):
    _by_products(monkeypatch)
    with pytest.raises(ValueError, match="first in row 7 of 397"):
        PCA(2, **RANDOMIZED).fit(_rows(np.where(X[7, 1] == X, np.nan, X)))
    few = np.zeros((N, P))
    few[:, 0] = X[:, 0]
    with pytest.raises(ValueError, match="X has 1 singular values above rounding, and 2 components"):
        PCA(2, **RANDOMIZED).fit(_rows(few))
