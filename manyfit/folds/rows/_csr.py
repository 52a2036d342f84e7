"""Sparse rows on the host."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.exceptions import Unsupported
from manyfit.folds.moments._moments import SummedMoments
from manyfit.folds.passes._rare_features import merge_rare_features
from manyfit.folds.passes._scan import Scan
from manyfit.folds.passes._sparse import SparsePasses
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.splits._atoms import Rows

Array = NDArray[Any]


class CsrRows(RowSource):
    """Rows of a CSR matrix or array of float32 or float64."""

    samples_pay = False

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

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        """Refused: centred moments of sparse rows are dense."""
        raise Unsupported("X is sparse, and moments are summed of dense rows only")

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        """Refused, as moments are."""
        raise Unsupported("X is sparse, and moments are summed of dense rows only")

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
