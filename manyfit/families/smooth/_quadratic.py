"""The minimum of a quadratic function with an l1 penalty: signs are searched, then solved for."""

import numpy as np

from manyfit.families.protocol import Array

# Rounding of the slopes, relative to the penalty; a ridge relative to the mean curvature; and searches.
SLACK, RIDGE, MOST = 1e-10, 1e-13, 20


def minimise_with_l1(H: Array, q: Array, start: Array) -> Array:
    """The minimum of ``u' H u / 2 - q' u + ||u||_1``, from a start near it.

    It may stop early after many changes of signs, where the function is lower than at the start.

    Reference: Lee, Battle, Raina and Ng, Efficient sparse coding algorithms (2006): feature-sign search.
    """
    d, u = len(q), start.copy()
    H = H + RIDGE * (np.trace(H) / d) * np.eye(d)
    signs = np.sign(u)
    for _ in range(MOST * d):
        free = np.flatnonzero(signs)
        if free.size:
            u[free] = _nearest_on_the_way(H[np.ix_(free, free)], q[free], u[free], signs[free])
            signs = np.sign(u)
        slopes = H @ u - q
        size = SLACK * (1.0 + np.abs(q))
        off = np.where(u == 0.0, 0.0, np.abs(slopes + signs) - size)
        if (off > 0.0).any():
            continue
        outside = np.where(u == 0.0, np.abs(slopes) - 1.0 - size, 0.0)
        j = int(outside.argmax())
        if not outside[j] > 0.0:
            break
        signs[j] = -np.sign(slopes[j])
    return u


def _nearest_on_the_way(H: Array, q: Array, u: Array, signs: Array) -> Array:
    """The lowest of the points on the way to the minimum for given signs where one of these changes."""
    step = np.linalg.solve(H, q - signs) - u
    with np.errstate(divide="ignore", invalid="ignore"):
        crossed = -u / step
    lengths = np.append(np.unique(crossed[(crossed > 0.0) & (crossed < 1.0)]), 1.0)
    points = u + lengths[:, None] * step
    # A coefficient that crosses zero there is zero.
    points[(crossed[None, :] == lengths[:, None]) & (lengths[:, None] < 1.0)] = 0.0
    values = 0.5 * np.einsum("ij,ij->i", points @ H, points) - points @ q + np.abs(points).sum(axis=1)
    return np.asarray(points[values.argmin()])
