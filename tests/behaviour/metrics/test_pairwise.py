"""Pairwise metrics on a device are scikit-learn's: distances, kernels, nearest rows."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import sklearn
import sklearn.metrics
import sklearn.metrics.pairwise as theirs
from scipy.spatial import distance as scipy_distance
from sklearn.exceptions import DataConversionWarning

from manyfit import metrics
from manyfit.metrics import pairwise
from manyfit.metrics.distances import _tiles as _pair_tiles
from tests.behaviour.metrics._crossings import crossings, here, there
from tests.behaviour.metrics._pairwise import (
    EXACT,
    FUNCTION,
    GAPS_X,
    GAPS_Y,
    HISTOGRAM_X,
    HISTOGRAM_Y,
    KERNELS,
    METRICS,
    X,
    Y,
    assert_same,
    named,
    rng,
)

OF_SETS = ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]


@pytest.fixture(params=[None, 900], ids=["one tile", "tiles"])
def memory(request, monkeypatch):
    """Whatever the size of a tile."""
    if request.param:
        monkeypatch.setattr(_pair_tiles, "DEVICE_BYTES", request.param)


@pytest.mark.cases(44)
@pytest.mark.invariant("Distances, kernels and clustering scores on a device are scikit-learn's")
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("case", METRICS, ids=named)
@pytest.mark.parametrize("same", [False, True], ids=["", "same"])
def test_distances(case, same):
    metric, options = case
    wanted = sklearn.metrics.pairwise_distances(X, None if same else Y, metric=metric, **options)
    x, y = there(X), None if same else there(Y)
    with crossings() as crossed:
        ours = metrics.pairwise_distances(x, y, metric=metric, **options)
    assert crossed["to_device"] == 1 and crossed["bytes"] <= 2, crossed
    assert_same(ours, wanted)
    if same:
        # The product of a row with itself is the sum of its squares to the last bit, or is made so.
        assert metric == "correlation" or (np.diagonal(here(ours)) == 0).all()


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("metric", OF_SETS)
@pytest.mark.parametrize("same", [False, True], ids=["", "same"])
def test_distances_of_sets(metric, same):
    sets = rng.random((2, 12, 6)) < 0.4
    sets[0, 0] = sets[1, 1] = False  # nothing in common with anything
    sets[0, 2] = sets[1, 2] = True
    for dtype in (bool, np.float64):
        x, y = (a.astype(dtype) for a in sets)
        y = None if same else y
        expected = pytest.warns(DataConversionWarning, match=metric) if dtype is not bool else nullcontext()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = sklearn.metrics.pairwise_distances(x, y, metric=metric)
        with expected:
            ours = metrics.pairwise_distances(there(x), None if same else there(y), metric=metric)
        assert_same(ours, wanted)


def test_variances_and_covariances_of_x():
    for metric in ("seuclidean", "mahalanobis"):
        wanted = sklearn.metrics.pairwise_distances(X, metric=metric)
        assert_same(metrics.pairwise_distances(there(X), metric=metric), wanted)


@pytest.mark.cases(24)
@pytest.mark.invariant("Distances, kernels and clustering scores on a device are scikit-learn's")
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("case", KERNELS, ids=named)
@pytest.mark.parametrize("same", [False, True], ids=["", "same"])
def test_kernels(case, same):
    kernel, options = case
    x, y = (HISTOGRAM_X, HISTOGRAM_Y) if "chi2" in kernel else (X, Y)
    y = None if same else y
    name = FUNCTION.get(kernel, f"{kernel}_kernel")
    wanted = getattr(theirs, name)(x, y, **options)
    x_there, y_there = there(x), None if same else there(y)
    with crossings() as crossed:
        ours = getattr(pairwise, name)(x_there, y_there, **options)
    assert crossed["to_device"] == 1 and crossed["bytes"] <= 4, crossed
    assert_same(ours, wanted)
    if "dense_output" not in options:
        chosen = options | {"strange": 1}
        by_name = metrics.pairwise_kernels(x_there, y_there, metric=kernel, filter_params=True, **chosen)
        assert_same(by_name, wanted)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "haversine", "nan_euclidean"])
@pytest.mark.parametrize("same", [False, True], ids=["", "same"])
def test_functions_of_their_own(metric, same):
    name, (x, y) = f"{metric}_distances", (GAPS_X, GAPS_Y) if metric == "nan_euclidean" else (X, Y)
    if metric == "haversine":
        x, y = x[:, :2], y[:, :2]
    wanted = getattr(theirs, name)(x, None if same else y)
    ours = getattr(pairwise, name)(there(x), None if same else there(y))
    assert_same(ours, wanted)
    assert_same(metrics.pairwise_distances(there(x), None if same else there(y), metric=metric), wanted)


def test_a_gap_that_is_a_number():
    x = np.round(X)
    wanted = theirs.nan_euclidean_distances(x, missing_values=1, squared=True)
    assert_same(pairwise.nan_euclidean_distances(there(x), missing_values=1, squared=True), wanted)
    infinite = GAPS_X.copy()
    infinite[0, 0] = np.inf
    with pytest.raises(ValueError, match="Input contains infinity"):
        pairwise.nan_euclidean_distances(there(infinite))
    with pytest.raises(ValueError, match="Input contains NaN"):
        pairwise.nan_euclidean_distances(there(GAPS_X), missing_values=1)


@pytest.mark.cases(8)
@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "metric", ["euclidean", "sqeuclidean", "manhattan", "cosine", "chebyshev", "braycurtis"]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_nearest(metric, axis):
    x, y = there(X), there(Y)
    places, values = sklearn.metrics.pairwise_distances_argmin_min(X, Y, metric=metric, axis=axis)
    with crossings() as crossed:
        ours = metrics.pairwise_distances_argmin_min(x, y, metric=metric, axis=axis)
        alone = metrics.pairwise_distances_argmin(x, y, metric=metric, axis=axis)
    assert crossed["to_device"] == 2 and crossed["bytes"] <= 4, crossed
    np.testing.assert_array_equal(here(ours[0]), places)
    np.testing.assert_array_equal(here(alone), places)
    assert_same(ours[1], values)


@pytest.mark.usefixtures("memory")
def test_the_first_of_those_that_are_as_near():
    x = rng.integers(0, 2, (15, 3)) * 1.0
    y = np.repeat(x, 3, axis=0)
    wanted = np.argmin(scipy_distance.cdist(x, y), axis=1)
    places, values = metrics.pairwise_distances_argmin_min(there(x), there(y))
    np.testing.assert_array_equal(here(places), wanted)
    assert (here(values) == 0).all()
    squared = metrics.pairwise_distances_argmin_min(there(X), there(Y), metric_kwargs={"squared": True})[1]
    plain = metrics.pairwise_distances_argmin_min(there(X), there(Y))[1]
    np.testing.assert_allclose(here(squared), here(plain) ** 2, rtol=EXACT)


@pytest.mark.usefixtures("memory")
def test_the_first_without_a_distance_is_the_nearest():
    """As NumPy takes NaN for the least."""
    x, y = rng.random((6, 3)), rng.random((9, 3))
    x[2] = y[5] = y[8] = 1.0
    with np.errstate(invalid="ignore"):
        wanted = np.argmin(scipy_distance.cdist(x, y, "correlation"), axis=1)
    ours = metrics.pairwise_distances_argmin(there(x), there(y), metric="correlation")
    np.testing.assert_array_equal(here(ours), wanted)
    assert set(wanted) == {0, 5}


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("metric", ["euclidean", "l2", "cosine", "manhattan", "l1", "cityblock"])
def test_paired(metric):
    x, y = X[:7].copy(), Y.copy()
    x[3] = y[3]
    x[4] = 0
    wanted = theirs.paired_distances(x, y, metric=metric)
    assert_same(pairwise.paired_distances(there(x), there(y), metric=metric), wanted)
    name = {"l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan"}.get(metric, metric)
    x_there, y_there = there(x), there(y)
    with crossings() as crossed:
        ours = getattr(pairwise, f"paired_{name}_distances")(x_there, y_there)
    assert crossed["to_device"] == 1 and crossed["bytes"] <= 2, crossed
    assert_same(ours, wanted)
    with pytest.raises(ValueError, match="They were respectively .13, 5. and .7, 5. long"):
        pairwise.paired_distances(there(X), there(Y), metric=metric)
