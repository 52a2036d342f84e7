"""Kernel matrices on which libsvm takes the steps that it takes on rows.

The solver of libsvm reads kernel values in single precision, and those of the diagonal in double. A matrix
product gives them all at once, with other last digits in double precision. They round to the same single
precision, except next to the middle of two neighbours: these few are computed again as libsvm does, one
product of two rows after the other.

References: Chang, Lin: LIBSVM, ACM TIST 2:27 (2011); scikit-learn 1.9, sklearn/svm/src/libsvm/svm.cpp:
`Kernel`, `SVC_Q`, `SVR_Q` and `Qfloat`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot
from scipy.sparse import issparse

from manyfit.families.protocol import Array
from manyfit.folds import Unsupported

EPS = float(np.finfo(np.float64).eps)
# Numbers of a block of a kernel matrix: with what is computed beside it, it stays in the second-level cache.
BLOCK = 2**15
# The part of a kernel matrix that may be computed again, entry by entry.
MOST_AGAIN = 0.005
# Digits of a function of the C library that may differ from NumPy's.
FUNCTION_ULPS = 8.0


@dataclass(frozen=True)
class KernelFunction:
    """``exp(-gamma |x - z|^2)``, or ``(gamma x'z + coef0) ^ degree``."""

    gamma: float  # the factor
    coef0: float = 0.0  # read with a degree
    degree: int | None = None  # None for the exponential function

    def of_pair(self, product: float, squares: float) -> float:
        """The value for two rows, from their product and the sum of their squares, as libsvm has it."""
        if self.degree is None:
            return math.exp(-self.gamma * (squares - 2.0 * product))
        return float(_power(np.float64(self.gamma * product + self.coef0), self.degree))

    def values(self, products: Array, squares: Array) -> Array:
        """The values for many pairs of rows."""
        if self.degree is not None:
            return np.asarray(_power(self.gamma * products + self.coef0, self.degree))
        found = products * -2.0
        found += squares
        found *= -self.gamma
        return np.exp(found, out=found)

    def relative_error(self, products: Array, error: float, largest: float) -> Any:
        """How far values may be off, relative to them, if products of pairs of rows are off by up to `error`.

        `largest` is the largest square of a row. It is infinite where no digit is sure, as where the sign of
        the base of a power is not known.
        """
        if self.degree is None:
            digits = self.gamma * (4.0 * error + 4.0 * EPS * largest) + FUNCTION_ULPS * EPS
            return digits if digits < 0.1 else np.inf
        size = np.abs(self.gamma * products + self.coef0)
        off = self.gamma * error + 2.0 * EPS * (self.gamma * largest + abs(self.coef0))
        # Twice the first order is a bound of all orders, as long as it is small.
        with np.errstate(divide="ignore"):
            part = 2.0 * self.degree * (off / size + 2.0 * EPS)
        return np.where(part < 0.1, part, np.inf)

    def absolute_error(self, error: float, largest: float) -> float:
        """How far a value may be off for rows with squares up to `largest`."""
        if self.degree is None:
            return float(self.relative_error(np.zeros(1), error, largest))
        base = self.gamma * largest + abs(self.coef0)
        off = self.gamma * error + 4.0 * EPS * base
        return float(2.0 * self.degree * base ** max(self.degree - 1, 0) * off)

    def largest_value(self, largest: float) -> float:
        """The largest absolute value for rows with squares up to `largest`."""
        return 1.0 if self.degree is None else float((self.gamma * largest + abs(self.coef0)) ** self.degree)


@dataclass(frozen=True)
class SigmoidFunction(KernelFunction):
    """``tanh(gamma x'z + coef0)``, which is never steeper than its argument."""

    def of_pair(self, product: float, squares: float) -> float:
        return math.tanh(self.gamma * product + self.coef0)

    def values(self, products: Array, squares: Array) -> Array:
        found = self.gamma * products
        found += self.coef0
        return np.tanh(found, out=found)

    def relative_error(self, products: Array, error: float, largest: float) -> Any:
        """See `KernelFunction`; infinite where the sign is not known."""
        with np.errstate(divide="ignore"):
            part = 2.0 * self._argument_error(error, largest) / np.abs(self.gamma * products + self.coef0)
        return np.where(part < 0.1, part + FUNCTION_ULPS * EPS, np.inf)

    def absolute_error(self, error: float, largest: float) -> float:
        return self._argument_error(error, largest) + FUNCTION_ULPS * EPS

    def _argument_error(self, error: float, largest: float) -> float:
        return self.gamma * error + 4.0 * EPS * (self.gamma * largest + abs(self.coef0))

    def largest_value(self, largest: float) -> float:
        return 1.0


class KernelRows:
    """Rows X, (n, p), between which kernel functions are computed: C-contiguous, float64."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.squares = self._squares()
        self.largest = float(self.squares.max())
        if not np.isfinite(self.largest):
            raise Unsupported("squares of rows overflow")

    def _squares(self) -> Array:
        return np.array([ddot(row, row) for row in self.X])

    def product_error(self, largest: float, X: Any = None) -> float:
        """How far products of these rows, and of others if given, may be off, for squares up to `largest`."""
        return (self.X.shape[1] + 2) * EPS * largest

    @property
    def is_whole(self) -> bool:
        """Whether all numbers are whole and so small that products have no rounding error."""
        return self.largest < 2.0**53 and bool((np.rint(self.X) == self.X).all())

    def product(self, i: int, j: int) -> float:
        """The product of two rows, as libsvm has it."""
        return float(ddot(self.X[i], self.X[j]))

    def products(self) -> Array:
        """All products of two rows, (n, n)."""
        return np.asarray(self.X @ self.X.T)

    def matrix(self, kernel: KernelFunction, products: Array, *, out: Array) -> Array:
        """The kernel matrix (n, n), into `out`, which may be `products`.

        Single precision of its entries is libsvm's, and so is the diagonal in double precision. Raises
        `Unsupported` if so many entries would have to be computed again that the rows themselves are quicker.
        """
        n, again = len(self.squares), 0
        error = 0.0 if self.is_whole else self.product_error(self.largest)
        for rows in blocks(n, n):
            part, squares = products[rows, : rows.stop], self.squares[rows, None] + self.squares[: rows.stop]
            values = kernel.values(part, squares)
            open_ = self._open(kernel, part, values, error)
            zero = open_ & (part == 0.0)
            if zero.any():
                self._close_disjoint(open_, zero, rows)
            found = np.argwhere(open_)
            again += len(found)
            if again > MOST_AGAIN * n * n + n:
                raise Unsupported(
                    "rounding leaves many kernel values open: the squares of rows are too large"
                )
            for i, j in found:
                k = i + rows.start
                values[i, j] = kernel.of_pair(self.product(k, j), self.squares[k] + self.squares[j])
            out[rows, : rows.stop] = values
        for rows in blocks(n, n):
            out[: rows.start, rows] = out[rows, : rows.start].T
            square = out[rows, rows]
            square[...] = np.tril(square) + np.tril(square, -1).T
        for i, own in enumerate(self.squares):
            out[i, i] = kernel.of_pair(own, own + own)
        return out

    def _open(self, kernel: KernelFunction, products: Array, values: Array, error: float) -> Array:
        """Entries whose single precision rounding could change, as a mask."""
        relative = kernel.relative_error(products, error, self.largest)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            low, high = values * (1.0 - relative), values * (1.0 + relative)
            return np.asarray(low.astype(np.float32) != high.astype(np.float32)) | ~np.isfinite(low)

    def _close_disjoint(self, open_: Array, zero: Array, rows: slice) -> None:
        """Take out pairs of rows that have no column in common, whose product has no rounding error."""
        filled = (self.X[: rows.stop] != 0.0).astype(np.float32)
        open_ &= ~(zero & (_as_array(filled[rows] @ filled.T) == 0.0))

    @staticmethod
    def squares_of(X: Any) -> Array:
        """Squares of any rows, (m,)."""
        return np.asarray(np.einsum("ij,ij->i", X, X))

    def against(self, X: Any) -> tuple[Array, Array]:
        """Products of other rows with these, (m, n), and the sums of their squares."""
        return _as_array(X @ self.X.T), self.squares_of(X)[:, np.newaxis] + self.squares


class SparseKernelRows(KernelRows):
    """Rows of a CSR matrix of float64 in canonical format.

    libsvm and SciPy add the products of entries in the order of columns. A product has at most as many terms
    as the row with fewer entries, and a distance at most as many as both.
    """

    def _squares(self) -> Array:
        return self.squares_of(self.X)

    @staticmethod
    def squares_of(X: Any) -> Array:
        return np.asarray(X.multiply(X) @ np.ones(X.shape[1]))

    def product_error(self, largest: float, X: Any = None) -> float:
        entries = [int(np.diff(one.indptr).max(initial=0)) for one in (self.X, self.X if X is None else X)]
        return (min(sum(entries), self.X.shape[1]) + 2) * EPS * largest

    @property
    def is_whole(self) -> bool:
        return self.largest < 2.0**53 and bool((np.rint(self.X.data) == self.X.data).all())

    def product(self, i: int, j: int) -> float:
        row = dict(_entries(self.X, i))
        return sum(row[column] * value for column, value in _entries(self.X, j) if column in row)

    def products(self) -> Array:
        n = self.X.shape[0]
        found = np.empty((n, n))
        for rows in blocks(n, n):
            found[rows] = (self.X[rows] @ self.X.T).toarray()
        return found


def _as_array(product: Any) -> Array:
    return product.toarray() if issparse(product) else np.asarray(product)


def _entries(X: Any, i: int) -> Iterator[tuple[int, float]]:
    """The columns and values of a row of a CSR matrix."""
    rows = slice(X.indptr[i], X.indptr[i + 1])
    return zip(X.indices[rows].tolist(), X.data[rows].tolist(), strict=True)


def blocks(n_rows: int, width: int, most: int = BLOCK) -> Iterator[slice]:
    """Slices of rows, with at most so many numbers each, or one row."""
    size = max(1, most // max(width, 1))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def _power(base: Any, degree: int) -> Any:
    """``base ** degree`` by squaring, in the order of libsvm."""
    found, square = np.ones_like(base), base.copy()
    while degree > 0:
        if degree % 2 == 1:
            found = found * square
        square = square * square
        degree //= 2
    return found
