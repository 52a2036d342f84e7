"""All settings of all splits on the same rows, in waves of settings that are followed until they converge."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from manyfit.families.protocol import Array
from manyfit.families.smooth.solver._curvatures import SAMPLE_ROWS
from manyfit.families.smooth.solver._lbfgs import LBFGS, MEMORY, State
from manyfit.families.smooth.solver._preconditioner import Hessians
from manyfit.families.smooth.solver._problems import PathProblems, TrainingRows
from manyfit.folds import RowSample

# A column whose gradient did not shrink by this factor, in so many passes and with Hessians of its own, is as
# near the optimum as rounding allows.
PROGRESS = 0.5
IDLE_PASSES = 100
# Passes after which an acceptable gradient is good enough.
ENOUGH_PASSES = 60
# A whole Hessian takes the operations of d K / (4 m) passes over m columns; it saves dozens.
WORTH_PASSES = 120
# If a whole Hessian is too wide, it is known for so many coefficients, those of the largest features.
HEAD = 300
# Hessians that should then fit in memory.
SOME = 4
# Passes between two Hessians at least.
ROUND = 12
# Columns whose curvatures differ by at most this share have one Hessian; the share shrinks in each round.
HESSIAN_SHARE = 0.25
NEARER = 0.3
# A gradient that is missed by this share is missed by its square after it is solved for: no more than
# `HESSIAN_SHARE`.
REFINED = 0.5
# Vectors that are kept for each column in the end.
OF_ALL = 5
# A start whose gradient is so many times as large as that at zero is worse than zero. The size at zero may be
# known from a sample of the rows only.
WORSE = 2.0


@dataclass(frozen=True)
class Tolerance:
    """The size of a gradient at which to stop, for all columns or for each.

    `tol` is sought, `acceptable` is enough after some passes (0: nothing else is); `scale` is the largest
    size at zero.
    """

    tol: float | Array
    acceptable: float | Array
    scale: float

    def of(self, columns: Array) -> tuple[Array, Array]:
        """`tol` and `acceptable` of each of some columns."""
        tol, acceptable = (
            one[columns] if isinstance(one, np.ndarray) else np.full(len(columns), one)
            for one in (self.tol, self.acceptable)
        )
        return tol, acceptable


@dataclass(frozen=True)
class PathPoint:
    """The ends of the paths of m columns: coefficients `W`, (m, K, d), and `size`, (m,), of their gradients.

    `sensitivity`, (m, K, d), is the change of the coefficients for a gradient of size one, whose entries are
    equally large in scikit-learn's coordinates, with random signs; zero if `Tolerance.acceptable` is.
    """

    W: Array
    sensitivity: Array
    size: Array


class Stage:
    """All settings on all training sets over the same rows.

    Half of `memory_limit`, in bytes, is for the vectors of the columns, which are followed in waves that fit,
    and half for Hessians.
    """

    def __init__(self, rows: TrainingRows, problems: PathProblems, solver: LBFGS, memory_limit: int) -> None:
        self.passes, self.solver, self.penalties = rows.passes, solver, problems.penalties
        self.n_rows = rows.n_rows
        self.problem = problems.over(rows)
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
        first = np.float32 if self.passes.single_is_quicker else np.float64
        self.hessians = Hessians(self.problem, head, sample, most, first)

    def _fitting(self, room: float) -> int:
        """Settings that are followed at once: the vectors of the solver fit in `room`, in bytes."""
        n_sets, m = self.penalties.shape
        K, d = self.problem.rowwise.loss.n_outputs, self.problem.n_features + 1
        number = 8 * n_sets * K
        vector = number * d
        # The solver keeps pairs of vectors, and a pass some numbers for each column and output.
        kept = vector * (2 * MEMORY + 8) + number * self.passes.kept_per_column
        return int(np.clip((room - OF_ALL * m * vector) // kept, 1, m))

    def _most(self, room: float) -> int:
        """Hessians that fit in `room`, beside a factor for each column that is followed."""
        n_sets, n_atoms = len(self.penalties), len(self.passes.rows)
        return int(max(0.0, room / self._width**2 - n_sets * (self._at_once + 1) - 3) // (n_atoms + 1))

    def sizes_at(self, zero: Array) -> Array:
        """Sizes of the gradients of the sets at `zero`, (n_sets, K, d), one point for each set; one pass."""
        first = np.arange(len(zero)) * self.penalties.shape[1]
        return self.problem.size(self.problem.gradient(zero, first), first)

    def solve(self, start: Array | None, zero: Array, goal: Tolerance) -> PathPoint:
        """Follow all columns until their gradients are small.

        `start`, (n_sets m, K, d), are points to start at. Without it, settings with the largest penalties
        start at `zero`, (n_sets, K, d), and others where the same set ended with a larger penalty. A start
        that is worse than `zero` is not used.
        """
        n_sets, m = self.penalties.shape
        shape = (n_sets * m, *zero.shape[1:])
        ends, warm = PathPoint(np.empty(shape), np.zeros(shape), np.empty(shape[0])), WarmStart(zero)
        for settings in self._waves(start is None):
            columns = (np.arange(n_sets)[:, None] * m + settings).ravel()
            begin = warm.points(self.penalties[0, settings]) if start is None else start[columns]
            W, G, ends.size[columns] = self._follow(
                columns, *self._checked_starts(begin, zero, columns, goal), goal
            )
            ends.W[columns], (_, acceptable) = W, goal.of(columns)
            if acceptable.any():
                ends.sensitivity[columns] = self._sensitivity(W, G, columns, acceptable)
            self.hessians.release(columns)
            warm.update(
                W.reshape(n_sets, len(settings), *zero.shape[1:])[:, -1], self.penalties[0, settings[-1]]
            )
        return ends

    def _sensitivity(self, W: Array, G: Array, columns: Array, sizes: Array) -> Array:
        """Change of the coefficients of columns for a gradient of size one.

        The Hessians were taken on the way. One pass shows whether a gradient of `sizes`, (m,), leads to where
        the gradient is as large. If it is not, what is missing is solved for as well. If that is much, the
        loss has become flatter or steeper since, as at the edge of a hinge, and the column gets a Hessian at
        its end.
        """
        unit = self._unit_gradient(W, columns)
        change, size = self.hessians.precondition(unit, columns), sizes[:, None, None]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            seen = (self.problem.gradient(W + size * change, columns) - G) / size
            right = np.abs(self.problem.size(seen, columns) - 1.0) <= HESSIAN_SHARE
            near = ~right & (self.problem.size(unit - seen, columns) <= REFINED)
        if near.any():
            change[near] += self.hessians.precondition((unit - seen)[near], columns[near])
        wrong = np.flatnonzero(~(right | near))
        if wrong.size:
            self.hessians.renew(W[wrong], columns[wrong], HESSIAN_SHARE * NEARER)
            change[wrong] = self.hessians.precondition(unit[wrong], columns[wrong])
        return change

    def _unit_gradient(self, W: Array, columns: Array) -> Array:
        """A gradient of size one for each column, the same for all in scikit-learn's coordinates."""
        _, K, d = W.shape
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(K, d))
        if self.problem.intercept == "none":
            signs[:, -1] = 0.0
        if K > 1:  # gradients of several classes sum to zero over the classes
            signs -= signs.mean(axis=0)
        size = np.abs(signs).max() if self.problem.norm == "largest" else np.linalg.norm(signs)
        unit = np.broadcast_to(signs / max(size, np.finfo(float).tiny), W.shape).copy()
        return self.problem.moved(unit, columns, -1.0)

    def _waves(self, warm_starts: bool) -> list[Array]:
        """The settings in waves that are followed at once, those with large penalties first."""
        n_sets, m = self.penalties.shape
        size = self._at_once
        if warm_starts:  # as many as make products with X quick
            n_outputs = self.problem.rowwise.loss.n_outputs
            size = min(size, -(-self.passes.quick_columns // (n_sets * n_outputs)))
        return np.array_split(np.argsort(-self.penalties[0], kind="stable"), -(-m // size))

    def _checked_starts(
        self, begin: Array, zero: Array, columns: Array, goal: Tolerance
    ) -> tuple[Array, Array]:
        """The start of each column and its gradient; `zero` if the start is worse."""
        gradient = self.problem.gradient(begin, columns)
        # NaN compares as larger.
        worse = ~(self.problem.size(gradient, columns) <= WORSE * goal.scale)
        if worse.any():
            begin[worse] = zero[self.problem.columns.split[columns[worse]]]
            gradient[worse] = self.problem.gradient(begin[worse], columns[worse])
        return begin, gradient

    def _follow(self, columns: Array, W: Array, G: Array, goal: Tolerance) -> tuple[Array, Array, Array]:
        """Coefficients of some columns, their gradients, and the sizes of these; changes `W` and `G`.

        A column that converges slowly is far from where its Hessian was taken: it gets one of its own, as in
        Newton's method. A column that makes no progress then is as near the optimum as rounding allows.
        """
        left, place, (tol, acceptable) = columns, np.arange(len(columns)), goal.of(columns)
        size, best = np.full((2, left.size), np.inf)
        idle, spent, state = np.zeros(left.size, dtype=int), 0, State(columns, W, G)
        for i in count():
            self.hessians.renew(W[place], left, HESSIAN_SHARE * NEARER**i)

            def worth(n_left: int, rest: int = self.solver.max_passes - spent) -> int:
                return min(self._passes_of_round(n_left), rest)

            solution = self.solver.solve(self.hessians, state, tol[place], worth)
            spent += solution.passes
            W[place], G[place] = solution.W, solution.G
            size[place] = self.problem.size(solution.G, left)
            progress = size[place] <= PROGRESS * best[place]
            best[place] = np.fmin(best[place], size[place])
            idle[place] = np.where(progress, 0, idle[place] + solution.passes)
            place = place[~solution.converged]
            active = idle[place] < IDLE_PASSES
            if spent >= ENOUGH_PASSES:
                active &= ~(size[place] <= acceptable[place])
            solution.left.keep(np.flatnonzero(active))
            place = place[active]
            left = columns[place]
            if not left.size or spent >= self.solver.max_passes:
                return W, G, size
            # A new whole Hessian replaces the pairs of steps and gradients; a partial one does not.
            state = solution.left if self._partial else State(left, W[place], G[place])
        raise AssertionError  # `count` has no end

    def _passes_of_round(self, n_columns: int) -> int:
        """Passes after which a new Hessian pays for so many columns: about as many as it takes."""
        # A Gram matrix takes the operations of d K / (4 m) passes over m columns.
        return max(ROUND, round(self._width / (4.0 * max(n_columns, 1))))


def _largest_features(sample: RowSample, size: int) -> Array:
    """The features with the largest squares in some rows, at most `size` of them, in order."""
    squares = sample.column_squares()
    size = min(max(size, 0), squares.size)
    return np.sort(np.argsort(-squares, kind="stable")[:size])


class WarmStart:
    """Extrapolates the ends of the sets, (n_sets, K, d), from `start`, in the logarithm of the penalty.

    A further step in the logarithm is mostly a change of the same length.
    """

    def __init__(self, start: Array) -> None:
        self._ends, self._slope, self._depth, self._step = start, np.zeros_like(start), np.nan, 0.0

    def update(self, ends: Array, penalty: float) -> None:
        """Note the ends of the sets for a penalty."""
        depth = float(_depth(penalty))
        step = depth - self._depth  # NaN at first: the way from the start says nothing
        self._slope = (ends - self._ends) / step if step > 0.0 else np.zeros_like(ends)
        self._ends, self._depth, self._step = ends, depth, step

    def points(self, penalties: Array) -> Array:
        """Points to start at, (n_sets m, K, d), no farther ahead than the last step."""
        ahead = np.nan_to_num(np.clip(_depth(penalties) - self._depth, 0.0, self._step))
        points = self._ends[:, None] + ahead[:, None, None] * self._slope[:, None]
        return points.reshape(-1, *self._ends.shape[1:])


def _depth(penalties: Any) -> Any:
    """Minus the logarithm of penalties; no penalty is the deepest."""
    return -np.log(np.maximum(penalties, np.finfo(np.float64).tiny))
