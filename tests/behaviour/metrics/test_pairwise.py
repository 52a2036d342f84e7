"""Functions of pairs of rows on a device: scikit-learn's numbers and errors, in bounded memory."""

from __future__ import annotations

import inspect
import pickle
import tracemalloc
import warnings
from contextlib import nullcontext

import array_api_strict
import numpy as np
import pytest
import sklearn
import sklearn.metrics
import sklearn.metrics.pairwise as theirs
from scipy.sparse import csr_array
from scipy.spatial import distance as scipy_distance
from sklearn.exceptions import DataConversionWarning

from manyfit import metrics
from manyfit.metrics import pairwise
from manyfit.metrics.distances import _tiles as _pair_tiles
from manyfit.metrics.distances._functions import distance_measure
from manyfit.metrics.distances._sklearn_measures import EUCLIDEAN, SQUARED
from manyfit.metrics.distances._tiles import Measure, nearest_rows, pair_matrix, tile_slices
from tests.behaviour.metrics._crossings import DEVICE, crossings, here, refusal, there

rng = np.random.default_rng(0)
X = rng.normal(size=(13, 5))
Y = rng.normal(size=(7, 5))
HISTOGRAM_X, HISTOGRAM_Y = np.abs(X) * (rng.random(X.shape) < 0.7), np.abs(Y) * (rng.random(Y.shape) < 0.7)
GAPS_X, GAPS_Y = X.copy(), Y.copy()
GAPS_X[rng.random(X.shape) < 0.3] = np.nan
GAPS_X[3], GAPS_X[4, 1:], GAPS_X[5, 0] = np.nan, np.nan, np.nan
GAPS_Y[rng.random(Y.shape) < 0.3] = np.nan
V, W = rng.random(5) + 0.5, rng.integers(0, 3, 5) * 1.0
VI = np.eye(5) + 0.1

METRICS = [
    ("euclidean", {}),
    ("l2", {}),
    ("euclidean", {"squared": True}),
    ("manhattan", {}),
    ("l1", {}),
    ("cityblock", {}),
    ("cosine", {}),
    ("braycurtis", {}),
    ("canberra", {}),
    ("chebyshev", {}),
    ("correlation", {}),
    ("hamming", {}),
    ("minkowski", {}),
    ("minkowski", {"p": 1}),
    ("minkowski", {"p": 3}),
    ("minkowski", {"p": 0.5}),
    ("minkowski", {"p": np.inf}),
    ("minkowski", {"p": 2, "w": W}),
    ("minkowski", {"p": 1.5, "w": W}),
    ("sqeuclidean", {}),
    ("seuclidean", {"V": V}),
    ("mahalanobis", {"VI": VI}),
]
OF_SETS = ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"]
KERNELS = [
    ("linear", {}),
    ("linear", {"dense_output": False}),
    ("polynomial", {}),
    ("polynomial", {"degree": 2.5, "gamma": 0.1, "coef0": 9}),
    ("sigmoid", {}),
    ("sigmoid", {"gamma": 0.3, "coef0": -0.5}),
    ("rbf", {}),
    ("rbf", {"gamma": 2}),
    ("laplacian", {}),
    ("laplacian", {"gamma": np.float64(0.7)}),
    ("cosine", {}),
    ("chi2", {}),
    ("chi2", {"gamma": 0.2}),
    ("additive_chi2", {}),
]
FUNCTION = {"cosine": "cosine_similarity"}
EXACT, FLOAT32 = 1e-12, 1e-5


def named(case):
    return "-".join([case[0], *(f"{key}={value}" for key, value in case[1].items())]) if case else ""


def assert_same(ours, wanted, rel=EXACT):
    assert ours.device == DEVICE
    assert ours.shape == wanted.shape
    np.testing.assert_allclose(here(ours), wanted, rtol=rel, atol=rel)


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


