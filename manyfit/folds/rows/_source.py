"""`RowSource`: the rows of X, of whatever kind X is."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from manyfit.folds.moments._moments import SummedMoments
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.passes._scan import Scan
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import row_blocks


class Linear(Protocol):
    """Linear predictors ``(x - origin) @ coef + at_origin``, see `manyfit.metrics.LinearPredictors`."""

    @property
    def coef(self) -> Array:
        """Coefficients, (p, m, q), of m settings and q targets."""

    @property
    def at_origin(self) -> Array:
        """Values at the origin, (m, q)."""

    @property
    def origin(self) -> Array:
        """A point amid the rows, (p,)."""


@runtime_checkable
class RowSource(Protocol):
    """The rows of X: whatever the engine does with X, it asks of this object.

    `as_row_source` makes one from X at the border of a search. A source of your own inherits from `HostRows`
    and says how some rows are read; see `register_row_source`.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and columns.
    dtype : dtype
        Type of the numbers, as NumPy names it.
    nnz : int or None
        Number of stored entries; None for dense rows.
    reads_some_rows : bool
        Whether a pass over some rows takes less than one over all.
    samples_pay : bool
        Whether a fit on some rows saves time over a fit on all.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    nnz: int | None
    samples_pay: bool
    reads_some_rows: bool = True

    def take(self, rows: Any) -> Any:
        """Some rows as an array, where they lie.

        Parameters
        ----------
        rows : slice or ndarray of int or bool
            On the host; anything that indexes the rows of a NumPy array, a slice with a step too.

        Returns
        -------
        array of shape (n_rows, p)
            A view or a copy, which the caller does not change.
        """

    def blocks(self, rows: Rows, size: int) -> Iterator[tuple[Rows, Any]]:
        """Some rows as arrays of at most `size` rows, each with its index."""
        for block in row_blocks(rows, size):
            yield block, self.take(block)

    def send(self, array: Any, label: str) -> Any:
        """Copy an array of the host to where the rows lie; None stays None. `label` names the transfer."""
        return array

    def send_numbers(self, numbers: Array | None, label: str) -> Any:
        """`send` in the widest floating dtype of the device; integers that a byte holds cross as bytes."""
        return numbers

    def scan(self) -> Scan:
        """A point amid the rows, and whether all numbers are finite; one pass."""

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        """Moments of ``[X, Y]`` over each atom, with the number of rows read for it.

        Parameters
        ----------
        Y : array of shape (n, q)
            Targets, where the rows lie.
        atoms : sequence of slice or ndarray of int
            Disjoint sets of rows.
        weights : array of shape (n,), optional
            Finite, not negative, where the rows lie.
        in_pieces : bool
            Whether several threads may sum pieces of the atoms.

        Returns
        -------
        list of (Moments, int)
            On the host.
        """

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        """Minimum and maximum of some columns over each atom, (n_atoms, n_columns) each, on the host."""

    def passes(self, atoms: Sequence[Rows], origin: Array | None = None) -> Passes:
        """Passes over some atoms; linear predictors count from `origin`, see `Passes`."""

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Any:
        """Predictions of some rows, all by default, (m, n_rows, q), where they lie; may keep float32."""

    def sample(self, rows: Array) -> "RowSource | None":
        """A copy of some rows, or None if they are better read where they lie."""

    def merge_features(self) -> tuple["RowSource", Any]:
        """The rows in fewer features Z, and T with ``X = Z T'`` as CSR; itself and None if X is dense."""
        return self, None
