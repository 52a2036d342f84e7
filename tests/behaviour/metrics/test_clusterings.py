"""Scores of clusterings without known labels: scikit-learn's, on a device and of many settings of one X."""

from __future__ import annotations

import tracemalloc
import warnings
from fractions import Fraction

import array_api_strict
import numpy as np
import pytest
import sklearn
import sklearn.metrics
from sklearn.datasets import make_blobs

from manyfit import metrics
from manyfit.metrics.distances import _tiles as _pair_tiles
from manyfit.metrics.distances._tiles import Measure
from tests._covering import covering, spread
from tests.behaviour.metrics._crossings import crossings, here, refusal, there
from tests.behaviour.metrics._pairwise import EXACT, FLOAT32, assert_same

rng = np.random.default_rng(0)
N = 40
X, TRUE = make_blobs(N, 3, centers=4, random_state=0)
LABELS = np.stack([
    TRUE,
    rng.integers(0, 2, N),
    np.where(np.arange(N) < 3, -np.arange(N) - 1, TRUE),  # three clusters of one row
    rng.integers(0, 30, N) * 7,
    np.arange(N) // 2 * 2,  # pairs
    np.minimum(np.arange(N), N - 2),  # as many labels as are allowed
])  # fmt: skip
NAMES = ["silhouette_samples", "silhouette_score", "calinski_harabasz_score", "davies_bouldin_score"]
SILHOUETTES = NAMES[:2]
# scikit-learn has the distance of a row to the mean of its cluster from a product. Where they are the same,
# it is about the root of the rounding, and another one with another library of products.
ALONE = 1e-7
HAS_ALONE = [2, 3, 5]
# The host is told whether X is finite and how many labels there are, as one array of int64.
WAITS = 1


def theirs(name, data, labels, **options):
    return np.array([getattr(sklearn.metrics, name)(data, of_one, **options) for of_one in labels])


