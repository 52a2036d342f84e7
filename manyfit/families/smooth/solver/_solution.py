"""The solution of an iterating fit on one split, for all settings."""

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
        About how far from the optimum an answer with a gradient of `tol` may lie: Newton's step for such a
        gradient, with entries of equal size and random signs.
    converged : ndarray of bool of shape (m,)
        Whether the gradient is as small as `tol`.
    trusted : ndarray of bool of shape (m,)
        Whether scikit-learn's solver is expected to be as near; others were not followed.
    rows_read : int
        Rows of X that were read, each as often as it was. The first split counts for all that were fitted
        together.
    """

    linear: LinearPredictors
    error: LinearPredictors
    converged: Array
    trusted: Array
    rows_read: int

    @classmethod
    def side_by_side(cls, parts: Sequence["PathSolution"]) -> "PathSolution":
        """Join solutions of the same settings with one output each."""
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
        """Map a solution for ``X @ T`` to the features of X."""
        return replace(self, linear=_spread(self.linear, T), error=_spread(self.error, T))


def _joined(parts: Sequence[LinearPredictors], axis: int) -> LinearPredictors:
    """Concatenate along the settings (0) or the outputs (1)."""
    coef = np.concatenate([part.coef for part in parts], axis=axis + 1)
    return LinearPredictors(coef, np.concatenate([part.at_origin for part in parts], axis), parts[0].origin)


def _spread(linear: LinearPredictors, T: Any) -> LinearPredictors:
    q, m, K = linear.coef.shape
    coef = (T @ linear.coef.reshape(q, m * K)).reshape(-1, m, K)
    return LinearPredictors(coef, linear.at_origin, np.zeros(len(coef)))
