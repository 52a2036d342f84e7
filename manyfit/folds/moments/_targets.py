"""Moments of the columns of X with many targets, of which each is read alone.

The products of targets among each other, which grow with the square of their number, are not summed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyfit.folds.moments._moments import Moments, MomentSource
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import row_blocks

# Numbers of a block of targets that is centred at a time.
BLOCK_NUMBERS = 2**20


@dataclass(frozen=True)
class TargetMoments:
    """Moments of q targets with p columns over some rows.

    `rows` is their number, `x_offset`, (p,), and `y_mean`, (q,), are means, that of X less an origin; `xy`,
    (p, q), and `yy`, (q,), are sums about the means.
    """

    rows: float
    x_offset: Array
    y_mean: Array
    xy: Array
    yy: Array

    @classmethod
    def merged(cls, parts: Sequence["TargetMoments"], counts: Array) -> "TargetMoments":
        """Moments of some disjoint sets of rows, each repeated so many times; nothing is subtracted."""
        used = [(part, count) for part, count in zip(parts, counts, strict=True) if count]
        n = [count * part.rows for part, count in used]
        rows = float(sum(n))
        x_offset = sum(w * part.x_offset for w, (part, _) in zip(n, used, strict=True)) / rows
        y_mean = sum(w * part.y_mean for w, (part, _) in zip(n, used, strict=True)) / rows
        xy, yy = np.zeros_like(parts[0].xy), np.zeros_like(parts[0].yy)
        for w, (part, count) in zip(n, used, strict=True):
            x, y = part.x_offset - x_offset, part.y_mean - y_mean
            xy += count * part.xy + np.outer(w * x, y)
            yy += count * part.yy + w * y**2
        return cls(rows, x_offset, y_mean, xy, yy)

    def with_features(self, features: Moments, p: int) -> Moments:
        """Moments of ``[X, Y]`` with those of X from `features`; products of targets are left at zero."""
        q = self.yy.size
        scatter = np.zeros((p + q, p + q))
        scatter[:p, :p], scatter[:p, p:] = features.scatter[:p, :p], self.xy
        np.einsum("ii->i", scatter)[p:] = self.yy
        origin = np.concatenate([features.origin[:p], np.zeros(q)])
        offset = np.concatenate([features.offset[:p], self.y_mean])
        return Moments(features.rows, features.weight, origin, offset, scatter)


def sum_targets(X: MomentSource, Y: Array, atoms: Sequence[Rows], origin: Array) -> list[TargetMoments]:
    """The moments of the columns of Y, (n, q), with those of X, over each atom: one pass over the rows."""
    size, found, columns = max(1, BLOCK_NUMBERS // Y.shape[1]), [], Y.T
    for rows in atoms:
        parts: list[TargetMoments] = []
        for block in row_blocks(rows, size):
            y = (columns[:, block] if isinstance(block, slice) else columns.take(block, axis=1)).T
            part = _sum_block(np.asarray(X.take(block), dtype=np.float64) - origin, y)
            parts = [TargetMoments.merged([*parts, part], np.ones(len(parts) + 1))]
        found += parts
    return found


def _sum_block(x: Array, y: Array) -> TargetMoments:
    x_offset, y_mean = x.mean(axis=0), y.mean(axis=0)
    y = y - y_mean
    return TargetMoments(float(len(y)), x_offset, y_mean, (x - x_offset).T @ y, np.einsum("nq,nq->q", y, y))
