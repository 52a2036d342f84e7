"""Passes over the rows for linear models: linear predictors of many columns, and their gradients.

A pass reads every row once for all columns together. So all settings and splits share the reading of X, which
takes most of the time of a single matrix-vector product.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from manyfit.folds.passes._samples import RowSample
from manyfit.folds.splits._atoms import Array, Rows

EPS = float(np.finfo(np.float64).eps)
# Columns of coefficients from which on products with X are quick, for a dense and for a sparse X.
QUICK_COLUMNS, QUICK_SPARSE_COLUMNS = 48, 4

Residual = Callable[[Any, Any, Array], Any]
"""``residual(Z, rows, columns)``: from linear predictors (K, m_a, b) of some rows and columns to the factors
of these rows in the gradient, of the same shape; may overwrite `Z`. Arrays lie where X does."""

Curvature = Callable[[Any, Any], tuple[Any, Any]]
"""``curvature(Z, rows)``: from linear predictors (K, 1, b) of some rows to their second derivatives of the
same shape: those by one output twice, and P where those by outputs k and l are ``-P_k P_l``; None: zero.
Where there is P, only differences of the outputs matter: the derivatives by k and all l sum to zero."""


def by_outputs(D: Array, P: Array | None, d: int, summed: Callable[[Array], Array]) -> Array:
    """Second derivatives by all outputs, (K d, K d), from curvatures D and P of some rows, (K, b).

    `summed` gives the sums of squares and products of the rows with some weights, (d, d).
    """
    K = len(D)
    out = np.zeros((K, d, K, d))
    for k in range(K):
        for j in range(k + 1) if P is not None else [k]:
            out[k, :, j] = out[j, :, k] = summed(D[k] if j == k or P is None else -P[k] * P[j])
    return out.reshape(K * d, K * d)


class Passes(Protocol):
    """Passes over the rows of an atom group; linear predictors are ``(x - origin) @ coef + at_origin``."""

    origin: Array  # (p,), a point amid the rows of X; zero for sparse rows
    rows: Sequence[Rows]  # the atoms
    rows_read: int  # rows read so far, each as often as it was read
    eps: float  # machine epsilon of the sums
    quick_columns: int  # columns of coefficients from which on a product with X is quick
    kept_per_column: int  # numbers that a pass keeps for each column and output, beside the result
    single_is_quicker: bool = True  # whether `gram` takes less time in single precision

    def send(self, array: Array) -> Any:
        """Copy a small array of float64 to where X lies."""
        return array

    def sample(self, rows: Rows) -> RowSample:
        """Some rows of X less the origin; a slice may have a step."""

    def to_host(self, sums: Sequence[Any]) -> list[Array]:
        """Copy results of `gram` and `squares` to the host, in float64, in one transfer."""
        return list(sums)

    def gradient(self, theta: Array, counts: Array, residual: Residual) -> Array:
        """``sum_i c_i [x_i - origin, 1]' r_i`` over the rows for each column; (m, K, p + 1), on the host.

        `theta`, (m, K, p + 1), ends with the value at the origin. `counts`, (m, n_atoms), says how often each
        column repeats the rows of an atom. Several threads call `residual`, where overflow does not warn.
        """

    def gram(self, theta: Array, curvature: Curvature, dtype: Any, features: Array | None = None) -> Any:
        """Second derivatives at `theta`, (1, K, p + 1), summed over each atom.

        They are by the coefficients of q `features`, all by default, and the values at the origin, in the
        order of a (K, q + 1) array: (n_atoms, K (q + 1), K (q + 1)), float64, where X lies. `dtype` is the
        precision of the products.
        """

    def squares(self, theta: Array, curvature: Curvature) -> Any:
        """The diagonals of `gram` for all features, of shape (n_atoms, K (p + 1))."""
