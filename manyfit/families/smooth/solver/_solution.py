"""What an iterating fit came to on one split, for all settings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.metrics import LinearPredictors

Array = NDArray[Any]


@dataclass(frozen=True)
class PathSolution:
    """All settings of one split.

    Attributes
    ----------
    linear : LinearPredictors
        On the columns of X.
    error : LinearPredictors
        About how far from the optimum an answer may lie whose gradient is as large as `tol`: Newton's step
        for such a gradient, of entries of equal size with signs at random.
    converged : ndarray of bool of shape (m,)
        Whether the gradient is as small as it should be.
    trusted : ndarray of bool of shape (m,)
        Whether scikit-learn's solver is expected to be as near; what is not was not followed.
    rows_read : int
        Rows of X that were gone over, each as often as it was, for this split and others that were fitted
        with it and have 0.
    """

    linear: LinearPredictors
    error: LinearPredictors
    converged: Array
    trusted: Array
    rows_read: int

    @classmethod
    def side_by_side(cls, parts: Sequence["PathSolution"]) -> "PathSolution":
        """The same settings with one output each, as settings with several."""
        return cls(
            _joined([part.linear for part in parts], 1),
            _joined([part.error for part in parts], 1),
            np.logical_and.reduce([part.converged for part in parts]),
            np.logical_and.reduce([part.trusted for part in parts]),
            sum(part.rows_read for part in parts),
        )

    def subset(self, settings: Sequence[int]) -> "PathSolution":
        """Some of the settings."""
        index = list(settings)
        linear, error = (
            LinearPredictors(one.coef[:, index], one.at_origin[index], one.origin)
            for one in (self.linear, self.error)
        )
        return replace(
            self, linear=linear, error=error, converged=self.converged[index], trusted=self.trusted[index]
        )

    def spread(self, T: Any) -> "PathSolution":
        """On all features, where the fit has seen ``X @ T``."""
        return replace(self, linear=_spread(self.linear, T), error=_spread(self.error, T))


def _joined(parts: Sequence[LinearPredictors], axis: int) -> LinearPredictors:
    """One behind the other along the settings (0) or the outputs (1)."""
    coef = np.concatenate([part.coef for part in parts], axis=axis + 1)
    return LinearPredictors(coef, np.concatenate([part.at_origin for part in parts], axis), parts[0].origin)


def _spread(linear: LinearPredictors, T: Any) -> LinearPredictors:
    q, m, K = linear.coef.shape
    coef = (T @ linear.coef.reshape(q, m * K)).reshape(-1, m, K)
    return LinearPredictors(coef, linear.at_origin, np.zeros(len(coef)))
