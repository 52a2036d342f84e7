"""The path of a recursive elimination, from the moments of a fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from manyfit.folds import Array, Unsupported

# Coefficients whose distance is less than so many times the bound of their error may come in another order
# in scikit-learn, whose own errors have about the same bound.
SAFE = 16.0
NEAR = 1e-9

Importances = Callable[[Array], tuple[Array, Array]]
"""The norms of the coefficients of some features, and bounds of their errors."""


@dataclass
class Path:
    """What an elimination of scikit-learn's RFE notes before each step, and at its end."""

    n_features: list[int] = field(default_factory=list)
    supports: list[Array] = field(default_factory=list)
    rankings: list[Array] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)


def eliminate(n: int, n_left: int, step: float, fit: Importances) -> Path:
    """Eliminate features as ``RFE._fit`` does (scikit-learn 1.9); Unsupported where rounding decides."""
    size = int(max(1, step * n)) if 0.0 < step < 1.0 else int(step)
    support, ranking, path = np.ones(n, dtype=bool), np.ones(n, dtype=int), Path()
    while True:
        features = np.flatnonzero(support)
        path.n_features.append(len(features))
        path.supports.append(support.copy())
        path.rankings.append(ranking.copy())
        norms, errors = fit(features)
        if len(features) <= n_left:
            return path
        order, cut = np.argsort(norms, kind="stable"), min(size, len(features) - n_left)
        out, kept = order[:cut], order[cut:]
        if not (norms[out] + errors[out]).max() < (norms[kept] - errors[kept]).min() * (1.0 - NEAR):
            raise Unsupported("rounding decides which feature is eliminated")
        support[features[out]] = False
        ranking[~support] += 1
