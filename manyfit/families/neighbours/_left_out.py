"""The neighbours of each row among all other rows, from one query of all rows.

The row itself is dropped from its neighbours. A fold that leaves it out has other trees, and other products
of rows, than a fit of all rows. So a neighbour counts as further away than another one only if that is no
rounding of either; a row for which that decides an answer is asked of the fold's own fit.
"""

from typing import Any

import numpy as np
from sklearn.base import clone

from manyfit.families.neighbours._queries import Neighbors
from manyfit.families.neighbours._query import Query
from manyfit.families.protocol import Array, refused_warnings
from manyfit.folds import Unsupported

# Metrics whose distances have a bound of their rounding here, with powers up to `MOST_P`.
METRICS, MOST_P = ("euclidean", "manhattan", "chebyshev", "minkowski"), 4.0
EPS = float(np.finfo(np.float64).eps)
# Distances that differ by more than this, relative to them, differ in every order of sums.
UNEQUAL = 1e-9
# Bounds of nodes of a tree are off by at most so many rounding errors of the extent of the data.
NODE_ROUNDING = 64.0
# Weights that may be off by more than this, relative to them, could change a probability by 1e-12.
MOST_WEIGHT_ERROR = 2.5e-13


class RowsLeftOut:
    """The fits of folds that leave out one of the rows X, (n, p), each."""

    def __init__(self, estimator: Any, X: Any, y: Array) -> None:
        self._estimator, self._X, self._y = estimator, X, y

    def response(self, row: int, params: dict[str, Any], method: str) -> Array:
        """The response of scikit-learn's own fit without a row, for that row."""
        others = np.delete(np.arange(len(self._y)), row)
        model = clone(self._estimator).set_params(**params)
        with refused_warnings("a fit"):
            model.fit(self._X[others], self._y[others])
        return np.asarray(getattr(model, method)(self._X[row : row + 1])[0])


class LeftOutNeighbors(Neighbors):
    """The nearest of all other rows, for each row.

    `fitted` was fitted on all rows X by the algorithm of the folds; `most` is the largest ``n_neighbors``.
    The fits of `without` are asked again.
    """

    def __init__(self, without: RowsLeftOut, fitted: Any, X: Any, targets: Array, most: int) -> None:
        Query.__init__(self, fitted, X)
        self._without, n = without, len(targets)
        self._require_metric()
        distances, order = fitted.kneighbors(self.X, n_neighbors=min(most + 2, n))
        if not np.isfinite(distances).all():
            raise Unsupported("distances of rows are not finite")
        own = order == np.arange(n)[:, np.newaxis]
        lost = ~own.any(axis=1)  # more equal rows than neighbours
        own[lost, -1] = True
        shape = n, distances.shape[1] - 1
        distances, found = distances[~own].reshape(shape), targets[order[~own].reshape(shape)]
        error, unsure = self._errors(distances)
        # Of squares, if they are made of products. Two of them are off here, and two in the fold.
        squared = self.kind == "products"
        values = distances**2 if squared else distances
        tied = np.diff(values, axis=1) <= 4.0 * error[:, np.newaxis] + UNEQUAL * values[:, 1:]
        tied[lost] = True
        self.unsure = np.flatnonzero(unsure | lost)
        self.weight_error = MOST_WEIGHT_ERROR if squared and not self.exact else 0.0
        self._keep(distances, found, tied, shape[1] == n - 1, most)

    def _require_metric(self) -> None:
        metric, given = self.fitted.effective_metric_, self.fitted.effective_metric_params_
        params = {name: value for name, value in given.items() if value is not None}
        p = params.pop("p", 2.0)
        if metric not in METRICS or params:
            raise Unsupported(f"metric={metric!r} is not bounded")
        if not 1.0 <= p <= MOST_P:
            raise Unsupported(f"p={p!r} is not between 1 and {MOST_P:g}")
        if self.kind == "matrix":
            raise Unsupported("scikit-learn makes a matrix of distances")

    def _errors(self, distances: Array) -> tuple[Array, Array]:
        """By row: how far a distance, or its square, may be off; whether weights may differ too much."""
        X, n = self.X, self.X.shape[0]
        if self.kind == "products":
            if self.exact:
                return np.zeros(n), np.zeros(n, dtype=bool)
            sizes = np.sqrt(np.einsum("ij,ij->i", X, X))
            error = (X.shape[1] + 4.0) * EPS / 2.0 * (sizes + sizes.max()) ** 2
            return error, ~(error <= MOST_WEIGHT_ERROR * distances[:, 0] ** 2)
        extent = float(np.ptp(X, axis=0).sum())
        return np.full(n, NODE_ROUNDING * EPS * extent), np.zeros(n, dtype=bool)

    def ask_at(self, k: int, weights: Any, method: str, rows: Array) -> Array:
        """See `Neighbors`: responses of the fits without these rows."""
        params = {"n_neighbors": k, "weights": weights}
        return np.stack([self._without.response(row, params, method) for row in rows.tolist()])
