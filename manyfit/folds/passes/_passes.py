"""Passes over the rows for linear models: linear predictors of many columns, and their gradients.

A pass reads every row once for all columns together, so that reading X, which is what a single
matrix-vector product spends its time on, is shared by all settings and splits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from manyfit.folds._blas_threads import blas_threads, map_threads
from manyfit.folds.moments._moments import middle
from manyfit.folds.rows._index import n_rows, row_blocks
from manyfit.folds.splits._atoms import Rows

Array = NDArray[Any]

# Values of X and of the linear predictors in one block of rows: 1 MiB of float64, about what a second-level
# cache holds while the block is multiplied, changed and multiplied back.
BLOCK_VALUES = 2**17
# Most rows of a block.
BLOCK_ROWS = 4096
# Blocks that one thread goes through before it takes the next rows.
PIECE_BLOCKS = 8
# Fewest rows of a sparse X that one thread takes at a time.
MIN_SPARSE_ROWS = 256
# Rows that a Hessian is summed over at a time, in its own precision; the sums of these are float64.
GRAM_ROWS = 1024
EPS = float(np.finfo(np.float64).eps)

Residual = Callable[[Any, Any, Array], Any]
"""``residual(Z, rows, columns)``: from linear predictors (K, m_a, b) of some rows and columns to what is
multiplied back, of the same shape; may overwrite `Z`. Arrays lie where X does, an index of rows too."""

Curvature = Callable[[Any, Any], tuple[Any, Any]]
"""``curvature(Z, rows)``: from linear predictors (K, 1, b) of some rows to their second derivatives of the
same shape: those by one output twice, and P where those by outputs k and l are ``-P_k P_l``; None: zero.
Where there is P, only differences of the outputs matter: the derivatives by k and all l sum to zero."""


class Passes(Protocol):
    """Passes over the rows of an atom group.

    Attributes
    ----------
    origin : ndarray of shape (p,)
        Linear predictors are ``(x - origin) @ coef + at_origin``.
    """

    @property
    def origin(self) -> Array:
        """A point amid the rows of X; zero where X is sparse."""

    @property
    def rows(self) -> Sequence[Rows]:
        """The atoms."""

    @property
    def rows_read(self) -> int:
        """Rows that have been gone over so far, each as often as it was."""

    @property
    def eps(self) -> float:
        """Machine epsilon of the sums."""

    def put(self, array: Array) -> Any:
        """A small array of float64 where X lies."""

    def some(self, rows: Rows) -> tuple[Any, Any]:
        """Some rows of X less the origin, where X lies, and the rows as callbacks are told of them."""

    def home(self, sums: Sequence[Any]) -> list[Array]:
        """Some results of `gram` and `squares` on the host, in float64, in one transfer."""

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        """``sum_i c_i [x_i - origin, 1]' r_i`` over the rows, for each column.

        Parameters
        ----------
        theta : ndarray of shape (m, K, p + 1)
            Coefficients of m columns with K outputs; the last of them is the value at the origin.
        counts : ndarray of shape (m, n_atoms)
            How often each column repeats the rows of each atom; those with 0 are not read for it.
        residual : callable
            See `Residual`; called from several threads. What overflows there does not warn.

        Returns
        -------
        ndarray of shape (m, K, p + 1)
            float64, on the host.
        """

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> Any:
        """Sums of the second derivatives by the coefficients over the rows of each atom.

        Parameters
        ----------
        theta : ndarray of shape (1, K, p + 1)
            Coefficients where they are taken.
        curvature : callable
            See `Curvature`; called from several threads.
        dtype : dtype
            Precision of the products.
        features : ndarray of int of shape (q,), optional
            By whose coefficients, and the values at the origin; all p by default.

        Returns
        -------
        array of shape (n_atoms, K (q + 1), K (q + 1))
            float64, where X lies; coefficients in the order of a (K, q + 1) array.
        """

    def squares(self, theta: Array, curvature: Curvature) -> Any:
        """The diagonals of `gram` for all features, of shape (n_atoms, K (p + 1))."""


class DensePasses:
    """Passes over a dense matrix, in blocks that fit a cache.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        float32, float64, integer or bool; on the host; converted to float64 a block at a time.
    rows : sequence of slice or ndarray of int
        The atoms.
    origin : ndarray of shape (p,), optional
        See `Passes`.
    """

    eps = EPS

    def __init__(self, X: Array, rows: Sequence[Rows], origin: Array | None = None) -> None:
        self.X, self.rows, self.rows_read = X, rows, 0
        self.origin = middle(X, np.empty((len(X), 0)), slice(0, len(X))) if origin is None else origin

    def put(self, array: Array) -> Array:
        """See `Passes`."""
        return array

    def some(self, rows: Rows) -> tuple[Array, Rows]:
        """See `Passes`."""
        return self.X[rows] - self.origin, rows

    def home(self, sums: Sequence[Array]) -> list[Array]:
        """See `Passes`."""
        return list(sums)

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        """See `Passes`."""
        _, K, d = theta.shape
        used = [np.flatnonzero(counts[:, a]) for a in range(len(self.rows))]
        parts = [theta[columns].transpose(1, 0, 2).reshape(-1, d) for columns in used]
        width = d + max(len(part) for part in parts)
        size = min(max(128, BLOCK_VALUES // width), BLOCK_ROWS)

        def work(item: tuple[int, Rows]) -> Array:
            a, piece = item
            total = np.zeros(parts[a].shape)
            with np.errstate(over="ignore", invalid="ignore"):  # it is each thread's own
                for block, B in self._blocks(piece, size):
                    Z = (parts[a] @ B.T).reshape(K, -1, len(B))
                    total += residual(Z, block, used[a]).reshape(-1, len(B)) @ B
            return total

        piece = min(PIECE_BLOCKS * size, self._share(64))
        pieces = self._pieces(piece, [bool(columns.size) for columns in used])
        self.rows_read += sum(n_rows(piece) for _, piece in pieces)
        out = np.zeros(theta.shape)
        for (a, _), part in zip(pieces, map_threads(work, pieces), strict=True):
            out[used[a]] += part.reshape(K, -1, d).transpose(1, 0, 2) * counts[used[a], a][:, None, None]
        return out

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> Array:
        """See `Passes`."""
        K, flat = theta.shape[1], theta[0]
        taken = slice(None) if features is None else np.append(features, len(self.origin))
        d = flat[:, taken].shape[1]

        def work(item: tuple[int, Rows]) -> Array:
            total = np.zeros((K * d, K * d))
            M, product = np.empty((GRAM_ROWS, K, d), dtype), np.empty_like(total, dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                for block, B in self._blocks(item[1], GRAM_ROWS):
                    D, P = curvature((flat @ B.T)[:, None], block)
                    own = B[:, taken].astype(dtype, copy=False)
                    if P is None:
                        _add_own(total, own, D[:, 0])
                    else:
                        _take_joint(total, own, P[:, 0], M[: len(own)], product)
                return total if P is None else _with_own(total, K)

        pieces = self._pieces(self._share(GRAM_ROWS))
        self.rows_read += sum(n_rows(piece) for _, piece in pieces)
        out = np.zeros((len(self.rows), K * d, K * d))
        for (a, _), found in zip(pieces, map_threads(work, pieces), strict=True):
            out[a] += found
        return out

    def squares(self, theta: Array, curvature: Curvature) -> Array:
        """See `Passes`."""
        _, K, d = theta.shape
        flat = theta[0]

        def work(item: tuple[int, Rows]) -> Array:
            total = np.zeros((K, d))
            with np.errstate(over="ignore", invalid="ignore"):
                for block, B in self._blocks(item[1], GRAM_ROWS):
                    D, _ = curvature((flat @ B.T)[:, None], block)
                    total += D[:, 0] @ B**2
            return total.ravel()

        pieces = self._pieces(self._share(GRAM_ROWS))
        self.rows_read += sum(n_rows(piece) for _, piece in pieces)
        out = np.zeros((len(self.rows), K * d))
        for (a, _), found in zip(pieces, map_threads(work, pieces), strict=True):
            out[a] += found
        return out

    def _blocks(self, piece: Rows, size: int) -> Iterator[tuple[Rows, Array]]:
        """Some rows at a time as ``[x - origin, 1]``, in memory that the next ones overwrite."""
        buffer = np.empty((min(size, n_rows(piece)), self.X.shape[1] + 1))
        buffer[:, -1] = 1.0
        for block in row_blocks(piece, size):
            B = buffer[: n_rows(block)]
            np.subtract(self.X[block], self.origin, out=B[:, :-1])
            yield block, B

    def _pieces(self, size: int, used: Sequence[bool] | None = None) -> list[tuple[int, Rows]]:
        """The rows in parts for threads, with the atom that each belongs to."""
        return [
            (a, piece)
            for a, rows in enumerate(self.rows)
            if used is None or used[a]
            for piece in row_blocks(rows, size)
        ]

    def _share(self, least: int) -> int:
        """Rows of a part where each part has a large result of its own: as few parts as keep threads busy."""
        largest = max(n_rows(rows) for rows in self.rows)
        return max(least, largest // max(1, blas_threads()) + 1)


def _add_own(total: Array, rows: Array, D: Array) -> None:
    """Add the second derivatives of some rows, (b, d), by each output twice, from curvatures (K, b)."""
    d = rows.shape[1]
    for k in range(len(D)):
        own = slice(k * d, (k + 1) * d)
        root = rows * np.sqrt(D[k]).astype(rows.dtype)[:, None]
        total[own, own] += root.T @ root


def _take_joint(total: Array, rows: Array, P: Array, M: Array, product: Array) -> None:
    """Add the second derivatives by two outputs each; those by one twice are wrong and are not to be read.

    `M`, (b, K, d), and `product` are overwritten: memory that is new each time would cost as much again.
    """
    np.multiply(rows[:, None, :], P.T.astype(rows.dtype)[:, :, None], out=M)
    flat = M.reshape(len(rows), -1)
    total -= np.matmul(flat.T, flat, out=product)


def _with_own(total: Array, K: int) -> Array:
    """The second derivatives by one output twice, from all others: they sum to zero. In place."""
    blocks = total.reshape(K, -1, K, total.shape[0] // K)
    for k in range(K):
        blocks[k, :, k] = 0.0
        blocks[k, :, k] = -blocks[k].sum(axis=1)
    return total


class SparsePasses:
    """Passes over a CSR matrix: rows one way, features the other, so that threads share no sums.

    Parameters
    ----------
    X : csr_array or csr_matrix of shape (n, p)
        On the host; kept with its rows in the order of the atoms, and once more by columns.
    rows : sequence of slice or ndarray of int
        The atoms.

    Notes
    -----
    A pass keeps one number a row, column and output, beside the result.
    """

    eps = EPS

    def __init__(self, X: Any, rows: Sequence[Rows]) -> None:
        self.X, self.rows, self.rows_read = X, rows, 0
        self.origin = np.zeros(X.shape[1])
        n_pieces = max(1, blas_threads())
        self._n_rows = sum(map(n_rows, rows))
        size = max(MIN_SPARSE_ROWS, self._n_rows // (4 * n_pieces))
        self._pieces = [
            _Piece(a, piece, X[piece]) for a, own in enumerate(rows) for piece in row_blocks(own, size)
        ]
        by_column = scipy.sparse.vstack([piece.X for piece in self._pieces], format="csc")
        ends = np.linspace(0, X.shape[1], n_pieces + 1).astype(int)
        self._features = [
            (slice(start, stop), by_column[:, start:stop].T.tocsr()) for start, stop in pairwise(ends)
        ]

    def put(self, array: Array) -> Array:
        """See `Passes`."""
        return array

    def some(self, rows: Rows) -> tuple[Any, Rows]:
        """See `Passes`."""
        return self.X[rows], rows

    def home(self, sums: Sequence[Array]) -> list[Array]:
        """See `Passes`."""
        return list(sums)

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        """See `Passes`."""
        m, K, _ = theta.shape
        flat = _by_feature(theta)
        ends = np.cumsum([0, *(piece.X.shape[0] for piece in self._pieces)])
        R = np.zeros((int(ends[-1]), K, m))
        used = [np.flatnonzero(own) for own in counts.T]

        def forward(i: int) -> None:
            piece = self._pieces[i]
            columns = used[piece.atom]
            if columns.size:
                with np.errstate(over="ignore", invalid="ignore"):  # it is each thread's own
                    Z = piece.predictors(flat, K)
                    out = residual(Z if columns.size == m else Z[:, columns], piece.rows, columns)
                out *= counts[columns, piece.atom][:, None]
                own = R[ends[i] : ends[i + 1]]
                own[:, :, columns] = out.transpose(2, 0, 1)

        map_threads(forward, range(len(self._pieces)))
        self.rows_read += sum(n_rows(rows) for rows, own in zip(self.rows, used, strict=True) if own.size)
        rows = R.reshape(len(R), -1)
        out = np.empty(theta.shape)
        out[:, :, -1] = rows.sum(axis=0).reshape(K, m).T

        def back(piece: tuple[slice, Any]) -> None:
            features, part = piece
            out[:, :, features] = (part @ rows).T.reshape(K, m, -1).transpose(1, 0, 2)

        map_threads(back, self._features)
        return out

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> Array:
        """See `Passes`; in the precision of X."""
        K, d = theta.shape[1], (len(self.origin) if features is None else len(features)) + 1
        flat = _by_feature(theta)

        def work(piece: _Piece) -> Array:
            out = np.zeros((K, d, K, d))
            X = piece.X if features is None else piece.X[:, features]
            with np.errstate(over="ignore", invalid="ignore"):
                D, P = curvature(piece.predictors(flat, K), piece.rows)
                for k in range(K):
                    for j in range(k + 1):
                        if j == k:
                            weights = D[k, 0]
                        elif P is not None:
                            weights = -P[k, 0] * P[j, 0]
                        else:
                            continue
                        part = np.empty((d, d))
                        part[:-1, :-1] = (X.T @ scipy.sparse.diags_array(weights) @ X).toarray()
                        part[-1, :-1] = part[:-1, -1] = X.T @ weights
                        part[-1, -1] = weights.sum()
                        out[k, :, j] = part
                        out[j, :, k] = part
            return out.reshape(K * d, K * d)

        return self._summed(work, (K * d, K * d))

    def squares(self, theta: Array, curvature: Curvature) -> Array:
        """See `Passes`."""
        K, d = theta.shape[1:]
        flat = _by_feature(theta)

        def work(piece: _Piece) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):
                D = curvature(piece.predictors(flat, K), piece.rows)[0][:, 0]
                of_features = (piece.X.multiply(piece.X).T @ D.T).T
            return np.concatenate([of_features, D.sum(axis=1)[:, None]], axis=1).ravel()

        return self._summed(work, (K * d,))

    def _summed(self, work: Callable[["_Piece"], Array], shape: tuple[int, ...]) -> Array:
        """Sums over the pieces of each atom."""
        out = np.zeros((len(self.rows), *shape))

        def atom(a: int) -> None:
            # One after the other, since a Hessian of each piece at once could be much more than those kept.
            for piece in self._pieces:
                if piece.atom == a:
                    out[a] += work(piece)

        map_threads(atom, range(len(self.rows)))
        self.rows_read += self._n_rows
        return out


@dataclass(frozen=True)
class _Piece:
    """Some rows of an atom, for one thread."""

    atom: int
    rows: Rows
    X: Any

    def predictors(self, flat: Array, K: int) -> Array:
        """Linear predictors of the rows, (K, m, b), by coefficients of shape (d, K m)."""
        Z = self.X @ flat[:-1]
        Z += flat[-1]
        return np.ascontiguousarray(Z.T).reshape(K, -1, Z.shape[0])


def _by_feature(theta: Array) -> Array:
    """Coefficients (m, K, d) as (d, K m)."""
    return np.ascontiguousarray(theta.transpose(2, 1, 0)).reshape(theta.shape[2], -1)
