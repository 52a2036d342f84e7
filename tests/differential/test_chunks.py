"""Searches and fits on an X in chunks of any size, against scikit-learn on the same rows in memory."""

from __future__ import annotations

import warnings
from typing import Any
from unittest import mock

import dask
import dask.array as da
import numpy as np
import pytest
import sklearn.decomposition
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.preprocessing
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import manyfit.estimators
from manyfit.estimators.chunks import _decomposition
from manyfit.folds import as_chunk_rows
from tests.behaviour.chunks._files import Dataset
from tests.differential._profile import PROFILE, THOROUGH
from tests.differential._splits import Splits, splits
from tests.differential._subject import subject

pytestmark = [pytest.mark.timeout(0)] if THOROUGH else []  # as long as it takes

# The last step, its grid, and how near to scikit-learn's its scores have to be.
MODELS: dict[str, tuple[Any, dict[str, list[Any]], float]] = {
    "ridge": (sklearn.linear_model.Ridge(), {"last__alpha": [0.1, 10.0]}, 1e-8),
    "ols": (sklearn.linear_model.LinearRegression(), {"last__fit_intercept": [True, False]}, 1e-6),
    "classes": (sklearn.linear_model.RidgeClassifier(), {"last__alpha": [0.1, 10.0]}, 1e-8),
    "nb": (sklearn.naive_bayes.GaussianNB(), {"last__var_smoothing": [1e-9, 1e-2]}, 1e-8),
    "lda": (LinearDiscriminantAnalysis(solver="lsqr"), {"last__shrinkage": ["auto", 0.3]}, 1e-8),
    "logistic": (
        sklearn.linear_model.LogisticRegression(tol=1e-8, max_iter=10_000),
        {"last__C": [0.01, 1.0]}, 1e-4,
    ),
}  # fmt: skip
STEPS: dict[str, Any] = {
    "none": None,
    "scaler": sklearn.preprocessing.StandardScaler(),
    "pca": sklearn.decomposition.PCA(n_components=1, svd_solver="covariance_eigh"),
}
CLASSIFIERS = {"classes", "nb", "lda", "logistic"}
SCORES = {
    True: ["accuracy", "neg_log_loss"],
    False: ["r2", "neg_mean_squared_error", "neg_mean_absolute_error"],
}


def _data(seed: int, n: int, p: int, dtype: str, labels: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 5.0, size=p) + rng.choice([0.0, 100.0], size=p)
    X = np.round(X).astype(dtype) if dtype == "int32" else X.astype(dtype)
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    return X, np.where(y > np.median(y), "b", "a") if labels else y


def _in_chunks(X: Any, kind: str, rows: int) -> Any:
    memory = 16 * max(rows * X[0].nbytes, 1_000 if rows > 1 else 1)
    if kind == "file":
        return as_chunk_rows(Dataset(X, (rows, X.shape[1])), memory)
    lazy = da.from_array(X, chunks=(rows, -(-X.shape[1] // 2)))
    if kind == "unknown lengths":
        lazy = lazy[da.ones(len(X), chunks=rows, dtype=bool)]
    return as_chunk_rows(lazy, max(memory, 32 * rows * X[0].nbytes))


cases = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**16),
        "n": st.integers(12, 90),
        "p": st.integers(1, 5),
        "dtype": st.sampled_from(["float64", "float64", "float32", "int32"]),
        "kind": st.sampled_from(["file", "dask", "unknown lengths"]),
        "rows": st.sampled_from([1, 7, 13, 90]),
        "weighted": st.booleans(),
    }
)


