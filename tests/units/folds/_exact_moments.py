"""Moments in extended precision, and the comparison with them."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(0)


def exact(Z, weights=None):
    """Weight, mean and scatter in longdouble, from the definition."""
    Z = np.asarray(Z, dtype=np.longdouble)
    w = np.ones(len(Z), dtype=np.longdouble) if weights is None else np.asarray(weights, dtype=np.longdouble)
    mean = (w[:, None] * Z).sum(axis=0) / w.sum()
    centred = Z - mean
    return w.sum(), mean, (centred * w[:, None]).T @ centred


def assert_moments(moments, Z, weights=None, rtol=1e-13):
    weight, mean, scatter = exact(Z, weights)
    np.testing.assert_allclose(moments.weight, float(weight), rtol=1e-14)
    np.testing.assert_allclose(moments.mean, mean.astype(float), rtol=1e-13, atol=1e-15)
    scale = np.sqrt(np.outer(np.diagonal(scatter), np.diagonal(scatter)))
    assert np.all(np.abs(moments.scatter - scatter) <= rtol * scale)
