"""The centred squares of the columns of X in chunks: as a matrix, or as products with few vectors."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from manyfit.folds._blas_threads import blas_threads, single_blas_thread
from manyfit.folds.moments._known_sums import KnownSums

Array = NDArray[Any]
R = TypeVar("R")

# Blocks that are worked on at a time, at most.
MOST_THREADS = 8
# Values of the rows that are multiplied at a time: 4 MiB of float64, which the caches hold for both products.
TILE_VALUES = 2**19
NO_SUM = "the squares of its columns have no finite sum"
# Matrices of the size of the scatter that are in memory while it is decomposed.
MATRICES = 4


class Chunks(Protocol):
    """The part of `ChunkRows` that is read here."""

    n_columns: int
    dtype: np.dtype[Any]

    @property
    def known_sums(self) -> KnownSums:
        """The moments of all rows that were summed so far."""

    def origin(self) -> Array:
        """A point amid the rows, (p,)."""

    def chunks(self) -> Iterator[tuple[slice, Array, Any]]:
        """The rows, some at a time, with their numbers."""

    def require_finite(self, rows: slice, block: Any) -> None:
        """Raise ValueError if some rows hold NaN."""

    def rows_in_memory(self, rows: slice) -> Any:
        """A copy of some rows."""


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

    def __init__(self, rows: Chunks) -> None:
        self._rows, self.p = rows, rows.n_columns
        # scikit-learn computes with float32, too.
        self.dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)

    def times(self, Q: Array) -> Array:
        """The product with some vectors (p, l), as float64. One pass over X."""
        Q, first = np.ascontiguousarray(Q, self.dtype), not self.n
        origin = (self._rows.origin() if first else self.mean).astype(self.dtype)
        products, squares, n = np.zeros((self.p, Q.shape[1] + first)), 0.0, 0

        def work(block: Array) -> tuple[Array, float, int]:
            return *_multiply(block, origin, Q, first), len(block)

        for rows, (own, square, size) in _in_order(self._rows, work):
            if not np.isfinite(square):
                self._require_finite(rows)
            products += own
            squares += square
            n += size
        if not first:
            return products
        offset = products[:, -1] / n
        self.n, self.mean = n, origin + offset
        self.total = squares - n * float(offset @ offset)
        return np.asarray(products[:, :-1] - n * np.outer(offset, offset @ Q.astype(np.float64)))

    def _require_finite(self, rows: slice) -> None:
        self._rows.require_finite(rows, self._rows.rows_in_memory(rows))
        raise ValueError(f"Input X contains NaN, infinity or a value too large: {NO_SUM}.")


class ScatterMatrix(Scatter):
    """The same as a matrix, for which X is read once; see `matrix_bytes` for its memory."""

    def __init__(self, rows: Chunks) -> None:
        super().__init__(rows)
        known = rows.known_sums.of_columns(self.p)
        if known is not None:
            self.n, self.mean, self.matrix = int(known.rows), known.mean, known.scatter
            self.total = float(np.trace(self.matrix))
            return
        p, origin = self.p, rows.origin()
        sums, total, n = np.zeros((p, p), order="F"), np.zeros(p), 0
        with np.errstate(over="ignore", invalid="ignore"):
            for read, block, _ in rows.chunks():
                Z = block - origin
                # The upper half of Z' Z is added where it lies, by the threads of BLAS.
                sums = dsyrk(1.0, Z.T, beta=1.0, c=sums, overwrite_c=True)
                own = Z.sum(axis=0)
                if not np.isfinite(sums[-1, -1] + own.sum()):
                    self._require_finite(read)
                total += own
                n += len(block)
        offset = total / n
        sums -= n * np.outer(offset, offset)
        self.matrix = np.triu(sums) + np.triu(sums, 1).T
        if not np.isfinite(self.matrix).all():
            self._require_finite(slice(0, n))
        self.n, self.mean, self.total = n, origin + offset, float(np.trace(self.matrix))

    def times(self, Q: Array) -> Array:
        return np.asarray(self.matrix @ Q)


def matrix_bytes(p: int) -> int:
    """Bytes that a `ScatterMatrix` of p columns takes while it is made and decomposed."""
    return MATRICES * 8 * p * p


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


def _in_order(rows: Chunks, work: Callable[[Array], R]) -> Iterator[tuple[slice, R]]:
    """Each read with what `work` makes of it, in order, by as many threads as BLAS would use."""
    waiting: deque[tuple[slice, Future[R]]] = deque()
    n_threads = min(MOST_THREADS, blas_threads())
    with single_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        try:
            for read, block, _ in rows.chunks():
                waiting.append((read, pool.submit(work, block)))
                if len(waiting) > n_threads:
                    read, future = waiting.popleft()
                    yield read, future.result()
            while waiting:
                read, future = waiting.popleft()
                yield read, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
