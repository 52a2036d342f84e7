"""Passes over the rows for linear models: linear predictors of many columns, and their gradients.

A pass reads every row once for all columns together, so that reading X, which is what a single
matrix-vector product spends its time on, is shared by all settings and splits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from manyfit.folds._atoms import AtomGroup, Rows
from manyfit.folds._moments import blocks_of, length_of, middle
from manyfit.folds._threads import blas_threads, map_threads
from manyfit.folds._unsupported import Unsupported
from manyfit.folds._view import View

Array = NDArray[Any]

# Values of X and of the linear predictors in one block of rows: 0.5 MiB of float64, which a second-level
# cache holds while the block is multiplied, changed and multiplied back.
BLOCK_VALUES = 2**16
# Blocks that one thread goes through before it takes the next rows.
PIECE_BLOCKS = 8

Residual = Callable[[Array, Rows, Array], Array]
"""``residual(Z, rows, columns)``: from linear predictors (b, m_a, K) of some rows and columns to what is
multiplied back, of the same shape; may overwrite `Z`."""


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

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        """``sum_i c_i [x_i - origin, 1]' r_i`` over the rows, for each column.

        Parameters
        ----------
        theta : ndarray of shape (p + 1, m, K)
            Coefficients of m columns with K outputs; the last row is the value at the origin.
        counts : ndarray of shape (m, n_atoms)
            How often each column repeats the rows of each atom; those with 0 are not read for it.
        residual : callable
            See `Residual`; called from several threads.

        Returns
        -------
        ndarray of shape (p + 1, m, K)
            float64, on the host.
        """

    def gram(self, D: Array, P: Array | None) -> Array:
        """``sum_i z_i z_i' (x) (diag(D_i) - P_i P_i')`` over the rows of each atom, ``z = [x - origin, 1]``.

        Parameters
        ----------
        D : ndarray of shape (n, K)
            Not negative.
        P : ndarray of shape (n, K) or None
            None: zero.

        Returns
        -------
        ndarray of shape (n_atoms, (p + 1) K, (p + 1) K)
            Coefficients in the order of a (p + 1, K) array.
        """

    def squares(self, D: Array) -> Array:
        """The diagonal of `gram` without P, of shape (n_atoms, (p + 1) K)."""


class DensePasses:
    """Passes over a dense matrix, in blocks that fit a cache.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        float32, float64 or integer; on the host; converted to float64 a block at a time.
    rows : sequence of slice or ndarray of int
        The atoms.
    origin : ndarray of shape (p,), optional
        See `Passes`.
    """

    def __init__(self, X: Array, rows: Sequence[Rows], origin: Array | None = None) -> None:
        self.X, self.rows = X, rows
        self.origin = middle(X, np.empty((len(X), 0)), slice(0, len(X))) if origin is None else origin

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        """See `Passes`."""
        d, _, K = theta.shape
        used = [np.flatnonzero(counts[:, a]) for a in range(len(self.rows))]
        parts = [np.ascontiguousarray(theta[:, columns]).reshape(d, -1) for columns in used]
        size = max(128, min(BLOCK_VALUES // (d + max(part.shape[1] for part in parts)), 4096))
        pieces = [
            (a, piece)
            for a, rows in enumerate(self.rows)
            if used[a].size
            for piece in blocks_of(rows, PIECE_BLOCKS * size)
        ]

        def work(item: tuple[int, Rows]) -> Array:
            a, piece = item
            total = np.zeros(parts[a].shape)
            buffer = np.empty((min(size, length_of(piece)), d))
            buffer[:, -1] = 1.0
            for block in blocks_of(piece, size):
                B = buffer[: length_of(block)]
                np.subtract(self.X[block], self.origin, out=B[:, :-1])
                R = residual((B @ parts[a]).reshape(len(B), -1, K), block, used[a])
                total += B.T @ R.reshape(len(B), -1)
            return total

        out = np.zeros(theta.shape)
        for (a, _), part in zip(pieces, map_threads(work, pieces), strict=True):
            out[:, used[a]] += part.reshape(d, -1, K) * counts[used[a], a][:, None]
        return out

    def gram(self, D: Array, P: Array | None) -> Array:
        """See `Passes`."""
        d, K = self.X.shape[1] + 1, D.shape[1]
        size = max(64, BLOCK_VALUES // (d if P is None else d * K))
        largest = max(length_of(rows) for rows in self.rows)
        part = max(16 * size, largest // max(1, blas_threads()) + 1)
        pieces = [(a, piece) for a, rows in enumerate(self.rows) for piece in blocks_of(rows, part)]

        def work(item: tuple[int, Rows]) -> Array:
            total = np.zeros((d, K, d, K))
            outer = np.zeros((d * K, d * K))
            B = np.empty((min(size, length_of(item[1])), d))
            for block in blocks_of(item[1], size):
                rows = B[: length_of(block)]
                np.subtract(self.X[block], self.origin, out=rows[:, :-1])
                rows[:, -1] = 1.0
                if P is not None:
                    M = (rows[:, :, None] * P[block][:, None, :]).reshape(len(rows), -1)
                    outer += M.T @ M
                for k in range(K):
                    root = rows * np.sqrt(D[block, k])[:, None]
                    total[:, k, :, k] += root.T @ root
            return total.reshape(d * K, d * K) - outer

        out = np.zeros((len(self.rows), d * K, d * K))
        for (a, _), found in zip(pieces, map_threads(work, pieces), strict=True):
            out[a] += found
        return out

    def squares(self, D: Array) -> Array:
        """See `Passes`."""
        d, K = self.X.shape[1] + 1, D.shape[1]
        out = np.zeros((len(self.rows), d, K))
        for a, rows in enumerate(self.rows):
            for block in blocks_of(rows, max(64, BLOCK_VALUES // d)):
                out[a, :-1] += ((self.X[block] - self.origin) ** 2).T @ D[block]
                out[a, -1] += D[block].sum(axis=0)
        return out.reshape(len(self.rows), d * K)


class SparsePasses:
    """Passes over a CSR matrix: rows one way, features the other, so that threads share no sums.

    Parameters
    ----------
    X : csr_array or csr_matrix of shape (n, p)
        On the host; kept, and once more by columns.
    rows : sequence of slice or ndarray of int
        The atoms.

    Notes
    -----
    A pass keeps one number a row, column and output, beside the result.
    """

    def __init__(self, X: Any, rows: Sequence[Rows]) -> None:
        self.rows, self.n = rows, X.shape[0]
        self.origin = np.zeros(X.shape[1])
        by_column = X.tocsc()
        n_pieces = max(1, blas_threads())
        self._atoms = [X[piece] for piece in rows]
        ends = np.linspace(0, X.shape[1], n_pieces + 1).astype(int)
        self._features = [by_column[:, start:stop].T.tocsr() for start, stop in pairwise(ends)]

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        """See `Passes`."""
        d, m, K = theta.shape
        R = np.zeros((self.n, m, K))

        def forward(a: int) -> None:
            columns = np.flatnonzero(counts[:, a])
            if columns.size:
                part = np.ascontiguousarray(theta[:, columns]).reshape(d, -1)
                Z = self._atoms[a] @ part[:-1]
                Z += part[-1]
                rows = self.rows[a]
                out = residual(Z.reshape(-1, columns.size, K), rows, columns)
                index = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
                R[index[:, None], columns] = out * counts[columns, a][:, None]

        map_threads(forward, range(len(self.rows)))
        flat = R.reshape(self.n, -1)
        back = map_threads(lambda part: part @ flat, self._features)
        return np.concatenate([*back, flat.sum(axis=0)[None]]).reshape(d, m, K)

    def gram(self, D: Array, P: Array | None) -> Array:
        """See `Passes`."""
        d, K = len(self.origin) + 1, D.shape[1]
        out = np.zeros((len(self.rows), d, K, d, K))
        for a, (rows, A) in enumerate(zip(self.rows, self._atoms, strict=True)):
            for k in range(K):
                for j in range(k + 1):
                    weights = D[rows, k] if j == k else np.zeros(A.shape[0])
                    if P is not None:
                        weights = weights - P[rows, k] * P[rows, j]
                    if not weights.any():
                        continue
                    scaled = scipy.sparse.diags_array(weights) @ A
                    part = np.empty((d, d))
                    part[:-1, :-1] = (A.T @ scaled).toarray()
                    part[-1, :-1] = part[:-1, -1] = A.T @ weights
                    part[-1, -1] = weights.sum()
                    out[a, :, k, :, j] = part
                    out[a, :, j, :, k] = part
        return out.reshape(len(self.rows), d * K, d * K)

    def squares(self, D: Array) -> Array:
        """See `Passes`."""
        features = np.stack(
            [A.multiply(A).T @ D[rows] for rows, A in zip(self.rows, self._atoms, strict=True)]
        )
        ones = np.stack([D[rows].sum(axis=0) for rows in self.rows])[:, None]
        return np.concatenate([features, ones], axis=1).reshape(len(self.rows), -1)


@dataclass(frozen=True)
class PassData:
    """Training sets that passes go over: rows of one X, seen behind the steps of each split.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, p)
        On the host.
    y : ndarray of shape (n,)
        Numbers or labels.
    groups : sequence of AtomGroup
        Atoms of consecutive splits; together they have all splits.
    weight : ndarray of shape (n,) or None
        Sample weights of the fit.
    views : sequence of View or None
        For each split what its steps make of X; None without steps.
    wholes : sequence of View or None
        The same for all rows of each group.
    memory_limit : int
        Bytes that all that is kept beside X may take, as far as it can be kept under it.
    """

    X: Any
    y: Array
    groups: Sequence[AtomGroup]
    weight: Array | None
    views: Sequence[View | None]
    wholes: Sequence[View | None]
    memory_limit: int = 2**30

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len(self.views)


def require_classes(codes: Array, n_classes: int, groups: Sequence[AtomGroup]) -> None:
    """Raise `Unsupported` unless every training part holds every class: scikit-learn drops missing ones.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Class of each row, from 0.
    n_classes : int
        Number of classes.
    groups : sequence of AtomGroup
        The splits.
    """
    if n_classes < 2:
        raise Unsupported("y has one class")
    for group in groups:
        held = np.stack([np.bincount(codes[rows], minlength=n_classes) for rows in group.rows])
        if not (group.train @ held).all():
            raise Unsupported("a class is missing in a training part")


def passes_over(X: Any, group: AtomGroup) -> Passes:
    """Passes over the rows of a group, dense or sparse.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, p)
        On the host.
    group : AtomGroup
        The atoms.

    Returns
    -------
    Passes
        Nothing is read yet; of a sparse X the columns are gathered.
    """
    return SparsePasses(X, group.rows) if hasattr(X, "tocsc") else DensePasses(X, group.rows)
