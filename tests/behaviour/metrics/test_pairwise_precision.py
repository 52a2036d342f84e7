"""Pairwise metrics are as precise as scikit-learn's: float32, far from the origin, equal rows."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import sklearn
import sklearn.metrics
import sklearn.metrics.pairwise as theirs
from scipy.spatial import distance as scipy_distance

from manyfit import metrics
from manyfit.metrics import pairwise
from tests.behaviour.metrics._crossings import crossings, here, there
from tests.behaviour.metrics._pairwise import (
    EXACT,
    FLOAT32,
    FUNCTION,
    HISTOGRAM_X,
    HISTOGRAM_Y,
    KERNELS,
    METRICS,
    V,
    X,
    Y,
    assert_same,
    named,
    rng,
)


@pytest.mark.parametrize("case", METRICS, ids=named)
def test_distances_in_float32(case):
    metric, options = case
    x, y = X.astype(np.float32), Y.astype(np.float32)
    for other in (None, y):
        wanted = sklearn.metrics.pairwise_distances(x, other, metric=metric, **options)
        ours = metrics.pairwise_distances(
            there(x), None if other is None else there(y), metric=metric, **options
        )
        assert ours.dtype == array_api_strict.float32
        assert_same(ours, wanted, FLOAT32)


@pytest.mark.parametrize("case", KERNELS, ids=named)
def test_kernels_in_float32(case):
    kernel, options = case
    x, y = (a.astype(np.float32) for a in ((HISTOGRAM_X, HISTOGRAM_Y) if "chi2" in kernel else (X, Y)))
    name = FUNCTION.get(kernel, f"{kernel}_kernel")
    ours = getattr(pairwise, name)(there(x), there(y), **options)
    assert ours.dtype == array_api_strict.float32
    assert_same(ours, getattr(theirs, name)(x, y, **options), FLOAT32)


def test_float32_is_not_squared_in_float32():
    """A thousand from the origin, a distance of one hundredth: float32 squares would not know it."""
    x = (1000 + 0.01 * rng.normal(size=(30, 4))).astype(np.float32)
    truth = scipy_distance.cdist(x.astype(np.float64), x.astype(np.float64))
    ours = here(metrics.euclidean_distances(there(x)))
    np.testing.assert_allclose(ours, truth, rtol=1e-5, atol=1e-5)
    places = metrics.pairwise_distances_argmin(there(x[:10]), there(x[10:]))
    np.testing.assert_array_equal(here(places), truth[:10, 10:].argmin(axis=1))
    squares = (x**2).sum(axis=1)
    naive = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * x @ x.T, 0))
    assert np.abs(naive - truth).max() > 0.1  # what is checked here could fail


@pytest.mark.invariant("Distances far from the origin are as precise as scikit-learn's")
@pytest.mark.parametrize("offset", [0, 1e3, 1e6])
def test_cancellation_is_not_worse_than_scikit_learns(offset):
    x, y = X + offset, Y + offset
    truth = scipy_distance.cdist(x, y)
    ours = np.abs(here(metrics.euclidean_distances(there(x), there(y))) - truth).max()
    assert ours <= 3 * np.abs(sklearn.metrics.euclidean_distances(x, y) - truth).max() + EXACT
    # What does not come from a product does not cancel.
    for metric in ("sqeuclidean", "minkowski", "seuclidean"):
        options = {"V": V} if metric == "seuclidean" else {}
        name = {"minkowski": "euclidean"}.get(metric, metric)
        assert_same(
            metrics.pairwise_distances(there(x), there(y), metric=metric, **options),
            scipy_distance.cdist(x, y, name, **options),
        )


def test_rows_that_are_alike():
    x = np.repeat(np.round(4 * X), 2, axis=0)  # whole numbers, of which nothing is rounded
    ours = here(metrics.euclidean_distances(there(x)))
    np.testing.assert_array_equal(ours[::2, 1::2].diagonal(), 0)
    np.testing.assert_array_equal(ours, sklearn.metrics.euclidean_distances(x))
    x = np.repeat(X, 2, axis=0)
    ours = here(metrics.euclidean_distances(there(x)))
    np.testing.assert_array_equal(ours.diagonal(), 0)
    # Of another row with the same numbers the product knows half of the digits, as scikit-learn's does.
    np.testing.assert_allclose(ours, sklearn.metrics.euclidean_distances(x), rtol=1e-12, atol=1e-6)
    np.testing.assert_array_equal(here(pairwise.manhattan_distances(there(x)))[::2, 1::2].diagonal(), 0)
    for ones in (here(pairwise.rbf_kernel(there(x))), here(pairwise.laplacian_kernel(there(x)))):
        np.testing.assert_array_equal(ones.diagonal(), 1)


def test_rows_without_length():
    x = X.copy()
    x[0], x[1] = 0, 1e-17  # scikit-learn takes the second one for nothing as well
    for name in ("cosine_similarity", "cosine_distances"):
        assert_same(getattr(pairwise, name)(there(x), there(Y)), getattr(theirs, name)(x, Y))
    x[2] = 1  # constant: without a correlation
    with np.errstate(invalid="ignore"):
        wanted = sklearn.metrics.pairwise_distances(x[2:], metric="correlation")
    assert_same(metrics.pairwise_distances(there(x[2:]), metric="correlation"), wanted)


@pytest.mark.parametrize(
    "dtypes", [(np.float64, np.float32), (np.int64, np.float32), (bool, np.uint8)], ids=str
)
def test_other_dtypes(dtypes):
    x, y = (np.round(np.abs(a)).astype(dtype) for a, dtype in zip((X, Y), dtypes, strict=True))
    for name in ("euclidean_distances", "cosine_similarity", "manhattan_distances", "polynomial_kernel"):
        ours = getattr(pairwise, name)(there(x), there(y))
        assert ours.dtype == array_api_strict.float64
        assert_same(ours, getattr(theirs, name)(x, y))
    if dtypes[0] is bool:
        x, y = there(x), there(y)
        with crossings() as crossed:
            metrics.euclidean_distances(x, y)
        assert not crossed, "there can be no NaN"
