"""From coarse to fine: all settings on a few rows, then on all rows, then on every split.

What is solved on all rows lies next to what each split needs: a split starts there, with its own Hessian,
and takes a few steps. Most of the way is so gone once, not once a split.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators._family import Cost, Shape
from manyfit.estimators._fitted import Fitted
from manyfit.estimators._hessians import SAMPLE_ROWS, Hessians
from manyfit.estimators._iterations import within
from manyfit.estimators._lbfgs import LBFGS
from manyfit.estimators._objective import Columns, Intercept, LinearProblem, Norm, Rowwise
from manyfit.folds import (
    AtomGroup,
    DensePasses,
    PassData,
    Passes,
    Rows,
    Unsupported,
    View,
    condensed,
    passes_over,
)
from manyfit.metrics import LinearPredictors

Array = NDArray[Any]

# A result is followed until its gradient is this share of what the estimator's tol asks, and taken if it
# comes to what is asked.
TOL_SHARE = 1e-2
# Rounding of a gradient, in machine epsilons of its size at zero.
ROUNDING = 30.0
# What has not come to a gradient that much smaller than before, in so many passes and with Hessians of its
# own, is at the end of what rounding lets.
PROGRESS = 0.5
IDLE_PASSES = 100
# Passes after which a result that has come to what is asked is good enough.
ENOUGH_PASSES = 60
# Rows of the first, small problem for each feature; fewer would say little of the others.
SMALL_ROWS = 20
# Each problem has that many times the rows of the one before it.
COARSER = 4
# On few rows the gradient need not be smaller than chance makes it: this share of its size at zero over the
# square root of the rows.
CHANCE = 0.3
# A whole Hessian takes the operations of d K / (4 m) passes over m columns; it saves dozens.
WORTH_PASSES = 120
# Bytes of X that a cache holds, and operations that it takes to begin with another class.
CACHE = 2**21
SETTING_UP = 2e8
# Where a whole Hessian is too wide, it is known for as many of the largest features, over all outputs.
HEAD = 300
# Passes between two Hessians at least.
ROUND = 12
# Columns whose curvatures differ by no more than this share have one Hessian; each next one is nearer.
HESSIAN_SHARE = 0.25
NEARER = 0.3
# Newton steps that each split takes from what was solved on all rows.
OWN_STEPS = 2


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
        What scikit-learn asks of the size of the gradient of the mean loss.
    norm : {"largest", "euclidean"}
        How it measures it; the euclidean norm is relative to that at zero.
    start : float
        Linear predictor to start at, where the intercept is free.
    max_iter : int or None
        Where scikit-learn's L-BFGS stops; None if its solver is another.
    """

    rowwise: Rowwise
    penalties: Callable[[float], Array]
    intercept: Intercept
    tol: float
    norm: Norm = "largest"
    start: float = 0.0
    max_iter: int | None = None


def fit_path(data: PassData, model: Model, solver: LBFGS) -> Iterator[Fitted]:
    """Fit all settings on all splits.

    Returns
    -------
    iterator of Fitted
        One for each split, all fitted when the first is asked for. Of sparse data only the coefficients of
        the condensed features are kept; those of all are made for one split at a time.
    """
    if hasattr(data.X, "tocsc"):
        Z, T = condensed(data.X)
        for one in _fit_path(replace(data, X=Z), model, solver):
            yield one.spread(T)
    else:
        yield from _fit_path(data, model, solver)


def _fit_path(data: PassData, model: Model, solver: LBFGS) -> list[Fitted]:
    fitted = []
    for group, whole in zip(data.groups, data.wholes, strict=True):
        passes = passes_over(data.X, group)
        parts = []
        for settings in _chunks(data, model, solver, len(group.splits)):
            parts.append(_Group(data, _only(model, settings), solver, group, whole, passes).fit())
        fitted += [Fitted.one_after_the_other(of_split) for of_split in zip(*parts, strict=True)]
    return fitted


def _chunks(data: PassData, model: Model, solver: LBFGS, n_splits: int) -> list[slice]:
    """Settings that are fitted together: as many as the solver's vectors leave room for."""
    m = len(model.penalties(1.0))
    vector = 8 * (data.X.shape[1] + 1) * model.rowwise.loss.n_outputs * n_splits
    room = data.memory_limit // 2 // (vector * (2 * solver.memory + 8))
    size = max(1, min(m, room))
    return [slice(start, start + size) for start in range(0, m, size)]


def _only(model: Model, settings: slice) -> Model:
    return replace(model, penalties=lambda total: model.penalties(total)[settings])


