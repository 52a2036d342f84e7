"""Means, squares and ranges of sets of numbers, gaps left out, and their merges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.folds.splits._atoms import Array


@dataclass(frozen=True)
class Spreads:
    """k sets of numbers; an empty one has mean 0, and infinite ends.

    Attributes
    ----------
    counts, means, squares, low, high : ndarray of shape (k,)
        Of the numbers of each set that are no gaps, with their weights; `squares` about the means.
    """

    counts: Array
    means: Array
    squares: Array
    low: Array
    high: Array

    @classmethod
    def of_columns(cls, Z: Array, weights: Array | None = None) -> Spreads:
        """The columns of an array of float64, (n, k), where NaN is a gap; weights are not negative."""
        known = ~np.isnan(Z)
        share: Array | None = None
        where: Any = True
        if weights is not None:
            known &= weights[:, None] > 0.0
        if weights is not None or not known.all():
            where, Z = known, np.where(known, Z, 0.0)
            share = known.astype(np.float64) if weights is None else known * weights[:, None]
        counts = (known if share is None else share).sum(axis=0).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            means = _summed(Z, share) / np.where(counts > 0.0, counts, 1.0)
            squares = _summed((Z - means) ** 2, share)
        low, high = np.min(Z, 0, initial=np.inf, where=where), np.max(Z, 0, initial=-np.inf, where=where)
        return cls(counts, means, squares, low, high)

    @classmethod
    def joined(cls, parts: Sequence[Spreads]) -> Spreads:
        """Some sets beside others."""
        names = ("counts", "means", "squares", "low", "high")
        return cls(*(np.concatenate([np.empty(0), *(getattr(one, name) for one in parts)]) for name in names))

    def merged(self, other: Spreads) -> Spreads:
        """Each set with that of `other`, which has no numbers of it."""
        counts = self.counts + other.counts
        with np.errstate(over="ignore", invalid="ignore"):
            share, apart = other.counts / np.where(counts > 0.0, counts, 1.0), other.means - self.means
            means = self.means + share * apart
            squares = self.squares + other.squares + self.counts * share * apart**2
        return Spreads(
            counts, means, squares, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        )


def _summed(Z: Array, share: Array | None) -> Array:
    """The sums of the columns, of which a share counts."""
    return np.asarray((Z if share is None else Z * share).sum(axis=0))
