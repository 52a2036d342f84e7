"""Passes over a small X on a device: each of its calls serves the rows of all atoms at once.

Starting a call takes a device longer than computing with some MiB, so the number of calls decides. A column
is computed on rows that it does not train on, too, where its derivatives are set to zero.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from manyfit.arrays import block_size, device
from manyfit.folds._blas_threads import before_pass
from manyfit.folds.passes._device import (
    OF_GRADIENT,
    DeviceArray,
    DevicePasses,
    gram_width,
    hessian,
    squared,
)
from manyfit.folds.passes._protocol import Curvature, Residual
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows

# Numbers of a pass over a small X, with its rows, which are kept beside X: 256 MiB of float64. More would be
# much of the memory of a small device.
SMALL_VALUES = 2**25


class SmallDevicePasses(DevicePasses):
    """`DevicePasses` that keep the rows of all atoms, less the origin, while one block holds a pass.

    Passes of more columns go through the atoms one by one.
    """

    def __init__(self, X: DeviceArray, rows: Sequence[Rows], origin: Array | None = None) -> None:
        super().__init__(X, rows, origin)
        self._ends = np.cumsum([0, *map(n_rows, rows)])
        self._kept: tuple[DeviceArray, DeviceArray] | None = None  # rows of all atoms, and their index
        self._atoms: DeviceArray = None  # the atom of each of these rows
        self._factors: tuple[Array, int, DeviceArray, DeviceArray] | None = None

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        m, K, d = theta.shape
        if not self._holds((OF_GRADIENT + 2) * m * K):
            return super().gradient(theta, counts, residual)
        before_pass()
        xp, (B, rows), n = self._xp, self._rows(), int(self._ends[-1])
        trains, times = self._repeats(counts, K)
        flat = self.send(theta.transpose(1, 0, 2).reshape(K * m, d))
        with np.errstate(over="ignore", invalid="ignore"):  # for libraries that compute with NumPy
            Z = flat[:, :-1] @ B.T
            Z += flat[:, -1:]
            R = xp.reshape(residual(xp.reshape(Z, (K, m, n)), rows, np.arange(m)), (K * m, n))
            R = xp.where(trains, R, xp.zeros_like(R))  # what overflows there does not count
            if times is not None:
                R *= times
            out = xp.concat([R @ B, xp.sum(R, axis=1, keepdims=True)], axis=1)
        self.rows_read += n
        return self._summed([out], "gradients")[0].reshape(K, m, d).transpose(1, 0, 2)

    def gram(
        self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None
    ) -> DeviceArray:
        K, d = theta.shape[1], theta.shape[2] if features is None else len(features) + 1
        narrow = self._narrow(dtype)
        if not self._holds(gram_width(self.X, self._apart, K, d, 4 if narrow == self._xp.float32 else 8)):
            return super().gram(theta, curvature, dtype, features)
        before_pass()
        xp, (B, rows) = self._xp, self._rows()
        with np.errstate(over="ignore", invalid="ignore"):
            roots = self._roots(theta, curvature, features, narrow)(rows, B)
            atoms = [
                xp.astype(squared([root[start:stop, :] for root in roots], K), self._dtype, copy=False)
                for start, stop in pairwise(self._ends.tolist())
            ]
            out = xp.stack([hessian(total, K) for total in atoms])
        self.rows_read += int(self._ends[-1])
        return xp.reshape(out, (-1, K * d, K * d))

    def _holds(self, width: float) -> bool:
        """Whether one block holds all rows with temporaries of `width` numbers a row."""
        n = int(self._ends[-1])
        # Smaller blocks are asked for where memory has run out.
        return n * (self.X.shape[1] + width) <= SMALL_VALUES and block_size(n) == n

    def _rows(self) -> tuple[DeviceArray, DeviceArray]:
        """The rows of all atoms, one atom after the other, less the origin, and their index."""
        if self._kept is None:
            slices = [one for one in self.rows if isinstance(one, slice)]
            adjoin = all(one.stop == two.start for one, two in pairwise(slices))
            if len(slices) == len(self.rows) and adjoin and slices:
                index = slice(slices[0].start, slices[-1].stop)
            else:
                arange, own = self._xp.arange, {"dtype": self._xp.int64, "device": device(self.X)}
                parts = [
                    arange(rows.start, rows.stop, **own) if isinstance(rows, slice) else index
                    for rows, index in zip(self.rows, self._indices, strict=True)
                ]
                index = self._xp.concat(parts)
            self._kept = self._centred(index), index
        return self._kept

    def _repeats(self, counts: Array, K: int) -> tuple[DeviceArray, DeviceArray]:
        """Whether each column of each output trains on each row, and how often if that is not once."""
        if self._factors is None or self._factors[1] != K or not np.array_equal(self._factors[0], counts):
            xp = self._xp
            if self._atoms is None:
                own = {"dtype": xp.int64, "device": device(self.X)}
                self._atoms = xp.concat([xp.full(n_rows(one), a, **own) for a, one in enumerate(self.rows)])
            repeats = xp.take(self._send(np.tile(counts, (K, 1)), "counts of rows"), self._atoms, axis=1)
            once = np.isin(counts, (0.0, 1.0)).all()
            self._factors = counts.copy(), K, repeats > 0.0, None if once else repeats
        return self._factors[2], self._factors[3]
