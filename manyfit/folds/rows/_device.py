"""Dense rows on a device, or of any library of the array API."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyfit.arrays import (
    array_namespace,
    block_size,
    device,
    float_dtype,
    numpy_dtype,
    to_device,
    to_device_of,
)
from manyfit.folds.moments._device import device_column_ranges, sum_device_atoms
from manyfit.folds.moments._moments import SummedMoments
from manyfit.folds.passes._protocol import Passes
from manyfit.folds.passes._scan import Scan, scan_device
from manyfit.folds.rows._source import Linear, RowSource
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import take_rows

# Values of rows, or of predictions, in one product: 32 MiB of float64.
PREDICTED_VALUES = 2**22


class DeviceRows(RowSource):
    """Rows of an array of any library of the array API; they stay on its device."""

    nnz = None
    samples_pay = True

    def __init__(self, X: Any) -> None:
        self.X, self.shape, self.dtype = X, (int(X.shape[0]), int(X.shape[1])), numpy_dtype(X)

    def take(self, rows: Any) -> Any:
        return take_rows(self.X, rows)

    def send(self, array: Any, label: str) -> Any:
        return None if array is None else to_device_of(array, self.X, label=label)

    def send_numbers(self, numbers: Array | None, label: str) -> Any:
        if numbers is None:
            return None
        xp, dtype = array_namespace(self.X), float_dtype(self.X)
        if fits_a_byte(numbers):
            numbers = numbers.astype(np.int8)
        elif dtype == xp.float32:
            numbers = numbers.astype(np.float32)
        return xp.astype(self.send(numbers, label), dtype, copy=False)

    def scan(self) -> Scan:
        return Scan(*scan_device(self.X))

    def moments(
        self, Y: Any, atoms: Sequence[Rows], weights: Any = None, *, in_pieces: bool = True
    ) -> SummedMoments:
        return sum_device_atoms(self.X, Y, atoms, weights)

    def ranges(self, atoms: Sequence[Rows], columns: Array) -> tuple[Array, Array]:
        return device_column_ranges(self.X, atoms, columns)

    def passes(self, atoms: Sequence[Rows], origin: Array | None = None) -> Passes:
        from manyfit.folds.passes._small_device import SmallDevicePasses  # searches on the host do without

        return SmallDevicePasses(self.X, atoms, origin)

    def predict(self, linear: Linear, rows: Rows | None = None, keeps_single: bool = True) -> Any:
        X, place = self.X if rows is None else take_rows(self.X, rows), device(self.X)
        xp, dtype = array_namespace(X), float_dtype(X)
        p, m, q = linear.coef.shape
        # One array is sent, not two.
        both = np.vstack([linear.coef.reshape(p, m * q), linear.at_origin.ravel()])
        sent = xp.astype(to_device(both, place, xp, label="coefficients"), dtype, copy=False)
        origin = to_device(linear.origin, place, xp, label="middles of columns")
        origin = xp.astype(origin, dtype, copy=False)
        kept = xp.float32 if keeps_single and X.dtype == xp.float32 else dtype
        size = max(1, block_size(PREDICTED_VALUES) // max(p, m * q, 1))
        parts = []
        for start in range(0, X.shape[0], size):
            block = xp.astype(X[start : min(start + size, X.shape[0]), :], dtype, copy=False) - origin
            parts.append(xp.astype(block @ sent[:-1, :] + sent[-1:, :], kept, copy=False))
        out = parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)
        return xp.permute_dims(xp.reshape(out, (-1, m, q)), (1, 0, 2))

    def sample(self, rows: Array) -> RowSource | None:
        """None, since the memory of a device is scarce."""
        return None


def fits_a_byte(numbers: Array) -> bool:
    """Whether all numbers of a NumPy array are integers that a byte holds."""
    with np.errstate(invalid="ignore"):  # a cast of a number that no byte holds
        return bool((numbers.astype(np.int8) == numbers).all())
