"""Passes over dense rows on the host."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from manyfit.folds._blas_threads import blas_threads, map_threads
from manyfit.folds.moments._host import middle
from manyfit.folds.passes._protocol import EPS, QUICK_COLUMNS, Curvature, Passes, Residual
from manyfit.folds.passes._samples import DenseSample
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import RowReader, n_rows, row_blocks

# Values of X and of the linear predictors in one block of rows: 1 MiB of float64, about the size of a
# second-level cache, which holds the block while it is multiplied, changed and multiplied back.
BLOCK_VALUES = 2**17
# Most rows of a block.
BLOCK_ROWS = 4096
# Blocks that one thread goes through before it takes the next rows.
PIECE_BLOCKS = 8
# Rows that a Hessian is summed over at a time, in its own precision; the sums of these are float64.
GRAM_ROWS = 1024


class DensePasses(Passes):
    """Passes over a dense matrix in host memory, or read into it, in float64 blocks that fit a cache."""

    eps, quick_columns, kept_per_column = EPS, QUICK_COLUMNS, 0
    n_parts: int | None = None  # pieces of an atom at most; as many as there are threads if None

    def __init__(self, X: RowReader, rows: Sequence[Rows], origin: Array | None = None) -> None:
        self.X, self.rows, self.rows_read = X, rows, 0
        n = X.shape[0]
        self.origin = middle(X, np.empty((n, 0)), slice(0, n)) if origin is None else origin

    def sample(self, rows: Rows) -> DenseSample:
        return DenseSample(self.X.take(rows) - self.origin, rows)

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        _, K, d = theta.shape
        used = [np.flatnonzero(counts[:, a]) for a in range(len(self.rows))]
        parts = [theta[columns].transpose(1, 0, 2).reshape(-1, d) for columns in used]
        width = d + max(len(part) for part in parts)
        size = min(max(128, BLOCK_VALUES // width), BLOCK_ROWS)

        def work(item: tuple[int, Rows]) -> Array:
            a, piece = item
            total = np.zeros(parts[a].shape)
            with np.errstate(over="ignore", invalid="ignore"):  # set for each thread
                for block, B in self._blocks(piece, size):
                    Z = (parts[a] @ B.T).reshape(K, -1, len(B))
                    total += residual(Z, block, used[a]).reshape(-1, len(B)) @ B
            return total

        piece = min(PIECE_BLOCKS * size, self._share(64))
        pieces = self._pieces(piece, [bool(columns.size) for columns in used])
        out = np.zeros(theta.shape)
        for (a, _), part in zip(pieces, map_threads(work, pieces), strict=True):
            out[used[a]] += part.reshape(K, -1, d).transpose(1, 0, 2) * counts[used[a], a][:, None, None]
        return out

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> Array:
        K, flat = theta.shape[1], theta[0]
        taken = slice(None) if features is None else np.append(features, len(self.origin))
        d = flat[:, taken].shape[1]

        def work(piece: Rows) -> Array:
            total = np.zeros((K * d, K * d))
            M, product = np.empty((GRAM_ROWS, K, d), dtype), np.empty_like(total, dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                for block, B in self._blocks(piece, GRAM_ROWS):
                    D, P = curvature((flat @ B.T)[:, None], block)
                    own = B[:, taken].astype(dtype, copy=False)
                    if P is None:
                        _add_own_outputs(total, own, D[:, 0])
                    else:
                        _subtract_joint(total, own, P[:, 0], M[: len(own)], product)
                return total if P is None else _with_own_outputs(total, K)

        return self._summed(work, (K * d, K * d))

    def squares(self, theta: Array, curvature: Curvature) -> Array:
        _, K, d = theta.shape
        flat = theta[0]

        def work(piece: Rows) -> Array:
            total = np.zeros((K, d))
            with np.errstate(over="ignore", invalid="ignore"):
                for block, B in self._blocks(piece, GRAM_ROWS):
                    D, _ = curvature((flat @ B.T)[:, None], block)
                    total += D[:, 0] @ B**2
            return total.ravel()

        return self._summed(work, (K * d,))

    def _summed(self, work: Callable[[Rows], Array], shape: tuple[int, ...]) -> Array:
        """Sums over each atom: as few pieces as keep the threads busy, since each has a large result."""
        pieces = self._pieces(self._share(GRAM_ROWS))
        out = np.zeros((len(self.rows), *shape))
        for (a, _), found in zip(pieces, map_threads(lambda item: work(item[1]), pieces), strict=True):
            out[a] += found
        return out

    def _blocks(self, piece: Rows, size: int) -> Iterator[tuple[Rows, Array]]:
        """Blocks of rows as ``[x - origin, 1]``, not to be changed, in memory that the next may overwrite."""
        buffer = np.empty((min(size, n_rows(piece)), self.X.shape[1] + 1))
        buffer[:, -1] = 1.0
        for block in row_blocks(piece, size):
            B = buffer[: n_rows(block)]
            np.subtract(self.X.take(block), self.origin, out=B[:, :-1])
            yield block, B

    def _pieces(self, size: int, used: Sequence[bool] | None = None) -> list[tuple[int, Rows]]:
        """Pieces of the atoms in use, one for a thread at a time, each with the number of its atom."""
        atoms = [a for a in range(len(self.rows)) if used is None or used[a]]
        self.rows_read += sum(n_rows(self.rows[a]) for a in atoms)
        return [(a, piece) for a in atoms for piece in row_blocks(self.rows[a], size)]

    def _share(self, least: int) -> int:
        """At least so many rows of a piece, and so few pieces that each thread gets one."""
        largest = max(n_rows(rows) for rows in self.rows)
        return max(least, largest // (self.n_parts or max(1, blas_threads())) + 1)


def _add_own_outputs(total: Array, rows: Array, D: Array) -> None:
    """Add the second derivatives of `rows`, (b, d), by each output twice, from curvatures (K, b)."""
    d = rows.shape[1]
    for k in range(len(D)):
        own = slice(k * d, (k + 1) * d)
        root = rows * np.sqrt(D[k]).astype(rows.dtype)[:, None]
        total[own, own] += root.T @ root


def _subtract_joint(total: Array, rows: Array, P: Array, M: Array, product: Array) -> None:
    """Subtract the second derivatives by two different outputs; the blocks of one output twice become wrong.

    `M`, (b, K, d), and `product` are overwritten: fresh memory each time would double the cost.
    """
    np.multiply(rows[:, None, :], P.T.astype(rows.dtype)[:, :, None], out=M)
    flat = M.reshape(len(rows), -1)
    total -= np.matmul(flat.T, flat, out=product)


def _with_own_outputs(total: Array, K: int) -> Array:
    """Set the second derivatives by one output twice from all others, in place: they sum to zero."""
    blocks = total.reshape(K, -1, K, total.shape[0] // K)
    for k in range(K):
        blocks[k, :, k] = 0.0
        blocks[k, :, k] = -blocks[k].sum(axis=1)
    return total
