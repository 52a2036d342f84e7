"""The solution of an iterating fit on one split, for all settings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyfit.families.protocol import Array
from manyfit.metrics.scoring import LinearPredictors


@dataclass(frozen=True)
class PathSolution:
    """All settings of one split."""

    linear: LinearPredictors  # on the columns of X
    error: LinearPredictors  # Newton's step for a gradient of `tol`: about the distance from the optimum
    converged: Array  # (m,), whether the gradient is as small as `tol`
    trusted: Array  # (m,), whether scikit-learn's solver is expected to be as near; others are not fitted
    rows_read: int  # rows of X, each as often as it was read; the first split counts for all
    fits_made: int = 0  # fits of scikit-learn's

    @classmethod
    def side_by_side(cls, parts: Sequence["PathSolution"]) -> "PathSolution":
        """Join solutions of the same settings with one output each."""
        return cls(
            LinearPredictors.joined([part.linear for part in parts], 1),
            LinearPredictors.joined([part.error for part in parts], 1),
            np.logical_and.reduce([part.converged for part in parts]),
            np.logical_and.reduce([part.trusted for part in parts]),
            sum(part.rows_read for part in parts),
            max(part.fits_made for part in parts),
        )

    def subset(self, settings: Sequence[int]) -> "PathSolution":
        """Some of the settings."""
        index = list(settings)
        linear, error = self.linear.subset(index), self.error.subset(index)
        return replace(
            self, linear=linear, error=error, converged=self.converged[index], trusted=self.trusted[index]
        )

    def spread(self, T: Any) -> "PathSolution":
        """Map a solution for ``X @ T`` to the features of X."""
        return replace(self, linear=_spread(self.linear, T), error=_spread(self.error, T))


def _spread(linear: LinearPredictors, T: Any) -> LinearPredictors:
    q, m, K = linear.coef.shape
    coef = (T @ linear.coef.reshape(q, m * K)).reshape(-1, m, K)
    return LinearPredictors(coef, linear.at_origin, np.zeros(len(coef)))
