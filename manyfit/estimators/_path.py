"""From coarse to fine: all settings on a few rows, then on all rows, then on every split.

What is solved on all rows lies next to what each split needs: a split starts there, with its own Hessian,
and takes a few steps. Most of the way is so gone once, not once a split.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators._family import Cost, Shape
from manyfit.estimators._lbfgs import LBFGS
from manyfit.estimators._objective import Columns, Hessian, Intercept, LinearProblem, Rowwise
from manyfit.folds import (
    AtomGroup,
    DensePasses,
    PassData,
    Passes,
    View,
    passes_over,
)
from manyfit.metrics import LinearPredictors

Array = NDArray[Any]

# A result's gradient is at most this share of what the estimator's tol asks.
TOL_SHARE = 1e-2
# Rounding of a gradient, in machine epsilons of its size at the start.
ROUNDING = 1e3
# Rows of the first, small problem for each of its coefficients; more tell little more.
SMALL_ROWS = 20
# The small problem is only worth its passes if it is that much smaller.
SMALL_SHARE = 4
# Largest entry of the gradient at which the small problem has told what it knows.
SMALL_TOL = 1e-3
# A whole Hessian takes the operations of d K / (4 m) passes over m columns; it saves dozens.
WORTH_PASSES = 120
# Passes between two Hessians at least.
ROUND = 4
# Settings whose curvatures differ by no more than this share have one Hessian.
HESSIAN_SHARE = 0.2


@dataclass(frozen=True)
class Model:
    """A linear model with a penalty, for many settings of the penalty.

    Attributes
    ----------
    rowwise : Rowwise
        Loss, targets and weights of all rows.
    penalties : callable
        From the sum of the weights of a training set to the penalties of all settings, relative to the mean
        loss; of shape (m,).
    intercept : {"free", "none"}
        See `LinearProblem`.
    tol : float
        What scikit-learn asks of the largest entry of the gradient of the mean loss.
    start : float
        Linear predictor to start at, where the intercept is free.
    """

    rowwise: Rowwise
    penalties: Callable[[float], Array]
    intercept: Intercept
    tol: float
    start: float = 0.0


@dataclass(frozen=True)
class Fitted:
    """All settings of one split.

    Attributes
    ----------
    linear : LinearPredictors
        On the columns of X.
    converged : ndarray of bool of shape (m,)
        Whether the gradient is as small as it should be.
    """

    linear: LinearPredictors
    converged: Array


def fit_path(data: PassData, model: Model, solver: LBFGS) -> tuple[list[Fitted], int]:
    """Fit all settings on all splits.

    Returns
    -------
    fitted : list of Fitted
        One for each split.
    passes : int
        Passes over all rows, those for curvatures among them.
    """
    fitted: list[Fitted] = []
    n_passes = 0
    for group, whole in zip(data.groups, data.wholes, strict=True):
        passes = passes_over(data.X, group)
        parts = []
        for settings in _chunks(data, model, solver, len(group.splits)):
            run = _Group(data, _only(model, settings), solver, group, whole, passes)
            parts.append(run.fit())
            n_passes += run.n_passes
        fitted += [_one_after_the_other(of_split) for of_split in zip(*parts, strict=True)]
    return fitted, n_passes


def _chunks(data: PassData, model: Model, solver: LBFGS, n_splits: int) -> list[slice]:
    """Settings that are fitted together: as many as the solver's vectors leave room for."""
    m = len(model.penalties(1.0))
    vector = 8 * (data.X.shape[1] + 1) * model.rowwise.loss.n_outputs * n_splits
    room = data.memory_limit // 2 // (vector * (2 * solver.memory + 8))
    size = max(1, min(m, room))
    return [slice(start, start + size) for start in range(0, m, size)]


def _only(model: Model, settings: slice) -> Model:
    return replace(model, penalties=lambda total: model.penalties(total)[settings])


def _one_after_the_other(parts: Sequence[Fitted]) -> Fitted:
    linear = [part.linear for part in parts]
    return Fitted(
        LinearPredictors(
            np.concatenate([one.coef for one in linear], axis=1),
            np.concatenate([one.at_origin for one in linear]),
            linear[0].origin,
        ),
        np.concatenate([part.converged for part in parts]),
    )


def pass_cost(n_settings: int, shape: Shape) -> Cost:
    """Operations of an iterating family by shared passes, and one by one.

    By passes: about ten over all settings and eight over all settings and splits; Hessians are only taken
    where they save more than that. One by one: about thirty iterations a fit.
    """
    n, p, k = shape.n_train, shape.n_features, shape.n_splits
    shared = 4.0 * n * p * n_settings * (10.0 + 8.0 * k)
    return Cost(shared, n_settings * k * (1e6 + 30.0 * 4.0 * n * p))


