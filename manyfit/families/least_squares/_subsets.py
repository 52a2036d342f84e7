"""Least squares on many sets of columns of one fold: a batch of small systems of equations."""

import numpy as np

from manyfit.families.protocol import Array, SubsetAnswers
from manyfit.folds import TransformedMoments, Unsupported
from manyfit.metrics.scoring import LinearPredictors

SINGULAR = "the normal equations of these columns are (nearly) singular"


def solve_subsets(
    view: TransformedMoments, alpha: float, fit_intercept: bool, subsets: Array, least: tuple[float, float]
) -> SubsetAnswers:
    """Solutions of ``(S + alpha I) coef = s`` for m sets of k features, (m, k).

    Equations are scaled to a unit diagonal, which leaves the error of a solution at that of the best scaling.
    `least`: a smallest eigenvalue has to be more than so large, relative to the largest one and as it is.
    """
    moments, eps = view.weighted, np.finfo(np.float64).eps
    if moments.xx.ndim == 1 or view.columns is None:
        raise Unsupported("the features are rotated columns")
    xx, xy, offset = moments.xx, moments.xy, -moments.x_offset
    if not fit_intercept:
        xx = xx + moments.weight * np.outer(moments.x_mean, moments.x_mean)
        xy, offset = moments.raw_xy, moments.x_origin
    (m, k), (p, q) = subsets.shape, xy.shape
    A = xx[subsets[:, :, None], subsets[:, None, :]]
    A[:, np.arange(k), np.arange(k)] += alpha
    scale = np.sqrt(np.einsum("mkk->mk", A))
    if not (scale > 0).all():
        raise Unsupported("a feature has no variance")
    size = np.abs(A).sum(axis=2).max(axis=1)
    A /= scale[:, :, None] * scale[:, None, :]
    b = xy[subsets] / scale[:, :, None]
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        raise Unsupported(SINGULAR) from None
    x = inverse @ b
    x += inverse @ (b - A @ x)
    inverse_size = (np.abs(inverse) / scale[:, None, :]).sum(axis=2)
    inverse_size = (inverse_size / scale).max(axis=1)  # the norm of the inverse of the unscaled matrix
    poor = ~(inverse_size * np.maximum(least[0] * size, least[1]) < 1.0)
    # The largest eigenvalue of a scaled matrix is k at most, the smallest at least that of the inverse.
    condition = k * np.sqrt((inverse**2).sum(axis=(1, 2)))
    where = subsets.ravel(), np.repeat(np.arange(m), k)
    coef, unit = np.zeros((p, m, q)), np.zeros((p, m))
    coef[where] = (x / scale[:, :, None]).reshape(m * k, q)
    unit[where] = (1.0 / scale).ravel()
    at_origin = np.tensordot(offset, coef, axes=1)
    if fit_intercept:
        at_origin += moments.y_mean
    factor = np.ones(p) if view.linear is None else view.linear
    return SubsetAnswers(
        LinearPredictors(view.to_X(coef.reshape(p, m * q)).reshape(-1, m, q), at_origin, view.origin),
        dict.fromkeys(map(int, np.flatnonzero(poor)), SINGULAR),
        flat=True,
        noise=eps * condition[:, None] * np.sqrt((x**2).sum(axis=1)),
        unit=view.to_X(unit),
        centre=view.origin - view.to_X((offset / factor**2)[:, None])[:, 0],
    )