def pass_cost(n_settings: int, shape: Shape, *, coupled: bool = True) -> Cost:
    """Operations of an iterating family by shared passes, and one by one.

    By passes: about ten over all settings and eight over all settings and splits, three Hessians, and a
    factor of one for each setting and split. One by one: about thirty iterations a fit.

    Parameters
    ----------
    n_settings : int
        Settings of the group.
    shape : Shape
        Of the data.
    coupled : bool
        Whether the classes are fitted together, with one Hessian of all; else one after the other.
    """
    if shape.n_entries is not None:
        return _sparse_cost(n_settings, shape, coupled)
    n, d, k = shape.n_train, shape.n_features + 1, shape.n_splits
    outputs = shape.n_classes if shape.n_classes > 2 else 1
    width, times = (d * outputs, 1) if coupled else (d, outputs)
    shared = times * 4.0 * n * width * n_settings * (10.0 + 8.0 * k)
    if width <= WORTH_PASSES * n_settings * (k + 1):
        shared += times * (1.5 * n * width**2 + 0.5 * n_settings * k * width**3)
    # One problem a class: scikit-learn's finds an X that fits a cache there, where single products are fast.
    in_cache = not coupled and outputs > 1 and 8.0 * n * d < CACHE
    begun = SETTING_UP * times if times > 1 else 0.0
    iterations = 12.0 if in_cache else 30.0
    return Cost(shared + begun, n_settings * k * (1e6 + times * iterations * 4.0 * n * width))


