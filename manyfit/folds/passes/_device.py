"""Passes over rows that lie on a device: rows stay there, and what is small comes home, once a pass.

Coefficients go there and sums come back, in one transfer of all atoms together; nothing of the size of the
rows crosses but the index of atoms that are no slices, and that once.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.arrays import (
    array_namespace,
    block_size,
    device,
    float_dtype,
    numpy_dtype,
    numpy_float_dtype,
    to_device_of,
    to_host,
    to_host_together,
)
from manyfit.folds._blas_threads import before_pass
from manyfit.folds.moments._moments import SAMPLED_ROWS, middle
from manyfit.folds.passes._passes import Curvature, Residual
from manyfit.folds.rows._index import n_rows, row_blocks
from manyfit.folds.splits._atoms import Rows

Array = NDArray[Any]
# Of any library, on its device.
There = Any

# Numbers beside X that are worked on at a time: 64 MiB of float64. Each step is a call or two of the device,
# which take as long as some MiB of memory to go over.
BLOCK_VALUES = 2**23
# A block is at most this part of X, unless X is hardly larger than what calls cost: so many numbers.
BLOCK_PARTS = 8
LEAST_VALUES = 2**20
# Arrays of the size of the linear predictors, with these, that a loss is derived in once, or twice.
OF_GRADIENT, OF_CURVATURE = 2, 4


class DevicePasses:
    """Passes over a dense matrix of any namespace of the array API, where it lies.

    Products are of float64 where the device has it, else of float32, whatever X holds.

    Parameters
    ----------
    X : array of shape (n, p)
        Real numbers; read in blocks, never copied as a whole.
    rows : sequence of slice or ndarray of int
        The atoms; on the host.
    origin : ndarray of shape (p,), optional
        See `Passes`; on the host. It takes a synchronisation to find one.

    Notes
    -----
    One synchronisation for each call of `gradient`, `gram` and `squares`.
    """

    def __init__(self, X: There, rows: Sequence[Rows], origin: Array | None = None) -> None:
        self.X, self.rows, self.rows_read = X, rows, 0
        self._xp, self._dtype = array_namespace(X), float_dtype(X)
        self.eps = float(self._xp.finfo(self._dtype).eps)
        self.origin = scan(X)[0] if origin is None else origin
        self._origin = self._sent(self.origin, "middles of columns")
        self._there: list[There] = [
            rows if isinstance(rows, slice) else to_device_of(rows, X, label="indices") for rows in rows
        ]
        self._apart = any(not isinstance(one, slice) for one in rows)
        self._last: tuple[Array, int, list[_Part]] | None = None

    def put(self, array: Array) -> There:
        """See `Passes`."""
        return self._sent(array, "coefficients")

    def _sent(self, array: Array, label: str) -> There:
        return to_device_of(np.ascontiguousarray(array, dtype=numpy_float_dtype(self.X)), self.X, label=label)

    def some(self, rows: Rows) -> tuple[There, There]:
        """See `Passes`."""
        there = rows if isinstance(rows, slice) else to_device_of(rows, self.X, label="indices")
        return self._centred(there), there

    def home(self, sums: Sequence[There]) -> list[Array]:
        """See `Passes`."""
        return self._summed(sums, "second derivatives")

    def _summed(self, sums: Sequence[There], label: str) -> list[Array]:
        return [one.astype(np.float64, copy=False) for one in to_host_together(*sums, label=label)]

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        """See `Passes`."""
        before_pass()
        xp, (m, K, d) = self._xp, theta.shape
        flat = self.put(theta.transpose(1, 0, 2).reshape(K * m, d))
        out = xp.zeros_like(flat)
        with np.errstate(over="ignore", invalid="ignore"):  # of libraries that compute by NumPy
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
                    del B, Z, R  # before there is another block
                total = xp.concat([G, s], axis=1)
                if part.times is not None:
                    total *= part.times
                if part.back is not None:
                    # What is not of this atom takes the zeros behind the last.
                    total = xp.take(xp.concat([total, xp.zeros_like(total[:1, :])]), part.back, axis=0)
                out += total
                self.rows_read += n_rows(self.rows[part.atom])
        return self._summed([out], "gradients")[0].reshape(K, m, d).transpose(1, 0, 2)

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> There:
        """See `Passes`."""
        before_pass()
        xp, K = self._xp, theta.shape[1]
        flat = self.put(theta[0])
        taken = None if features is None else to_device_of(features, self.X, label="indices")
        narrow = xp.float32 if np.dtype(dtype) == np.float32 else self._dtype
        size = K * (flat.shape[1] if features is None else len(features) + 1)
        width = _gram_width(self.X, self._apart, K, size // K, 4 if narrow == xp.float32 else 8)
        out = xp.zeros((len(self.rows), size, size), dtype=self._dtype, device=device(self.X))
        with np.errstate(over="ignore", invalid="ignore"):
            for a in range(len(self.rows)):
                total: There = None
                for rows, B in self._blocks(a, width):
                    Z = flat[:, :-1] @ B.T
                    Z += flat[:, -1:]
                    D, P = curvature(Z[:, None, :], rows)
                    B = xp.astype(B if taken is None else xp.take(B, taken, axis=1), narrow, copy=False)
                    B = xp.concat([B, xp.ones_like(B[:, :1])], axis=1)
                    product = _own(B, D[:, 0, :]) if P is None else _joint(B, P[:, 0, :])
                    if total is None:
                        total = xp.astype(product, self._dtype)
                    else:
                        total += product
                    del B, Z, D, P, product
                out[a, :, :] = xp.reshape(_whole(total, K), (size, size))
        self.rows_read += sum(map(n_rows, self.rows))
        return out

    def squares(self, theta: Array, curvature: Curvature) -> There:
        """See `Passes`."""
        before_pass()
        xp, (K, d) = self._xp, theta.shape[1:]
        flat, totals = self.put(theta[0]), []
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

    def _blocks(self, a: int, width: float) -> Iterator[tuple[There, There]]:
        """Some rows of an atom at a time, less the origin; `width`: numbers that are made of a row."""
        rows, there = self.rows[a], self._there[a]
        for block in row_blocks(slice(0, n_rows(rows)), _rows_of_block(self.X.shape[0], width)):
            assert isinstance(block, slice)
            if isinstance(rows, slice):
                own = slice(rows.start + block.start, rows.start + block.stop)
            else:
                own = there[block]
            yield own, self._centred(own)

    def _centred(self, rows: There) -> There:
        xp = self._xp
        part = self.X[rows, :] if isinstance(rows, slice) else xp.take(self.X, rows, axis=0)
        if not xp.isdtype(part.dtype, "real floating"):
            part = xp.astype(part, self._dtype)
        return part - self._origin

    def _parts(self, counts: Array, K: int) -> list["_Part"]:
        """What each atom that is used does for the columns; as a rule that of the pass before."""
        if self._last is None or self._last[1] != K or not np.array_equal(self._last[0], counts):
            found = [self._part(a, counts[:, a], K) for a in range(len(self.rows)) if counts[:, a].any()]
            self._last = counts.copy(), K, found
        return self._last[2]

    def _part(self, a: int, counts: Array, K: int) -> "_Part":
        m, columns = len(counts), np.flatnonzero(counts)
        own = counts[columns]
        times = None if (own == 1.0).all() else self._sent(np.tile(own, K)[:, None], "counts of rows")
        if columns.size == m:
            return _Part(a, columns, None, None, times)
        place = (np.arange(K)[:, None] * m + columns).ravel()
        back = np.full(K * m, place.size)
        back[place] = np.arange(place.size)
        own_place, own_back = (to_device_of(one, self.X, label="indices") for one in (place, back))
        return _Part(a, columns, own_place, own_back, times)


def _rows_of_block(n: int, width: float) -> int:
    """How many of `n` rows are worked on at a time; `width`: numbers that are made of one."""
    most = min(BLOCK_VALUES / width, max(n / BLOCK_PARTS, LEAST_VALUES / width))
    return block_size(max(1, int(most)))


def _taken_width(X: There, apart: bool) -> float:
    """Numbers of float64 that a row is before it is less the origin: what is gathered, or converted."""
    dtype = numpy_dtype(X)
    gathered = dtype.itemsize / 8 if apart else 0.0
    return X.shape[1] * max(gathered, 0.0 if dtype.kind == "f" else 1.0 + gathered)


def _width(X: There, apart: bool, n_columns: int, K: int) -> float:
    """Numbers of float64 that there are of a row in `gradient`; `n_columns`: of all outputs together."""
    # The largest of the outputs, and targets that are gathered.
    beside_it = (n_columns // K if K > 1 else 0) + (K if apart else 0)
    return X.shape[1] + max(_taken_width(X, apart), OF_GRADIENT * n_columns + beside_it)


def _gram_width(X: There, apart: bool, K: int, d: int, size: int) -> float:
    """Numbers of float64 that there are of a row in `gram`, with products in numbers of `size` bytes."""
    p, derived = X.shape[1], (OF_CURVATURE + 2) * K
    narrow = d * size / 8
    wide = p if size == 8 and d == p + 1 else p + narrow
    joint = (K + 2) * narrow if K > 1 else 2 * narrow
    return max(p + _taken_width(X, apart), p + derived, max(wide, joint) + 3 * K)


@dataclass(frozen=True)
class _Part:
    """Columns that use an atom, in the order (output, column).

    Attributes
    ----------
    atom : int
    columns : ndarray of int of shape (m_a,)
        On the host.
    place : array of int of shape (K m_a,), or None
        Which of all these are; None: all.
    back : array of int of shape (K m,), or None
        Where each of all is among these; ``K m_a`` for those that are not.
    times : array of shape (K m_a, 1), or None
        How often each repeats the rows; None: once.
    """

    atom: int
    columns: Array
    place: There
    back: There
    times: There


def _own(B: There, D: There) -> There:
    """Second derivatives by each output twice, (K, d, d), from curvatures (K, b)."""
    xp = array_namespace(B)
    roots = [B * xp.astype(xp.sqrt(D[k, :]), B.dtype)[:, None] for k in range(D.shape[0])]
    return xp.stack([root.T @ root for root in roots])


def _joint(B: There, P: There) -> There:
    """Less the second derivatives by two outputs each, (K, d, K, d); not to be read by one twice."""
    (b, d), K, xp = B.shape, P.shape[0], array_namespace(B)
    # One by one into its place: all at once would be copied to be read as a matrix.
    M = xp.empty((b, K * d), dtype=B.dtype, device=device(B))
    for k in range(K):
        M[:, k * d : (k + 1) * d] = B * xp.astype(P[k, :], B.dtype)[:, None]
    return xp.reshape(M.T @ M, (K, d, K, d))


def _whole(total: There, K: int) -> There:
    """A Hessian (K, d, K, d) from what `_own` or `_joint` give."""
    xp = array_namespace(total)
    same = xp.eye(K, dtype=total.dtype, device=device(total))[:, None, :, None]
    if total.ndim == 3:
        return total if K == 1 else total[:, :, None, :] * same
    # By one output twice: from all others, since they sum to zero.
    mixed = xp.where(same > 0.0, xp.zeros_like(total), total)
    return xp.sum(mixed, axis=0)[None, :, :, :] * same - mixed


def scan(X: There) -> tuple[Array, bool]:
    """What has to be known of X before anything else: one look at it, one synchronisation.

    Parameters
    ----------
    X : array of shape (n, p)
        On a device.

    Returns
    -------
    origin : ndarray of shape (p,)
        A point amid the rows, `middle`; on the host.
    finite : bool
        Whether the sum of all numbers is finite.
    """
    xp, dtype, (n, p) = array_namespace(X), float_dtype(X), X.shape
    some = min(n, SAMPLED_ROWS)
    some -= (some + 1) % 2
    index = np.arange(some) * (n - 1) // max(some - 1, 1)
    sample = xp.reshape(xp.astype(xp.take(X, to_device_of(index, X, label="indices"), axis=0), dtype), (-1,))
    total = xp.zeros_like(sample[:1])
    n = n if xp.isdtype(X.dtype, "real floating") else 0  # integers and bools are finite
    with np.errstate(over="ignore", invalid="ignore"):
        for block in row_blocks(slice(0, n), block_size(BLOCK_VALUES // p)):
            total += xp.sum(X[block, :], dtype=dtype)
    home = to_host(xp.concat([sample, total]), label="rows of a sample").astype(np.float64, copy=False)
    few = home[:-1].reshape(some, p)
    return middle(few, np.empty((some, 0)), slice(0, some)), math.isfinite(home[-1])
