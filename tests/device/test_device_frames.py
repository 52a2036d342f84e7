"""Frames and series of cuDF in searches, cross-validation and metrics."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import manyfit
from manyfit import estimators, metrics
from manyfit.arrays import array_of_frame, container_kind, container_to_host, frame_of_array, is_array
from manyfit.exceptions import HostFallbackError
from manyfit.model_selection import (
    GridSearchCV,
    IncrementalSearchCV,
    cross_val_predict,
    cross_validate,
    permutation_test_score,
)
from tests.device.estimators import _fake_cuml as fake

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"))
NUMBERS = pd.Series(FRAME.to_numpy() @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=90), name="target")
LABELS = (NUMBERS > 0).astype(int)
TEXTS = LABELS.map({0: "no", 1: "yes"})
FRAME_OF_TEXTS = FRAME.assign(place=np.array(["north", "south", "west"])[np.arange(90) % 3])
FOLDS = 3


@pytest.fixture(params=["a stand-in", pytest.param("cudf", marks=pytest.mark.gpu)])
def frames(request, monkeypatch):
    """The module cudf, or one of classes in its place, with a ``DataFrame`` and a ``Series``."""
    if request.param == "cudf":
        if find_spec("cudf") is None or not import_module("cupy").cuda.is_available():
            pytest.skip("no cuDF, or no CUDA device")
        return import_module("cudf")
    fake.install(monkeypatch)
    return import_module("cudf")


CASES = [
    (Ridge(), {"alpha": [0.1, 10.0]}, "r2", NUMBERS),
    (estimators.Ridge(), {"alpha": [0.1, 10.0]}, "neg_mean_squared_error", NUMBERS),
    (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 10.0]}, None, NUMBERS),
    (estimators.LogisticRegression(), {"C": [0.1, 10.0]}, "accuracy", LABELS),
    (SVC(), {"C": [0.1, 10.0]}, "roc_auc", LABELS),
    (SVC(), {"C": [0.1, 10.0]}, None, TEXTS),
]


@pytest.mark.filterwarnings("ignore::manyfit.exceptions.HostFallbackWarning")
@pytest.mark.parametrize("rows_alone", [False, True])
@pytest.mark.parametrize(("model", "grid", "scoring", "y"), CASES)
def test_searches_have_the_scores_of_pandas_frames(frames, model, grid, scoring, y, rows_alone):
    """Each search is fitted to frames of the device; y lies there, or on the host."""
    wanted = GridSearchCV(clone(model), grid, cv=FOLDS, scoring=scoring).fit(FRAME, y)
    X, targets = frames.DataFrame(FRAME), y if rows_alone else frames.Series(y)
    found = GridSearchCV(model, grid, cv=FOLDS, scoring=scoring, error_score="raise").fit(X, targets)
    for column in ("mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(found.cv_results_[column], wanted.cv_results_[column], rtol=1e-6)
    assert list(found.feature_names_in_) == list("abcd")
    assert found.score(X, targets) == pytest.approx(wanted.score(FRAME, y), rel=1e-6)
    predicted = found.predict(X)
    assert container_kind(predicted) in (
        (None, "array", "frame") if is_classifier(model) else (None, "frame")
    )
    host = np.asarray(container_to_host(predicted))
    if host.dtype.kind == "f":
        np.testing.assert_allclose(host, wanted.predict(FRAME), rtol=1e-6)
    else:
        np.testing.assert_array_equal(host, wanted.predict(FRAME))


def test_shared_fits_stay_on_the_device(frames):
    """Sums come to the host, and rows do not."""
    search = GridSearchCV(estimators.Ridge(), {"alpha": [0.1, 10.0]}, cv=FOLDS, scoring="r2", refit=False)
    with manyfit.config_context(host_fallback="error"):
        search.fit(frames.DataFrame(FRAME), frames.Series(NUMBERS))
    assert search.report_.fits_done == 0
    assert search.report_.bytes_to_host < FRAME.to_numpy().nbytes


def test_a_plan_reads_frames(frames):
    X, y = frames.DataFrame(FRAME), frames.Series(NUMBERS)
    search = GridSearchCV(estimators.Ridge(), {"alpha": [0.1, 10.0]}, cv=FOLDS, scoring="r2")
    assert str(search.plan(X, y)) == str(search.plan(array_of_frame(X), array_of_frame(y)))


@pytest.mark.parametrize("frame", [FRAME, FRAME_OF_TEXTS], ids=["numbers", "texts"])
def test_columns_by_name_are_read_on_the_host(frames, frame):
    texts = [(OneHotEncoder(), ["place"])] if "place" in frame else []
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), *texts)
    model, grid = make_pipeline(columns, Ridge()), {"ridge__alpha": [0.1, 10.0]}
    wanted = GridSearchCV(model, grid, cv=FOLDS).fit(frame, NUMBERS)
    X, y = frames.DataFrame(frame), frames.Series(NUMBERS)
    with manyfit.config_context(host_fallback="ignore"):
        found = GridSearchCV(model, grid, cv=FOLDS, error_score="raise").fit(X, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"], rtol=1e-9
    )
    np.testing.assert_allclose(np.asarray(found.predict(frame)), wanted.predict(frame), rtol=1e-9)
    with (
        manyfit.config_context(host_fallback="error"),
        pytest.raises(HostFallbackError, match="X, a cudf DataFrame, is copied to the host"),
    ):
        GridSearchCV(model, grid, cv=FOLDS).fit(X, y)


@pytest.mark.filterwarnings("ignore::manyfit.exceptions.HostFallbackWarning")
def test_cross_validation(frames):
    X, y, weights = frames.DataFrame(FRAME), frames.Series(NUMBERS), pd.Series(rng.random(90))
    for model in (Ridge(), estimators.Ridge()):
        np.testing.assert_allclose(
            cross_validate(model, X, y, cv=FOLDS, params={"sample_weight": frames.Series(weights)})[
                "test_score"
            ],
            cross_validate(Ridge(), FRAME, NUMBERS, cv=FOLDS, params={"sample_weight": weights})[
                "test_score"
            ],
            rtol=1e-6,
        )
        np.testing.assert_allclose(
            container_to_host(cross_val_predict(model, X, y, cv=FOLDS)),
            cross_val_predict(Ridge(), FRAME, NUMBERS, cv=FOLDS),
            rtol=1e-6,
        )


@pytest.mark.filterwarnings("ignore::manyfit.exceptions.HostFallbackWarning")
@pytest.mark.parametrize("kind", ["frames", "arrays"])
def test_a_sample_of_rows(frames, kind):
    X, y = frames.DataFrame(FRAME), frames.Series(NUMBERS)
    given = (X, y) if kind == "frames" else (array_of_frame(X) + 0.0, array_of_frame(y))
    weights = pd.Series(rng.random(90))
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=FOLDS, sample=60)
    np.random.seed(0)  # which draws the rows
    wanted = clone(search).fit(FRAME, NUMBERS, sample_weight=weights)
    np.random.seed(0)
    found = search.fit(*given, sample_weight=frames.Series(weights) if kind == "frames" else weights)
    assert found.best_score_ == pytest.approx(wanted.best_score_, rel=1e-9)
    np.testing.assert_array_equal(found.sample_indices_, wanted.sample_indices_)


@pytest.mark.filterwarnings("ignore::manyfit.exceptions.HostFallbackWarning")
def test_a_sample_of_a_kernel_has_rows_and_columns(frames):
    kernel = pd.DataFrame(FRAME.to_numpy() @ FRAME.to_numpy().T)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 10.0]}, cv=FOLDS, sample=60)
    np.random.seed(0)
    wanted = clone(search).fit(kernel.to_numpy(), LABELS)
    np.random.seed(0)
    found = search.fit(array_of_frame(frames.DataFrame(kernel)) + 0.0, LABELS)
    assert found.best_score_ == pytest.approx(wanted.best_score_, rel=1e-9)


@pytest.mark.filterwarnings("ignore::manyfit.exceptions.HostFallbackWarning")
@pytest.mark.parametrize("kind", ["frames", "arrays"])
def test_incremental_searches_train_on_the_host(frames, kind):
    X, y = frames.DataFrame(FRAME), frames.Series(NUMBERS)
    given = (X, y) if kind == "frames" else (array_of_frame(X) + 0.0, array_of_frame(y))
    search = IncrementalSearchCV(
        SGDRegressor(random_state=0),
        {"alpha": [1e-4, 1.0]},
        n_initial_parameters=2,
        max_iter=3,
        random_state=0,
    )
    rows = FRAME if kind == "frames" else FRAME.to_numpy()
    wanted = clone(search).fit(rows, NUMBERS)
    found = search.fit(*given)
    assert found.best_score_ == wanted.best_score_
    np.testing.assert_allclose(found.predict(given[0]), wanted.predict(rows), rtol=1e-12)


@pytest.mark.parametrize("kind", ["frames", "arrays"])
def test_permutations_are_made_on_the_host(frames, kind):
    wanted = permutation_test_score(Ridge(), FRAME, NUMBERS, cv=FOLDS, n_permutations=5, random_state=0)
    X, y = frames.DataFrame(FRAME), frames.Series(NUMBERS)
    given = (X, y) if kind == "frames" else (array_of_frame(X) + 0.0, array_of_frame(y))
    options = {"cv": FOLDS, "n_permutations": 5, "random_state": 0}
    with manyfit.config_context(host_fallback="ignore"):
        found = permutation_test_score(Ridge(), *given, **options)
    for own, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-9)
    with manyfit.config_context(host_fallback="error"), pytest.raises(HostFallbackError, match="permutes y"):
        permutation_test_score(Ridge(), *given, **options)


def test_metrics_of_series(frames):
    predicted = NUMBERS + 0.5
    found = metrics.mean_squared_error(frames.Series(NUMBERS), frames.Series(predicted))
    assert is_array(found) and float(container_to_host(found)) == pytest.approx(0.25)
    assert metrics.accuracy_score(frames.Series(TEXTS), TEXTS) == 1.0


def test_missing_numbers_become_nan(frames):
    numbers = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [0.5, np.nan, 2.0]})
    array = array_of_frame(frames.DataFrame(numbers))
    np.testing.assert_array_equal(container_to_host(array), [[1.0, 0.5], [np.nan, np.nan], [3.0, 2.0]])
    column = array_of_frame(frames.Series(pd.Series([1, None], dtype="Int64")))
    np.testing.assert_array_equal(container_to_host(column), [1.0, np.nan])


def test_an_array_has_its_frame_while_both_live(frames):
    X = frames.DataFrame(FRAME)
    array = array_of_frame(X)
    assert is_array(array) and frame_of_array(array) is X
    assert frame_of_array(array + 0.0) is not X
    assert array_of_frame(FRAME) is FRAME
