"""Sparse rows on the host."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyfit.exceptions import Unsupported
from manyfit.folds.moments._moments import SummedMoments
from manyfit.folds.passes._scan import Scan
from manyfit.folds.passes._sparse import SparsePasses
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.splits._atoms import Array, Rows

DENSE_ONLY = "X is sparse, and moments are summed of dense rows only"


class RowsWithoutMoments(RowSource):
    """Base class of sparse rows, which refuse moments: centred ones are dense."""

    samples_pay = False

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        raise Unsupported(DENSE_ONLY)

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        raise Unsupported(DENSE_ONLY)


class CsrRows(RowsWithoutMoments):
    """Rows of a CSR matrix or array of float32 or float64."""

    def __init__(self, X: Any) -> None:
        self.X, self.shape, self.dtype, self.nnz = X, (X.shape[0], X.shape[1]), X.dtype, int(X.nnz)

    def take(self, rows: Any) -> Any:
        """A CSR matrix."""
        return self.X[rows]

    def some(self, rows: Rows) -> "CsrRows":
        """A copy of some of the rows."""
        return CsrRows(self.X[rows])

    def scan(self) -> Scan:
        """The origin of sparse rows is zero, always."""
        return Scan(None, bool(np.isfinite(self.X.data.sum(dtype=np.float64))))

    def passes(self, atoms: Sequence[Rows], origin: Array | None = None) -> SparsePasses:
        return SparsePasses(self.X, atoms)

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Array:
        X = self.X if rows is None else self.X[rows]
        p, m, q = linear.coef.shape
        flat = linear.coef.reshape(p, m * q)
        Z = X @ flat + (linear.at_origin.ravel() - linear.origin @ flat)
        dtype = np.float32 if keeps_single and self.dtype == np.float32 else np.float64
        return np.ascontiguousarray(Z.reshape(-1, m, q).transpose(1, 0, 2), dtype=dtype)

    def sample(self, rows: Array) -> RowSource | None:
        return CsrRows(self.X[rows])

    def merge_features(self) -> tuple[RowSource, Any]:
        """See `RowSource`; raises `Unsupported` if X has no entry."""
        Z, T = merge_rare_features(self.X)
        if not Z.shape[1]:
            raise Unsupported("X holds nothing but zeros")
        return CsrRows(Z), T


def merge_rare_features(X: Any) -> tuple[Any, Any]:
    """Leave out empty columns of a CSR matrix X, merge those of only one row, and put the frequent first.

    Returns CSR arrays Z, (n, q), and T, (p, q), with ``Z = X @ T``, ``X = Z @ T.T`` and orthonormal columns
    of T. The features of a row that no other row has are rotated so that one of them has their whole length;
    the penalty does not see a rotation. So if w minimises a loss of ``Z @ w`` and ``||w||^2``, then ``T @ w``
    minimises that of ``X @ v`` and ``||v||^2``.
    """
    n, p = X.shape
    count = np.bincount(X.indices, minlength=p)
    # The most frequent first: what is read again and again lies together.
    kept = np.argsort(-count, kind="stable")[: np.count_nonzero(count > 1)]
    row = np.repeat(np.arange(n), np.diff(X.indptr))
    alone = count[X.indices] == 1
    row, column, value = row[alone], X.indices[alone], X.data[alone].astype(np.float64)
    size = np.bincount(row, np.abs(value), minlength=n)
    # In units of their size, so that no square under- or overflows.
    norm = size * np.sqrt(np.bincount(row, (value / np.where(size > 0, size, 1.0)[row]) ** 2, minlength=n))
    own = np.flatnonzero(norm)
    place = np.zeros(n, dtype=np.intp)
    place[own] = kept.size + np.arange(own.size)
    some = norm[row] > 0
    row, column, value = row[some], column[some], value[some]
    T = sp.csr_array(
        (
            np.concatenate([np.ones(kept.size), value / norm[row]]),
            (np.concatenate([kept, column]), np.concatenate([np.arange(kept.size), place[row]])),
        ),
        shape=(p, kept.size + own.size),
    )
    return sp.csr_array(sp.csr_array(X) @ T), T
