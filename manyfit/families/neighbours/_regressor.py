"""KNeighborsRegressor: sums of the targets of the neighbours, one neighbour after the other."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from manyfit.families.neighbours._answers import NeighborsFamily, Respond, Votes
from manyfit.families.neighbours._queries import Neighbors
from manyfit.families.protocol import Array, register_family
from manyfit.folds import Unsupported


class NeighborsRegressorFamily(NeighborsFamily):
    """KNeighborsRegressor with one or several targets.

    Reference: sklearn.neighbors.KNeighborsRegressor.predict (1.9).
    """

    serves = (KNeighborsRegressor,)

    def methods(self, y: Array) -> tuple[Array, dict[str, Respond], Any]:
        if y.dtype.kind == "f" and y.dtype != np.float64:
            raise Unsupported(f"scikit-learn adds targets of {y.dtype} in their own precision")
        if not np.isfinite(y).all():
            raise Unsupported("y holds NaN or infinity")
        return y, {"predict": _means}, None


def _means(near: Neighbors, weights: Array | None, votes: Sequence[Votes]) -> Iterator[Array]:
    """Weighted means of the targets of the neighbours, one setting after the other.

    They are added up in arrays of the same layout as scikit-learn's, so that no bit differs.
    """
    targets = near.targets[:, :, np.newaxis] if near.targets.ndim == 2 else near.targets
    for one in votes:
        found = np.ascontiguousarray(targets[:, : one.k])
        if weights is None:
            predicted = np.mean(found, axis=1)
        else:
            weight = np.ascontiguousarray(weights[:, : one.k])
            sums = [np.sum(found[:, :, j].copy() * weight, axis=1) for j in range(found.shape[2])]
            predicted = np.stack(sums, axis=1).astype(np.float64) / np.sum(weight, axis=1)[:, np.newaxis]
        predicted = predicted[:, 0] if near.targets.ndim == 2 else predicted
        rows = near.unknown_rows(one.k, weights is not None)
        if len(rows):
            predicted[rows] = near.ask_at(one.k, one.weights, "predict", rows)
        yield predicted


register_family(NeighborsRegressorFamily())