def test_only_one_side_on_the_device():
    wanted = sklearn.metrics.euclidean_distances(X, Y)
    assert_same(metrics.euclidean_distances(there(X), Y.tolist()), wanted)
    assert_same(metrics.euclidean_distances(X, there(Y)), wanted)
    with pytest.raises(ValueError, match="could not convert string to float"):
        metrics.euclidean_distances(there(X), [["a"]])


def test_norms_that_were_computed_before():
    norms = {"X_norm_squared": (X**2).sum(axis=1), "Y_norm_squared": (Y**2).sum(axis=1)[None, :]}
    ours = metrics.euclidean_distances(there(X), there(Y), **{k: there(v) for k, v in norms.items()})
    assert_same(ours, sklearn.metrics.euclidean_distances(X, Y, **norms))
    for name in norms:
        for bad in (np.ones(3), np.ones((2, 2))):
            said = refusal(sklearn.metrics.euclidean_distances, X, Y, **{name: bad})
            found = refusal(metrics.euclidean_distances, there(X), there(Y), **{name: bad})
            assert said.partition(" of shape")[0] in found
            assert str(bad.shape) in found


BAD = [
    ("euclidean_distances", (X, Y[:, :3]), {}),
    ("cosine_similarity", (np.where(X > 1, np.nan, X), Y), {}),
    ("manhattan_distances", (X, np.where(Y > 1, np.inf, Y)), {}),
    ("euclidean_distances", (np.where(X > 1, -np.inf, X).astype(np.float32),), {}),
    ("pairwise_distances", (X, np.where(Y > 1, np.nan, Y)), {"metric": "canberra"}),
    ("pairwise_distances_argmin", (X, np.where(Y > 1, np.nan, Y)), {}),
    ("paired_distances", (X, np.where(X > 1, np.nan, X)), {}),
    ("pairwise_distances", (X, Y), {"metric": "nonsense"}),
    ("pairwise_distances", (X, Y), {"metric": "seuclidean"}),
    ("pairwise_distances", (X, Y), {"metric": "mahalanobis"}),
    ("pairwise_distances", (X, Y), {"metric": "haversine"}),
    ("pairwise_distances", (-np.abs(X[:5]),), {"metric": "precomputed"}),
    ("pairwise_distances", (np.abs(X),), {"metric": "precomputed"}),
    ("pairwise_kernels", (X,), {"metric": "precomputed"}),
    ("pairwise_kernels", (X, Y), {"metric": "nonsense"}),
    ("chi2_kernel", (X, np.abs(Y)), {}),
    ("additive_chi2_kernel", (np.abs(X), Y), {}),
    ("chi2_kernel", (np.where(X > 1, np.nan, np.abs(X)),), {}),
    ("rbf_kernel", (X,), {"gamma": -1.0}),
    ("polynomial_kernel", (X,), {"degree": 0.5}),
    ("euclidean_distances", (X[:0],), {}),
    ("euclidean_distances", (X[:, :0],), {}),
    ("haversine_distances", (X,), {}),
    ("pairwise_distances_argmin", (X, Y), {"axis": 2}),
]


@pytest.mark.invariant("Distances, kernels and clustering scores on a device are scikit-learn's")
@pytest.mark.parametrize("case", BAD, ids=lambda case: case[0])
def test_what_scikit_learn_refuses(case):
    name, arrays, options = case
    with pytest.raises(ValueError) as expected:
        getattr(theirs, name)(*arrays, **options)
    with pytest.raises(ValueError) as found:
        getattr(pairwise, name)(*(there(a) for a in arrays), **options)
    assert str(found.value) == str(expected.value)
    assert type(found.value) is type(expected.value)


def test_refusals_do_not_show_values_that_were_not_seen():
    with pytest.raises(ValueError, match="^Expected 2D array, got 1D array instead. Reshape your data"):
        metrics.euclidean_distances(there(X[0]))
    with pytest.raises(ValueError, match="^Complex data not supported. $"):
        metrics.euclidean_distances(there(X * 1j))


