"""From coarse to fine: all settings of all splits on a few of their training rows, then on more, then on all.

Most of the way is so gone where a pass costs little. No split ever starts from what has seen its test rows:
in directions that the training rows leave open, any start stays in the answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators._fitted import Fitted
from manyfit.estimators._iterations import within
from manyfit.estimators._lbfgs import LBFGS
from manyfit.estimators._objective import Intercept, Norm, Rowwise
from manyfit.estimators._stage import HESSIAN_SHARE, Goal, Stage
from manyfit.folds import (
    AtomGroup,
    PassData,
    Passes,
    Rows,
    Unsupported,
    is_sparse,
    length_of,
    passes_over,
)
from manyfit.metrics import LinearPredictors

Array = NDArray[Any]

# A result is followed until its gradient is this share of what the estimator's tol asks, and taken if it
# comes to what is asked.
TOL_SHARE = 1e-2
# Rounding of a gradient, in machine epsilons of its size at zero.
ROUNDING = 30.0
# Rows of the first, small problem for each coefficient; fewer would say little of the others.
SMALL_ROWS = 20
# Each problem has that many times the rows of the one before it.
COARSER = 4
# On few rows the gradient need not be smaller than chance makes it: this share of its size at zero over the
# square root of the rows.
CHANCE = 0.3


@dataclass(frozen=True)
class Model:
    """A linear model with a penalty, for many settings of the penalty.

    Attributes
    ----------
    rowwise : Rowwise
        Loss, targets and weights of all rows; on the host.
    penalties : callable
        From the sum of the weights of a training set to the penalties of all settings, relative to the mean
        loss; of shape (m,).
    intercept : {"free", "none"}
        See `LinearProblem`.
    tol : float
        What scikit-learn asks of the size of the gradient of the mean loss.
    norm : {"largest", "euclidean"}
        How it measures it; the euclidean norm is relative to that at zero.
    start : ndarray of shape (n_splits,), or float
        Linear predictor that each split starts at, where the intercept is free: of its training rows.
    max_iter : int or None
        Where scikit-learn's L-BFGS stops; None if its solver is another.
    """

    rowwise: Rowwise
    penalties: Callable[[float], Array]
    intercept: Intercept
    tol: float
    norm: Norm = "largest"
    start: Array | float = 0.0
    max_iter: int | None = None


def fit_path(data: PassData, model: Model, solver: LBFGS) -> Iterator[Fitted]:
    """Fit all settings on all splits.

    Returns
    -------
    iterator of Fitted
        One for each split, all fitted when the first is asked for. Of sparse data only the coefficients of
        the condensed features are kept; those of all are made for one split at a time.
    """
    if is_sparse(data.X):
        data = data.condensed()
    fitted, T = _fit_path(data, model, solver), data.basis
    del data  # not needed while answers are scored
    for one in fitted:
        yield one if T is None else one.spread(T)


def _fit_path(data: PassData, model: Model, solver: LBFGS) -> list[Fitted]:
    there = model.rowwise.beside(data.X)
    return [one for group in data.groups for one in _Group(data, model, there, solver, group).fit()]


class _Group:
    """Splits that have their atoms in common; `there` is what the model has of the rows, where X lies."""

    def __init__(self, data: PassData, model: Model, there: Rowwise, solver: LBFGS, group: AtomGroup) -> None:
        self.data, self.model, self.solver, self.group = data, model, solver, group
        self.views = [data.views[i] for i in group.splits]
        self.rowwise, self.there = model.rowwise.of_splits(group.splits), there.of_splits(group.splits)
        totals = _totals(self.rowwise, group.rows, group.train)
        if not ((totals > 0.0) & (totals < np.inf)).all():
            raise Unsupported("the weights of a training part have no finite sum above 0")
        self.penalties = np.stack([model.penalties(total) for total in totals])
        self.stage = self._stage(data.X, passes_over(data.X, group.rows, data.origin), self.there, totals)

    def fit(self) -> list[Fitted]:
        stage, zero, start = self.stage, self._zero(), None
        # A share of it is asked for in the euclidean norm: that of few rows may be much larger, or zero. It
        # is measured before coarse stages are there, which take memory.
        sizes = stage.sizes_at(zero) if self.model.norm == "euclidean" else None
        coarse = self._coarser()
        if sizes is None:
            sizes = (coarse[0] if coarse else stage).sizes_at(zero)
        scale, read = float(sizes.max()), 0
        coarse.reverse()
        while coarse:  # what one keeps of its rows goes with it
            one = coarse.pop()
            chance = CHANCE * scale / float(np.sqrt(one.n_rows))
            start = one.solve(start, zero, Goal(chance, 0.0, scale)).W
            read += one.passes.rows_read
            del one
        asked = self.model.tol * (float(sizes.min()) if self.model.norm == "euclidean" else 1.0)
        tol = max(asked * TOL_SHARE, ROUNDING * stage.passes.eps * scale)
        reached = stage.solve(start, zero, Goal(min(tol, asked), asked, scale))
        converged = (reached.size <= asked).reshape(self.penalties.shape)
        cut_short = self._cut_short(reached.W)
        read += stage.passes.rows_read
        return [
            Fitted(
                self._linear(reached.W, i), self._linear(reached.away, i), own, cut_short, 0 if i else read
            )
            for i, own in enumerate(converged)
        ]

    def _cut_short(self, W: Array) -> Array:
        """Which settings scikit-learn's solver would not be done with, told by those of the first split."""
        m, model, stage = self.penalties.shape[1], self.model, self.stage
        if model.max_iter is None:
            return np.zeros(m, dtype=bool)
        matrices = stage.hessians.matrices(W[:m], np.arange(m), HESSIAN_SHARE)
        origin = stage.problem.at_origin(0) if model.intercept == "free" else None
        return ~within(matrices, self.penalties[0], origin, W[:m], model.tol, model.max_iter)

    def _zero(self) -> Array:
        """Where the splits start, (n_splits, K, p + 1): there is nothing of test rows in it."""
        splits = self.group.splits
        zero = np.zeros((len(splits), self.rowwise.loss.n_outputs, self.stage.problem.n_features + 1))
        if self.model.intercept == "free":
            own = np.broadcast_to(self.model.start, len(self.data.views))[splits.start : splits.stop]
            zero[:, :, -1] = own[:, None]
        return zero

    def _stage(
        self, X: Any, passes: Passes, rowwise: Rowwise, totals: Array, rows: Array | None = None
    ) -> Stage:
        return Stage(
            X,
            passes,
            rowwise,
            self.group.train,
            totals,
            self.penalties,
            self.views,
            self.model.intercept,
            self.model.norm,
            self.solver,
            self.data.memory_limit,
            rows,
        )

    def _coarser(self) -> list[Stage]:
        """Problems of ever more rows, each some of all; none where that would save nothing."""
        X = self.data.X
        if is_sparse(X):
            return []
        size = self.rowwise.loss.n_outputs * (self.stage.problem.n_features + 1)
        stages, share = [], 1
        while X.shape[0] >= share * COARSER * SMALL_ROWS * size:
            share *= COARSER
            stage = self._of_some(share)
            if stage is None:
                break
            stages.append(stage)
        return stages[::-1]

    def _of_some(self, share: int) -> Stage | None:
        """One of so many rows of each atom; None if a split has none with a weight."""
        # Chosen at random, but always the same: regular ones could miss what comes regularly.
        rng = np.random.default_rng(0)
        parts = []
        for rows in self.group.rows:
            size = length_of(rows)
            some = np.sort(rng.choice(size, -(-size // share), replace=False))
            parts.append(rows.start + some if isinstance(rows, slice) else rows[some])
        ends = np.cumsum([0, *map(len, parts)])
        atoms: list[Rows] = [slice(int(start), int(stop)) for start, stop in pairwise(ends)]
        chosen = np.concatenate(parts)
        rowwise = self.rowwise.subset(chosen)
        totals = _totals(rowwise, atoms, self.group.train)
        if not (totals > 0.0).all():
            return None
        X, origin = self.data.X, self.stage.passes.origin
        if isinstance(X, np.ndarray):
            few = X[chosen]
            return self._stage(few, passes_over(few, atoms, origin), rowwise, totals)
        # Memory of a device is scarce: they are not copied, but taken a block at a time.
        return self._stage(X, passes_over(X, parts, origin), self.there, totals, chosen)

    def _linear(self, W: Array, i: int) -> LinearPredictors:
        m = self.penalties.shape[1]
        theta = self.stage.problem.to_X(W[i * m : (i + 1) * m], np.full(m, i))
        return LinearPredictors(
            theta[:, :, :-1].transpose(2, 0, 1), theta[:, :, -1], self.stage.passes.origin
        )


def _totals(rowwise: Rowwise, atoms: Sequence[Rows], counts: Array) -> Array:
    """Sums of the weights of training sets."""
    return np.array(
        [
            sum(c * rowwise.total(rows, i) for c, rows in zip(own, atoms, strict=True) if c)
            for i, own in enumerate(counts)
        ]
    )
