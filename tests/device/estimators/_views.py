"""A view of some training rows, for tests of steps and families."""

from __future__ import annotations

import numpy as np

from manyfit.folds import FoldArrays, SingleFold
from manyfit.folds._single_fold import moments_of_rows
from manyfit.folds.moments._transformed import FeatureMoments


def folded(X, y, weights=None):
    """Folded data of one split that trains on, and tests, all given rows."""
    return SingleFold(FoldArrays(X, y, X, y, weights, X, y, y))


def view_of(X, y=None, weights=None):
    """The view of the given rows."""
    y = np.arange(float(len(X))) if y is None else y
    return folded(X, y, weights).view(0)


def real_moments(Z, y=None, weights=None):
    """Moments of data that were really transformed."""
    y = np.arange(float(len(Z))) if y is None else y
    moments = moments_of_rows(Z, y.reshape(len(y), -1), slice(0, len(Z)), weights)
    return FeatureMoments.split(moments, Z.shape[1])


def assert_same_moments(got, expected, rtol=1e-9):
    """Up to the signs of the features, which components are free to choose."""
    xx = np.diag(got.xx) if got.xx.ndim == 1 else got.xx
    signs = np.where(np.sum(got.xy * expected.xy, axis=1) < 0, -1.0, 1.0)
    size = np.sqrt(np.diagonal(expected.xx))
    # A constant feature has no size of its own: its moments are rounding, next to those of the others.
    size = np.maximum(size, 1e-6 * size.max())
    outer = np.outer(size, size)
    np.testing.assert_allclose(signs[:, None] * xx * signs / outer, expected.xx / outer, rtol=rtol, atol=rtol)
    scale = np.maximum(size, np.abs(expected.x_mean)).max()
    np.testing.assert_allclose(signs * got.x_mean, expected.x_mean, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(
        signs[:, None] * got.xy, expected.xy, rtol=rtol, atol=rtol * np.abs(expected.xy).max()
    )
