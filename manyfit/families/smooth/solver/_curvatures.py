"""Curvatures of some rows, by which Hessians of many columns are compared."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from manyfit.arrays import array_namespace, block_size, device, to_host
from manyfit.families.protocol import Array
from manyfit.families.smooth.solver._objective import LinearProblem
from manyfit.folds import RowSample, row_blocks

# Rows on which curvatures are compared.
SAMPLE_ROWS = 2000
# Numbers of one array when curvatures of many columns are computed and compared: 8 MiB. So many arrays of the
# size are alive at once, for one output and for more.
WORKED_ON, OF_ONE, OF_MORE = 2**20, 3.2, 4.2


class CurvatureSamples:
    """Curvatures of the columns of a problem on a sample of the rows, where X lies."""

    def __init__(self, problem: LinearProblem, sample: RowSample) -> None:
        self._problem, self._rows, self._mean_square = problem, sample, sample.mean_square()

    def at(self, W: Array, columns: Array) -> Any:
        """Curvatures at the coefficients `W` of some columns, (K, m, b)."""
        rows, passes = self._rows, self._problem.passes
        split = self._problem.columns.split[columns]
        theta = self._problem.to_X(W, split)
        m, K, d = theta.shape
        out: Any = None
        for some in _column_blocks(m, K, rows.n_rows):
            Z = rows.predictors(passes.send(theta[some].transpose(1, 0, 2).reshape(-1, d)))
            xp = array_namespace(Z)
            Z = xp.reshape(Z, (K, -1, rows.n_rows))
            D = self._problem.rowwise.curvature(Z, rows.rows, split[some])[0]
            if Z.shape[1] == m:
                return D
            if out is None:
                out = xp.empty((K, m, rows.n_rows), dtype=D.dtype, device=device(D))
            out[:, some, :] = D
            del Z, D
        return out

    def distances(self, samples: Any, columns: Array, references: Sequence[Any]) -> Array:
        """How far the Hessians of columns are from some references, as shares of them, (n_references, m).

        `samples`, (K, m, b), are curvatures at the columns, `references`, (K, b) each, at other coefficients.
        One transfer.
        """
        xp, parts = array_namespace(samples), []
        for some in _column_blocks(samples.shape[1], samples.shape[0], samples.shape[2]):
            part = samples[:, some, :]
            total = xp.sum(part, axis=(0, 2))
            apart = [xp.sum(xp.abs(one[:, None, :] - part), axis=(0, 2)) for one in references]
            parts.append(xp.stack([*apart, total, self._mean_square + xp.zeros_like(total)]))
        *apart, total, squares = to_host(
            parts[0] if len(parts) == 1 else xp.concat(parts, axis=1), label="second derivatives"
        )
        # The penalty adds the same to both.
        added = self._problem.columns.penalty[columns] * samples.shape[0] * samples.shape[2]
        total = np.maximum(total + added / np.maximum(squares, 1e-300), 1e-300)
        return np.stack(apart) / total


def choose_references(distances: Array, mutual: Array, share: float, room: int) -> list[int]:
    """Columns to take new Hessians at, the farthest first, at most `room`.

    They are chosen until each column has a Hessian within `share`. `distances`, (a, m), are from the Hessians
    that exist, `mutual`, (m, m), from those that would be taken at each column.
    """
    chosen: list[int] = []
    nearest = distances.min(axis=0) if len(distances) else np.full(mutual.shape[1], np.inf)
    while len(chosen) < room and (nearest > share).any():
        # The first one is the nearest to all.
        j = int(nearest.argmax()) if np.isfinite(nearest).all() else int(mutual.sum(axis=1).argmin())
        chosen.append(j)
        nearest = np.minimum(nearest, mutual[j])
    return chosen


def _column_blocks(m: int, K: int, b: int) -> Iterator[slice]:
    """Blocks of `m` columns with K outputs each on b rows, that are worked on at a time."""
    size = max(1, int(WORKED_ON / (K * b * (OF_ONE if K == 1 else OF_MORE))))
    return cast(Iterator[slice], row_blocks(slice(0, m), block_size(size)))
