"""Penalised losses of linear models on many splits: the problems that a solver is given.

The objective of a column is scikit-learn's: the weighted mean of the loss over the training rows and
``penalty / 2 ||w||^2``. It is seen in the coordinates of the features behind affine steps, each split with
its own steps, while the rows are read as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from manyfit.estimators._losses import Loss
from manyfit.folds import Passes, Rows, View

Array = NDArray[Any]
Intercept = Literal["free", "none"]


@dataclass(frozen=True)
class Columns:
    """Problems: settings on splits.

    Attributes
    ----------
    split : ndarray of int of shape (m,)
        Which view, and which row of ``class_weight``, each column has.
    penalty : ndarray of shape (m,)
        Strength of the penalty, relative to the mean loss.
    weight : ndarray of shape (m,)
        Sum of the weights of the training rows.
    counts : ndarray of shape (m, n_atoms)
        How often each column trains on the rows of each atom.
    hessian : ndarray of int of shape (m,)
        Which approximate Hessian each column uses.
    """

    split: Array
    penalty: Array
    weight: Array
    counts: Array
    hessian: Array

    def subset(self, index: Array) -> "Columns":
        """Some of the columns."""
        parts = (self.split, self.penalty, self.weight, self.counts, self.hessian)
        return Columns(*(part[index] for part in parts))


@dataclass(frozen=True)
class Rowwise:
    """What each row brings to its loss.

    Attributes
    ----------
    loss : Loss
        Of all rows.
    targets : ndarray of shape (n, n_outputs)
        See `Loss`.
    weight : ndarray of shape (n,) or None
        Sample weights.
    class_weight : ndarray of shape (n_splits, n_classes) or None
        Weights of the classes on each split.
    codes : ndarray of int of shape (n,) or None
        The class of each row, where classes have weights.
    """

    loss: Loss
    targets: Array
    weight: Array | None = None
    class_weight: Array | None = None
    codes: Array | None = None

    def weights(self, rows: Rows, splits: Array) -> Array | None:
        """Weights of some rows on some splits, of shape (b, m or 1, 1); None if all are 1."""
        own = None if self.weight is None else self.weight[rows][:, None, None]
        if self.class_weight is None or self.codes is None:
            return own
        of_class = self.class_weight[splits].T[self.codes[rows]][:, :, None]
        return np.asarray(of_class if own is None else own * of_class)

    def total(self, rows: Rows, split: int) -> float:
        """Sum of the weights of some rows on one split."""
        weights = self.weights(rows, np.array([split]))
        return float(len(self.targets[rows])) if weights is None else float(weights.sum())

    def subset(self, rows: Rows) -> "Rowwise":
        """Some of the rows, by themselves."""
        weight = None if self.weight is None else self.weight[rows]
        codes = None if self.codes is None else self.codes[rows]
        return Rowwise(self.loss, self.targets[rows], weight, self.class_weight, codes)


class Hessian:
    """An approximate Hessian of the mean loss of one split, and its solutions for any penalty.

    Parameters
    ----------
    full : ndarray of shape (d K, d K) or (d K,)
        The matrix, coefficients in the order of a (d, K) array; a vector where only its diagonal is known.
    intercept : {"free", "none"}
        What the last K coefficients are.
    """

    def __init__(self, full: Array, intercept: Intercept) -> None:
        self._full, self._intercept = full, intercept
        self._factors: dict[float, Any] = {}

    def solve(self, G: Array, penalty: Array) -> Array:
        """The inverse of the penalised Hessian times each column of `G`, (d, m, K)."""
        d, m, K = G.shape
        columns = np.ascontiguousarray(G.transpose(1, 0, 2)).reshape(m, d * K)
        out = np.stack([self._solved(g, float(p), K) for g, p in zip(columns, penalty, strict=True)])
        return out.reshape(m, d, K).transpose(1, 0, 2)

    def _solved(self, g: Array, penalty: float, K: int) -> Array:
        if self._full.ndim == 1:
            return np.asarray(g / (self._full + self._shift(penalty, K)))
        if penalty not in self._factors:
            self._factors[penalty] = self._factor(penalty, K)
        return np.asarray(cho_solve(self._factors[penalty], g, check_finite=False))

    def _shift(self, penalty: float, K: int) -> Array:
        """What is added to the diagonal: the penalty, and a little where nothing else holds a coefficient."""
        diagonal = self._full if self._full.ndim == 1 else np.diagonal(self._full)
        shift = np.full(diagonal.size, penalty)
        # A free intercept is not penalised; one that is not there only must not be singular.
        shift[-K:] = 0.0 if self._intercept == "free" else 1.0
        return shift + 1e-12 * (diagonal.max(initial=0.0) + penalty) + 1e-300

    def _factor(self, penalty: float, K: int) -> Any:
        shift, more = self._shift(penalty, K), 0.0
        while True:
            matrix = self._full.copy()
            matrix[np.diag_indices_from(matrix)] += shift + more
            try:
                return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                # Rounding made it indefinite. A larger shift is only a shorter step.
                more = max(10.0 * more, 1e-10 * float(np.abs(shift).max() + np.diagonal(self._full).max()))


class LinearProblem:
    """Linear models of all columns, to be minimised; see `manyfit.estimators._lbfgs.Problem`.

    Coefficients are (p + 1, m, K) behind the steps: the features', and in the last row the value at the
    origin where the intercept is free, else 0.

    Parameters
    ----------
    passes : Passes
        Over the rows of X.
    rowwise : Rowwise
        Loss, targets and weights.
    columns : Columns
        The problems.
    views : sequence of View or None
        The steps of each split; None for none.
    hessians : sequence of Hessian
        Approximate Hessians.
    intercept : {"free", "none"}
        What the last row is.
    """

    def __init__(
        self,
        passes: Passes,
        rowwise: Rowwise,
        columns: Columns,
        views: Sequence[View | None],
        hessians: Sequence[Hessian],
        intercept: Intercept,
    ) -> None:
        self.passes, self.rowwise, self.columns = passes, rowwise, columns
        self.views, self.hessians, self.intercept = views, hessians, intercept

    def to_X(self, W: Array, split: Array) -> Array:
        """Coefficients behind the steps as coefficients of the columns of X, and values at the origin."""
        out = np.empty((self.passes.origin.size + 1, *W.shape[1:]))
        for i, j, view in self._by_split(split):
            part = W[:-1, j]
            out[:-1, j] = part if view is None else _mapped(view.to_X, part)
            out[-1, j] = W[-1, j]
            if self.intercept != "free":
                out[-1, j] += np.tensordot(self.at_origin(i), part, 1)
        return out

    def at_origin(self, i: int) -> Array:
        """Features of a split at the origin of the passes."""
        view = self.views[i]
        return self.passes.origin if view is None else view.plain.x_origin

    def _by_split(self, split: Array) -> list[tuple[int, Array, View | None]]:
        return [(int(i), np.flatnonzero(split == i), self.views[i]) for i in np.unique(split)]

    def gradient(self, W: Array, columns: Array) -> Array:
        """See `Problem`; one pass over the rows."""
        asked = self.columns.subset(columns)
        rowwise = self.rowwise

        def residual(Z: Array, rows: Rows, used: Array) -> Array:
            R = rowwise.loss.gradient(Z, rowwise.targets[rows])
            weights = rowwise.weights(rows, asked.split[used])
            if weights is not None:
                R *= weights
            return R

        with np.errstate(over="ignore", invalid="ignore"):  # the solver steps back from what is not finite
            G = self.passes.gradient(self.to_X(W, asked.split), asked.counts, residual)
            G /= asked.weight[:, None]
            out = np.empty_like(W)
            for i, j, view in self._by_split(asked.split):
                part = G[:-1, j]
                out[:-1, j] = part if view is None else _mapped(view.from_X, part)
                if self.intercept != "free":
                    out[:-1, j] += self.at_origin(i)[:, None, None] * G[-1, j]
            out[:-1] += asked.penalty[:, None] * W[:-1]
            out[-1] = G[-1] if self.intercept == "free" else 0.0
        return out

    def precondition(self, G: Array, columns: Array) -> Array:
        """See `Problem`."""
        asked = self.columns.subset(columns)
        out = np.empty_like(G)
        for h in np.unique(asked.hessian):
            j = np.flatnonzero(asked.hessian == h)
            out[:, j] = self.hessians[h].solve(G[:, j], asked.penalty[j])
        return out

    def size(self, G: Array, columns: Array) -> Array:
        """Largest entry of each gradient as scikit-learn has it, with the intercept at zero; (m,)."""
        if self.intercept != "free":
            return np.asarray(np.abs(G).max(axis=(0, 2)))
        out = np.abs(G[-1]).max(axis=-1)
        for i, j, _ in self._by_split(self.columns.split[columns]):
            own = G[:-1, j] + self.at_origin(i)[:, None, None] * G[-1, j]
            out[j] = np.maximum(out[j], np.abs(own).max(axis=(0, 2), initial=0.0))
        return np.asarray(out)

    def curvature(self, W: Array, split: int) -> tuple[Array, Array | None]:
        """Second derivatives of the weighted loss of each row at columns of one split; see `Loss.curvature`.

        Returns
        -------
        D, P : ndarray of shape (m, n, K)
        """
        theta = self.to_X(W, np.full(W.shape[1], split))
        rowwise, counts = self.rowwise, np.ones((W.shape[1], self.columns.counts.shape[1]))
        shape = (W.shape[1], len(rowwise.targets), W.shape[2])
        D, P = np.zeros(shape), np.zeros(shape) if W.shape[2] > 1 else None

        def residual(Z: Array, rows: Rows, _: Array) -> Array:
            diagonal, product = rowwise.loss.curvature(Z, rowwise.targets[rows])
            weights = rowwise.weights(rows, np.array([split]))
            D[:, rows] = (diagonal if weights is None else diagonal * weights).transpose(1, 0, 2)
            if P is not None and product is not None:
                root = product if weights is None else product * np.sqrt(weights)
                P[:, rows] = root.transpose(1, 0, 2)
            return np.zeros(Z.shape)

        with np.errstate(over="ignore", invalid="ignore"):
            self.passes.gradient(theta, counts, residual)
        return D, P

    def behind_steps(self, full: Array, i: int, K: int) -> Array:
        """A Hessian by the coefficients of X, or its diagonal, in the coordinates of a split."""
        view, p = self.views[i], self.passes.origin.size
        if view is None and self.intercept == "free":
            return full
        linear = np.eye(p) if view is None else view.to_X(np.eye(view.n_features))
        T = np.zeros((p + 1, linear.shape[1] + 1))
        T[:-1, :-1] = linear
        if self.intercept != "free":
            T[-1, :-1] = self.at_origin(i)
        T[-1, -1] = self.intercept != "none"
        if full.ndim == 1:
            # The diagonal behind the steps, as if the features of X did not mix.
            return np.asarray((T**2).T @ full.reshape(p + 1, K)).ravel()
        cube = full.reshape(p + 1, K, p + 1, K)
        mapped = np.einsum("akbl,ai,bj->ikjl", cube, T, T, optimize=True)
        return np.asarray(mapped.reshape(T.shape[1] * K, T.shape[1] * K))


def _mapped(function: Any, part: Array) -> Array:
    """A map of matrices applied to (p, m, K)."""
    return np.asarray(function(part.reshape(len(part), -1)).reshape(-1, *part.shape[1:]))
