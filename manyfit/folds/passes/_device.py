"""Passes over dense rows on a device: the rows stay on it, and only small sums are copied to the host.

A pass sends the coefficients to the device and copies the sums of all atoms back in one transfer. No other
array as long as X crosses than the index of each atom that is no slice, and that one crosses once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.arrays import (
    array_namespace,
    block_size,
    device,
    float_dtype,
    numpy_dtype,
    numpy_float_dtype,
    to_device_of,
    to_host_together,
)
from manyfit.folds._blas_threads import before_pass
from manyfit.folds.passes._protocol import QUICK_COLUMNS, Curvature, Passes, Residual
from manyfit.folds.passes._samples import DenseSample
from manyfit.folds.passes._scan import scan_device
from manyfit.folds.splits._atoms import Array, Rows
from manyfit.folds.splits._row_index import n_rows, row_blocks

# An array of any library on its device.
DeviceArray = Any

# Numbers of the temporaries of one block of rows: 64 MiB of float64. A call of the device takes as long as
# reading some MiB of its memory.
BLOCK_VALUES = 2**23
# A block is at most this part of X, but it has so many numbers that its calls are worth their cost.
BLOCK_PARTS = 8
LEAST_VALUES = 2**20
# Arrays as large as the linear predictors that the first and the second derivatives of a loss take.
OF_GRADIENT, OF_CURVATURE = 2, 4


class DevicePasses(Passes):
    """Passes over a dense matrix of any namespace of the array API, in blocks, on its device.

    Products are of float64 if the device has it, else of float32. Each call of `gradient`, `gram` and
    `squares` synchronises once, and so does the search for an origin if none is given.
    """

    quick_columns, kept_per_column = QUICK_COLUMNS, 0

    def __init__(self, X: DeviceArray, rows: Sequence[Rows], origin: Array | None = None) -> None:
        self.X, self.rows, self.rows_read = X, rows, 0
        self._xp, self._dtype = array_namespace(X), float_dtype(X)
        self.eps = float(self._xp.finfo(self._dtype).eps)
        self.origin = scan_device(X)[0] if origin is None else origin
        self._origin = self._send(self.origin, "middles of columns")
        self._indices = [self._index(one) for one in rows]
        self._apart = any(not isinstance(one, slice) for one in rows)
        self._last: tuple[Array, int, list[_Part]] | None = None

    def send(self, array: Array) -> DeviceArray:
        return self._send(array, "coefficients")

    def _send(self, array: Array, label: str) -> DeviceArray:
        return to_device_of(np.ascontiguousarray(array, dtype=numpy_float_dtype(self.X)), self.X, label=label)

    def sample(self, rows: Rows) -> DenseSample:
        index = self._index(rows)
        return DenseSample(self._centred(index), index)

    def _index(self, rows: Rows) -> DeviceArray:
        return rows if isinstance(rows, slice) else to_device_of(rows, self.X, label="indices")

    def to_host(self, sums: Sequence[DeviceArray]) -> list[Array]:
        return self._summed(sums, "second derivatives")

    def _summed(self, sums: Sequence[DeviceArray], label: str) -> list[Array]:
        return [one.astype(np.float64, copy=False) for one in to_host_together(*sums, label=label)]

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        before_pass()
        xp, (m, K, d) = self._xp, theta.shape
        flat = self.send(theta.transpose(1, 0, 2).reshape(K * m, d))
        out = xp.zeros_like(flat)
        with np.errstate(over="ignore", invalid="ignore"):  # for libraries that compute with NumPy
            for part in self._parts(counts, K):
                own = flat if part.place is None else xp.take(flat, part.place, axis=0)
                W, at = own[:, :-1], own[:, -1:]
                G, s = xp.zeros_like(W), xp.zeros_like(at)
                for rows, B in self._blocks(part.atom, _width(self.X, self._apart, own.shape[0], K)):
                    Z = W @ B.T
                    Z += at
                    Z = xp.reshape(Z, (K, -1, B.shape[0]))
                    R = xp.reshape(residual(Z, rows, part.columns), (own.shape[0], B.shape[0]))
                    G += R @ B
                    s += xp.sum(R, axis=1, keepdims=True)
                    del B, Z, R  # before the next block
                total = xp.concat([G, s], axis=1)
                if part.times is not None:
                    total *= part.times
                if part.back is not None:
                    # Columns of other atoms take the zeros behind the last one.
                    total = xp.take(xp.concat([total, xp.zeros_like(total[:1, :])]), part.back, axis=0)
                out += total
                self.rows_read += n_rows(self.rows[part.atom])
        return self._summed([out], "gradients")[0].reshape(K, m, d).transpose(1, 0, 2)

    def gram(
        self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None
    ) -> DeviceArray:
        before_pass()
        xp, (K, d), narrow = self._xp, theta.shape[1:], self._narrow(dtype)
        roots = self._roots(theta, curvature, features, narrow)
        size = K * (d if features is None else len(features) + 1)
        width = gram_width(self.X, self._apart, K, size // K, 4 if narrow == xp.float32 else 8)
        out = xp.zeros((len(self.rows), size, size), dtype=self._dtype, device=device(self.X))
        with np.errstate(over="ignore", invalid="ignore"):
            for a in range(len(self.rows)):
                total: DeviceArray = None
                for rows, B in self._blocks(a, width):
                    product = squared(roots(rows, B), K)
                    if total is None:
                        total = xp.astype(product, self._dtype)
                    else:
                        total += product
                    del B, product
                out[a, :, :] = xp.reshape(hessian(total, K), (size, size))
        self.rows_read += sum(map(n_rows, self.rows))
        return out

    def _roots(
        self, theta: Array, curvature: Curvature, features: Array | None, narrow: Any
    ) -> Callable[[DeviceArray, DeviceArray], list[DeviceArray]]:
        """`curvature_roots` at `theta` as a function of some rows and of their numbers, less the origin."""
        xp, flat = self._xp, self.send(theta[0])
        taken = None if features is None else to_device_of(features, self.X, label="indices")

        def roots(rows: DeviceArray, B: DeviceArray) -> list[DeviceArray]:
            Z = flat[:, :-1] @ B.T
            Z += flat[:, -1:]
            D, P = curvature(Z[:, None, :], rows)
            B = xp.astype(B if taken is None else xp.take(B, taken, axis=1), narrow, copy=False)
            B = xp.concat([B, xp.ones_like(B[:, :1])], axis=1)
            return curvature_roots(B, D[:, 0, :], None if P is None else P[:, 0, :])

        return roots

    def _narrow(self, dtype: Any) -> Any:
        """The dtype of the device in which products of a precision are computed."""
        return self._xp.float32 if np.dtype(dtype) == np.float32 else self._dtype

    def squares(self, theta: Array, curvature: Curvature) -> DeviceArray:
        before_pass()
        xp, (K, d) = self._xp, theta.shape[1:]
        flat, totals = self.send(theta[0]), []
        with np.errstate(over="ignore", invalid="ignore"):
            for a in range(len(self.rows)):
                total = xp.zeros_like(flat)
                for rows, B in self._blocks(a, 2 * d + (OF_CURVATURE + 1) * K):
                    D = curvature((flat[:, :-1] @ B.T + flat[:, -1:])[:, None, :], rows)[0][:, 0, :]
                    total += xp.concat([D @ (B * B), xp.sum(D, axis=1, keepdims=True)], axis=1)
                    del B, D
                totals.append(total)
        self.rows_read += sum(map(n_rows, self.rows))
        return xp.reshape(xp.stack(totals), (-1, K * d))

    def _blocks(self, a: int, width: float) -> Iterator[tuple[DeviceArray, DeviceArray]]:
        """Blocks of rows of an atom, less the origin; `width`: numbers of the temporaries of a row."""
        rows, index = self.rows[a], self._indices[a]
        for block in row_blocks(slice(0, n_rows(rows)), _rows_of_block(self.X.shape[0], width)):
            assert isinstance(block, slice)
            if isinstance(rows, slice):
                own = slice(rows.start + block.start, rows.start + block.stop)
            else:
                own = index[block]
            yield own, self._centred(own)

    def _centred(self, rows: DeviceArray) -> DeviceArray:
        xp = self._xp
        part = self.X[rows, :] if isinstance(rows, slice) else xp.take(self.X, rows, axis=0)
        if not xp.isdtype(part.dtype, "real floating"):
            part = xp.astype(part, self._dtype)
        return part - self._origin

    def _parts(self, counts: Array, K: int) -> list["_Part"]:
        """The columns of each atom in use; those of the pass before if `counts` are the same."""
        if self._last is None or self._last[1] != K or not np.array_equal(self._last[0], counts):
            found = [self._part(a, counts[:, a], K) for a in range(len(self.rows)) if counts[:, a].any()]
            self._last = counts.copy(), K, found
        return self._last[2]

    def _part(self, a: int, counts: Array, K: int) -> "_Part":
        m, columns = len(counts), np.flatnonzero(counts)
        own = counts[columns]
        times = None if (own == 1.0).all() else self._send(np.tile(own, K)[:, None], "counts of rows")
        if columns.size == m:
            return _Part(a, columns, None, None, times)
        place = (np.arange(K)[:, None] * m + columns).ravel()
        back = np.full(K * m, place.size)
        back[place] = np.arange(place.size)
        own_place, own_back = (to_device_of(one, self.X, label="indices") for one in (place, back))
        return _Part(a, columns, own_place, own_back, times)


def _rows_of_block(n: int, width: float) -> int:
    """Rows of a block, of `n` in all; `width`: numbers that the temporaries take for a row."""
    most = min(BLOCK_VALUES / width, max(n / BLOCK_PARTS, LEAST_VALUES / width))
    return block_size(max(1, int(most)))


def _taken_width(X: DeviceArray, apart: bool) -> float:
    """Numbers of float64 that a gathered or converted row takes before the origin is subtracted."""
    dtype = numpy_dtype(X)
    gathered = dtype.itemsize / 8 if apart else 0.0
    return X.shape[1] * max(gathered, 0.0 if dtype.kind == "f" else 1.0 + gathered)


def _width(X: DeviceArray, apart: bool, n_columns: int, K: int) -> float:
    """Numbers of float64 that `gradient` takes for a row; `n_columns` counts those of all outputs."""
    # The maximum over the outputs, and gathered targets.
    beside_it = (n_columns // K if K > 1 else 0) + (K if apart else 0)
    return X.shape[1] + max(_taken_width(X, apart), OF_GRADIENT * n_columns + beside_it)


def gram_width(X: DeviceArray, apart: bool, K: int, d: int, size: int) -> float:
    """Numbers of float64 that `gram` takes for a row, with products in numbers of `size` bytes."""
    p, derived = X.shape[1], (OF_CURVATURE + 2) * K
    narrow = d * size / 8
    wide = p if size == 8 and d == p + 1 else p + narrow
    joint = (K + 2) * narrow if K > 1 else 2 * narrow
    return max(p + _taken_width(X, apart), p + derived, max(wide, joint) + 3 * K)


@dataclass(frozen=True)
class _Part:
    """Columns that use an atom, in the order (output, column): m_a of m columns of K outputs.

    `place`, (K m_a,): their positions among all, None for all. `back`, (K m,): the position of each of all
    among them, ``K m_a`` for the others. `times`, (K m_a, 1): how often each repeats the rows, None for once.
    """

    atom: int
    columns: Array
    place: DeviceArray
    back: DeviceArray
    times: DeviceArray


def curvature_roots(B: DeviceArray, D: DeviceArray, P: DeviceArray) -> list[DeviceArray]:
    """Rows `B`, (b, d), times roots of curvatures (K, b): a matrix an output, or one for all with P."""
    (b, d), K, xp = B.shape, D.shape[0], array_namespace(B)
    if P is None:
        return [B * xp.astype(xp.sqrt(D[k, :]), B.dtype)[:, None] for k in range(K)]
    # One output after the other: all at once would be copied into a matrix.
    M = xp.empty((b, K * d), dtype=B.dtype, device=device(B))
    for k in range(K):
        M[:, k * d : (k + 1) * d] = B * xp.astype(P[k, :], B.dtype)[:, None]
    return [M]


def squared(roots: Sequence[DeviceArray], K: int) -> DeviceArray:
    """Second derivatives from `curvature_roots`: by each output twice, (K, d, d), or by pairs, (K, d, K, d).

    Those by pairs are minus the derivatives, and wrong where an output meets itself; see `hessian`.
    """
    xp = array_namespace(roots[0])
    products = [root.T @ root for root in roots]
    if len(roots) == K:
        return xp.stack(products)
    d = roots[0].shape[1] // K
    return xp.reshape(products[0], (K, d, K, d))


def hessian(total: DeviceArray, K: int) -> DeviceArray:
    """A Hessian (K, d, K, d) from what `squared` gives."""
    xp = array_namespace(total)
    if total.ndim == 3 and K == 1:
        return total[:, :, None, :]
    same = xp.eye(K, dtype=total.dtype, device=device(total))[:, None, :, None]
    if total.ndim == 3:
        return total[:, :, None, :] * same
    # The blocks of one output twice follow from the others: they sum to zero.
    mixed = xp.where(same > 0.0, xp.zeros_like(total), total)
    return xp.sum(mixed, axis=0)[None, :, :, :] * same - mixed