def _sparse_cost(n_settings: int, shape: Shape, coupled: bool) -> Cost:
    """Products with stored entries, and vectors: L-BFGS goes over twenty of them in each iteration.

    Shared, vectors are of features that several rows have; of texts that is at most one for each two entries.
    A shared product is made in two orders of the entries. liblinear takes a few dozen products, no vectors.
    """
    n, p, k = shape.n_entries or 0, shape.n_features, shape.n_splits
    outputs = shape.n_classes if shape.n_classes > 2 else 1
    kept = min(p, n // 2)
    shared = 2.5 * n_settings * (10.0 + 8.0 * k) * outputs * (8.0 * n + 40.0 * kept)
    vectors = 60.0 * p if coupled else 0.0
    return Cost(shared, n_settings * k * (1e6 + 30.0 * outputs * (4.0 * n + vectors)))


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
        self.data, self.model, self.solver = data, model, solver
        self.n_splits = len(group.splits)
        self.whole = whole
        views = [*(data.views[i] for i in group.splits), whole]
        rowwise = model.rowwise
        if rowwise.class_weight is not None:
            own = rowwise.class_weight[group.splits.start : group.splits.stop]
            rowwise = replace(rowwise, class_weight=np.concatenate([own, own.mean(axis=0, keepdims=True)]))
        self.rowwise = rowwise
        # The splits, and behind them all rows as if they were one more.
        counts = np.concatenate([group.train, np.ones((1, len(group.rows)))])
        totals = [
            sum(c * rowwise.total(rows, i) for c, rows in zip(own, group.rows, strict=True) if c)
            for i, own in enumerate(counts)
        ]
        if not all(0.0 < total < np.inf for total in totals):
            raise Unsupported("the weights of a training part have no finite sum above 0")
        penalties = np.stack([model.penalties(total) for total in totals])
        # The penalty of all rows is that of the splits: their solutions lie about its own.
        penalties[-1] = penalties[:-1].mean(axis=0)
        self.penalty = penalties[-1]
        self.stage = _Stage(data, model, passes, rowwise, counts, np.array(totals), penalties, views)

    def fit(self) -> list[Fitted]:
        stage, zero = self.stage, self._zero()
        m, first = len(zero), self._coarser()
        before = stage.passes.rows_read
        # A share of it is asked for in the euclidean norm: that of few rows may be much larger, or zero.
        few = bool(first) and self.model.norm == "largest"
        scale, start = (first[0] if few else stage).size_at(zero), zero
        for coarse in first:
            start, _, _ = coarse.solve(start, coarse.columns, self._chance(scale, coarse), self.solver)
        every = np.arange(m * (self.n_splits + 1))
        splits, whole = every[:-m], every[-m:]
        gradient = None
        if first:
            start, gradient = stage.no_worse(start, zero, whole, scale)
        asked = self.model.tol * (scale if self.model.norm == "euclidean" else 1.0)
        tol = max(asked * TOL_SHARE, ROUNDING * np.finfo(np.float64).eps * scale)
        W, _, _ = stage.solve(
            start, whole, max(10.0 * tol, self._chance(scale, stage)), self.solver, gradient
        )
        cut_short = self._cut_short(W, whole)
        moved = np.concatenate([self._moved(W, i) for i in range(self.n_splits)])
        # What is solved on all rows has seen the test rows. Steps with the split's own Hessian, however small
        # the gradient, leave nothing of what only they say; nor does a memory that begins behind them.
        W, G, size = stage.solve(moved, splits, min(tol, asked), self.solver, None, OWN_STEPS, asked)
        away = stage.problem.precondition(G, splits)
        read = sum(one.passes.rows_read for one in (*first, stage)) - before
        return [
            Fitted(
                self._linear(W, i), self._linear(away, i), size[own] <= asked, cut_short, read / self.n_splits
            )
            for i, own in enumerate(splits.reshape(self.n_splits, m))
        ]

    def _cut_short(self, W: Array, whole: Array) -> Array:
        """Which settings scikit-learn's solver would not be done with, told by those on all rows."""
        out = np.zeros(len(W), dtype=bool)
        if self.model.max_iter is not None:
            problem, last = self.stage.problem, self.n_splits
            self.stage.renew(W, whole)
            for matrix, own in self.stage.hessians.matrices(whole):
                j = own - whole[0]
                free = self.model.intercept == "free"
                near = within(
                    matrix, problem.columns.penalty[own], problem.at_origin(last) if free else None,
                    W[j], self.model.tol, self.model.max_iter,
                )  # fmt: skip
                out[j] = ~near
        return out

    def _zero(self) -> Array:
        """Where everything starts, (m, K, p + 1)."""
        p = self.stage.problem.n_features
        zero = np.zeros((self.penalty.size, self.rowwise.loss.n_outputs, p + 1))
        if self.model.intercept == "free":
            zero[:, :, -1] = self.model.start
        return zero

    @staticmethod
    def _chance(scale: float, stage: "_Stage") -> float:
        return CHANCE * scale / float(np.sqrt(stage.n_rows))

    def _coarser(self) -> list["_Stage"]:
        """Problems of ever more rows, each some of all; none where that would save nothing."""
        X = self.data.X
        if not isinstance(X, np.ndarray):
            return []
        n, p = X.shape
        sizes = []
        while n >= COARSER * SMALL_ROWS * (p + 1):
            n //= COARSER
            sizes.append(n)
        return [self._of_some(size) for size in reversed(sizes)]

    def _of_some(self, size: int) -> "_Stage":
        # Chosen at random, but always the same: regular ones could miss what comes regularly.
        rows = np.sort(np.random.default_rng(0).choice(len(self.data.X), size, replace=False))
        few, rowwise = self.data.X[rows], self.rowwise.subset(rows)
        if rowwise.class_weight is not None:
            rowwise = replace(rowwise, class_weight=rowwise.class_weight[-1:])
        every = slice(0, size)
        passes = DensePasses(few, [every], self.stage.passes.origin)
        data = replace(self.data, X=few)
        total = np.array([rowwise.total(every, 0)])
        return _Stage(
            data,
            self.model,
            passes,
            rowwise,
            np.ones((1, 1)),
            total,
            self.penalty[None],
            [self.whole],
            np.float32,
        )

    def _moved(self, W: Array, i: int) -> Array:
        """Coefficients behind the steps of all rows as those behind the steps of a split."""
        whole, view = self.whole, self.stage.views[i]
        if whole is None or view is None:
            return W
        flat = W[:, :, : whole.n_features].reshape(-1, whole.n_features).T
        moved = np.zeros(W.shape)
        moved[:, :, : view.n_features] = view.nearest(whole.to_X(flat)).T.reshape(*W.shape[:2], -1)
        moved[:, :, -1] = W[:, :, -1]
        return moved

    def _linear(self, W: Array, i: int) -> LinearPredictors:
        m = self.penalty.size
        theta = self.stage.problem.to_X(W[i * m : (i + 1) * m], np.full(m, i))
        return LinearPredictors(
            theta[:, :, :-1].transpose(2, 0, 1), theta[:, :, -1], self.stage.passes.origin
        )


class _Stage:
    """All settings on training sets over the same rows.

    Parameters
    ----------
    data : PassData
        The rows.
    model : Model
        What is fitted.
    passes : Passes
        Over the rows.
    rowwise : Rowwise
        Targets and weights of the rows.
    counts : ndarray of shape (n_sets, n_atoms)
        How often each set has the rows of each atom.
    totals : ndarray of shape (n_sets,)
        Sums of the weights of the sets.
    penalties : ndarray of shape (n_sets, m)
        Of the settings on each set.
    views : list of View or None
        The steps of each set.
    dtype : dtype
        Precision of Hessians. Single precision loses what only the penalty holds, which on some of the rows
        does no harm.
    """

    def __init__(
        self,
        data: PassData,
        model: Model,
        passes: Passes,
        rowwise: Rowwise,
        counts: Array,
        totals: Array,
        penalties: Array,
        views: list[View | None],
        dtype: Any = np.float64,
    ) -> None:
        self.passes, self.views, self._dtype = passes, views, dtype
        self.n_rows = data.X.shape[0]
        n_sets, m = penalties.shape
        split = np.repeat(np.arange(n_sets), m)
        columns = Columns(split, penalties.ravel(), totals[split], counts[split])
        self.columns = np.arange(n_sets * m)
        self._width = (data.X.shape[1] + 1) * rowwise.loss.n_outputs
        most = self._most(data.memory_limit, n_sets, m, counts.shape[1])
        step = max(1, self.n_rows // SAMPLE_ROWS)
        rows: Rows = slice(0, self.n_rows, step)
        some = data.X[rows] if hasattr(data.X, "tocsc") else data.X[rows] - passes.origin
        head = None
        if most == 0 or self._width > WORTH_PASSES * n_sets * m:
            size = HEAD // rowwise.loss.n_outputs - 1 if all(view is None for view in views) else 0
            head = _largest(some, size)
            self._width = rowwise.loss.n_outputs * (len(head) + 1)
        self.problem = LinearProblem(
            passes,
            rowwise,
            columns,
            views,
            model.intercept,
            model.norm,
            lambda G, c: self.hessians.solve(G, c),
        )
        self.hessians = Hessians(self.problem, head, (some, rows), max(most, 1))

    def _most(self, limit: int, n_sets: int, m: int, n_atoms: int) -> int:
        """Whole Hessians that fit in half of the memory, beside a factor for each column."""
        matrices = limit / 2 / (8.0 * self._width**2)
        return int(max(0.0, matrices - n_sets * (m + 1) - 3) // n_atoms)

    def size_at(self, zero: Array) -> float:
        """Size of the gradient at the start, which is that of all settings; one pass."""
        column = self.columns[-1:]
        return float(self.problem.size(self.problem.gradient(zero[-1:], column), column)[0])

    def no_worse(self, start: Array, zero: Array, columns: Array, scale: float) -> tuple[Array, Array | None]:
        """The start of each column and its gradient, or zero if any is larger than those at zero may be."""
        gradient = self.problem.gradient(start, columns)
        # NaN compares as larger. Twice: `scale` may be that of some of the rows.
        if (self.problem.size(gradient, columns) <= 2.0 * scale).all():
            return start, gradient
        return zero, None

    def solve(
        self,
        start: Array,
        columns: Array,
        tol: float,
        solver: LBFGS,
        gradient: Array | None = None,
        newton_steps: int = 0,
        asked: float = 0.0,
    ) -> tuple[Array, Array, Array]:
        """Coefficients of some columns, their gradients, and the sizes of these: at most `tol` if it can be.

        After some passes `asked` is enough.

        What is slow to converge is far from where its Hessian was taken: it gets one of its own, as in
        Newton's method. What makes no progress then is at the end of what rounding lets.
        """
        W, G, left = start.copy(), np.empty_like(start), np.arange(columns.size)
        size, best = np.full((2, columns.size), np.inf)
        idle, spent, state = np.zeros(columns.size, dtype=int), 0, None
        for i in count():
            self.renew(W[left], columns[left], NEARER**i)

            def worth(n_left: int, rest: int = solver.max_passes - spent) -> int:
                return min(self._passes_of_round(n_left), rest)

            solution = solver.solve(
                self.problem, W[left], columns[left], np.full(left.size, tol), worth, gradient,
                newton_steps, state,
            )  # fmt: skip
            newton_steps, state = 0, solution.left
            spent += solution.passes
            W[left], G[left] = solution.W, solution.G
            size[left] = self.problem.size(solution.G, columns[left])
            progress = size[left] <= PROGRESS * best[left]
            best[left] = np.fmin(best[left], size[left])
            idle[left] = np.where(progress, 0, idle[left] + solution.passes)
            left = left[~solution.converged]
            active = idle[left] < IDLE_PASSES
            if spent >= ENOUGH_PASSES:
                active &= ~(size[left] <= asked)
            state.keep(np.flatnonzero(active))
            left = left[active]
            if not left.size or spent >= solver.max_passes:
                break
        return W, G, size

    def renew(self, W: Array, columns: Array, share: float = 1.0) -> None:
        """Give columns Hessians of where they are, as near as is worth it."""
        self.hessians.renew(W, columns, HESSIAN_SHARE * share, self._dtype)

    def _passes_of_round(self, n_columns: int) -> int:
        """Passes after which a new Hessian is worth its cost to columns: about as many as it costs."""
        # A Gram matrix takes the operations of d K / (4 m) passes over m columns.
        return max(ROUND, round(self._width / (4.0 * max(n_columns, 1))))


def _largest(some: Any, size: int) -> Array:
    """The features with the largest squares in some rows, at most `size` of them, in order."""
    squares = some.multiply(some).sum(axis=0) if hasattr(some, "tocsc") else (some**2).sum(axis=0)
    squares = np.asarray(squares).ravel()
    size = min(max(size, 0), squares.size)
    return np.sort(np.argsort(-squares, kind="stable")[:size])
