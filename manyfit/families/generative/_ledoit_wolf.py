"""Ledoit and Wolf's shrinkage of the covariance of each class, from its scatter and a pass over its rows."""

from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def shrunk(self) -> Array:
        """Shrunk covariance matrices of the classes, (n_classes, p, p).

        Raises `Unsupported` where rounding could show.

        Reference: sklearn.covariance.ledoit_wolf (1.9) of standardised columns, in
        LinearDiscriminantAnalysis.
        """
        X, y, out = self.fold.X_train, self.fold.y_train, self.covariances.copy()
        for c, (mean, covariance) in enumerate(zip(self.means, self.covariances, strict=True)):
            variances = np.diagonal(covariance).copy()
            if not (np.sqrt(variances) > LEAST_DEVIATION * np.abs(mean)).all():
                raise Unsupported("a column is constant within a class")
            out[c] *= 1.0 - _shrinkage(X[y == self.labels[c]] - mean, covariance, variances)
            np.fill_diagonal(out[c], variances)
        return out


def _shrinkage(centred: Array, covariance: Array, variances: Array) -> float:
    """The shrinkage of standardised columns, whose covariances are correlations."""
    n, p = centred.shape
    if p == 1:
        return 0.0
    scale = np.sqrt(variances)
    size = float(((covariance / np.outer(scale, scale)) ** 2).sum())
    distance = (size - p) / p
    if not distance > LEAST_DISTANCE * size / p:
        raise Unsupported("rounding shows in the shrinkage of nearly independent columns")
    lengths = (centred**2) @ (1.0 / variances)
    noise = (float(lengths @ lengths) / n - size) / (p * n)
    return min(noise, distance) / distance
