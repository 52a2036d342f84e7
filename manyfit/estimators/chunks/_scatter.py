"""The centred squares of the columns of X in chunks: as a matrix, or as products with few vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk

from manyfit.folds import Array, ChunkRows, blas_threads

# Blocks that are worked on at a time, at most.
MOST_THREADS = 8
# Values of the rows that are multiplied at a time: 4 MiB of float64, which the caches hold for both products.
TILE_VALUES = 2**19
NO_SUM = "Input X contains NaN, infinity or a value too large: the squares of its columns have no finite sum."
# Matrices of the size of the scatter that are in memory while it is decomposed.
MATRICES = 4


class Scatter:
    """``(X - mean)' (X - mean)`` of an X in chunks, which is read once for each product.

    Attributes
    ----------
    n : int
        Number of rows; 0 before the first pass, which finds `mean` and `total`, too.
    mean : ndarray of shape (p,)
        Means of the columns.
    total : float
        The sum of the diagonal.
    """

    n: int = 0
    mean: Array
    total: float

    def __init__(self, rows: ChunkRows) -> None:
        self._rows, self.p = rows, rows.n_columns
        # scikit-learn computes with float32, too.
        self.dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)

    def times(self, Q: Array) -> Array:
        """The product with some vectors (p, l), as float64. One pass over X."""
        Q, first = np.ascontiguousarray(Q, self.dtype), not self.n
        origin = (self._rows.origin() if first else self.mean).astype(self.dtype)
        threads = min(MOST_THREADS, blas_threads())
        products, squares, n = self._rows.reduced(_Products(origin, Q, first), _add, None, threads)
        if not first:
            return products
        offset = products[:, -1] / n
        self.n, self.mean = n, origin + offset
        self.total = squares - n * float(offset @ offset)
        return np.asarray(products[:, :-1] - n * np.outer(offset, offset @ Q.astype(np.float64)))


class ScatterMatrix(Scatter):
    """The same as a matrix, for which X is read once; see `matrix_bytes` for its memory."""

    def __init__(self, rows: ChunkRows) -> None:
        super().__init__(rows)
        known = rows.known_sums.of_columns(self.p)
        if known is not None:
            self.n, self.mean, self.matrix = int(known.rows), known.mean, known.scatter
            self.total = float(np.trace(self.matrix))
            return
        origin = rows.origin()
        add = _Squares(origin)
        workers = rows.workers
        if workers is None or (workers.n_slots + MATRICES) * 8 * self.p**2 > rows.memory:
            # One matrix for all reads. Each task has its own, and many of these may wait to be added.
            found = add.none
            for read, block, _ in rows.held():
                found = add.to(found, rows, read, block)
        else:
            found = rows.reduced(add, _add)
        sums, total, n = found
        offset = total / n
        sums -= n * np.outer(offset, offset)
        self.matrix = np.triu(sums) + np.triu(sums, 1).T
        if not np.isfinite(self.matrix).all():
            raise ValueError(NO_SUM)
        self.n, self.mean, self.total = n, origin + offset, float(np.trace(self.matrix))

    def times(self, Q: Array) -> Array:
        return np.asarray(self.matrix @ Q)


def matrix_bytes(p: int) -> int:
    """Bytes that a `ScatterMatrix` of p columns takes while it is made and decomposed."""
    return MATRICES * 8 * p * p


@dataclass(frozen=True)
class _Products:
    """``Z' Z Q`` of ``Z``, the rows of a read about the origin; the sum of the squares of Z; and its rows.

    If it is the `first`, the product has a last column, of the sums of Z; else the squares are not summed.
    """

    origin: Array
    Q: Array
    first: bool

    def __call__(self, X: ChunkRows, rows: slice, block: Any, local: Any) -> tuple[Array, float, int]:
        product, squares = _multiply(block.take(slice(None)), self.origin, self.Q, self.first)
        if not np.isfinite(squares):
            X.require_finite(rows, block)
            raise ValueError(NO_SUM)
        return product, squares, rows.stop - rows.start


@dataclass(frozen=True)
class _Squares:
    """``Z' Z`` of ``Z``, the rows of a read about the origin, above the diagonal; its sums, and its rows."""

    origin: Array

    @property
    def none(self) -> tuple[Array, Array, int]:
        """The same of no rows."""
        p = len(self.origin)
        return np.zeros((p, p), order="F"), np.zeros(p), 0

    def __call__(self, X: ChunkRows, rows: slice, block: Any, local: Any) -> tuple[Array, Array, int]:
        return self.to(self.none, X, rows, block)

    def to(self, before: Any, X: ChunkRows, rows: slice, block: Any) -> tuple[Array, Array, int]:
        """The sum of what was found before, which is overwritten, and of a read."""
        sums, total, n = before
        with np.errstate(over="ignore", invalid="ignore"):
            Z = block.take(slice(None)) - self.origin
            sums = dsyrk(1.0, Z.T, beta=1.0, c=sums, overwrite_c=True)
            own = Z.sum(axis=0)
            if not np.isfinite(sums[-1, -1] + own.sum()):
                X.require_finite(rows, block)
                raise ValueError(NO_SUM)
        return sums, total + own, n + len(Z)


def _add(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums over two parts of X; the matrix of the first is overwritten."""
    return np.add(one[0], other[0], out=one[0]), *(a + b for a, b in zip(one[1:], other[1:], strict=True))


def _multiply(block: Array, origin: Array, Q: Array, sums: bool) -> tuple[Array, float]:
    """``Z' Z Q`` of ``Z``, the block about `origin`, a tile of rows at a time.

    With `sums` there are a last column, of the sums of Z, and the sum of its squares.
    """
    p, k = Q.shape
    size = max(16, TILE_VALUES // p)
    out, squares = np.zeros((p, k + sums), dtype=Q.dtype), 0.0
    tile, beside = np.empty((size, p), dtype=Q.dtype), np.ones((size, k + sums), dtype=Q.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(block), size):
            rows = block[start : start + size]
            Z, own = tile[: len(rows)], beside[: len(rows)]
            np.subtract(rows, origin, out=Z, dtype=Q.dtype)
            np.matmul(Z, Q, out=own[:, :k])
            out += Z.T @ own
            if sums:
                squares += float(np.vdot(Z, Z))
    return out.astype(np.float64), squares
