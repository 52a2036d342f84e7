"""From coarse to fine: all settings of all splits on a few of their training rows, then on more, then on all.

Most of the way is so gone where a pass costs little. No split ever starts from what has seen its test rows:
in directions that the training rows leave open, any start stays in the answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.estimators._family import Cost, Shape
from manyfit.estimators._fitted import Fitted
from manyfit.estimators._hessians import COEFFICIENTS_A_COLUMN, SAMPLE_ROWS, Hessians
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
# What has not come to a gradient that much smaller than before, in so many passes and with Hessians of its
# own, is at the end of what rounding lets.
PROGRESS = 0.5
IDLE_PASSES = 100
# Passes after which a result that has come to what is asked is good enough.
ENOUGH_PASSES = 60
# Rows of the first, small problem for each coefficient; fewer would say little of the others.
SMALL_ROWS = 20
# Each problem has that many times the rows of the one before it.
COARSER = 4
# On few rows the gradient need not be smaller than chance makes it: this share of its size at zero over the
# square root of the rows.
CHANCE = 0.3
# A whole Hessian takes the operations of d K / (4 m) passes over m columns; it saves dozens.
WORTH_PASSES = 120
# Passes that a fit takes where its Hessian is known in part.
SLOW_PASSES = 60.0
# Bytes of X that a cache holds, and operations that it takes to begin with another class.
CACHE = 2**21
SETTING_UP = 2e8
# Where a whole Hessian is too wide, it is known for as many of the largest features, over all outputs.
HEAD = 300
# Hessians that there should be room for then.
SOME = 4
# Passes between two Hessians at least.
ROUND = 12
# Columns whose curvatures differ by no more than this share have one Hessian; each next one is nearer.
HESSIAN_SHARE = 0.25
NEARER = 0.3


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
    if hasattr(data.X, "tocsc"):
        data = data.condensed()
    fitted, T = _fit_path(data, model, solver), data.basis
    del data  # not needed while answers are scored
    for one in fitted:
        yield one if T is None else one.spread(T)


def _fit_path(data: PassData, model: Model, solver: LBFGS) -> list[Fitted]:
    fitted = []
    for group in data.groups:
        passes = passes_over(data.X, group)
        parts = []
        for settings in _chunks(data, model, solver, len(group.splits)):
            parts.append(_Group(data, _only(model, settings), solver, group, passes).fit())
        fitted += [Fitted.one_after_the_other(of_split) for of_split in zip(*parts, strict=True)]
    return fitted


def _chunks(data: PassData, model: Model, solver: LBFGS, n_splits: int) -> list[slice]:
    """Settings that are fitted together: as many as the solver's vectors leave room for."""
    m = len(model.penalties(1.0))
    n, p = data.X.shape
    vector = 8 * model.rowwise.loss.n_outputs * n_splits
    # Passes over a sparse X keep what they multiply back with of all rows.
    kept = 3 * n if data.basis is not None else 0
    room = data.memory_limit // 2 // (vector * ((p + 1) * (2 * solver.memory + 8) + kept))
    size = max(1, min(m, room))
    return [slice(start, start + size) for start in range(0, m, size)]


def _only(model: Model, settings: slice) -> Model:
    return replace(model, penalties=lambda total: model.penalties(total)[settings])


