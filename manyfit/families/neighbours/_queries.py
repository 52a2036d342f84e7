"""The sorted neighbours of rows, and the rows for which distances alone do not choose the nearest k."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.families.neighbours._query import Query
from manyfit.folds import Unsupported

Array = NDArray[Any]


class Neighbors(Query):
    """The nearest training rows of some rows, from one query of the most that settings ask for, and one more.

    How many neighbours a query asks for does not change distances, so the first k neighbours are those of
    ``n_neighbors=k``, unless the next one is as far away. The order in which scikit-learn sees distances
    decides which of such rows is taken. It is asked again about these rows, with ``n_neighbors=k``.

    Parameters
    ----------
    fitted : estimator
        Fitted with the same algorithm as all settings that the neighbours are for.
    X : ndarray or CSR matrix of shape (n, p)
        Rows to predict.
    targets : ndarray of shape (n_train,) or (n_train, q)
        Of the training rows.
    most : int
        The largest ``n_neighbors``.

    Attributes
    ----------
    distances : ndarray of shape (n, most)
        In ascending order.
    targets : ndarray of shape (n, most) or (n, most, q)
        Targets of the neighbours.
    """

    def __init__(self, fitted: Any, X: Any, targets: Array, most: int) -> None:
        super().__init__(fitted, X)
        n_train = len(targets)
        distances, order = fitted.kneighbors(self.X, n_neighbors=min(most + 1, n_train))
        if not np.isfinite(distances).all():
            raise Unsupported("distances of rows are not finite")
        found = targets[order]
        self._seen, self._complete = (distances, found), distances.shape[1] == n_train
        self._open = _choices(distances, found, self._complete)
        self.distances, self.targets = distances[:, :most], found[:, :most]

    def open_rows(self, k: int) -> Array:
        """Rows, in ascending order, for which choices of the k nearest neighbours differ in their targets."""
        if k > self._open.shape[1]:  # all training rows
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(self._open[:, k - 1])

    def slots(self, k: int, rows: Array) -> Array:
        """How many of the k nearest neighbours of some rows are as far away as the last of them."""
        return np.asarray((self.distances[rows, :k] == self.distances[rows, k - 1 : k]).sum(axis=1))

    def tied(self, k: int, rows: Array) -> tuple[Array, Array, Array]:
        """The neighbours as far away as the k-th one, if targets are codes.

        Returns
        -------
        found : ndarray of shape (n_rows, K)
            Which of the neighbours that the query gave they are.
        codes : ndarray of shape (n_rows, K)
            Of all these neighbours.
        ended : ndarray of shape (n_rows,)
            Whether no other training rows are as far away.
        """
        distances, codes = (one[rows] for one in self._seen)
        found = distances == distances[:, k - 1 : k]
        return found, codes, self._complete | ~found[:, -1]

    def ask_at(self, k: int, weights: Any, method: str, rows: Array) -> Array:
        """Responses of scikit-learn's own method for some rows, with ``n_neighbors=k``."""
        return self.ask({"n_neighbors": k, "weights": weights}, method, rows)

    def ask_all(self, k: int, weights: Any, method: str) -> Array:
        """Responses of scikit-learn's own method for all rows."""
        return self.ask_at(k, weights, method, np.arange(self.X.shape[0]))


def distance_weights(distances: Array) -> Array:
    """The weights of ``weights="distance"`` for sorted distances (n, k) of all neighbours, or the first few.

    References
    ----------
    sklearn.neighbors._base._get_weights (1.9).
    """
    with np.errstate(divide="ignore"):
        weights = 1.0 / distances
    infinite = np.isinf(weights)
    rows = infinite.any(axis=1)
    weights[rows] = infinite[rows]
    return np.asarray(weights)


def _choices(distances: Array, targets: Array, complete: bool) -> Array:
    """Whether targets are open if one takes the first k + 1 neighbours, (n, K - 1) for ``k = 0, 1, ...``.

    They are if the neighbours at the distance of the last one go on, and do not have the same targets.
    `complete` says that there are no other training rows than these K.
    """
    tied = distances[:, 1:] == distances[:, :-1]
    if not tied.any():
        return tied
    same = targets[:, 1:] == targets[:, :-1]
    differs = tied & ~(same if same.ndim == 2 else same.all(axis=2))
    starts = np.ones(distances.shape, dtype=bool)
    starts[:, 1:] = ~tied
    group = np.cumsum(starts.ravel()).reshape(starts.shape) - 1  # numbers of rows at one distance
    mixed = np.bincount(group[:, 1:].ravel(), weights=differs.ravel(), minlength=group[-1, -1] + 1) > 0
    if not complete:
        mixed[group[:, -1]] = True  # more rows may be at the last distance
    return np.asarray(tied & mixed[group[:, 1:]])
