"""Ledoit and Wolf's shrinkage of the covariance of each class, from its scatter and a pass over its rows."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from manyfit.families.protocol import Array
from manyfit.folds import Fold, Unsupported

# A standard deviation that is a smaller share of the mean may be rounding, for which scikit-learn takes 1.
LEAST_DEVIATION = 1e-7
# Where the distance of the correlations from those of independent columns is a smaller share of their size,
# rounding shows in the shrinkage.
LEAST_DISTANCE = 1e-5


@dataclass(frozen=True)
class ClassRows:
    """The training rows of a fold with their classes, and the moments of these."""

    fold: Fold  # the rows, which are read on first use
    labels: Array  # (n_classes,), labels of the classes
    means: Array  # (n_classes, p), means of the classes
    covariances: Array  # (n_classes, p, p), their covariance matrices, divided by the numbers of rows
    is_in_chunks: bool = False  # whether the rows are read in chunks

    @cached_property
    def shrunk(self) -> Array:
        """Shrunk covariance matrices of the classes, (n_classes, p, p).

        Raises `Unsupported` where rounding could show.

        Reference: sklearn.covariance.ledoit_wolf (1.9) of standardised columns, in
        LinearDiscriminantAnalysis.
        """
        variances = np.diagonal(self.covariances, axis1=1, axis2=2)
        if not (np.sqrt(variances) > LEAST_DEVIATION * np.abs(self.means)).all():
            raise Unsupported("a column is constant within a class")
        codes = np.searchsorted(self.labels, self.fold.y_train)
        sizes, lengths, out = np.bincount(codes), np.zeros(len(codes)), self.covariances.copy()
        if self.means.shape[1] > 1:
            of_rows = partial(_squared_lengths, self.means, variances)
            if self.is_in_chunks:
                rows: Any = self.fold.rows("train")
                lengths = rows.summed(of_rows, codes)
            else:
                lengths = of_rows(self.fold.X_train, codes)
        for c, covariance in enumerate(self.covariances):
            out[c] *= 1.0 - _shrinkage(int(sizes[c]), float(lengths[c]), covariance, variances[c])
            np.fill_diagonal(out[c], variances[c])
        return out


def _squared_lengths(means: Array, variances: Array, X: Array, codes: Array) -> Array:
    """The sum over the rows of each class of their squared length, squared, in standardised columns."""
    lengths = [((X[codes == c] - mean) ** 2) @ (1.0 / variances[c]) for c, mean in enumerate(means)]
    return np.array([float(own @ own) for own in lengths])


def _shrinkage(n: int, lengths: float, covariance: Array, variances: Array) -> float:
    """The shrinkage of standardised columns, whose covariances are correlations."""
    p = len(variances)
    if p == 1:
        return 0.0
    scale = np.sqrt(variances)
    size = float(((covariance / np.outer(scale, scale)) ** 2).sum())
    distance = (size - p) / p
    if not distance > LEAST_DISTANCE * size / p:
        raise Unsupported("rounding shows in the shrinkage of nearly independent columns")
    noise = (lengths / n - size) / (p * n)
    return min(noise, distance) / distance
