"""Moments of all rows of an X in chunks that an earlier pass has summed, so that a refit needs no pass."""

from hashlib import blake2b

import numpy as np

from manyfit.folds.moments._moments import Moments, SummedMoments, merged_moments
from manyfit.folds.splits._atoms import Array

# A mapped column whose squares are a smaller part of what was added up for them is known too badly.
LEAST_SHARE = 1e-6


class KnownSums:
    """Moments of ``[X, Y]`` over all rows, by what Y and the weights hold."""

    def __init__(self) -> None:
        self._found: dict[tuple[bytes | None, bytes | None], Moments] = {}

    def add(self, Y: Array, weights: Array | None, summed: SummedMoments) -> None:
        """Keep the moments of disjoint sets of rows, which together are all rows."""
        self._found[_digest(Y), _digest(weights)] = merged_moments([one for one, _ in summed])

    def of(self, Y: Array, weights: Array | None) -> Moments | None:
        """The moments with these targets and weights, or None."""
        return self._found.get((_digest(Y), _digest(weights))) if self._found else None

    def of_columns(self, p: int) -> Moments | None:
        """The moments of the columns of X without weights, or None."""
        for (_, weights), one in self._found.items():
            if weights is None:
                return Moments(
                    one.rows, one.weight, one.origin[:p], one.offset[:p], one.scatter[:p, :p].copy()
                )
        return None

    def mapped(self, shift: Array, matrix: Array) -> "KnownSums":
        """The moments of ``(X - shift) @ matrix``; none where a column is nearly lost to rounding."""
        p, k = matrix.shape
        out = KnownSums()
        for key, one in self._found.items():
            d = len(one.origin) - p
            whole = np.eye(p + d, k + d)
            whole[:p, :k], whole[p:, :k], whole[:p, k:] = matrix, 0.0, 0.0
            whole[p:, k:] = np.eye(d)
            origin = np.concatenate([(one.origin[:p] - shift) @ matrix, one.origin[p:]])
            scatter = whole.T @ one.scatter @ whole
            added = np.einsum("ij,ij->j", np.abs(whole), np.abs(one.scatter) @ np.abs(whole))
            if not (np.diagonal(scatter) >= LEAST_SHARE * added).all():
                continue
            out._found[key] = Moments(
                one.rows, one.weight, origin, one.offset @ whole, (scatter + scatter.T) / 2.0
            )
        return out


def _digest(values: Array | None) -> bytes | None:
    if values is None:
        return None
    values = np.ascontiguousarray(values, dtype=np.float64)
    return blake2b(
        values.data if values.size else b"", digest_size=16, key=str(values.shape).encode()
    ).digest()
