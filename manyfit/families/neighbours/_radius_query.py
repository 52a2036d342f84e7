"""The training rows within several radii of some rows, from one query of the largest radius."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyfit.families.neighbours._query import FRACTIONS, Query, chunk_size
from manyfit.families.protocol import Array
from manyfit.folds import Unsupported

# Bytes that a query takes for each pair of rows within the radius: indices, distances, and copies of both.
PAIR_BYTES = 48
# A block of rows takes at most so many bytes, unless a chunk of scikit-learn's takes more.
BLOCK_BYTES = 2**26
# A matrix of distances, which has no blocks, takes at most so many.
MATRIX_BYTES = 2**30
# Distances that differ less from a radius, relative to it, are compared by scikit-learn. It compares squares,
# powers or bounds of them, whose rounding is smaller.
NEAR = 1e-7
# Metrics whose distances "pairs" compares as they are.
COMPARED_AS_THEY_ARE = ("manhattan", "cityblock", "l1", "chebyshev", "canberra", "braycurtis", "hamming")


@dataclass(frozen=True)
class Ball:
    """The training rows within a radius of some rows to predict.

    They are in scikit-learn's order, by index or as they are stored in a tree. It is the same for all radii.
    """

    rows: slice  # the rows to predict, n of them
    i: int  # place of the radius
    # (n_pairs,), for each pair of a row to predict and a training row: the former, from 0 to n - 1,
    # ascending.
    lines: Array
    distances: Array  # (n_pairs,), of the pairs
    indices: Array  # (n_pairs,), the training rows
    near: Array  # (n,), whether a training row is so close to the radius that scikit-learn has to decide

    @property
    def counts(self) -> Array:
        """How many training rows are within the radius of each row."""
        return np.bincount(self.lines, minlength=self.rows.stop - self.rows.start)

    @cached_property
    def weights(self) -> Array:
        """The weights of ``weights="distance"`` for the distances.

        Reference: sklearn.neighbors._base._get_weights (1.9).
        """
        zero = self.distances == 0.0
        equal = np.zeros(len(self.near), dtype=bool)
        equal[self.lines[zero]] = True
        with np.errstate(divide="ignore", over="ignore"):
            weights = np.where(equal[self.lines], zero, 1.0 / self.distances)
        if not np.isfinite(weights).all():
            raise Unsupported("a distance is too small to be divided by")
        return weights


class RadiusQuery(Query):
    """Rows X to predict, whose neighbours within several radii are looked for in blocks.

    The radii descend.
    """

    def __init__(self, fitted: Any, X: Any, radii: Sequence[float]) -> None:
        super().__init__(fitted, X)
        self.radii = radii

    def balls(self) -> Iterator[Ball]:
        """Those of all radii, block after block."""
        for rows in self._blocks():
            n = rows.stop - rows.start
            # scikit-learn knows training rows by identity: their distances to themselves are zero.
            X = self.X if n == self.X.shape[0] else self.X[rows]
            distances, indices = self.fitted.radius_neighbors(X, radius=self.radii[0])
            lines = np.repeat(np.arange(n), [len(one) for one in indices])
            joined = np.concatenate(list(distances))  # some metrics have float32
            if not np.isfinite(joined).all():
                raise Unsupported("distances of rows are not finite")
            if joined.dtype != np.float64 and not self._as_compared:
                raise Unsupported("distances are compared in float32")
            found = (lines, joined, np.concatenate(list(indices)).astype(np.intp, copy=False))
            yield Ball(rows, 0, *found, np.zeros(n, dtype=bool))
            for i, radius in enumerate(self.radii[1:], start=1):
                values, limit = self._compared(found[1], radius)
                margin = 0.0 if self._as_compared else NEAR * limit
                keep = values <= limit + 2 * margin
                found, values = (found[0][keep], found[1][keep], found[2][keep]), values[keep]
                near = np.zeros(n, dtype=bool)
                if margin > 0:
                    near[found[0][np.abs(values - limit) <= margin]] = True
                inside = values <= limit
                yield Ball(rows, i, found[0][inside], found[1][inside], found[2][inside], near)

    def _compared(self, distances: Array, radius: float) -> tuple[Array, float]:
        """Numbers, and the largest of them that is within a radius."""
        if not self._squares:
            return distances, radius
        unit = FRACTIONS**2  # squares of the data are multiples of one over it
        return np.rint(distances**2 * unit) / unit, radius * radius

    @cached_property
    def _squares(self) -> bool:
        """Whether the squares that scikit-learn compares are known without error."""
        return bool(self.kind != "tree" and self.fitted.effective_metric_ == "euclidean" and self.exact)

    @cached_property
    def _as_compared(self) -> bool:
        """Whether the numbers are those that scikit-learn compares with a radius, to the last bit."""
        metric = self.fitted.effective_metric_
        if self.kind == "matrix":
            return metric != "euclidean" or self._squares
        if self.kind == "pairs":
            return metric in COMPARED_AS_THEY_ARE
        return self.kind == "products" and (metric == "sqeuclidean" or self._squares)

    def _blocks(self) -> Iterator[slice]:
        """Rows whose pairs are in memory at a time; a block has whole chunks of scikit-learn's."""
        n, bytes_of_row = self.X.shape[0], PAIR_BYTES * self.fitted.n_samples_fit_
        size = chunk_size()
        if self.kind == "matrix":
            if n * bytes_of_row > MATRIX_BYTES:
                raise Unsupported("all distances may be within the radius, which takes too much memory")
            size = n
        else:
            size *= max(1, BLOCK_BYTES // (size * bytes_of_row))
        for start in range(0, n, size):
            yield slice(start, min(n, start + size))
