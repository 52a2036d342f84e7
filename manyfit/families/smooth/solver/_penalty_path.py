"""All settings of all splits on the same rows: waves of settings, each followed until it has converged."""

import weakref
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyfit.families.smooth.solver._curvatures import SAMPLE_ROWS
from manyfit.families.smooth.solver._lbfgs import LBFGS
from manyfit.families.smooth.solver._preconditioner import Hessians
from manyfit.families.smooth.solver._problems import PathProblems, TrainingRows
from manyfit.folds import RowSample

Array = NDArray[Any]

# What has not come to a gradient that much smaller than before, in so many passes and with Hessians of its
# own, is at the end of what rounding lets.
PROGRESS = 0.5
IDLE_PASSES = 100
# Passes after which a result that has come to what is asked is good enough.
ENOUGH_PASSES = 60
# A whole Hessian takes the operations of d K / (4 m) passes over m columns; it saves dozens.
WORTH_PASSES = 120
# Where a whole Hessian is too wide, it is known for as many of the largest features, over all outputs.
HEAD = 300
# Hessians that there should be room for then.
SOME = 4
# Passes between two Hessians at least.
ROUND = 12
# Columns whose curvatures differ by no more than this share have one Hessian; each next one is nearer.
HESSIAN_SHARE = 0.25
NEARER = 0.3
# Vectors of all columns that there are in the end.
OF_ALL = 5
# A start whose gradient is larger than that at zero is worse than zero. Twice: the size at zero may be known
# from some of the rows.
WORSE = 2.0


@dataclass(frozen=True)
class Tolerance:
    """How small a gradient is to be.

    Attributes
    ----------
    tol : float
        Its size that is sought.
    asked : float
        What is enough after some passes; 0 if nothing else is.
    scale : float
        Its largest size at zero.
    """

    tol: float
    asked: float
    scale: float


@dataclass
class PathPoint:
    """Where columns came to.

    Attributes
    ----------
    W : ndarray of shape (m, K, d)
        Coefficients.
    away : ndarray of shape (m, K, d)
        How far a gradient of size one leads. All its entries are as large in scikit-learn's coordinates, with
        signs at random. Zero where `Tolerance.asked` is.
    size : ndarray of shape (m,)
        Sizes of the gradients.
    """

    W: Array
    away: Array
    size: Array

    @classmethod
    def of_none(cls, zero: Array) -> "PathPoint":
        """Of no settings, of sets that start at `zero`."""
        return cls(zero[:0], zero[:0], np.empty(0))

    def spread(self, n_sets: int, kept: Array, m: int) -> "PathPoint":
        """The same among all `m` settings of each set, where only those `kept` were followed."""
        if len(kept) == m:
            return self
        places = (np.arange(n_sets)[:, None] * m + kept).ravel()
        shape = (n_sets * m, *self.W.shape[1:])
        W, away, size = np.zeros(shape), np.zeros(shape), np.full(shape[0], np.inf)
        W[places], away[places], size[places] = self.W, self.away, self.size
        return PathPoint(W, away, size)


