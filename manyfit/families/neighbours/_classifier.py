"""KNeighborsClassifier: the votes of the neighbours, added one neighbour after the other."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from manyfit._compat import votes_need_plain_labels
from manyfit.families.neighbours._answers import NeighborsFamily, Respond, Votes
from manyfit.families.neighbours._queries import Neighbors
from manyfit.families.protocol import Array, register_family
from manyfit.folds import Unsupported

# Sums of k weights in two orders differ by at most this many rounding errors of their size, for each weight.
ROUNDING = 4.0
# Sums of weights that differ by more than this share of all weights are not equal but for rounding.
UNEQUAL = 1e-9


class NeighborsClassifierFamily(NeighborsFamily):
    """KNeighborsClassifier with one target or several columns: labels are scikit-learn's to the bit.

    Reference: sklearn.neighbors.KNeighborsClassifier (1.9): ``predict`` and ``predict_proba``.
    """

    serves = (KNeighborsClassifier,)

    def methods(self, y: Array) -> tuple[Array, dict[str, Respond], Any]:
        if y.ndim == 2:  # labels only: probabilities of several columns are a list of arrays
            of_columns, codes = classes_of_columns(y)
            return codes, {"predict": partial(_labels_of_columns, of_columns)}, of_columns
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise Unsupported("the training rows have one class")
        probabilities = partial(_probabilities, len(classes))
        methods: dict[str, Respond] = {
            "predict": partial(_labels, classes),
            "predict_proba": probabilities,
        }
        return codes.reshape(-1), methods, classes


def _totals(
    n_classes: int, near: Neighbors, weights: Array | None, votes: Sequence[Votes]
) -> Iterator[Array]:
    """The votes for each class, (n, n_classes), one setting after the other, in the order of n_neighbors.

    They are added in scikit-learn's order. The array is the same one, which a caller must not keep.
    """
    near.require_countable_labels()
    rows, totals, done = np.arange(len(near.targets)), np.zeros((len(near.targets), n_classes)), 0
    codes = np.ascontiguousarray(near.targets.T)
    given = None if weights is None else np.ascontiguousarray(weights.T)
    for one in votes:
        for i in range(done, one.k):
            totals[rows, codes[i]] += 1.0 if given is None else given[i]
        done = one.k
        yield totals


def _probabilities(
    n_classes: int, near: Neighbors, weights: Array | None, votes: Sequence[Votes]
) -> Iterator[Array]:
    for one, totals in zip(votes, _totals(n_classes, near, weights, votes), strict=True):
        probabilities = totals / totals.sum(axis=1)[:, np.newaxis]
        rows = near.unknown_rows(one.k, one.by_distance)
        if len(rows):
            probabilities[rows] = near.ask_at(one.k, one.weights, "predict_proba", rows)
        yield probabilities


def _labels_of_columns(
    classes: Sequence[Array], near: Neighbors, weights: Array | None, votes: Sequence[Votes]
) -> Iterator[Array]:
    columns = [_labels(own, LabelColumn(near, q, own), weights, votes) for q, own in enumerate(classes)]
    for labels in zip(*columns, strict=True):
        # In the type that scikit-learn gives them.
        yield np.stack(labels, axis=1).astype(classes[0].dtype)


def _labels(
    classes: Array, near: Neighbors, weights: Array | None, votes: Sequence[Votes]
) -> Iterator[Array]:
    for one, totals in zip(votes, _totals(len(classes), near, weights, votes), strict=True):
        codes = totals.argmax(axis=1)
        rows = _undecided(near, totals, weights, one.k)
        if weights is not None:
            rows = np.union1d(np.union1d(rows, _doubtful(near, totals, weights, one.k)), near.unsure)
        if len(rows) and weights is None:
            # The label of `predict` is the first one of the largest probability, which takes less time.
            codes[rows] = near.ask_at(one.k, one.weights, "predict_proba", rows).argmax(axis=1)
        labels = classes[codes]
        if len(rows) and weights is not None:
            labels[rows] = near.ask_at(one.k, one.weights, "predict", rows)
        yield labels


def _undecided(near: Neighbors, totals: Array, weights: Array | None, k: int) -> Array:
    """Rows whose label depends on which of equally far neighbours are taken.

    A class has the most votes whichever are taken if it has them where another class gets as many of them,
    and it as few, as there can be.
    """
    rows = _may_change(near, totals, weights, k)
    if not len(rows):
        return rows
    found, codes, ended = near.tied(k, rows)
    totals, (n, n_classes) = totals[rows], (len(rows), totals.shape[1])
    vote = np.ones((n, 1)) if weights is None else weights[rows, k - 1 : k]

    def count(which: Array) -> Array:
        cells = np.arange(n)[:, np.newaxis] * n_classes + codes[:, : which.shape[1]]
        return np.bincount(cells[which], minlength=n * n_classes).reshape(n, n_classes)

    tied, taken = count(found), count(found[:, :k])
    slots, at, best = taken.sum(axis=1, keepdims=True), np.arange(n), totals.argmax(axis=1)
    others = found.sum(axis=1, keepdims=True) - tied - tied[at, best][:, np.newaxis]
    most = np.minimum(slots, tied)
    least = np.maximum(0, slots - most - others)
    without = totals - vote * taken
    margin = without[at, best][:, np.newaxis] + vote * least - without - vote * most
    if weights is None:  # of equal numbers of votes, the first class has the label
        wins = (margin > 0) | ((margin == 0) & (best[:, np.newaxis] < np.arange(n_classes)))
    else:
        wins = margin > UNEQUAL * totals.sum(axis=1, keepdims=True)
    wins[at, best] = True
    return np.asarray(rows[~(ended & wins.all(axis=1))])


def _may_change(near: Neighbors, totals: Array, weights: Array | None, k: int) -> Array:
    """Rows with equally far neighbours whose votes could change the label if all went to another class."""
    rows = near.open_rows(k)
    best = np.partition(totals[rows], -2, axis=1)[:, -2:]
    vote = 1.0 if weights is None else weights[rows, k - 1]
    return np.asarray(rows[best[:, 1] - best[:, 0] <= 2.001 * near.slots(k, rows) * vote])


def _doubtful(near: Neighbors, totals: Array, weights: Array, k: int) -> Array:
    """Rows where the rounding of weights, or the order in which they are added, could decide a label.

    Sums of two weights, and of whole numbers, have no rounding that depends on their order.
    """
    if k < 3 and not near.weight_error:
        return np.zeros(0, dtype=np.intp)
    best = np.partition(totals, -2, axis=1)[:, -2:]
    rounding = ROUNDING * (k * np.finfo(weights.dtype).eps + near.weight_error)
    close = np.flatnonzero(best[:, 1] - best[:, 0] <= rounding * best[:, 1])
    exact = (np.rint(weights[close, :k]) == weights[close, :k]).all(axis=1)
    return close[~exact]


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


register_family(NeighborsClassifierFamily())
