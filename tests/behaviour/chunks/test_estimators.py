"""Drop-in estimators on an X in chunks: fitted attributes and predictions of scikit-learn's on an array."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import sklearn.decomposition
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.preprocessing
import sklearn.svm
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from manyfit.estimators import (
    NMF,
    PCA,
    GammaRegressor,
    GaussianNB,
    LinearRegression,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MaxAbsScaler,
    MinMaxScaler,
    PoissonRegressor,
    Ridge,
    RobustScaler,
    StandardScaler,
    TweedieRegressor,
)
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


@pytest.mark.cases(4)
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
    assert type(predicted) is (da.Array if kind == "dask" else np.ndarray)
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


LABELS = np.where(X[:, 1] > 3.0, "b", np.where(X[:, 3] > -5.0, "a", "c"))
COUNTS = rng.poisson(np.exp(X[:, 1] / 20.0))
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)
ITERATIVE = {
    "classes": (LogisticRegression, sklearn.linear_model, {"C": 0.5}, LABELS),
    "newton": (LogisticRegression, sklearn.linear_model, {"solver": "newton-cholesky"}, LABELS != "a"),
    "no intercept": (LogisticRegression, sklearn.linear_model, {"fit_intercept": False}, LABELS == "a"),
    "liblinear": (LogisticRegression, sklearn.linear_model, {"solver": "liblinear"}, LABELS == "b"),
    "balanced": (LogisticRegression, sklearn.linear_model, {"class_weight": "balanced"}, LABELS),
    "svc": (LinearSVC, sklearn.svm, {"C": 0.3}, LABELS),
    "svr": (LinearSVR, sklearn.svm, {"loss": "squared_epsilon_insensitive", "dual": False}, V / 10.0),
    "poisson": (PoissonRegressor, sklearn.linear_model, {"alpha": 0.1}, COUNTS),
    "gamma": (GammaRegressor, sklearn.linear_model, {}, COUNTS + 1.0),
    "tweedie": (TweedieRegressor, sklearn.linear_model, {"power": 1.5}, COUNTS),
}


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", ITERATIVE)
def test_solvers_that_iterate(name):
    weights = WEIGHTS if name in ("classes", "liblinear", "svr", "poisson") else None
    cls, module, params, y = ITERATIVE[name]
    exact = {"tol": 1e-10, "max_iter": 100_000, **params}
    given = as_chunk_rows(Dataset(SCALED, (40, 2)), limit_for(X, 40))
    model = cls(**exact).fit(given, y, sample_weight=weights)
    expected = getattr(module, cls.__name__)(**exact).fit(SCALED, y, sample_weight=weights)
    assert vars(model).keys() == vars(expected).keys()
    for attribute in ("coef_", "intercept_"):
        found, wanted = getattr(model, attribute), getattr(expected, attribute)
        assert np.shape(found) == np.shape(wanted)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert np.shape(model.n_iter_) == np.shape(expected.n_iter_)
    np.testing.assert_array_equal(model.predict(given), model.predict(SCALED))
    for more in ({}, {"sample_weight": WEIGHTS}):
        np.testing.assert_allclose(
            model.score(given, y, **more), expected.score(SCALED, y, **more), atol=1e-5
        )
    for method in ("predict_proba", "predict_log_proba", "decision_function"):
        if hasattr(expected, method):
            found = getattr(model, method)(given)
            np.testing.assert_array_equal(found, getattr(model, method)(SCALED))
            np.testing.assert_allclose(found, getattr(expected, method)(SCALED), rtol=1e-3, atol=1e-4)
    if hasattr(expected, "classes_"):
        assert model.classes_.tolist() == expected.classes_.tolist()


@pytest.mark.parametrize("weights", [None, np.where(LABELS == "c", 0.0, WEIGHTS)], ids=["plain", "weights"])
@pytest.mark.parametrize("rows", [1, 41, N])
def test_gaussian_nb(rows, weights):
    given = as_chunk_rows(Dataset(X, (rows, P)), 10**6)
    params = {"var_smoothing": 1e-3, "priors": None if rows > 1 else [0.2, 0.5, 0.3]}
    with np.errstate(divide="ignore"):  # scikit-learn takes the logarithm of a prior of 0
        model = GaussianNB(**params).fit(given, LABELS, sample_weight=weights)
        expected = sklearn.naive_bayes.GaussianNB(**params).fit(X, LABELS, sample_weight=weights)
        assert vars(model).keys() == vars(expected).keys()
        for attribute in ("epsilon_", "theta_", "var_", "class_count_", "class_prior_"):
            found, wanted = getattr(model, attribute), getattr(expected, attribute)
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-11, err_msg=attribute)
        np.testing.assert_array_equal(model.predict(given), expected.predict(X))
        np.testing.assert_allclose(model.predict_proba(given), expected.predict_proba(X), atol=1e-10)
        np.testing.assert_allclose(model.score(given, LABELS), expected.score(X, LABELS), rtol=1e-12)


@pytest.mark.parametrize("cls", [StandardScaler, MinMaxScaler, MaxAbsScaler])
def test_scalers_and_their_lazy_output(cls):
    values = X.copy()
    values[25:65, 1] = np.nan  # which they accept; all rows of a read are gaps
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


@pytest.mark.parametrize("cls", [StandardScaler, MinMaxScaler, MaxAbsScaler])
def test_scalers_of_a_column_of_gaps(cls):
    values = X.copy()
    values[:, 3] = np.nan
    values[25:65, 1] = np.nan
    found = []
    for fit in (getattr(sklearn.preprocessing, cls.__name__)().fit, cls().fit):
        given = values if not found else as_chunk_rows(Dataset(values), limit_for(X, 30))
        with pytest.warns(RuntimeWarning, match="All-NaN slice|invalid value encountered in divide"):
            found.append(fit(given))
    _assert_same_attributes(found[1], found[0], 1e-12)


def test_weights_of_a_scaler():
    values, weights = X.copy(), np.where(np.arange(N) < 40, 0.0, WEIGHTS)
    values[95:135, 2] = np.nan
    expected = sklearn.preprocessing.StandardScaler().fit(values, sample_weight=weights)
    given = as_chunk_rows(Dataset(values), limit_for(X, 30))
    _assert_same_attributes(StandardScaler().fit(given, sample_weight=weights), expected, 1e-12)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\), expected \(397,\)"):
        StandardScaler().fit(Dataset(X), sample_weight=WEIGHTS[:3])
    nothing = np.zeros(len(values))
    with pytest.raises((ValueError, RuntimeWarning)) as theirs:  # before scikit-learn 1.9 NumPy warns
        sklearn.preprocessing.StandardScaler().fit(values, sample_weight=nothing)
    with pytest.raises(theirs.type, match="at least one non-zero|invalid value encountered in divide"):
        StandardScaler().fit(given, sample_weight=nothing)


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
    scaler = RobustScaler().fit(given)  # scikit-learn reads it
    np.testing.assert_array_equal(scaler.center_, RobustScaler().fit(X).center_)


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
        (lambda: GaussianNB().predict(Dataset(X)), NotFittedError, "not fitted yet"),
        (lambda: GaussianNB().fit(Dataset(X), LABELS[1:]), ValueError, "inconsistent numbers of samples"),
        (lambda: GaussianNB(priors=[0.2, 0.8]).fit(Dataset(X), LABELS), ValueError, "Number of priors"),
        (lambda: GaussianNB().fit(Dataset(X * np.nan), LABELS), ValueError, "Input X contains NaN"),
        (lambda: GaussianNB().fit(Dataset(X), np.full(N, np.nan)), ValueError, "Input y contains NaN"),
        (lambda: LogisticRegression().fit(Dataset(X)), ValueError, "requires y to be passed"),
        (lambda: LogisticRegression().fit(Dataset(X), LABELS[1:]), ValueError, "inconsistent numbers"),
        (lambda: LogisticRegression().fit(Dataset(X), V), ValueError, "Unknown label type: continuous"),
        (lambda: LogisticRegression().fit(Dataset(X), np.ones(N)), ValueError, "y has one class"),
        (
            lambda: LogisticRegression(solver="liblinear", dual=True).fit(Dataset(X), LABELS),
            ValueError, "LogisticRegression reads X whole: dual=True",
        ),
        (lambda: StandardScaler().transform(Dataset(X)), NotFittedError, "not fitted yet"),
        (lambda: Ridge().fit(X, V).predict(Dataset(X[:, :2])), ValueError, "2 features"),
        (lambda: NMF().fit(as_chunk_rows(Dataset(X), 10**6)), TypeError, "NMF.fit does not read X in chunks"),
        (
            lambda: sklearn.linear_model.Ridge().fit(as_chunk_rows(Dataset(X), 10**6), V),
            TypeError, "needed here as one array",
        ),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_sums_of_an_earlier_pass_are_not_mapped_to_a_component_without_variance():
    values = np.column_stack([X[:, 1:], X[:, 1]])
    rows = as_chunk_rows(Dataset(values, (30, P)), limit_for(values, 30))
    rows.moments(V[:, None], [slice(0, N)])  # as a search has summed them
    ours = make_pipeline(StandardScaler(), PCA(), Ridge()).fit(rows, V).predict(rows)
    steps = sklearn.preprocessing.StandardScaler(), sklearn.decomposition.PCA()
    theirs = make_pipeline(*steps, sklearn.linear_model.Ridge()).fit(values, V).predict(values)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