class Stage:
    """All settings on all training sets over the same rows.

    Half of `memory_limit`, in bytes, is for the vectors of the columns, which are followed in waves that fit,
    and half for Hessians.
    """

    def __init__(self, rows: TrainingRows, problems: PathProblems, solver: LBFGS, memory_limit: int) -> None:
        self.passes, self.solver, self.penalties = rows.passes, solver, problems.penalties
        self.n_rows = rows.n_rows
        own = weakref.ref(self)  # a cycle would keep the rows, perhaps on a device, until garbage collection

        def precondition(G: Array, columns: Array) -> Array:
            stage = own()
            assert stage is not None
            return stage.hessians.solve(G, columns)

        self.problem = problems.over(rows, precondition)
        self._at_once = self._fitting(memory_limit / 2)
        step = max(1, self.n_rows // SAMPLE_ROWS)
        sample = self.passes.sample(
            slice(0, self.n_rows, step) if rows.chosen is None else rows.chosen[::step]
        )
        (n_sets, m), n_atoms = self.penalties.shape, problems.counts.shape[1]
        K, head = rows.rowwise.loss.n_outputs, None
        self._width = (rows.X.shape[1] + 1) * K
        room = memory_limit / 2 / 8.0  # numbers
        most = self._most(room)
        if most == 0 or self._width > WORTH_PASSES * n_sets * m:
            # As wide as leaves room for some Hessians, and for a factor of each column that has no more
            # entries than X.
            entries = min(rows.n_entries, room / (n_sets * (self._at_once + 1) + 3 + SOME * n_atoms))
            width = min(HEAD, int(np.sqrt(entries)))
            size = width // K - 1 if all(view is None for view in problems.views) else 0
            head = _largest_features(sample, size)
            self._width = K * (len(head) + 1)
            most = max(self._most(room), SOME)
        self._partial = head is not None
        self.hessians = Hessians(self.problem, head, sample, most)

    def _fitting(self, room: float) -> int:
        """Settings that are followed at once: the vectors of the solver fit in `room`, in bytes."""
        n_sets, m = self.penalties.shape
        K, d = self.problem.rowwise.loss.n_outputs, self.problem.n_features + 1
        return settings_at_once(n_sets, m, K, d, self.solver.memory, room, self.passes.kept_per_column)

    def _most(self, room: float) -> int:
        """Hessians that there is room for, beside a factor for each column that is followed."""
        n_sets, n_atoms = len(self.penalties), len(self.passes.rows)
        return int(max(0.0, room / self._width**2 - n_sets * (self._at_once + 1) - 3) // (n_atoms + 1))

    def sizes_at(self, zero: Array) -> Array:
        """Sizes of the gradients of the sets at a place each, (n_sets, K, d); one pass."""
        first = np.arange(len(zero)) * self.penalties.shape[1]
        return self.problem.size(self.problem.gradient(zero, first), first)

    def solve(self, start: Array | None, zero: Array, goal: Tolerance) -> PathPoint:
        """Follow all columns until their gradients are small.

        Parameters
        ----------
        start : ndarray of shape (n_sets m, K, d), or None
            Where each column starts. None: settings with the largest penalties start at `zero`, and others
            may start where the same set came to with a larger penalty.
        zero : ndarray of shape (n_sets, K, d)
            Where sets start for which any other start is worse.
        goal : Goal
            What is small.

        Returns
        -------
        Reached
            Settings of the first set, then those of the second, ...
        """
        n_sets, m = self.penalties.shape
        shape = (n_sets * m, *zero.shape[1:])
        # A step on in the logarithm of the penalty is mostly a step on of the same length.
        reached, way = PathPoint(np.empty(shape), np.zeros(shape), np.empty(shape[0])), _Way(zero)
        for settings in self._waves(start is None):
            columns = (np.arange(n_sets)[:, None] * m + settings).ravel()
            begin = way.ahead(self.penalties[0, settings]) if start is None else start[columns]
            W, G, reached.size[columns] = self._follow(
                columns, *self._sound(begin, zero, columns, goal), goal
            )
            reached.W[columns] = W
            if goal.asked:
                reached.away[columns] = self._away(W, G, columns, goal.asked)
            self.hessians.release(columns)
            way.reached(
                W.reshape(n_sets, len(settings), *zero.shape[1:])[:, -1], self.penalties[0, settings[-1]]
            )
        return reached

    def _away(self, W: Array, G: Array, columns: Array, size: float) -> Array:
        """How far a gradient of size one leads from where columns came to.

        The Hessians were taken on the way. One pass shows whether a gradient of `size` leads to where the
        gradient is as large: where it does not, the loss has become flatter or steeper since, as at the edge
        of a hinge, and the column gets a Hessian of where it is.
        """
        unit = self._unit(W, columns)
        away = self.hessians.solve(unit, columns)
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.problem.size(self.problem.gradient(W + size * away, columns) - G, columns) / size
        other = np.flatnonzero(~(np.abs(found - 1.0) <= HESSIAN_SHARE))
        if other.size:
            self.hessians.renew(W[other], columns[other], HESSIAN_SHARE * NEARER)
            away[other] = self.hessians.solve(unit[other], columns[other])
        return away

    def _unit(self, W: Array, columns: Array) -> Array:
        """A gradient of size one for each column, the same for all in scikit-learn's coordinates."""
        _, K, d = W.shape
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(K, d))
        if self.problem.intercept == "none":
            signs[:, -1] = 0.0
        if K > 1:  # gradients of several classes sum to zero over the classes
            signs -= signs.mean(axis=0)
        size = np.abs(signs).max() if self.problem.norm == "largest" else np.linalg.norm(signs)
        unit = np.broadcast_to(signs / max(size, np.finfo(float).tiny), W.shape).copy()
        return self.problem.to_origin(unit, columns)

    def _waves(self, one_from_another: bool) -> list[Array]:
        """The settings in groups that are followed at once, those with large penalties first."""
        n_sets, m = self.penalties.shape
        size = self._at_once
        if one_from_another:
            size = min(
                size,
                settings_of_a_wave(n_sets, self.problem.rowwise.loss.n_outputs, self.passes.quick_columns),
            )
        return np.array_split(np.argsort(-self.penalties[0], kind="stable"), -(-m // size))

    def _sound(self, begin: Array, zero: Array, columns: Array, goal: Tolerance) -> tuple[Array, Array]:
        """The start of each column and its gradient; zero where the start is worse."""
        gradient = self.problem.gradient(begin, columns)
        # NaN compares as larger.
        worse = ~(self.problem.size(gradient, columns) <= WORSE * goal.scale)
        if worse.any():
            begin[worse] = zero[self.problem.columns.split[columns[worse]]]
            gradient[worse] = self.problem.gradient(begin[worse], columns[worse])
        return begin, gradient

    def _follow(self, columns: Array, W: Array, G: Array, goal: Tolerance) -> tuple[Array, Array, Array]:
        """Coefficients of some columns, their gradients, and the sizes of these: `tol` if it can be.

        What is slow to converge is far from where its Hessian was taken: it gets one of its own, as in
        Newton's method. What makes no progress then is at the end of what rounding lets. `W` and `G` are
        changed.
        """
        left, place = columns, np.arange(len(columns))
        size, best = np.full((2, left.size), np.inf)
        idle, spent, state = np.zeros(left.size, dtype=int), 0, None
        for i in count():
            self.hessians.renew(W[place], left, HESSIAN_SHARE * NEARER**i)

            def worth(n_left: int, rest: int = self.solver.max_passes - spent) -> int:
                return min(self._passes_of_round(n_left), rest)

            tol = np.full(left.size, goal.tol)
            solution = self.solver.solve(self.problem, W[place], left, tol, worth, G[place], state)
            spent += solution.passes
            W[place], G[place] = solution.W, solution.G
            size[place] = self.problem.size(solution.G, left)
            progress = size[place] <= PROGRESS * best[place]
            best[place] = np.fmin(best[place], size[place])
            idle[place] = np.where(progress, 0, idle[place] + solution.passes)
            place = place[~solution.converged]
            active = idle[place] < IDLE_PASSES
            if spent >= ENOUGH_PASSES:
                active &= ~(size[place] <= goal.asked)
            solution.left.keep(np.flatnonzero(active))
            place = place[active]
            left = columns[place]
            # A whole Hessian of its own says more than what was learnt on the way; a part of it does not.
            state = solution.left if self._partial else None
            if not left.size or spent >= self.solver.max_passes:
                return W, G, size
        raise AssertionError  # `count` has no end

    def _passes_of_round(self, n_columns: int) -> int:
        """Passes after which a new Hessian is worth its cost to columns: about as many as it costs."""
        # A Gram matrix takes the operations of d K / (4 m) passes over m columns.
        return max(ROUND, round(self._width / (4.0 * max(n_columns, 1))))


def settings_at_once(
    n_sets: int, m: int, n_outputs: int, d: int, memory: int, room: float, n_kept: int = 0
) -> int:
    """Settings whose vectors, of d coefficients for each output, leave room in so many bytes, of `m`.

    Of each the solver keeps `memory` pairs, and a pass `n_kept` numbers a column and output.
    """
    number = 8 * n_sets * n_outputs
    vector = number * d
    room -= OF_ALL * m * vector
    return int(np.clip(room // (vector * (2 * memory + 8) + number * n_kept), 1, m))


def settings_of_a_wave(n_sets: int, n_outputs: int, wide: int) -> int:
    """Settings that make products wide enough."""
    return -(-wide // (n_sets * n_outputs))


class _Way:
    """Where sets came to with penalties that fall, and where others are likely to: on, in their logarithm.

    Parameters
    ----------
    start : ndarray of shape (n_sets, K, d)
        Where the first are likely to come to.
    """

    def __init__(self, start: Array) -> None:
        self._ends, self._pace, self._at, self._gone = start, np.zeros_like(start), np.nan, 0.0

    def reached(self, ends: Array, penalty: float) -> None:
        """The sets came to `ends`."""
        at = float(_depth(penalty))
        gone = at - self._at  # NaN at the first, whose way from the start says nothing
        self._pace = (ends - self._ends) / gone if gone > 0.0 else np.zeros_like(ends)
        self._ends, self._at, self._gone = ends, at, gone

    def ahead(self, penalties: Array) -> Array:
        """Places to start at, (n_sets m, K, d): no farther ahead than the last came."""
        ahead = np.nan_to_num(np.clip(_depth(penalties) - self._at, 0.0, self._gone))
        places = self._ends[:, None] + ahead[:, None, None] * self._pace[:, None]
        return places.reshape(-1, *self._ends.shape[1:])


def _depth(penalties: Any) -> Any:
    """How far down penalties are; none at all is farthest."""
    return -np.log(np.maximum(penalties, np.finfo(np.float64).tiny))


def _largest_features(sample: RowSample, size: int) -> Array:
    """The features with the largest squares in some rows, at most `size` of them, in order."""
    squares = sample.column_squares()
    size = min(max(size, 0), squares.size)
    return np.sort(np.argsort(-squares, kind="stable")[:size])
