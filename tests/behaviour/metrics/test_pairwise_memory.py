"""Pairwise metrics need bounded memory beside their result."""

from __future__ import annotations

import tracemalloc

import array_api_strict
import numpy as np
import pytest
import sklearn
import sklearn.metrics
import sklearn.metrics.pairwise as theirs
from scipy.spatial import distance as scipy_distance

from manyfit import metrics
from manyfit.metrics import pairwise
from manyfit.metrics.distances import _tiles as _pair_tiles
from manyfit.metrics.distances._functions import distance_measure
from manyfit.metrics.distances._sklearn_measures import EUCLIDEAN, SQUARED
from manyfit.metrics.distances._tiles import Measure, nearest_rows, pair_matrix, tile_slices
from tests.behaviour.metrics._crossings import here, there
from tests.behaviour.metrics._pairwise import X, Y, assert_same, rng


def test_some_rows_at_a_time():
    wanted = sklearn.metrics.pairwise_distances(X)
    chunks = list(metrics.pairwise_distances_chunked(there(X), working_memory=1e-3))
    assert [c.shape for c in chunks] == [(10, 13), (3, 13)]
    assert_same(array_api_strict.concat(chunks), wanted)
    given = metrics.pairwise_distances_chunked(there(wanted), metric="precomputed", working_memory=0)
    assert_same(array_api_strict.concat(list(given)), wanted)

    def reduce_func(chunk, start):
        return array_api_strict.sum(chunk, axis=1), start

    found = list(
        metrics.pairwise_distances_chunked(there(X), there(Y), reduce_func=reduce_func, working_memory=3.3e-4)
    )
    assert [start for _, start in found] == [0, 6, 12]
    assert_same(
        array_api_strict.concat([sums for sums, _ in found]),
        sklearn.metrics.pairwise_distances(X, Y).sum(axis=1),
    )
    with pytest.raises(ValueError, match="Incompatible dimension"):  # before a chunk is asked for
        metrics.pairwise_distances_chunked(there(X), there(Y[:, :2]))


# Memory


def test_single_pairs(monkeypatch):
    monkeypatch.setattr(_pair_tiles, "DEVICE_BYTES", 1)
    assert_same(metrics.euclidean_distances(there(X)), sklearn.metrics.euclidean_distances(X))
    assert_same(pairwise.laplacian_kernel(there(X), there(Y)), theirs.laplacian_kernel(X, Y))
    places, values = metrics.pairwise_distances_argmin_min(there(X), there(Y))
    np.testing.assert_array_equal(here(places), scipy_distance.cdist(X, Y).argmin(axis=1))
    assert_same(values, scipy_distance.cdist(X, Y).min(axis=1))


def test_tiles_cover_all_pairs_and_fit():
    x = np.zeros((70, 9))
    for measure in (EUCLIDEAN, Measure(SQUARED.tile, wide=True)):
        for y in (np.zeros((1, 9)), np.zeros((33, 9)), np.zeros((500, 9))):
            for max_bytes in (1, 3000, 10**5, 10**9):
                seen = np.zeros((70, len(y)), dtype=int)
                for i, j in tile_slices(measure, x, y, max_bytes):
                    seen[i, j] += 1
                    pairs = (i.stop - i.start) * (j.stop - j.start)
                    assert pairs == 1 or 24 * pairs * (9 if measure.wide else 1) <= max_bytes
                assert (seen == 1).all()
    assert len(list(tile_slices(EUCLIDEAN, x, x, 10**9))) == 1


@pytest.mark.cases(2)
@pytest.mark.invariant("Pairwise metrics need bounded memory beside their result")
@pytest.mark.parametrize(
    "metric", ["euclidean", "manhattan", "chebyshev", "minkowski", "mahalanobis", "dice"]
)
def test_memory_beside_the_result_is_bounded(metric):
    x = rng.normal(size=(400, 50)).astype(np.float32)  # of all pairs, 64 MB in double precision
    measure = distance_measure(metric, x, same=True, options={"p": 3} if metric == "minkowski" else {})
    peaks = {}
    for max_bytes in (2**20, 2**30):
        tracemalloc.start()
        result = pair_matrix(measure, x, x, same=True, max_bytes=max_bytes)
        peaks[max_bytes] = tracemalloc.get_traced_memory()[1] - result.nbytes
        tracemalloc.stop()
    assert peaks[2**20] < 3 * 2**20, peaks
    if measure.wide:
        assert peaks[2**30] > 20 * 2**20, "what is bounded is there"
    tracemalloc.start()
    nearest_rows(measure, x, x, same=True, max_bytes=2**18)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20, peak
