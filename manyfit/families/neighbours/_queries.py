"""The sorted neighbours of rows, and the rows for which distances alone do not choose the nearest k."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse
import sklearn
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from manyfit._compat import neighbors_query, openmp_threads
from manyfit.folds import Unsupported

Array = NDArray[Any]

# Sums of squares of whole numbers up to this one are exact; a quarter of it for the parts of a distance.
LARGEST_WHOLE = 2.0**51
# Values that are multiples of one over this number count as whole: pixels divided by 16, for instance.
FRACTIONS = 2.0**10


class Neighbors:
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
        self.fitted = fitted
        self.X = X if scipy.sparse.issparse(X) else np.ascontiguousarray(X)
        n_train = len(targets)
        distances, order = fitted.kneighbors(self.X, n_neighbors=min(most + 1, n_train))
        if not np.isfinite(distances).all():
            raise Unsupported("distances of rows are not finite")
        found = targets[order]
        self._open = _choices(distances, found, complete=distances.shape[1] == n_train)
        self.distances, self.targets = distances[:, :most], found[:, :most]

    def open_rows(self, k: int) -> Array:
        """Rows, in ascending order, for which choices of the k nearest neighbours differ in their targets."""
        if k > self._open.shape[1]:  # all training rows
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(self._open[:, k - 1])

    def slots(self, k: int, rows: Array) -> Array:
        """How many of the k nearest neighbours of some rows are as far away as the last of them."""
        return np.asarray((self.distances[rows, :k] == self.distances[rows, k - 1 : k]).sum(axis=1))

    def ask(self, k: int, weights: Any, method: str, rows: Array) -> Array:
        """Responses of scikit-learn's own method for some rows, with ``n_neighbors=k``."""
        model = copy.copy(self.fitted)
        model.n_neighbors, model.weights = k, weights
        unit, n = self._unit, self.X.shape[0]
        asked = rows
        if unit > 1:  # whole units, so that each row has its place in the products again
            asked = np.flatnonzero(np.isin(np.arange(n) // unit, np.unique(rows // unit)))
        if len(asked) == n:
            found = getattr(model, method)(self.X)
        else:
            with _sequence_of(n, model.n_samples_fit_):
                found = getattr(model, method)(self.X[asked])
        return np.asarray(found[np.searchsorted(asked, rows)])

    def ask_all(self, k: int, weights: Any, method: str) -> Array:
        """Responses of scikit-learn's own method for all rows."""
        return self.ask(k, weights, method, np.arange(self.X.shape[0]))

    @cached_property
    def query(self) -> str:
        """How scikit-learn finds the neighbours, see `neighbors_query`."""
        return neighbors_query(self.fitted, self.X)

    @cached_property
    def _unit(self) -> int:
        """How many rows one after the other have distances of their own, to the last bit."""
        query, metric = self.query, self.fitted.effective_metric_
        if query in ("tree", "pairs"):
            return 1
        if metric in ("euclidean", "sqeuclidean") and _exact(self.X, self.fitted._fit_X):
            return 1
        if query == "products":
            return int(sklearn.get_config().get("pairwise_dist_chunk_size", 256))
        return int(self.X.shape[0])


def distance_weights(distances: Array) -> Array:
    """What ``weights="distance"`` makes of sorted distances (n, k): of all neighbours, or of the first few.

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


def _exact(X: Any, Y: Any) -> bool:
    """Whether squared distances of rows are exact in any order of sums: all values are whole numbers."""
    largest = 0.0
    for one in (X, Y):
        values = one.data if scipy.sparse.issparse(one) else one
        if values.dtype.kind not in "iuf":
            return False
        scaled = values * FRACTIONS
        if not (np.rint(scaled) == scaled).all():
            return False
        largest = max(largest, float(np.abs(scaled).max(initial=0.0)))
    return bool(X.shape[1] * largest**2 < LARGEST_WHOLE)


@contextmanager
def _sequence_of(n: int, n_train: int) -> Iterator[None]:
    """Let scikit-learn see the training rows in the order in which a query of n rows would see them.

    Few rows are divided among threads by training rows, and ties are then decided in another order. In one
    thread there is one order.

    References
    ----------
    sklearn.metrics._pairwise_distances_reduction._base.BaseDistancesReduction.__init__ (1.9).
    """
    threads = openmp_threads()
    chunk = int(sklearn.get_config().get("pairwise_dist_chunk_size", 256))
    if threads == 1 or not (n_train < n or 4 * chunk * threads < n):
        yield
        return
    with _openmp().limit(limits=1):
        yield


@cache
def _openmp() -> ThreadpoolController:
    """The OpenMP libraries of this process; looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="openmp")