def pass_cost(n_settings: int, shape: Shape, *, coupled: bool = True) -> Cost:
    """Operations of an iterating family by shared passes, and one by one.

    By passes: about a dozen over all settings and splits, a Hessian or two of each setting, and a factor of
    one for each setting and split; several dozen passes where Hessians are known in part. One by one: about
    thirty iterations a fit.

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
    columns = n_settings * k
    if width <= WORTH_PASSES * columns:
        # Products with themselves of wide matrices, whose operations take a fifth of those of narrow ones.
        hessians = 1.5 * min(n_settings, max(1.0, COEFFICIENTS_A_COLUMN * columns / width))
        shared = times * (
            12.0 * 4.0 * n * width * columns + 0.2 * hessians * n * width**2 + 0.5 * columns * width**3
        )
    else:
        shared = times * SLOW_PASSES * 4.0 * n * width * columns
    # One problem a class: scikit-learn's finds an X that fits a cache there, where single products are fast.
    in_cache = not coupled and outputs > 1 and 8.0 * n * d < CACHE
    begun = SETTING_UP * times if times > 1 else 0.0
    iterations = 12.0 if in_cache else 30.0
    return Cost(shared + begun, columns * (1e6 + times * iterations * 4.0 * n * width))


def _sparse_cost(n_settings: int, shape: Shape, coupled: bool) -> Cost:
    """Products with stored entries, and vectors: L-BFGS goes over twenty of them in each iteration.

    Shared, vectors are of features that several rows have, of texts one for a dozen entries or so, and
    longer than a cache, as those of single fits are not. liblinear takes a few dozen products, no vectors.
    """
    n, p, k = shape.n_entries or 0, shape.n_features, shape.n_splits
    outputs = shape.n_classes if shape.n_classes > 2 else 1
    # By entry and by coefficient, and both ways through a factor of what is known of a Hessian.
    a_pass = 3.0 * n + 60.0 * min(p, n // 8) + 4.0 * min(HEAD**2, n)
    vectors = 60.0 * p if coupled else 0.0
    columns = n_settings * k * outputs
    return Cost(SLOW_PASSES * columns * a_pass, n_settings * k * 1e6 + 30.0 * columns * (4.0 * n + vectors))


class _Group:
    """Splits that have their atoms in common."""

    def __init__(self, data: PassData, model: Model, solver: LBFGS, group: AtomGroup, passes: Passes) -> None:
        self.data, self.model, self.solver, self.group = data, model, solver, group
        self.views = [data.views[i] for i in group.splits]
        rowwise = model.rowwise
        if rowwise.class_weight is not None:
            own = rowwise.class_weight[group.splits.start : group.splits.stop]
            rowwise = replace(rowwise, class_weight=own)
        self.rowwise = rowwise
        totals = _totals(rowwise, group.rows, group.train)
        if not ((totals > 0.0) & (totals < np.inf)).all():
            raise Unsupported("the weights of a training part have no finite sum above 0")
        self.penalties = np.stack([model.penalties(total) for total in totals])
        self.stage = _Stage(data, model, passes, rowwise, group.train, totals, self.penalties, self.views)

    def fit(self) -> list[Fitted]:
        stage, zero = self.stage, self._zero()
        before, first = stage.passes.rows_read, self._coarser()
        # A share of it is asked for in the euclidean norm: that of few rows may be much larger, or zero.
        few = bool(first) and self.model.norm == "largest"
        sizes, start, gradient = (first[0] if few else stage).sizes_at(zero), zero, None
        scale = float(sizes.max())
        for coarse in first:
            start, _, _ = coarse.solve(start, self._chance(scale, coarse), self.solver)
        if first:
            start, gradient = stage.no_worse(start, zero, scale)
        asked = self.model.tol * (float(sizes.min()) if self.model.norm == "euclidean" else 1.0)
        tol = max(asked * TOL_SHARE, ROUNDING * np.finfo(np.float64).eps * scale)
        W, G, size = stage.solve(start, min(tol, asked), self.solver, gradient, asked)
        away = stage.problem.precondition(G, stage.columns)
        cut_short = self._cut_short(W)
        read = sum(one.passes.rows_read for one in (*first, stage)) - before
        return [
            Fitted(self._linear(W, i), self._linear(away, i), size[own] <= asked, cut_short, 0 if i else read)
            for i, own in enumerate(stage.columns.reshape(self.penalties.shape))
        ]

    def _cut_short(self, W: Array) -> Array:
        """Which settings scikit-learn's solver would not be done with, told by those of the first split."""
        m = self.penalties.shape[1]
        out = np.zeros(m, dtype=bool)
        if self.model.max_iter is not None:
            problem, own = self.stage.problem, self.stage.columns[:m]
            self.stage.renew(W[:m], own)
            for matrix, j in self.stage.hessians.matrices(own):
                free = self.model.intercept == "free"
                near = within(
                    matrix, problem.columns.penalty[j], problem.at_origin(0) if free else None,
                    W[j], self.model.tol, self.model.max_iter,
                )  # fmt: skip
                out[j] = ~near
        return out

    def _zero(self) -> Array:
        """Where everything starts, (columns, K, p + 1): there is nothing of test rows in it."""
        p = self.stage.problem.n_features
        zero = np.zeros((self.penalties.size, self.rowwise.loss.n_outputs, p + 1))
        if self.model.intercept == "free":
            splits = self.group.splits
            own = np.broadcast_to(self.model.start, len(self.data.views))[splits.start : splits.stop]
            zero[:, :, -1] = np.repeat(own, self.penalties.shape[1])[:, None]
        return zero

    @staticmethod
    def _chance(scale: float, stage: "_Stage") -> float:
        return CHANCE * scale / float(np.sqrt(stage.n_rows))

    def _coarser(self) -> list["_Stage"]:
        """Problems of ever more rows, each some of all; none where that would save nothing."""
        X = self.data.X
        if not isinstance(X, np.ndarray):
            return []
        stages, share = [], 1
        while len(X) >= share * COARSER * SMALL_ROWS * self._zero()[0].size:
            share *= COARSER
            stage = self._of_some(share)
            if stage is None:
                break
            stages.append(stage)
        return stages[::-1]

    def _of_some(self, share: int) -> "_Stage | None":
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
        few, rowwise = self.data.X[chosen], self.rowwise.subset(chosen)
        totals = _totals(rowwise, atoms, self.group.train)
        if not (totals > 0.0).all():
            return None
        passes = DensePasses(few, atoms, self.stage.passes.origin)
        data = replace(self.data, X=few)
        return _Stage(
            data,
            self.model,
            passes,
            rowwise,
            self.group.train,
            totals,
            self.penalties,
            self.views,
            np.float32,
        )

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
        self._n_sets = n_sets
        split = np.repeat(np.arange(n_sets), m)
        columns = Columns(split, penalties.ravel(), totals[split], counts[split])
        self.columns = np.arange(n_sets * m)
        self._width = (data.X.shape[1] + 1) * rowwise.loss.n_outputs
        room = data.memory_limit / 2 / 8.0  # numbers
        most = self._most(room, n_sets, m, counts.shape[1])
        step = max(1, self.n_rows // SAMPLE_ROWS)
        rows: Rows = slice(0, self.n_rows, step)
        some = data.X[rows] if hasattr(data.X, "tocsc") else data.X[rows] - passes.origin
        head = None
        if most == 0 or self._width > WORTH_PASSES * n_sets * m:
            # As wide as leaves room for some, and a factor for each column, with no more to go over in a
            # factor than in X.
            K, entries = rowwise.loss.n_outputs, getattr(data.X, "nnz", np.size(data.X))
            there = min(entries, room / (n_sets * (m + 1) + 3 + SOME * counts.shape[1]))
            width = min(HEAD, int(np.sqrt(there)))
            head = _largest(some, width // K - 1 if all(view is None for view in views) else 0)
            self._width = K * (len(head) + 1)
            most = max(self._most(room, n_sets, m, counts.shape[1]), SOME)
        self.problem = LinearProblem(
            passes,
            rowwise,
            columns,
            views,
            model.intercept,
            model.norm,
            lambda G, c: self.hessians.solve(G, c),
        )
        self._partial = head is not None
        self.hessians = Hessians(self.problem, head, (some, rows), most)

    def _most(self, room: float, n_sets: int, m: int, n_atoms: int) -> int:
        """Hessians that there is room for, beside a factor for each column."""
        return int(max(0.0, room / self._width**2 - n_sets * (m + 1) - 3) // n_atoms)

    def sizes_at(self, zero: Array) -> Array:
        """Sizes of the gradients of the sets at the start, where all settings have the same; one pass."""
        first = self.columns.reshape(self._n_sets, -1)[:, 0]
        return self.problem.size(self.problem.gradient(zero[first], first), first)

    def no_worse(self, start: Array, zero: Array, scale: float) -> tuple[Array, Array | None]:
        """The start of each column and its gradient, or zero if any is larger than those at zero may be."""
        gradient = self.problem.gradient(start, self.columns)
        # NaN compares as larger. Twice: `scale` may be that of some of the rows.
        if (self.problem.size(gradient, self.columns) <= 2.0 * scale).all():
            return start, gradient
        return zero, None

    def solve(
        self, start: Array, tol: float, solver: LBFGS, gradient: Array | None = None, asked: float = 0.0
    ) -> tuple[Array, Array, Array]:
        """Coefficients of all columns, their gradients, and the sizes of these: at most `tol` if it can be.

        After some passes `asked` is enough. What is slow to converge is far from where its Hessian was taken:
        it gets one of its own, as in Newton's method. What makes no progress then is at the end of what
        rounding lets.
        """
        W, G, left = start.copy(), np.empty_like(start), self.columns
        size, best = np.full((2, left.size), np.inf)
        idle, spent, state = np.zeros(left.size, dtype=int), 0, None
        for i in count():
            self.renew(W[left], left, NEARER**i)

            def worth(n_left: int, rest: int = solver.max_passes - spent) -> int:
                return min(self._passes_of_round(n_left), rest)

            solution = solver.solve(
                self.problem, W[left], left, np.full(left.size, tol), worth, gradient, state
            )
            spent += solution.passes
            W[left], G[left] = solution.W, solution.G
            size[left] = self.problem.size(solution.G, left)
            progress = size[left] <= PROGRESS * best[left]
            best[left] = np.fmin(best[left], size[left])
            idle[left] = np.where(progress, 0, idle[left] + solution.passes)
            left = left[~solution.converged]
            active = idle[left] < IDLE_PASSES
            if spent >= ENOUGH_PASSES:
                active &= ~(size[left] <= asked)
            solution.left.keep(np.flatnonzero(active))
            left = left[active]
            # A whole Hessian of its own says more than what was learnt on the way; a part of it does not.
            state = solution.left if self._partial else None
            gradient = G[left]
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
