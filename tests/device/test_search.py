"""Searches on data of other libraries and devices: scikit-learn's numbers, and what crosses to get them."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manyfit
from manyfit import estimators
from manyfit._compat import DEVICE_TAKES_HOST_INDICES
from manyfit.exceptions import HostFallbackWarning
from manyfit.folds.moments import _device as _device_moments
from manyfit.model_selection import cross_val_score
from tests._covering import covering
from tests.behaviour.iterations._optimum import Optimum as GridSearchCV
from tests.behaviour.metrics._crossings import DEVICE, crossings, memory_there, there
from tests.device._both import alike, on_both

rng = np.random.default_rng(0)
ALPHAS = {"alpha": np.logspace(-3, 3, 10)}
PIPELINE = make_pipeline(StandardScaler(), PCA(), Ridge())
PIPELINE_GRID = {"pca__n_components": [2, 5, 9], "ridge__alpha": np.logspace(-3, 3, 5)}


def problem(n=600, p=9, far=100.0, noise=1.0):
    X = rng.normal(size=(n, p)) + far
    return X, X @ rng.normal(size=p) + noise * rng.normal(size=n)


@pytest.mark.parametrize(
    ("kind", "model", "name"),
    covering(
        ["host", "device", "frame"],
        {
            "ridge": (make_pipeline(VarianceThreshold(0.1), Ridge()), "ridge__alpha"),
            "logistic": (
                make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9, max_iter=1000)),
                "logisticregression__C",
            ),
            "poisson": (PoissonRegressor(tol=1e-9, max_iter=1000), "alpha"),
        }.items(),
        strength=1,
    ),
)
def test_bools_are_shared_as_numbers_are(model, name, kind):
    numbers = rng.normal(size=(300, 5))
    bools = numbers > [0.0, 0.5, -0.5, 1.0, 9.0]  # the last is constant
    y = (bools @ np.arange(5.0) + numbers[:, 0] > 2).astype(int)
    frame = pd.DataFrame({f"x{j}": bools[:, j] * 1.0 if j == 2 else bools[:, j] for j in range(5)})
    X = {"host": bools, "device": there(bools), "frame": frame}[kind]
    grid = {name: [0.1, 1.0, 10.0]}
    found = GridSearchCV(model, grid, cv=3, refit=False).fit(X, there(y) if kind == "device" else y)
    assert found.report_.fits_done == 0
    alike(found, sklearn.model_selection.GridSearchCV(model, grid, cv=3, refit=False).fit(bools, y), 1e-6)


@pytest.mark.invariant("A search waits for its device once, not once per fold")
@pytest.mark.parametrize(
    ("model", "grid", "most"),
    [(Ridge(), ALPHAS, 2), (LinearRegression(), {"fit_intercept": [True]}, 2), (PIPELINE, PIPELINE_GRID, 4)],
    ids=["ridge", "linear", "pipeline"],
)
@pytest.mark.parametrize("y_there", [True, False])
def test_a_search_waits_for_its_device_once(model, grid, most, y_there):
    X, y = problem()
    with crossings() as crossed:
        search, _ = on_both(model, grid, X, y, place_y=there if y_there else np.asarray, cv=5)
    # The moments of all folds, and nothing else: neither X nor predictions.
    assert crossed["to_device"] == search.report_.synchronisations == 1 <= most
    assert crossed["bytes"] == search.report_.bytes_to_host < X.nbytes / 4
    assert search.report_.bytes_to_device == (0 if y_there else y.nbytes)
    assert search.report_.fits_done == 0 and search.report_.passes == 1


@pytest.mark.invariant("A search waits for its device once, not once per fold")
@pytest.mark.parametrize(
    "scoring",
    ["neg_mean_absolute_error", "neg_median_absolute_error", "neg_max_error"]
    + [["r2", "neg_mean_absolute_error"]],
    ids=str,
)
def test_scores_from_predictions_come_home_together(scoring):
    X, y = problem()
    with crossings() as crossed:
        search, _ = on_both(Ridge(), ALPHAS, X, y, cv=4, scoring=scoring, return_train_score=True)
    # Moments, y and scores; no predictions, which would be 10 x 4 times y.
    assert crossed["to_device"] == 3
    assert crossed["bytes"] < 2 * y.nbytes + 10_000
    assert search.report_.fits_done == 0


def test_a_metric_of_the_users_own_sees_predictions_on_the_host():
    seen = []

    def largest(y, predicted):
        seen.append((type(y), type(predicted)))
        return float(np.abs(y - predicted).max())

    X, y = problem()
    search, _ = on_both(Ridge(), ALPHAS, X, y, cv=3, scoring=make_scorer(largest))
    assert search.report_.fits_done == 0
    assert set(seen) == {(np.ndarray, np.ndarray)}
    assert "from predictions" in str(search.plan(there(X), there(y)))


@pytest.mark.cases(4)
@pytest.mark.invariant("A search on a device gives the host's scores")
@pytest.mark.parametrize(
    ("cv", "weighted"),
    covering(
        {
            "shuffled": KFold(4, shuffle=True, random_state=0),
            "drawn": ShuffleSplit(3, random_state=0),
            "growing": TimeSeriesSplit(3),
            "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
            "odd": [
                (np.arange(100, 400), np.arange(-50, 0)),
                (np.arange(600) % 2 == 0, np.r_[1:600:2, 1, 1, 3]),
            ],
        }.items(),
        [False, True],
        strength=1,
    ),
)
def test_any_splits_and_weights(place, cv, weighted):
    X, y = problem()
    params = {"ridge__sample_weight": rng.uniform(0.5, 2.0, len(y)).round(2)} if weighted else {}
    model = make_pipeline(VarianceThreshold(), SelectKBest(f_regression), StandardScaler(), Ridge())
    grid = {"selectkbest__k": [2, 7], "ridge__alpha": [0.1, 10.0], "ridge__fit_intercept": [True, False]}
    search, _ = on_both(model, grid, X, y, place=place, params=params, cv=cv, return_train_score=True)
    assert search.report_.fits_done == 0


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error"])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.int64, 1e-9)])
def test_other_dtypes_and_several_targets(place, dtype, rtol, scoring):
    X, y = problem(far=10.0)
    X, Y = (10 * X).astype(dtype), np.stack([y, y**2], axis=1)
    search, _ = on_both(Ridge(), ALPHAS, X, Y, place=place, cv=4, scoring=scoring, rtol=rtol)
    assert search.report_.fits_done == 0


def test_columns_that_are_constant_far_away_or_drift(place):
    X, y = problem(n=900)
    X[:, 0], X[:, 1] = 7.0, X[:, 1] + 1e7
    X[:, 2] += np.linspace(0.0, 1e4, 900)
    X[:, 3] = np.r_[np.zeros(100), 1e3 + X[100:, 3]]  # the sampled rows do not tell
    y[:20] = 1e3
    search, _ = on_both(PIPELINE, PIPELINE_GRID, X, y, place=place, cv=5)
    assert search.report_.fits_done == 0


def test_a_device_without_float64_is_left_to_scikit_learn():
    X, y = problem()
    small = array_api_strict.Device("no_float64")
    Xd, yd = (array_api_strict.asarray(a.astype(np.float32), device=small) for a in (X, y))
    search = GridSearchCV(Ridge(solver="svd"), ALPHAS, cv=3, refit=False)
    assert "has no float64" in str(search.plan(Xd, yd))


def test_cross_val_score_on_a_device():
    X, y = problem()
    with crossings() as crossed:
        found = cross_val_score(Ridge(), there(X), there(y), cv=KFold(4))
    assert crossed["to_device"] == 1
    np.testing.assert_allclose(found, cross_val_score(Ridge(), X, y, cv=KFold(4)), rtol=1e-9)


def test_the_counter_counts():
    with crossings() as crossed:
        assert float(there([1.0, 2.0])[0]) == 1.0
    assert crossed["__float__"] == 1 and array_api_strict.Device("CPU_DEVICE") != DEVICE


@pytest.fixture
def small(watch):
    """A device with so little memory that only few rows can be centred; what it refused, in bytes."""
    refused = []

    def limited(most):
        def look(shape, **options):
            wanted = 8 * int(np.prod(shape))
            if wanted > most:
                refused.append(wanted)
                raise MemoryError(f"Out of memory allocating {wanted:,} bytes")

        watch(array_api_strict, "empty", look)
        return refused

    return limited


@pytest.mark.invariant("Without device memory blocks get smaller, then scikit-learn takes over")
def test_where_memory_is_short_blocks_get_smaller(small, monkeypatch):
    X, y = problem(n=3000)
    refused = small(X.nbytes // 8)
    monkeypatch.setattr(_device_moments, "BLOCK_VALUES", X.size // 3)
    search, _ = on_both(Ridge(), ALPHAS, X, y, cv=3)
    assert len(refused) == 1
    assert search.report_.fits_done == 0


@pytest.mark.invariant("Without device memory blocks get smaller, then scikit-learn takes over")
def test_where_there_is_no_memory_the_report_says_how_much_was_wanted(small):
    X, y = problem(n=3000)
    refused = small(1000)
    with pytest.warns(HostFallbackWarning, match="Ridge"):
        search, _ = on_both(Ridge(), ALPHAS, X, y, cv=3)
    # Nothing is lost: scikit-learn fits them, on the host.
    assert search.report_.fits_done == 30
    (why,) = search.report_.left_to_sklearn
    assert why == (
        "the moments of Ridge ran out of memory, also in smaller blocks: "
        f"Out of memory allocating {refused[-1]:,} bytes"
    )


def test_memory_there_counts_what_is_kept_and_no_views():
    X = there(np.ones((1000, 8)))
    with memory_there(X) as used:
        part = X[:500, :]
        assert used == [0, 0]
        more = part + 1.0
        del more
    assert used[0] == 0
    assert 500 * 64 <= used[1] < 500 * 64 + 100  # and the number 1.0


def test_targets_of_a_device_are_read_with_rows_of_the_host():
    X, y = problem()
    search, _ = on_both(Ridge(), ALPHAS, X, y, place=np.asarray, place_y=there, cv=5)
    assert search.report_.fits_done == 0


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_indices_of_a_small_type(dtype):
    X, y = problem(300)
    first = np.arange(100)[::-1]  # no slice
    train = (first - 100 if dtype == np.int8 else first + 100).astype(dtype)  # int8: from the end
    cv = [(train, first.astype(dtype))]
    search, _ = on_both(Ridge(), ALPHAS, X, y, cv=cv, scoring="neg_median_absolute_error")
    assert search.report_.fits_done == 0


@pytest.mark.parametrize("scoring", ["f1", "neg_log_loss"])
def test_scores_are_verified_where_the_estimator_is_fitted(scoring):
    X = problem()[0]
    y = (X[:, 0] > 100.0).astype(int)
    model, grid = estimators.LogisticRegression(tol=1e-8, max_iter=10_000), {"C": [0.1, 1.0]}
    search = GridSearchCV(model, grid, cv=3, scoring=scoring, verify=2, error_score="raise", refit=False)
    with manyfit.config_context(host_fallback="error" if DEVICE_TAKES_HOST_INDICES else "ignore"):
        search.fit(there(X), there(y))
    # Before scikit-learn 1.9 it is fitted on the host, by scikit-learn's solver.
    near = pytest.approx([0.0, 0.0], abs=1e-9 if DEVICE_TAKES_HOST_INDICES else 1e-5)
    assert [row["difference"] for row in search.report_.verification] == near


@pytest.mark.invariant("Answers that wait for their scores keep to the memory limit")
def test_answers_of_many_folds_are_not_kept_until_the_last():
    X, y = problem()
    options = {"cv": 5, "scoring": "neg_mean_absolute_error"}
    together, apart = (
        on_both(Ridge(), ALPHAS, X, y, memory_limit=limit, **options)[0] for limit in (None, "16kB")
    )
    assert apart.report_.fits_done == 0
    # The scores of a fold after the other, not of all five at once.
    assert apart.report_.synchronisations == together.report_.synchronisations + 4
