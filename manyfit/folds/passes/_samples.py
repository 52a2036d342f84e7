"""Some rows of X, less the origin of the passes, on which Hessians of many columns are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.arrays import array_namespace, to_host
from manyfit.folds.splits._atoms import Array


@dataclass(frozen=True)
class RowSample:
    """Some rows of X less the origin; callbacks are given their index, `rows`, which lies where X does."""

    X: Any
    rows: Any  # a slice, or an index

    @property
    def n_rows(self) -> int:
        """Number of the rows."""
        return int(self.X.shape[0])

    def predictors(self, theta: Any) -> Any:
        """Linear predictors, (m, n_rows), of coefficients (m, p + 1) and values at the origin."""
        raise NotImplementedError

    def mean_square(self) -> Any:
        """Mean of the squares of all entries, where X lies."""
        raise NotImplementedError

    def column_squares(self) -> Array:
        """Sums of squares of the columns, (p,), on the host."""
        raise NotImplementedError


class DenseSample(RowSample):
    """Rows of a dense X, on the host or on a device."""

    def predictors(self, theta: Any) -> Any:
        Z = theta[:, :-1] @ self.X.T
        Z += theta[:, -1:]
        return Z

    def mean_square(self) -> Any:
        with np.errstate(over="ignore"):
            return array_namespace(self.X).mean(self.X**2)

    def column_squares(self) -> Array:
        return to_host(array_namespace(self.X).sum(self.X**2, axis=0))


class SparseSample(RowSample):
    """Rows of a CSR matrix."""

    def predictors(self, theta: Any) -> Any:
        Z = np.ascontiguousarray((self.X @ theta[:, :-1].T).T)
        Z += theta[:, -1:]
        return Z

    def mean_square(self) -> Any:
        with np.errstate(over="ignore"):
            return self.X.multiply(self.X).mean()

    def column_squares(self) -> Array:
        return np.asarray(self.X.multiply(self.X).sum(axis=0)).ravel()
