"""Means, squares and ranges of sets of numbers, gaps left out, and their merges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


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
        if weights is not None:
            known &= weights[:, None] > 0.0
        where, Z = (True, Z) if known.all() else (known, np.where(known, Z, 0.0))
        share = known.astype(np.float64) if weights is None else known * weights[:, None]
        counts = share.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            means = (Z * share).sum(axis=0) / np.where(counts > 0.0, counts, 1.0)
            squares = ((Z - means) ** 2 * share).sum(axis=0)
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