class _Group:
    """Splits that have their atoms in common."""

    def __init__(
        self,
        data: PassData,
        model: Model,
        solver: LBFGS,
        group: AtomGroup,
        whole: View | None,
        passes: Passes,
    ) -> None:
        self.data, self.model, self.solver, self.group = data, model, solver, group
        self.passes = passes
        self.views = [data.views[i] for i in group.splits]
        self.n_passes = 0
        # The splits, and behind them all rows as if they were one more.
        used = np.ones((1, len(group.rows)))
        self.counts = np.concatenate([group.train, used])
        self.all_views = [*self.views, whole]
        self.whole = len(self.views)
        class_weight = model.rowwise.class_weight
        if class_weight is not None:
            own = class_weight[group.splits.start : group.splits.stop]
            class_weight = np.concatenate([own, own.mean(axis=0, keepdims=True)])
        self.rowwise = replace(model.rowwise, class_weight=class_weight)
        self.totals = np.array([
            sum(c * self.rowwise.total(rows, i) for c, rows in zip(counts, group.rows, strict=True) if c)
            for i, counts in enumerate(self.counts)
        ])  # fmt: skip
        self.penalties = np.stack([model.penalties(total) for total in self.totals])
        # The penalty of all rows is that of the splits: their solutions lie about its own.
        self.penalties[self.whole] = self.penalties[: self.whole].mean(axis=0)
        self.m = self.penalties.shape[1]
        self.full = self._full()

    def fit(self) -> list[Fitted]:
        tol = self._tol()
        start = self._small()
        hessians, which = self._shared_hessians(start)
        W, _ = self._solve([self.whole], start, hessians, which, 10.0 * tol)
        if not start[:-1].any():
            # Nothing is like zero: the splits have Hessians from where they start.
            hessians, which = self._shared_hessians(W)
        moved = np.concatenate([self._moved(W, i) for i in range(self.whole)], axis=1)
        return self._fitted(*self._solve(list(range(self.whole)), moved, hessians, which, tol))

    def _full(self) -> bool:
        """Whether whole Hessians fit in memory and save more operations than they take; else diagonals."""
        size = (self.data.X.shape[1] + 1) * self.rowwise.loss.n_outputs
        fits = 8.0 * size**2 * (len(self.all_views) + 1) * 4 <= self.data.memory_limit / 2
        return fits and size <= WORTH_PASSES * self.m * self.whole

    def _zero(self) -> Array:
        """Where everything starts, (p + 1, m, K)."""
        whole = self.all_views[self.whole]
        p = self.data.X.shape[1] if whole is None else whole.n_features
        zero = np.zeros((p + 1, self.m, self.rowwise.loss.n_outputs))
        if self.model.intercept == "free":
            zero[-1] = self.model.start
        return zero

    def _tol(self) -> float:
        """Largest entry of a gradient that is small enough: less than is asked, as far as rounding lets."""
        one, first = np.array([self.whole]), np.zeros(1, dtype=int)
        columns = Columns(one, np.zeros(1), self.totals[one], self.counts[one], first)
        problem = self._problem(columns, [])
        scale = float(problem.size(problem.gradient(self._zero()[:, :1], first), first)[0])
        self.n_passes += 1
        rounding = ROUNDING * np.finfo(np.float64).eps * scale
        return min(self.model.tol, max(self.model.tol * TOL_SHARE, rounding))

    def _problem(self, columns: Columns, hessians: Sequence[Hessian]) -> LinearProblem:
        return LinearProblem(
            self.passes, self.rowwise, columns, self.all_views, hessians, self.model.intercept
        )

    def _solve(
        self, splits: list[int], start: Array, hessians: Sequence[Hessian], which: Array, tol: float
    ) -> tuple[Array, Array]:
        """All settings on some splits, split by split; coefficients and whether they converged.

        What is slow to converge is far from where its Hessian was taken: it gets one of its own, as in
        Newton's method.
        """
        split, n = np.repeat(splits, self.m), len(splits) * self.m
        columns = Columns(
            split, self.penalties[splits].ravel(), self.totals[split], self.counts[split],
            np.tile(which, len(splits)) * len(self.all_views) + split,
        )  # fmt: skip
        problem = self._problem(columns, list(hessians))
        W, left = start.copy(), np.arange(n)
        spent = 0
        while spent < self.solver.max_passes:
            few = self._round(left.size, len(splits))
            solution = self.solver.solve(problem, W[:, left], left, np.full(left.size, tol), few)
            self.n_passes += solution.passes
            spent += solution.passes
            W[:, left] = solution.W
            left = left[~solution.converged]
            if not left.size:
                break
            self._renew(problem, W, left)
        return W, ~np.isin(np.arange(n), left)

    def _round(self, n_columns: int, n_hessians: int) -> int:
        """Passes after which new Hessians are worth their cost: about as many as they cost."""
        d, K = self.data.X.shape[1] + 1, self.rowwise.loss.n_outputs
        if not self.full:
            return self.solver.max_passes
        # A Gram matrix takes d K / (4 m) times the operations of a pass for m columns.
        return max(ROUND, round(n_hessians * d * K / (4.0 * n_columns)))

    def _renew(self, problem: LinearProblem, W: Array, left: Array) -> None:
        """Hessians of the columns that are left, each split by itself, at their own coefficients."""
        columns, hessians = problem.columns, list(problem.hessians)
        for i in np.unique(columns.split[left]):
            own = left[columns.split[left] == i]
            anchors, which = self._anchors(problem, W[:, own], int(i))
            columns.hessian[own] = len(hessians) + which
            hessians += self._of_curvature(problem, W[:, own[anchors]], int(i), [int(i)])
        problem.hessians = hessians

    def _small(self) -> Array:
        """A start for all settings, from some of the rows; zero where that would save nothing."""
        X, intercept = self.data.X, self.model.intercept
        zero = self._zero()
        d, _, K = zero.shape
        step = X.shape[0] // (SMALL_ROWS * d * K)
        if step < SMALL_SHARE or not isinstance(X, np.ndarray):
            return zero
        few = np.ascontiguousarray(X[::step])
        rowwise = self.rowwise.subset(slice(None, None, step))
        every = slice(0, len(few))
        passes = DensePasses(few, [every], self.passes.origin)
        total = rowwise.total(every, self.whole)
        columns = Columns(
            np.full(self.m, self.whole), self.penalties[self.whole], np.full(self.m, total),
            np.ones((self.m, 1)), np.zeros(self.m, dtype=int),
        )  # fmt: skip
        problem = LinearProblem(passes, rowwise, columns, self.all_views, [], intercept)
        D, P = problem.curvature(zero[:, :1], self.whole)
        full = passes.gram(D[0], None if P is None else P[0])[0] / total
        problem.hessians = [Hessian(problem.behind_steps(full, self.whole, K), intercept)]
        return self.solver.solve(problem, zero, np.arange(self.m), np.full(self.m, SMALL_TOL)).W

    def _shared_hessians(self, W: Array) -> tuple[list[Hessian], Array]:
        """Hessians of all splits at some of the settings' coefficients on all rows, and who uses which."""
        none = np.zeros(0, dtype=int)
        problem = self._problem(Columns(none, none, none, self.counts[:0], none), [])
        anchors, which = self._anchors(problem, W, self.whole)
        every = list(range(len(self.all_views)))
        return self._of_curvature(problem, W[:, anchors], self.whole, every), which

    def _of_curvature(
        self, problem: LinearProblem, W: Array, at: int, splits: Sequence[int]
    ) -> list[Hessian]:
        """Hessians of some splits at coefficients of one split, those of one column after the other."""
        D, P = problem.curvature(W, at)
        self.n_passes += 1
        out = []
        for a in range(len(D)):
            product = None if P is None else P[a]
            atoms = self.passes.gram(D[a], product) if self.full else self.passes.squares(D[a])
            self.n_passes += 1
            for i in splits:
                matrix = np.tensordot(self.counts[i], atoms, 1) / self.totals[i]
                behind = problem.behind_steps(matrix, i, W.shape[2])
                out.append(Hessian(behind, self.model.intercept))
        return out

    def _anchors(self, problem: LinearProblem, W: Array, i: int) -> tuple[Array, Array]:
        """Columns of one split to take Hessians at, and for each column which of them it uses."""
        m, step = W.shape[1], max(1, self.data.X.shape[0] // 2000)
        few = self.data.X[::step]
        theta = problem.to_X(W, np.full(m, i))
        d, _, K = theta.shape
        Z = (few - self.passes.origin if isinstance(few, np.ndarray) else few) @ theta[:-1].reshape(d - 1, -1)
        Z = Z + theta[-1].ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            D, _ = self.rowwise.loss.curvature(Z.reshape(-1, m, K), self.rowwise.targets[::step])
        D = np.nan_to_num(D, posinf=0.0)
        # Where a Hessian costs many passes, fewer of them serve.
        share = HESSIAN_SHARE if self._round(m, 1) <= ROUND else 0.5
        anchors: list[int] = []
        which = np.zeros(m, dtype=int)
        for j in range(m):
            if anchors:
                near = np.abs(D[:, anchors] - D[:, [j]]).sum(axis=(0, 2))
                best = int(np.argmin(near))
                if near[best] <= share * D[:, j].sum():
                    which[j] = best
                    continue
            which[j] = len(anchors)
            anchors.append(j)
        return np.array(anchors), which

    def _moved(self, W: Array, i: int) -> Array:
        """Coefficients behind the steps of all rows as those behind the steps of a split."""
        whole, view = self.all_views[self.whole], self.all_views[i]
        if whole is None or view is None:
            return W
        flat = W[:-1].reshape(len(W) - 1, -1)
        moved = view.nearest(whole.to_X(flat))
        return np.concatenate([moved.reshape(-1, *W.shape[1:]), W[-1:]])

    def _fitted(self, W: Array, converged: Array) -> list[Fitted]:
        split = np.repeat(np.arange(self.whole), self.m)
        problem = self._problem(Columns(split, split, split, split, split), [])
        theta = problem.to_X(W, split)
        out = []
        for i in range(self.whole):
            own = slice(i * self.m, (i + 1) * self.m)
            linear = LinearPredictors(theta[:-1, own], theta[-1, own], self.passes.origin)
            out.append(Fitted(linear, converged[own]))
        return out
