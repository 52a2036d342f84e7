"""The sorted neighbours of rows, and the rows for which distances alone do not choose the nearest k."""

from typing import Any

import numpy as np

from manyfit.families.neighbours._query import Query
from manyfit.families.protocol import Array
from manyfit.folds import Unsupported


class Neighbors(Query):
    """The nearest training rows of rows X, from one query of the most that settings ask for, and one more.

    How many neighbours a query asks for does not change distances, so the first k neighbours are those of
    ``n_neighbors=k``, unless the next one is as far away. The order in which scikit-learn sees distances
    decides which of such rows is taken. It is asked again about these rows, with ``n_neighbors=k``.

    `distances`, (n, most), ascend; `targets`, (n, most) or (n, most, q), are those of the neighbours. A
    weight by distance may differ from scikit-learn's by `weight_error`, relative to it, but for the rows
    `unsure`, whose distances are not known well enough.
    """

    weight_error = 0.0
    unsure: Array = np.zeros(0, dtype=np.intp)

    def __init__(self, fitted: Any, X: Any, targets: Array, most: int) -> None:
        super().__init__(fitted, X)
        n_train = len(targets)
        distances, order = fitted.kneighbors(self.X, n_neighbors=min(most + 1, n_train))
        if not np.isfinite(distances).all():
            raise Unsupported("distances of rows are not finite")
        found = targets[order]
        tied = distances[:, 1:] == distances[:, :-1]
        self._keep(distances, found, tied, distances.shape[1] == n_train, most)

    def _keep(self, distances: Array, found: Array, tied: Array, complete: bool, most: int) -> None:
        """Keep neighbours and their targets; `tied`: whether one is as far away as the one before it."""
        self._found, self._tied, self._complete = found, tied, complete
        self._open = _choices(tied, found, complete)
        self.distances, self.targets = distances[:, :most], found[:, :most]

    def open_rows(self, k: int) -> Array:
        """Rows, in ascending order, for which choices of the k nearest neighbours differ in their targets."""
        if k > self._open.shape[1]:  # all training rows
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(self._open[:, k - 1])

    def unknown_rows(self, k: int, by_distance: bool) -> Array:
        """Rows, in ascending order, whose votes or means scikit-learn has to give."""
        rows = self.open_rows(k)
        return np.union1d(rows, self.unsure) if by_distance and len(self.unsure) else rows

    def slots(self, k: int, rows: Array) -> Array:
        """How many of the k nearest neighbours of some rows are as far away as the last of them."""
        group = _groups(self._tied[rows, : k - 1])
        return np.asarray((group == group[:, -1:]).sum(axis=1))

    def tied(self, k: int, rows: Array) -> tuple[Array, Array, Array]:
        """The neighbours as far away as the k-th one, if targets are codes, for some rows.

        Returns which of the neighbours that the query gave they are, (n_rows, K), the codes of all these,
        (n_rows, K), and whether no other training rows are as far away, (n_rows,).
        """
        group = _groups(self._tied[rows])
        found = group == group[:, k - 1 : k]
        return found, self._found[rows], self._complete | ~found[:, -1]

    def ask_at(self, k: int, weights: Any, method: str, rows: Array) -> Array:
        """Responses of scikit-learn's own method for some rows, with ``n_neighbors=k``."""
        return self.ask({"n_neighbors": k, "weights": weights}, method, rows)


def distance_weights(distances: Array) -> Array:
    """The weights of ``weights="distance"`` for sorted distances (n, k) of all neighbours, or the first few.

    Reference: sklearn.neighbors._base._get_weights (1.9).
    """
    with np.errstate(divide="ignore"):
        weights = 1.0 / distances
    infinite = np.isinf(weights)
    rows = infinite.any(axis=1)
    weights[rows] = infinite[rows]
    return np.asarray(weights)


def _groups(tied: Array) -> Array:
    """Numbers of the groups of neighbours at one distance, (n, K), of ``tied``, (n, K - 1)."""
    group = np.zeros((len(tied), tied.shape[1] + 1), dtype=np.intp)
    np.cumsum(~tied, axis=1, out=group[:, 1:])
    return group


def _choices(tied: Array, targets: Array, complete: bool) -> Array:
    """Whether targets are open if one takes the first k + 1 neighbours, (n, K - 1) for ``k = 0, 1, ...``.

    They are if the neighbours at the distance of the last one go on, and do not have the same targets.
    `complete` says that there are no other training rows than these K.
    """
    if not tied.any():
        return tied
    same = targets[:, 1:] == targets[:, :-1]
    differs = tied & ~(same if same.ndim == 2 else same.all(axis=2))
    group = _groups(tied)
    group += np.arange(len(group))[:, np.newaxis] * group.shape[1]
    mixed = np.bincount(group[:, 1:].ravel(), weights=differs.ravel(), minlength=group[-1, -1] + 1) > 0
    if not complete:
        mixed[group[:, -1]] = True  # more rows may be at the last distance
    return np.asarray(tied & mixed[group[:, 1:]])