def exact_davies_bouldin(data, labels):
    """By the definition, in extended precision."""
    rows = np.asarray(data, dtype=np.longdouble)
    clusters = [rows[labels == label] for label in np.unique(labels)]
    means = np.stack([cluster.mean(axis=0) for cluster in clusters])
    spread = np.array(
        [np.sqrt(((c - m) ** 2).sum(axis=1)).mean() for c, m in zip(clusters, means, strict=True)]
    )
    apart = np.sqrt(((means[:, None] - means) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    return float(((spread[:, None] + spread) / apart).max(axis=1).mean())


def expected(name, data, labels):
    """Scores of settings: scikit-learn's, or where these are not exact, the exact ones."""
    wanted = theirs(name, data, labels)
    if name == "davies_bouldin_score":
        exact = [exact_davies_bouldin(data, of_one) for of_one in labels]
        np.testing.assert_allclose(wanted, exact, rtol=ALONE)
        return np.array(exact)
    return wanted


@pytest.fixture(params=[None, 60_000, 10_000])
def max_bytes(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(_pair_tiles, "DEVICE_BYTES", request.param)
    return request.param


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("setting", range(len(LABELS)))
def test_one_setting(name, setting):
    x, labels = there(X), there(LABELS[setting])
    with crossings() as crossed:
        ours = getattr(metrics, name)(x, labels)
    assert crossed["to_device"] == WAITS and crossed["bytes"] == 16, crossed
    assert_same(ours, expected(name, X, LABELS[[setting]])[0])
    if setting not in HAS_ALONE:
        assert_same(ours, theirs(name, X, LABELS[[setting]])[0])


@pytest.mark.cases(3)
@pytest.mark.invariant("Distances, kernels and clustering scores on a device are scikit-learn's")
@pytest.mark.parametrize("name", spread(NAMES, 4))
def test_many_settings(name, max_bytes):
    x, labels = there(X), there(LABELS)
    with crossings() as crossed:
        ours = getattr(metrics, name).many(x, labels, max_bytes=max_bytes)
    assert crossed["to_device"] == WAITS and crossed["bytes"] == 8 * (1 + len(LABELS)), crossed
    wanted = expected(name, X, LABELS)
    assert_same(ours, wanted)
    assert_same(getattr(metrics, name).many(there(X), LABELS, max_bytes=max_bytes), wanted)
    on_host = getattr(metrics, name).many(X, LABELS, max_bytes=max_bytes)
    assert isinstance(on_host, np.ndarray)
    np.testing.assert_allclose(on_host, wanted, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("name", NAMES)
def test_settings_without_a_score(name):
    labels = np.stack([TRUE, np.zeros(N, dtype=int), np.arange(N), LABELS[1]])
    wanted = theirs(name, X, labels[[0, 3]])
    for ours in (
        metrics_many(name, X, labels),
        here(metrics_many(name, there(X), there(labels))),
    ):
        np.testing.assert_allclose(ours[[0, 3]], wanted, rtol=EXACT, atol=EXACT)
        assert np.isnan(ours[[1, 2]]).all()
    assert np.isnan(metrics_many(name, X, labels[1:3])).all()
    for of_one in labels[1:3]:
        said = refusal(getattr(sklearn.metrics, name), X, of_one)
        assert "Valid values are 2 to n_samples - 1" in said
        for given in (of_one, there(of_one)):
            assert refusal(getattr(metrics, name), there(X), given) == said


def metrics_many(name, x, labels, **options):
    return getattr(metrics, name).many(x, labels, **options)


@pytest.mark.parametrize(("name", "far"), covering(NAMES, {"near": False, "far": True}.items(), strength=1))
def test_float32(name, far):
    data = (X + 100 * far).astype(np.float32)
    ours = metrics_many(name, there(data), there(LABELS))
    dtype = array_api_strict.float32 if name in SILHOUETTES else array_api_strict.float64
    assert ours.dtype == dtype
    wanted = theirs(name, data, LABELS)
    assert_same(ours, wanted, FLOAT32 * (10 if far else 1))  # scikit-learn's distances are in float32
    assert_same(ours, theirs(name, data.astype(np.float64), LABELS), FLOAT32)


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("name", "metric"),
    covering(
        SILHOUETTES, ["manhattan", "cosine", "chebyshev", "sqeuclidean", "seuclidean", "canberra"], strength=1
    ),
)
def test_metrics_of_silhouettes(name, metric):
    ours = metrics_many(name, there(X), there(LABELS), metric=metric, max_bytes=20_000)
    assert_same(ours, theirs(name, X, LABELS, metric=metric))
    alone = getattr(metrics, name)(there(X), there(TRUE), metric=metric)
    assert_same(alone, theirs(name, X, [TRUE], metric=metric)[0])


@pytest.mark.parametrize("name", SILHOUETTES)
def test_distances_that_were_computed_before(name):
    for given in (
        sklearn.metrics.pairwise_distances(X),
        np.abs(np.arange(N)[:, None] - np.arange(N)[None, :]),
    ):
        ours = metrics_many(name, there(given), there(LABELS), metric="precomputed")
        assert_same(ours, theirs(name, given, LABELS, metric="precomputed"))
        for bad in (given + np.eye(N, dtype=given.dtype), -given, given[:, :-1], given[:-1, :-1]):
            said = refusal(getattr(sklearn.metrics, name), bad, TRUE, metric="precomputed")
            assert refusal(getattr(metrics, name), there(bad), there(TRUE), metric="precomputed") == said


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_samples(metric):
    data = X if metric == "euclidean" else sklearn.metrics.pairwise_distances(X)
    labels = LABELS[:4]
    for size in (20, 10**6):
        options = {"metric": metric, "sample_size": size, "random_state": 3}
        wanted = theirs("silhouette_score", data, labels, **options)
        x, y = there(data), there(labels)
        with crossings() as crossed:
            ours = metrics.silhouette_score.many(x, y, **options)
        assert crossed["to_device"] == WAITS, crossed
        assert_same(ours, wanted)
        assert_same(metrics.silhouette_score(there(data), there(TRUE), **options), wanted[0])
        np.testing.assert_allclose(metrics.silhouette_score.many(data, labels, **options), wanted, rtol=EXACT)
    drawn = metrics.silhouette_score(
        there(data), there(TRUE), metric=metric, sample_size=20, random_state=np.random.RandomState(3)
    )
    expected = sklearn.metrics.silhouette_score(
        data, TRUE, metric=metric, sample_size=20, random_state=np.random.RandomState(3)
    )
    assert_same(drawn, np.asarray(expected))


@pytest.mark.cases(11)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "kind", [np.int8, np.uint64, np.float32, str, object, "bool", "list", "column"], ids=str
)
def test_labels_of_any_kind(name, kind):
    labels = TRUE % 2 > 0 if kind == "bool" else TRUE if isinstance(kind, str) else TRUE.astype(kind)
    if kind is object:
        labels = np.where(TRUE == 0, "none", np.where(TRUE == 1, "one", "several")).astype(object)
    wanted = theirs(name, X, [labels])[0]
    given = labels.tolist() if kind == "list" else labels[:, None] if kind == "column" else labels
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A column-vector y was passed")
        assert_same(getattr(metrics, name)(there(X), given), wanted)
        if kind not in (str, object, "list"):
            assert_same(getattr(metrics, name)(there(X), there(given)), wanted)
    if kind != "column":
        assert_same(metrics_many(name, there(X), [labels, labels]), np.stack([wanted, wanted]))
    if kind not in (str, object, "list"):
        assert_same(getattr(metrics, name)(X.tolist(), there(labels)), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_whole_numbers_and_rows_that_are_alike(name):
    data = np.repeat(np.round(X), 2, axis=0).astype(np.int64)
    labels = np.repeat(LABELS[:3], 2, axis=1)
    assert_same(metrics_many(name, there(data), there(labels)), theirs(name, data, labels))
    # Whole clusters of one place each.
    labels = np.stack([np.unique(data, axis=0, return_inverse=True)[1].reshape(-1)])
    for given in (data, data / 8):  # of eighths nothing is rounded either
        ours = metrics_many(name, there(given), there(labels))
        assert_same(ours, theirs(name, given, labels))
    if name in SILHOUETTES:
        return
    # Nor of the means of tenths, though of their sums.
    ours = metrics_many(name, there(data / 10), there(labels))
    assert_same(ours, theirs(name, data, labels))


def test_all_rows_alike():
    data, labels = np.ones((6, 2)), np.array([0, 0, 1, 1, 2, 2])
    for name, wanted in zip(NAMES, (np.zeros(6), 0.0, 1.0, 0.0), strict=True):
        np.testing.assert_array_equal(getattr(sklearn.metrics, name)(data, labels), wanted)
        np.testing.assert_array_equal(here(getattr(metrics, name)(there(data), there(labels))), wanted)


def test_spread_that_is_nothing():
    """scikit-learn's Davies-Bouldin score is 0 where all spreads, or all means, are within 1e-8."""
    small = 1e-9 * X
    around = np.array([[-1.0], [1.0], [-2.0], [2.0 + 1e-9]])
    for data, labels in ((small, TRUE), (around, np.array([0, 0, 1, 1]))):
        assert sklearn.metrics.davies_bouldin_score(data, labels) == 0
        assert here(metrics.davies_bouldin_score(there(data), there(labels))) == 0
    larger = 1e-6 * X  # of which there is a score
    wanted = expected("davies_bouldin_score", larger, [TRUE])[0]
    assert_same(metrics.davies_bouldin_score(there(larger), there(TRUE)), wanted)


def exact_calinski_harabasz(data, labels):
    """By the formula, in fractions."""
    rows = [[Fraction(float(value)) for value in row] for row in data]

    def mean(some):
        return [sum(column) / len(some) for column in zip(*some, strict=True)]

    def apart(a, b):
        return sum((u - v) ** 2 for u, v in zip(a, b, strict=True))

    clusters = [[row for row, of in zip(rows, labels, strict=True) if of == label] for label in set(labels)]
    middle, means = mean(rows), [mean(cluster) for cluster in clusters]
    between = sum(len(c) * apart(m, middle) for c, m in zip(clusters, means, strict=True))
    within = sum(apart(row, m) for c, m in zip(clusters, means, strict=True) for row in c)
    n, k = len(rows), len(clusters)
    return float(between * (n - k) / (within * (k - 1)))


@pytest.mark.invariant("Distances far from the origin are as precise as scikit-learn's")
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_far_from_the_origin(offset):
    data = X + offset
    wanted = exact_calinski_harabasz(data, TRUE.tolist())
    ours = float(here(metrics.calinski_harabasz_score(there(data), there(TRUE))))
    assert abs(ours / wanted - 1) < EXACT
    if offset < 1e9:
        assert abs(sklearn.metrics.calinski_harabasz_score(data, TRUE) / wanted - 1) < 1e-8
    # The numbers are those of the data moved back, of which nothing is rounded.
    moved = exact_davies_bouldin(data - offset, TRUE)
    assert abs(float(here(metrics.davies_bouldin_score(there(data), there(TRUE)))) / moved - 1) < EXACT


@pytest.mark.parametrize("name", NAMES)
def test_what_scikit_learn_refuses(name):
    gaps, infinite = X.copy(), X.copy()
    gaps[3, 1], infinite[3, 1] = np.nan, -np.inf
    with_gap = np.where(TRUE == 0, np.nan, TRUE)
    for data, labels in (
        (gaps, TRUE),
        (infinite, TRUE),
        (X, with_gap),
        (X[:-1], TRUE),
        (X[0], TRUE),
        (X[:0], []),
    ):
        labels = np.asarray(labels)
        said = refusal(getattr(sklearn.metrics, name), data, labels).partition(" array instead")[0]
        for given in (there(labels), labels):
            found = refusal(getattr(metrics, name), there(data), given)
            assert found.partition(" array instead")[0] == said
        if data.ndim == 2:
            with pytest.raises(ValueError, match=said[:12]):
                metrics_many(name, data, labels[None])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_x_is_waited_for_where_it_is_assumed_to_be_finite(name):
    x, labels = there(X), there(LABELS)
    with sklearn.config_context(assume_finite=True), crossings() as crossed:
        metrics_many(name, x, labels)
    assert crossed["to_device"] == 1 and crossed["bytes"] == 8 * len(LABELS), crossed
    with sklearn.config_context(assume_finite=True), crossings() as crossed:
        metrics_many(name, x, LABELS)
    assert not crossed


@pytest.mark.parametrize("name", NAMES)
def test_arguments_of_many(name):
    with pytest.raises(ValueError, match=rf"{name}.many needs labels of shape .* got \({N},\)"):
        metrics_many(name, X, TRUE)
    with pytest.raises(ValueError, match="max_bytes above 0, got 0"):
        metrics_many(name, X, LABELS, max_bytes=0)
    for bad in ({"sample_weight": np.ones(N)}, {"nonsense": 1}):
        with pytest.raises((TypeError, NotImplementedError), match=next(iter(bad))):
            metrics_many(name, X, LABELS, **bad)
        with pytest.raises((TypeError, RuntimeError)):  # options of silhouettes are left to scikit-learn
            getattr(metrics, name)(there(X), there(TRUE), **bad)
    if name in SILHOUETTES:
        with pytest.raises(
            NotImplementedError, match=f"{name}.many does not support this: a metric that is called"
        ):
            metrics_many(name, X, LABELS, metric=lambda a, b: 1.0)
        with pytest.raises(ValueError, match="The 'metric' parameter of"):
            metrics_many(name, X, LABELS, metric="nonsense")


@pytest.mark.invariant("Each distance is computed once for all clusterings")
def test_one_distance_of_each_pair_serves_all_settings(monkeypatch):
    pairs = []
    call = Measure.__call__

    def counted(self, X, Y, rows, columns, **how):
        pairs.append((rows.stop - rows.start) * (columns.stop - columns.start))
        return call(self, X, Y, rows, columns, **how)

    monkeypatch.setattr(Measure, "__call__", counted)
    for max_bytes in (None, 20_000):
        pairs.clear()
        metrics.silhouette_score.many(X, LABELS, max_bytes=max_bytes)
        assert sum(pairs) == N * N
        assert (len(pairs) == 1) == (max_bytes is None)


@pytest.mark.cases(2)
@pytest.mark.invariant("Pairwise metrics need bounded memory beside their result")
@pytest.mark.parametrize("name", NAMES)
def test_memory_is_bounded(name):
    n, m = 700, 12
    data, labels = rng.normal(size=(n, 6)), rng.integers(0, 40, (m, n))
    peaks = {}
    for max_bytes in (2**19, 2**28):
        tracemalloc.start()
        metrics_many(name, data, labels, max_bytes=max_bytes)
        peaks[max_bytes] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # Labels as codes, and the silhouettes of rows, are as many as the labels.
    assert peaks[2**19] < 2 * 2**19 + 6 * 8 * m * n, peaks
    assert peaks[2**28] > 3 * peaks[2**19], "what is bounded is there"


def test_labels_that_the_array_api_does_not_know():
    """Texts without a fixed width, where NumPy has them; complex labels are refused as by scikit-learn."""
    texts = np.array(list("abcdefghij"))[LABELS[:2] % 10]
    kinds = [object, getattr(getattr(np, "dtypes", None), "StringDType", object)]
    for name in NAMES:
        for kind in kinds:
            found = getattr(metrics, name).many(X, texts.astype(kind() if kind is not object else kind))
            np.testing.assert_allclose(found, theirs(name, X, texts), rtol=EXACT, atol=EXACT)
        with pytest.raises(ValueError, match="Complex data not supported"):
            getattr(metrics, name).many(X, LABELS + 0j)


@pytest.mark.parametrize("place", [np.asarray, lambda A: array_api_strict.asarray(np.asarray(A))])
def test_a_single_row_has_no_score(place):
    for name in NAMES[1:]:
        found = getattr(metrics, name).many(place(X[:1]), place(LABELS[:2, :1]))
        assert np.isnan(np.asarray(found)).all()