@given(
    case=cases, model=st.sampled_from(sorted(MODELS)), step=st.sampled_from(sorted(STEPS)),
    cv=splits(), score=st.integers(0, 2), train=st.booleans(),
)  # fmt: skip
@PROFILE
def test_a_search_on_chunks_has_the_scores_of_an_array(
    case: dict[str, Any], model: str, step: str, cv: Splits, score: int, train: bool
) -> None:
    labels = model in CLASSIFIERS
    X, y = _data(case["seed"], case["n"], case["p"], case["dtype"], labels)
    last, grid, tol = MODELS[model]
    pipeline = Pipeline(
        [("step", STEPS[step]), ("last", last)] if STEPS[step] is not None else [("last", last)]
    )
    scoring = SCORES[labels][score % len(SCORES[labels])]
    if scoring == "neg_log_loss" and model == "classes":
        scoring = "accuracy"
    weights = np.random.default_rng(case["seed"]).uniform(0.5, 1.5, size=len(y)) if case["weighted"] else None
    fit_params = {} if weights is None else {"last__sample_weight": weights}
    if cv.needs_groups:
        fit_params["groups"] = np.arange(len(y)) % 4
    results = []
    for search_class, given_X in ((GridSearchCV, X), (subject(), _in_chunks(X, case["kind"], case["rows"]))):
        search = search_class(
            clone(pipeline), grid, cv=cv.make(len(y)), scoring=scoring, refit=False, return_train_score=train
        )
        with warnings.catch_warnings(), dask.config.set(scheduler="synchronous"), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                results.append(search.fit(given_X, y, **fit_params).cv_results_)
            except Exception as error:
                results.append(error)
    theirs, ours = results
    if isinstance(ours, Exception):
        # What is not shared is refused, and what scikit-learn refuses, it refuses on chunks.
        refused = isinstance(ours, TypeError) and "cannot be made from chunks" in str(ours)
        assert refused or type(ours) is type(theirs), (theirs, ours)
        return
    assert not isinstance(theirs, Exception), theirs
    if case["dtype"] == "float32":
        tol = max(tol, 1e-3)
    for key, values in theirs.items():
        if key.startswith(("split", "mean_test", "mean_train")):
            size = np.maximum(np.abs(values), 1.0)
            if search.report_.left_to_sklearn:  # these fits fail alone
                values = np.where(np.isnan(ours[key]), np.nan, values)
            np.testing.assert_allclose(ours[key] / size, values / size, atol=tol, err_msg=key)


FITS: dict[str, tuple[str, dict[str, Any]]] = {
    "pca": ("PCA", {}),
    "svd": ("TruncatedSVD", {"n_components": 2, "random_state": 0, "n_iter": 1}),
    "randomized": ("PCA", {"n_components": 1, "svd_solver": "randomized", "random_state": 0}),
    "nb": ("GaussianNB", {}),
    "ridge": ("Ridge", {"alpha": 0.1}),
    "scaler": ("StandardScaler", {}),
    "minmax": ("MinMaxScaler", {}),
    "maxabs": ("MaxAbsScaler", {}),
}
SCALERS = {"scaler", "minmax", "maxabs"}


@given(case=cases, name=st.sampled_from(sorted(FITS)), by_products=st.booleans(), gaps=st.floats(0.0, 0.9))
@PROFILE
def test_an_estimator_has_the_attributes_of_a_fit_in_memory(
    case: dict[str, Any], name: str, by_products: bool, gaps: float
) -> None:
    cls, params = FITS[name]
    p = max(case["p"], 3)
    X, y = _data(case["seed"], case["n"], p, case["dtype"], name == "nb")
    weights = np.random.default_rng(1).uniform(size=len(y)) if case["weighted"] else None
    if name in SCALERS and X.dtype.kind == "f":  # a part of the first column, and neighbours in the second
        X[1:][np.random.default_rng(2).uniform(size=len(X) - 1) < gaps, 0] = np.nan
        X[1 : int(gaps * len(X)), 1] = np.nan
    weighted = weights is not None and name in ("nb", "ridge", "scaler")
    more = {"sample_weight": weights} if weighted else {}
    model = getattr(manyfit.estimators, cls)(**params)
    rows = _in_chunks(X, case["kind"], case["rows"])
    wide = by_products and name in ("svd", "randomized")
    matrix = mock.patch.object(_decomposition, "matrix_bytes", return_value=2**60 if wide else 0)
    with dask.config.set(scheduler="synchronous"), matrix:
        model.fit(rows, y, **more)
    expected = type(model).__mro__[1](**params).fit(X.copy(), y, **more)
    tol = 1e-9 if case["dtype"] != "float32" else 1e-2
    for key, value in vars(expected).items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            found = getattr(model, key)
            assert found.dtype == value.dtype and found.shape == value.shape, key
            size = max(1.0, float(np.abs(value).max(initial=0.0)))
            np.testing.assert_allclose(found / size, value / size, atol=tol, err_msg=key)
