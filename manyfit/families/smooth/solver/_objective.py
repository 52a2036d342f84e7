"""Penalised losses of linear models on many splits: the problems that a solver minimises.

The objective of a column is scikit-learn's: the weighted mean of the loss over the training rows and
``penalty / 2 ||w||^2``. Its coefficients are those of the features behind affine steps, which each split has
of its own, while passes read the rows of X as they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from manyfit.arrays import array_namespace
from manyfit.families.protocol import Array
from manyfit.families.smooth.solver._losses import Loss
from manyfit.folds import Passes, Rows, RowSource, TransformedMoments, Unsupported, take_last

Intercept = Literal["free", "penalised", "none"]
Norm = Literal["largest", "euclidean"]


@dataclass(frozen=True)
class Columns:
    """Problems, one a column: settings on splits.

    `split`, (m,), is the position of the views and class weights of a column; `penalty`, (m,), is relative to
    the mean loss; `weight`, (m,), sums the weights of the training rows; `counts`, (m, n_atoms), says how
    often a column trains on the rows of each atom.
    """

    split: Array
    penalty: Array
    weight: Array
    counts: Array

    def subset(self, index: Array) -> "Columns":
        """Some of the columns."""
        return Columns(self.split[index], self.penalty[index], self.weight[index], self.counts[index])


@dataclass(frozen=True)
class RowLoss:
    """The loss of each row: targets and weights, on the host or where the rows lie, see `beside`.

    `targets` are (n_outputs, n), `weight` (n,). `class_weight`, (n_splits, n_classes), weighs the classes of
    each split, and `codes`, (n,), is the class of each row. Raises `Unsupported` for a weight that is
    negative or NaN.
    """

    loss: Loss
    targets: Any
    weight: Any = None
    class_weight: Array | None = None
    codes: Any = None

    def __post_init__(self) -> None:
        for weights in (self.weight, self.class_weight):
            # Those on a device were checked before they were sent.
            if isinstance(weights, np.ndarray) and not (weights >= 0.0).all():
                # The objective would not be convex, and a vanishing gradient would say nothing.
                raise Unsupported("a weight is negative or NaN")

    def gradient(self, Z: Any, rows: Any, splits: Array) -> Any:
        """Weighted derivatives of the loss of some rows, (K, m, b); may overwrite `Z`."""
        R = self.loss.gradient(Z, take_last(self.targets, rows))
        for columns, weights in self._weights(rows, splits):
            R[:, columns, :] *= weights
        return R

    def curvature(self, Z: Any, rows: Any, splits: Array) -> tuple[Any, Any]:
        """Weighted second derivatives of some rows, see `Loss.curvature`; may overwrite `Z`, (K, m, b)."""
        with np.errstate(over="ignore", invalid="ignore"):
            D, P = self.loss.curvature(Z, take_last(self.targets, rows))
        xp = array_namespace(D)
        with np.errstate(over="ignore", invalid="ignore"):
            for columns, weights in self._weights(rows, splits):
                D[:, columns, :] *= weights
                if P is not None:
                    P[:, columns, :] *= xp.sqrt(weights)
        # Where a loss overflows, no curvature would help.
        return xp.where(xp.isfinite(D), D, 0.0), P

    def _weights(self, rows: Any, splits: Array) -> Iterator[tuple[slice, Any]]:
        """Neighbouring columns with the weights of some rows, (b,), on their split; nothing if all are 1."""
        own = None if self.weight is None else take_last(self.weight, rows)
        if self.class_weight is None or self.codes is None:
            if own is not None:
                yield slice(None), own
            return
        codes = take_last(self.codes, rows)
        starts = np.flatnonzero(np.diff(splits, prepend=-1))
        for start, stop in pairwise([*starts.tolist(), len(splits)]):
            of_class = take_last(self.class_weight[int(splits[start]), :], codes)
            yield slice(start, stop), of_class if own is None else own * of_class

    def beside(self, X: RowSource) -> "RowLoss":
        """A copy with all arrays where the rows of X lie."""
        return replace(
            self,
            targets=X.send_numbers(self.targets, "y"),
            weight=X.send_numbers(self.weight, "weights"),
            class_weight=X.send_numbers(self.class_weight, "weights"),
            codes=X.send(self.codes, "y"),
        )

    def of_splits(self, splits: range) -> "RowLoss":
        """A copy with the class weights of some splits."""
        if self.class_weight is None:
            return self
        return replace(self, class_weight=self.class_weight[splits.start : splits.stop, :])

    def total(self, rows: Rows, split: int) -> float:
        """Sum of the weights of some rows on one split; for arrays on the host."""
        for _, weights in self._weights(rows, np.array([split])):
            return float(weights.sum())
        return float(self.targets[:, rows].shape[1])

    def subset(self, rows: Rows) -> "RowLoss":
        """A copy with some of the rows; for arrays on the host."""
        weight = None if self.weight is None else self.weight[rows]
        codes = None if self.codes is None else self.codes[rows]
        targets = np.ascontiguousarray(self.targets[:, rows])
        return RowLoss(self.loss, targets, weight, self.class_weight, codes)


@dataclass(eq=False)
class LinearProblem:
    """Linear models of all columns, to be minimised.

    Coefficients are (m, K, p + 1): those of the features behind the steps, and in the last place the value at
    the origin if the intercept is "free", the intercept itself if it is "penalised" as a weight, or 0 for
    "none". `norm` measures a gradient by its "largest" entry or by its "euclidean" length.
    """

    passes: Passes
    rowwise: RowLoss
    columns: Columns
    views: Sequence[TransformedMoments | None]
    intercept: Intercept
    norm: Norm = "largest"

    def __post_init__(self) -> None:
        # The places of the splits among the columns of the last gradient: the next one has the same.
        self._last: tuple[bytes, list[tuple[int, Array, TransformedMoments | None]]] = (b"", [])
        # Steps may keep more features on some splits than on others: coefficients that a split lacks stay
        # zero.
        self.n_features = max(map(self._n_features, range(len(self.views))), default=self.passes.origin.size)

    def to_X(self, W: Array, split: Array) -> Array:
        """Coefficients behind the steps as coefficients of the columns of X, with values at the origin."""
        if self.intercept == "free" and all(view is None for view in self.views):
            return W
        out = np.empty((*W.shape[:2], self.passes.origin.size + 1))
        for i, j, view in self._by_split(split):
            part = W[j, :, : self._n_features(i)]
            out[j, :, :-1] = part if view is None else _mapped(view.to_X, part)
            out[j, :, -1] = W[j, :, -1]
            if self.intercept != "free":
                out[j, :, -1] += W[j, :, :-1] @ self.at_origin(i)
        return out

    def _n_features(self, i: int) -> int:
        view = self.views[i]
        return self.passes.origin.size if view is None else view.n_features

    def at_origin(self, i: int) -> Array:
        """Features of a split at the origin of the passes, zero for features that it lacks."""
        view, own = self.views[i], self.passes.origin
        if view is not None:
            # The moments of a device have an origin of their own.
            shift = own - view.origin
            own = view.plain.x_origin
            if shift.any():
                own = own + _mapped(view.from_X, shift[None, None, :])[0, 0, :]
        return own if own.size == self.n_features else np.pad(own, (0, self.n_features - own.size))

    def _by_split(self, split: Array) -> list[tuple[int, Array, TransformedMoments | None]]:
        key, (last, found) = split.tobytes(), self._last
        if key != last:
            found = [(int(i), np.flatnonzero(split == i), self.views[i]) for i in np.unique(split)]
            self._last = key, found
        return found

    def gradient(self, W: Array, columns: Array) -> Array:
        """Gradients of some columns; one pass over the rows."""
        used_columns = self.columns.subset(columns)
        # All that workers of a cluster need of this problem.
        rowwise, split = self.rowwise, used_columns.split

        def residual(Z: Any, rows: Any, used: Array) -> Any:
            return rowwise.gradient(Z, rows, split[used])

        with np.errstate(over="ignore", invalid="ignore"):  # the solver steps back from what is not finite
            G = self.passes.gradient(self.to_X(W, used_columns.split), used_columns.counts, residual)
            G /= used_columns.weight[:, None, None]
            out = np.zeros_like(W)
            for i, j, view in self._by_split(used_columns.split):
                part, own = G[j, :, :-1], slice(self._n_features(i))
                out[j, :, own] = part if view is None else _mapped(view.from_X, part)
                if self.intercept != "free":
                    out[j, :, :-1] += G[j, :, -1:] * self.at_origin(i)
            out[:, :, :-1] += used_columns.penalty[:, None, None] * W[:, :, :-1]
            out[:, :, -1] = 0.0 if self.intercept == "none" else G[:, :, -1]
            if self.intercept == "penalised":
                out[:, :, -1] += used_columns.penalty[:, None] * W[:, :, -1]
        return out

    def size(self, G: Array, columns: Array) -> Array:
        """Size of each gradient, (m,), in scikit-learn's coordinates: with free intercepts at zero."""
        return gradient_sizes(self.moved(G, columns, 1.0), self.norm)

    def moved(self, G: Array, columns: Array, sign: float) -> Array:
        """Gradients with free intercepts at zero, as in scikit-learn (`sign` 1), or the reverse (-1)."""
        if self.intercept != "free" or not self.passes.origin.any():
            return G
        own = G.copy()
        for i, j, _ in self._by_split(self.columns.split[columns]):
            own[j, :, :-1] += sign * (G[j, :, -1:] * self.at_origin(i))
        return own

    def behind_steps(self, full: Array, i: int, K: int, features: Array | None = None) -> Array:
        """A Hessian by the coefficients of X, or its diagonal, in the coordinates of split `i`.

        With `features` it is the Hessian by these alone, without steps.
        """
        view, p = self.views[i], self.passes.origin.size
        if view is None and self.intercept == "free":
            return full
        if full.ndim == 1:
            return self._diagonal_behind_steps(full.reshape(K, p + 1), i)
        origin = self.at_origin(i)
        if features is not None:
            linear, origin = np.eye(len(features)), origin[features]
        else:
            linear = np.eye(p) if view is None else view.to_X(np.eye(view.n_features))
        T = np.zeros((len(linear) + 1, origin.size + 1))
        T[:-1, : linear.shape[1]] = linear
        if self.intercept != "free":
            T[-1, :-1] = origin
        T[-1, -1] = self.intercept != "none"
        return _congruent(full, T, K)

    def _diagonal_behind_steps(self, full: Array, i: int) -> Array:
        """An approximation of the diagonal, (K, p + 1), as if the steps did not mix the features of X."""
        view, out = self.views[i], np.zeros((len(full), self.n_features + 1))
        part = full[:, :-1]
        out[:, : self._n_features(i)] = part if view is None else view.squares_from_X(part.T).T
        if self.intercept != "free":
            out[:, :-1] += self.at_origin(i) ** 2 * full[:, -1:]
        out[:, -1] = full[:, -1] * (self.intercept != "none")
        return out.ravel()


def gradient_sizes(G: Array, norm: Norm) -> Array:
    """The norm of each gradient, (m,)."""
    if norm == "largest":
        return np.asarray(np.abs(G).max(axis=(1, 2)))
    return np.asarray(np.sqrt((G**2).sum(axis=(1, 2))))


def _congruent(full: Array, T: Array, K: int) -> Array:
    """``T' H T`` of each of the K x K blocks of a matrix."""
    d, e = T.shape
    blocks = full.reshape(K, d, K, d).transpose(0, 2, 1, 3)
    mapped = (T.T @ blocks @ T).transpose(0, 2, 1, 3)
    return np.asarray(mapped.reshape(K * e, K * e))


def _mapped(function: Any, part: Array) -> Array:
    """Apply a map of the columns of matrices to the last axis of (m, K, p)."""
    mapped = function(part.reshape(-1, part.shape[-1]).T)
    return np.asarray(mapped.T.reshape(*part.shape[:2], -1))
