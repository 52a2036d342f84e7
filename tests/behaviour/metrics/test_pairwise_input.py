"""What pairwise metrics refuse, leave to scikit-learn, and need not compute again."""

from __future__ import annotations

import inspect
import pickle

import array_api_strict
import numpy as np
import pytest
import sklearn
import sklearn.metrics
import sklearn.metrics.pairwise as theirs
from scipy.sparse import csr_array

from manyfit import metrics
from manyfit.metrics import pairwise
from tests.behaviour.metrics._crossings import crossings, here, refusal, there
from tests.behaviour.metrics._pairwise import EXACT, W, X, Y, assert_same


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


def test_a_singular_covariance_is_an_error_also_where_the_library_gives_numbers(monkeypatch):
    """As CuPy does, which does not look at what its solver says."""
    monkeypatch.setattr(array_api_strict.linalg, "inv", lambda matrix: matrix)
    singular = np.column_stack([X[:, 0], np.ones(len(X))])
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        sklearn.metrics.pairwise_distances(singular, metric="mahalanobis")
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        metrics.pairwise_distances(there(singular), metric="mahalanobis")