def test_a_sum_that_overflows_is_no_infinite_value():
    large = np.full((4, 2), 1e308)
    large[::2] *= -1
    large[0] = 0
    x = there(np.concat([large, large[1::2]]))
    with crossings() as crossed:
        ours = pairwise.manhattan_distances(x)
    assert np.isinf(here(ours)).any()
    assert crossed["to_device"] == 1 or crossed["bytes"] <= 4
    same_sign = there(np.abs(large))
    with crossings() as crossed:
        ours = pairwise.manhattan_distances(same_sign)
    np.testing.assert_allclose(here(ours), theirs.manhattan_distances(np.abs(large)), rtol=EXACT)
    assert crossed["to_device"] == 2, "the host looked closer"


def test_nothing_waits_where_values_are_assumed_to_be_finite():
    x, y = there(X), there(Y)
    with sklearn.config_context(assume_finite=True), crossings() as crossed:
        metrics.pairwise_distances(x, y)
        metrics.pairwise_distances_argmin_min(x, y)
        pairwise.rbf_kernel(x)
        pairwise.paired_distances(x, x)
    assert not crossed


def test_distances_that_were_computed_before():
    given = sklearn.metrics.pairwise_distances(X)
    assert_same(metrics.pairwise_distances(there(given), metric="precomputed"), given)
    assert_same(metrics.pairwise_kernels(there(-given), metric="precomputed"), -given)
    given[0, 1] = np.nan
    ours = metrics.pairwise_distances(there(given), metric="precomputed", ensure_all_finite=False)
    assert_same(ours, given)


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


@pytest.mark.parametrize("call", [
    lambda: metrics.pairwise_distances(there(X), metric=lambda a, b: 1.0),
    lambda: metrics.pairwise_distances(there(X), metric="minkowski", p=-1),
    lambda: metrics.pairwise_distances(there(X), metric="hamming", w=W),
    lambda: metrics.pairwise_distances(there(X), csr_array(Y)),
    lambda: metrics.pairwise_distances(there(X), metric="euclidean", foo=1),
    lambda: metrics.pairwise_distances(there(X), metric="canberra", ensure_all_finite=False),
    lambda: metrics.pairwise_kernels(there(X), metric="rbf", foo=1),
    lambda: metrics.pairwise_kernels(there(X), metric=lambda a, b: 1.0),
])  # fmt: skip
def test_what_is_left_to_scikit_learn_says_so(call):
    with pytest.raises(Exception) as caught:  # whatever it does not do there
        call()
    assert " to scikit-learn: " in caught.value.__notes__[-1]
    assert "does not implement" not in caught.value.__notes__[-1]


def test_the_host_has_scikit_learns_functions():
    np.testing.assert_array_equal(
        metrics.euclidean_distances(X, Y), sklearn.metrics.euclidean_distances(X, Y)
    )
    assert isinstance(pairwise.rbf_kernel(X.tolist()), np.ndarray)
    functions = [name for name in pairwise.__all__ if callable(getattr(pairwise, name))]
    for name in functions:
        ours, own = getattr(pairwise, name), getattr(theirs, name)
        assert str(inspect.signature(ours)) == str(inspect.signature(own))  # NaN equals nothing
        assert pickle.loads(pickle.dumps(ours)) is ours
        assert getattr(metrics, name, ours) is ours
    documented = {*theirs.distance_metrics().values(), *theirs.kernel_metrics().values()} - {None}
    assert {f.__name__ for f in documented} | {"pairwise_kernels", "paired_distances"} < set(pairwise.__all__)


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


def test_a_singular_covariance_is_an_error_also_where_the_library_gives_numbers(monkeypatch):
    """As CuPy does, which does not look at what its solver says."""
    monkeypatch.setattr(array_api_strict.linalg, "inv", lambda matrix: matrix)
    singular = np.column_stack([X[:, 0], np.ones(len(X))])
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        sklearn.metrics.pairwise_distances(singular, metric="mahalanobis")
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        metrics.pairwise_distances(there(singular), metric="mahalanobis")
