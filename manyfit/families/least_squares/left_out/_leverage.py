"""How much of what is known of a direction some of the rows hold, at most."""

from collections.abc import Sequence

import numpy as np

from manyfit.families.protocol import Array
from manyfit.folds import Moments

# What is tried: half of everything, which a quarter of the rows seldom holds.
HALF = 0.5


def bound_leverage(A: Array, offset: Array, weight: float, parts: Sequence[Moments]) -> float:
    """A bound on the eigenvalues of ``X_b A^-1 X_b'`` for all rows of any of some parts, and so for a few.

    A, (p, p), is the matrix of the normal equations about a centre, which is the origin of `parts` less
    `offset`. `weight`: that of all rows, if there is an intercept, else 0; X and A then have a column for it.
    The bound is `HALF` where ``A / 2 - X_b'X_b`` is positive definite for each part, else 1.
    """
    p = len(A)
    d = p + (weight > 0.0)
    half = np.zeros((d, d))
    half[:p, :p], half[p:, p:] = HALF * A, HALF * weight
    for part in parts:
        mean = np.ones(d)
        mean[:p] = part.offset[:p] + offset
        left = half - np.outer(part.weight * mean, mean)
        left[:p, :p] -= part.scatter[:p, :p]
        try:
            np.linalg.cholesky(left)
        except np.linalg.LinAlgError:
            return 1.0
    return HALF
