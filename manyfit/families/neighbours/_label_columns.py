"""Labels of several columns: each is voted for by itself, by the same neighbours."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyfit._compat import votes_need_plain_labels
from manyfit.families.neighbours._queries import Neighbors
from manyfit.families.protocol import Array
from manyfit.folds import Unsupported


class LabelColumn(Neighbors):
    """The neighbours of another query, with one column of their labels, of `classes`, as targets."""

    def __init__(self, near: Neighbors, column: int, classes: Array) -> None:
        if near.kind == "pairs" and votes_need_plain_labels():
            raise Unsupported("this version of scikit-learn counts votes of one column only")
        vars(self).update(vars(near))
        self._near, self._column, self._classes = near, column, classes
        self.targets = near.targets[:, :, column]

    def require_countable_labels(self) -> None:
        """See `Neighbors`; the constructor has checked it."""

    def tied(self, k: int, rows: Array) -> tuple[Array, Array, Array]:
        found, codes, ended = super().tied(k, rows)
        return found, codes[:, :, self._column], ended

    def ask_at(self, k: int, weights: Any, method: str, rows: Array) -> Array:
        """See `Neighbors`; of probabilities, only the largest one is right."""
        labels = self._near.ask_at(k, weights, "predict", rows)[:, self._column]
        return labels if method == "predict" else labels[:, np.newaxis] == self._classes


def classes_of_columns(y: Array) -> tuple[list[Array], Array]:
    """The classes of each column of y, (n, q), and their codes, (n, q)."""
    found = [np.unique(column, return_inverse=True) for column in y.T]
    if any(len(classes) < 2 for classes, _ in found):
        raise Unsupported("a column of the training rows has one class")
    return [classes for classes, _ in found], np.stack([codes.reshape(-1) for _, codes in found], axis=1)


def joined(columns: Sequence[Array], classes: Sequence[Array]) -> Array:
    """Labels of all columns, (n, q), in the type that scikit-learn gives them."""
    return np.stack(columns, axis=1).astype(classes[0].dtype)
