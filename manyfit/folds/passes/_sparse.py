"""Passes over sparse rows on the host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse

from manyfit.folds._blas_threads import blas_threads, map_threads
from manyfit.folds.passes._protocol import EPS, QUICK_SPARSE_COLUMNS, Curvature, Passes, Residual, by_outputs
from manyfit.folds.passes._samples import SparseSample
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows, row_blocks

# Fewest rows that one thread takes at a time.
MIN_SPARSE_ROWS = 256


class SparsePasses(Passes):
    """Passes over a CSR matrix, forward by rows and back by features, so that threads share no sums.

    X is kept twice, by rows in the order of the atoms and by columns. A pass keeps one number for each row,
    column and output, beside the result. `n_parts`: pieces of the rows and columns that threads share; None
    for as many as there are threads.
    """

    eps, quick_columns = EPS, QUICK_SPARSE_COLUMNS
    single_is_quicker = False
    n_parts: int | None = None

    def __init__(self, X: Any, rows: Sequence[Rows]) -> None:
        self.X, self.rows, self.rows_read = X, rows, 0
        self.origin = np.zeros(X.shape[1])
        self.kept_per_column = 3 * X.shape[0]
        self._n_rows = sum(map(n_rows, rows))

    @property
    def _n_pieces(self) -> int:
        return self.n_parts or max(1, blas_threads())

    @cached_property
    def _pieces(self) -> list["_Piece"]:
        """The rows of the atoms, in pieces."""
        size = max(MIN_SPARSE_ROWS, self._n_rows // (4 * self._n_pieces))
        return [
            _Piece(a, piece, self.X[piece])
            for a, own in enumerate(self.rows)
            for piece in row_blocks(own, size)
        ]

    @cached_property
    def _features(self) -> list[tuple[slice, Any]]:
        """The columns in pieces, which are by features."""
        by_column = scipy.sparse.vstack([piece.X for piece in self._pieces], format="csc")
        ends = np.linspace(0, self.X.shape[1], self._n_pieces + 1).astype(int)
        return [(slice(start, stop), by_column[:, start:stop].T.tocsr()) for start, stop in pairwise(ends)]

    def sample(self, rows: Rows) -> SparseSample:
        return SparseSample(self.X[rows], rows)

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        m, K, _ = theta.shape
        flat = _by_feature(theta)
        ends = np.cumsum([0, *(piece.X.shape[0] for piece in self._pieces)])
        R = np.zeros((int(ends[-1]), K, m))
        used = [np.flatnonzero(own) for own in counts.T]

        def forward(i: int) -> None:
            piece = self._pieces[i]
            columns = used[piece.atom]
            if columns.size:
                with np.errstate(over="ignore", invalid="ignore"):  # set for each thread
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
            X = piece.X if features is None else piece.X[:, features]

            def summed(weights: Array) -> Array:
                part = np.empty((d, d))
                part[:-1, :-1] = (X.T @ scipy.sparse.diags_array(weights) @ X).toarray()
                part[-1, :-1] = part[:-1, -1] = X.T @ weights
                part[-1, -1] = weights.sum()
                return part

            with np.errstate(over="ignore", invalid="ignore"):
                D, P = curvature(piece.predictors(flat, K), piece.rows)
                return by_outputs(D[:, 0], None if P is None else P[:, 0], d, summed)

        return self._summed(work, (K * d, K * d))

    def squares(self, theta: Array, curvature: Curvature) -> Array:
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
            # One piece after the other: a Hessian for each piece at once could take much more memory.
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
