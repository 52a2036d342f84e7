"""Arrays, metrics and kernels of the tests of pairwise metrics."""

from __future__ import annotations

import numpy as np

from tests.behaviour.metrics._crossings import DEVICE, here

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
