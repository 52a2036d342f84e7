"""cross_validate and its relatives on an X in chunks have the scores of arrays in memory."""

from __future__ import annotations

import inspect

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import manyfit.model_selection
from manyfit.model_selection import (
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from manyfit.model_selection.job import _chunk_inputs
from tests.behaviour.chunks._files import Dataset, limit_for
from tests.behaviour.chunks._frames import blocks, parquet

rng = np.random.default_rng(0)
N = 701
X = rng.normal(size=(N, 6)) * [1.0, 10.0, 0.1, 1.0, 1.0, 5.0] + 3.0
Y = X[:, 0] + X[:, 1] + rng.normal(size=N)
WEIGHTS = rng.uniform(0.5, 1.5, size=N)
MODEL = make_pipeline(StandardScaler(), Ridge())


@pytest.fixture(autouse=True)
def _little_memory(monkeypatch):
    monkeypatch.setattr(_chunk_inputs, "half_of_memory", lambda: limit_for(X, 30))


CALLS = {
    "cross_validate": {},
    "cross_val_score": {},
    "cross_val_predict": {},
    "validation_curve": {"param_name": "ridge__alpha", "param_range": [0.1, 10.0]},
    "learning_curve": {},
}


@pytest.mark.parametrize("name", CALLS)
def test_a_memory_limit(name, monkeypatch):
    monkeypatch.setattr(_chunk_inputs, "half_of_memory", lambda: 2**30)
    function = getattr(manyfit.model_selection, name)
    expected = getattr(sklearn.model_selection, name)(MODEL, X, Y, **CALLS[name])
    for limit, most in ((limit_for(X, 30), 30), (None, N)):
        file = Dataset(X, (30, 6))
        found = function(MODEL, file, Y, memory_limit=limit, **CALLS[name])
        assert max(file.reads) == most
        if name == "cross_validate":
            found, expected_one = found["test_score"], expected["test_score"]
        else:
            expected_one = expected
        for one, other in zip(found, expected_one, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11)
    with pytest.raises(ValueError, match="memory_limit should be bytes or a text like '512MB'"):
        function(MODEL, X, Y, memory_limit="much", **CALLS[name])
    parameter = inspect.signature(function).parameters["memory_limit"]
    assert parameter.kind is parameter.KEYWORD_ONLY and parameter.default is None
    assert "memory_limit : int or str" in function.__doc__


def test_cross_validate():
    options = {"return_train_score": True, "scoring": ["r2", "neg_mean_absolute_error"]}
    file = Dataset(X, (30, 6))
    found = cross_validate(MODEL, file, Y, **options)
    expected = sklearn.model_selection.cross_validate(MODEL, X, Y, **options)
    assert max(file.reads) == 30
    for name in expected:
        if "time" not in name:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-11, err_msg=name)


def test_cross_val_score_of_blocks_with_weights():
    found = cross_val_score(MODEL, blocks(X, 50, Y, WEIGHTS))
    expected = sklearn.model_selection.cross_val_score(MODEL, X, Y, params={"ridge__sample_weight": WEIGHTS})
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_iterations():
    labels, model = Y > 0.0, make_pipeline(StandardScaler(), LogisticRegression(C=1e-2, tol=1e-6))
    found = cross_val_score(model, Dataset(X, (100, 6)), labels, scoring="neg_log_loss")
    expected = sklearn.model_selection.cross_val_score(model, X, labels, scoring="neg_log_loss")
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # as near as tol asks


def test_validation_curve():
    options = {"param_name": "ridge__alpha", "param_range": [0.1, 10.0]}
    found = validation_curve(MODEL, Dataset(X, (30, 6)), Y, **options)
    expected = sklearn.model_selection.validation_curve(MODEL, X, Y, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    np.testing.assert_allclose(validation_curve(MODEL, blocks(X, 50, Y), **options), expected, rtol=1e-11)
    with pytest.raises(TypeError, match="argument: 'y'"):
        validation_curve(MODEL, X, **options)


@pytest.mark.parametrize("shuffle", [False, True])
def test_learning_curve(shuffle, tmp_path):
    options = {"train_sizes": [0.2, 0.6, 1.0], "cv": 3, "shuffle": shuffle, "random_state": 0}
    expected = sklearn.model_selection.learning_curve(MODEL, X, Y, **options)
    frame = pd.DataFrame(X, columns=[*"abcdef"]).assign(y=Y)
    for given, y in (
        (Dataset(X, (30, 6)), Y),
        (da.from_array(X, chunks=(50, 3)), Y),
        (blocks(X, 50, Y), None),
        (parquet(frame, 50, tmp_path / "X"), "y"),
    ):
        found = learning_curve(MODEL, given, *(() if y is None else (y,)), **options)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11)
    labels, file = Y > 0.0, Dataset(X, (30, 6))
    with pytest.raises(TypeError, match="calls partial_fit with rows in memory.* Leave it out"):
        learning_curve(SGDClassifier(), file, labels, exploit_incremental_learning=True)
    with pytest.raises(TypeError, match="cannot be made from chunks.* sample of the rows|or pass X as"):
        learning_curve(DecisionTreeRegressor(), file, Y)
    assert not file.reads


def test_cross_val_predict():
    file, folds = Dataset(X, (30, 6)), KFold(4, shuffle=True, random_state=0)
    found = cross_val_predict(MODEL, file, Y, cv=folds)
    expected = sklearn.model_selection.cross_val_predict(MODEL, X, Y, cv=folds)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    assert max(file.reads) == 30
    found = cross_val_predict(MODEL, blocks(X, 50, Y, WEIGHTS))
    expected = sklearn.model_selection.cross_val_predict(
        MODEL, X, Y, params={"ridge__sample_weight": WEIGHTS}
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_cross_val_predict_of_classes(method):
    labels = np.where(Y > 0.0, "yes", "no")
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e-2, tol=1e-6))
    found = cross_val_predict(model, Dataset(X, (100, 6)), labels, method=method, cv=3)
    expected = sklearn.model_selection.cross_val_predict(model, X, labels, method=method, cv=3)
    if method == "predict":
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_cross_val_predict_refuses_other_splits_and_what_is_not_shared():
    with pytest.raises(ValueError, match=r"only works for partitions.*return_predictions='predict'"):
        cross_val_predict(MODEL, Dataset(X, (30, 6)), Y, cv=ShuffleSplit(2, random_state=0))
    with pytest.raises(TypeError, match="scikit-learn cannot read X"):
        cross_val_predict(DecisionTreeRegressor(), Dataset(X, (30, 6)), Y)
    with pytest.raises(AttributeError, match="predict_proba"):
        cross_val_predict(MODEL, Dataset(X, (30, 6)), Y, method="predict_proba")
    with pytest.raises(ValueError, match="The 'method' parameter of cross_val_predict must be"):
        cross_val_predict(MODEL, Dataset(X, (30, 6)), Y, method="foo")
    labels = np.where(Y > 0.0, "yes", "no")
    with (
        pytest.warns(UserWarning, match="no predictions by predict_log_proba"),
        pytest.raises(TypeError, match="no predictions by predict_log_proba"),
    ):
        cross_val_predict(GaussianNB(), Dataset(X, (30, 6)), labels, method="predict_log_proba")


def test_fitted_estimators_are_refused_before_anything_is_read():
    file = Dataset(X, (30, 6))
    with pytest.raises(TypeError, match="cannot be made from chunks: fitted estimators are asked for"):
        cross_validate(MODEL, file, Y, return_estimator=True)
    assert not file.reads
