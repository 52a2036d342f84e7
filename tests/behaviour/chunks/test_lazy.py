"""Methods of fitted estimators on Dask collections give Dask arrays, computed when they are read."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import sklearn.preprocessing
from sklearn.linear_model import LinearRegression as SklearnRegression
from sklearn.pipeline import make_pipeline

from manyfit.estimators import PCA, LinearRegression, LogisticRegression, Ridge, StandardScaler
from manyfit.model_selection import GridSearchCV
from tests.behaviour.chunks._frames import partitions

rng = np.random.default_rng(0)
N, P = 211, 4
X = rng.normal(size=(N, P)) + 3.0
Y = X @ rng.normal(size=(P, 2))
LABELS = np.where(Y[:, 0] > Y[:, 0].mean(), "high", "low")
FRAME = pd.DataFrame(X, columns=list("abcd")).astype({"d": np.float32})
CALLS = {
    "transform": StandardScaler(),
    "predict": Ridge(),
    "predict_proba": LogisticRegression(),
    "score_samples": PCA(2),
    "inverse_transform": StandardScaler(),
}


@pytest.mark.cases(5)
@pytest.mark.invariant("what an estimator makes of a Dask collection is a Dask array of the same numbers")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["array", "unknown chunks", "frame"])
def test_results_are_lazy_and_those_of_an_array(kind, name):
    y = LABELS if name == "predict_proba" else Y[:, 0]
    given = FRAME if kind == "frame" else X
    model, lazy = CALLS[name].fit(given, y), da.from_array(X, chunks=(50, 2))
    if kind == "unknown chunks":
        lazy = lazy[da.arange(N, chunks=50) > -1]
    lazy = partitions(FRAME, 60) if kind == "frame" else lazy
    found = getattr(model, name)(lazy)
    assert isinstance(found, da.Array) and found.dtype.kind == "f"
    expected = np.asarray(getattr(model, name)(given))
    assert found.ndim == expected.ndim and found.shape[1:] == expected.shape[1:]
    model.fit(given + 1.0, y)  # does not change what was asked for
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-6 if kind == "frame" else 1e-12)


def test_nothing_is_computed_before_and_wrong_columns_are_told_at_once():
    calls = []

    def note(block):
        calls.append(len(block))
        return block

    lazy = da.from_array(X, chunks=(50, P)).map_blocks(note, dtype=float, meta=X[:0])
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y)
    predicted = model.predict(lazy)
    assert isinstance(predicted, da.Array) and predicted.shape == (N, 2) and not calls
    expected = make_pipeline(sklearn.preprocessing.StandardScaler(), SklearnRegression()).fit(X, Y).predict(X)
    np.testing.assert_allclose(predicted[:60].compute(), expected[:60], rtol=1e-10)
    assert calls == [50, 50]
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(lazy[:, :3])


def test_empty_blocks_and_searches():
    lazy = da.concatenate([da.from_array(X[:0]), da.from_array(X, chunks=(50, P))])
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(X, Y[:, 0])
    np.testing.assert_allclose(search.best_estimator_.predict(lazy), search.predict(X), rtol=1e-12)
    assert type(search.predict(lazy)) is np.ndarray  # a search loads what fits its memory limit
