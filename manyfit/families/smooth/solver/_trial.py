"""Whether scikit-learn's own solver would meet its tolerance: its method is tried before anything is shared.

A shared answer is an optimum. scikit-learn's solver may stop before it, at ``max_iter`` or because the loss
no longer falls in floating point although its gradient is larger than ``tol``. Its score then differs, and
the setting is not to be shared. The trial is L-BFGS without a preconditioner, in scikit-learn's coordinates
and from its start, which takes about as many steps. The curvatures that it meets say how much a gradient of
`tol` changes the loss.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyfit.families.protocol import Array
from manyfit.families.smooth.solver._lbfgs import LBFGS, Solution, State
from manyfit.families.smooth.solver._objective import LinearProblem, gradient_sizes
from manyfit.folds import RowSource

# Pairs of steps and gradient changes that SciPy's L-BFGS-B keeps.
MEMORY = 10
# A step of the trial stands for so many iterations of scikit-learn's solver, beside some to spare. On some
# 600 fits the solver took about as many iterations as the trial took steps: up to 10 + 1.2 times them where
# curvatures were below 1000, 10 + 3.4 times above, and 1.6 times as many as on a sample.
# `python -m benchmarks convergence` counts what these margins trust wrongly.
SPARE, MARGIN, MARGIN_OF_SAMPLE = 10, 1.5, 2.0
STEEP, MARGIN_OF_STEEP = 1000.0, 2.5
# Where the end of a step is steeper than its start by more than this, SciPy's line search goes back so far
# that the loss hardly falls, and takes that for the end. Exponentials of columns of 1 came to 1e2, of 5 to
# 1e7, of 200 to 1e187, where some fits stopped after one iteration without a word.
OVERSHOT = 1e10
# Evaluations for a step: columns that went too far are stepped back, while the others wait.
EVALUATIONS = 3
# Steps after which the largest curvature is known.
CURVATURE_STEPS = 12
# Settings that need more are left to scikit-learn.
MOST_STEPS = 1000
# A penalty that is a smaller share of the curvature does not make the Hessian regular.
SINGULAR = 1e-10
# A gradient of `tol` has to change the loss by so many times the change that the solver can see. At a tenth
# no fit stopped early, at a hundredth some did.
VISIBLE = 1.0
# Newton's method with Cholesky factors took 83 iterations at most, where the loss shows a gradient of `tol`.
NEWTON_ITERATIONS = 100


@dataclass(frozen=True)
class Stopping:
    """The limits at which scikit-learn's solver stops before its tolerance."""

    max_iter: int  # iterations of scikit-learn's solver
    # Iterations that a Newton method needs if the Hessian is regular; None: L-BFGS, which is tried.
    enough: int | None
    resolution: float  # the smallest change of the loss that it sees, relative to `loss`
    loss: float  # size of the mean loss
    # Curvature, relative to `loss`, above which small columns are not trusted to converge.
    steepest: float = np.inf


@dataclass(frozen=True)
class Trial:
    """The result of a trial of m columns.

    `trusted`, (m,): whether scikit-learn's solver would meet its tolerance; `W`, (m, K, d): where the columns
    ended, in the coordinates of the problem; `steps`, (m,): steps that they took; `tol`, (m,): the tolerance
    that they were followed to.
    """

    trusted: Array
    W: Array
    steps: Array
    tol: Array


def loss_resolution(X: RowSource) -> float:
    """The smallest relative change of the loss that scikit-learn's own solvers see.

    It is the ``ftol`` that scikit-learn gives SciPy, or the rounding of float32 if X is float32.
    """
    eps = float(np.finfo(np.float32).eps) if X.dtype == np.float32 else 0.0
    return max(eps, 64 * float(np.finfo(np.float64).eps))


def sklearn_stopping(estimator: Any, X: RowSource, loss: float) -> Stopping:
    """The limits of scikit-learn's own solvers, where the mean loss has the size `loss` at the start."""
    enough = NEWTON_ITERATIONS if estimator.solver == "newton-cholesky" else None
    return Stopping(estimator.max_iter, enough, loss_resolution(X), max(1.0, loss))


def try_columns(
    problem: LinearProblem,
    zero: Array,
    columns: Array,
    tol: float,
    stopping: Stopping,
    margin: float,
    memory_limit: float,
    may_stop_short: bool = False,
) -> Trial:
    """Try columns of a problem as scikit-learn's solver would go, from `zero`, (n_sets, K, d).

    `tol` is scikit-learn's, relative to the gradient at the start if the norm is euclidean. One step here may
    stand for `margin` iterations of scikit-learn. `memory_limit`, in bytes, is for the vectors of the
    columns. With `may_stop_short`, the tolerance is no smaller than the loss shows.
    """
    certain = stopping.enough is not None and stopping.max_iter >= stopping.enough
    most = min(max(0, int((stopping.max_iter - SPARE) / margin)), MOST_STEPS)
    start = zero[problem.columns.split[columns]]
    at_once = max(1, int(memory_limit / (8.0 * (2 * MEMORY + 10) * zero[0].size)))
    m = len(columns)
    found = Trial(np.zeros(m, dtype=bool), np.empty_like(start), np.zeros(m, dtype=int), np.zeros(m))
    for first in range(0, m, at_once):
        part = slice(first, first + at_once)
        one = _AsSklearn(problem, columns[part], start[part])
        sizes = one.sizes if problem.norm == "euclidean" else np.ones(len(one.sizes))
        solution, visible, wanted = one.follow(most, tol * sizes, stopping, certain, may_stop_short)
        found.W[part], found.steps[part] = one.moved(solution.W, 1.0), solution.steps
        found.tol[part] = np.maximum(tol, wanted / np.where(sizes > 0.0, sizes, 1.0))
        steep = solution.curvature > STEEP * stopping.loss
        in_time = solution.converged & (~steep | (solution.steps <= most / MARGIN_OF_STEEP))
        in_time &= solution.overshoot <= OVERSHOT
        regular = solution.curvature <= stopping.steepest * stopping.loss
        if stopping.enough is not None:  # with a singular Hessian scikit-learn changes its method
            regular &= problem.columns.penalty[columns[part]] >= SINGULAR * solution.curvature
        found.trusted[part] = visible & regular & (in_time | certain)
    return found


def _smallest_shown(curvature: Array, stopping: Stopping) -> Array:
    """The smallest gradient that the loss shows: g changes it by ``g^2 / (2 L)`` for a curvature L."""
    with np.errstate(over="ignore"):
        return np.sqrt(VISIBLE * 2.0 * curvature * stopping.resolution * stopping.loss)


class _AsSklearn:
    """Columns of a problem in the coordinates of scikit-learn's L-BFGS; see `Problem` of `_lbfgs`.

    Free intercepts are values at zero. Columns are known by their positions among those that are tried.
    `sizes`, (m,), are the sizes of the gradients at the start.
    """

    def __init__(self, problem: LinearProblem, columns: Array, start: Array) -> None:
        self._problem, self._columns, self._places = problem, columns, np.arange(len(columns))
        split, self._origin = problem.columns.split[columns], None
        if problem.intercept == "free":
            origins = {int(i): problem.at_origin(int(i)) for i in np.unique(split)}
            self._origin = np.stack([origins[int(i)] for i in split])
        self._start = self.moved(start, -1.0)
        self._G = self.gradient(self._start, self._places)
        self.sizes = self.size(self._G, self._places)
        # SciPy's first step has length one.
        lengths = np.sqrt((self._G**2).sum(axis=(1, 2)))
        self._first = 1.0 / np.where(lengths > 0.0, lengths, 1.0)

    def follow(
        self, steps: int, tol: Array, stopping: Stopping, briefly: bool, may_stop_short: bool
    ) -> tuple[Solution, Array, Array]:
        """Follow all columns for so many steps, or `briefly` until their curvature is known.

        Columns are followed no further if the loss does not show a gradient of `tol`, which is known soon;
        with `may_stop_short`, they are followed to the smallest one that it shows. Returns where they are,
        whether the loss shows their tolerance, and that tolerance.
        """
        few = min(steps, CURVATURE_STEPS)
        state = State(self._places, self._start, self._G, MEMORY)
        found = LBFGS(EVALUATIONS * few, few).solve(self, state, tol)
        open_ = np.flatnonzero(~found.converged)  # in the order of `found.left`
        if may_stop_short:
            tol = np.maximum(tol, _smallest_shown(found.curvature, stopping))
            found.converged |= self.size(found.G, self._places) <= tol
        visible = tol >= _smallest_shown(found.curvature, stopping)
        on = (visible & ~found.converged)[open_]
        if not (briefly or few == steps) and on.any():
            found.left.keep(np.flatnonzero(on))
            more = open_[on]
            rest = LBFGS(EVALUATIONS * (steps - few), steps - few).solve(self, found.left, tol[more])
            for name in ("W", "converged", "curvature", "overshoot", "steps"):
                getattr(found, name)[more] = getattr(rest, name)
            if may_stop_short:
                tol = np.maximum(tol, _smallest_shown(found.curvature, stopping))
            visible = tol >= _smallest_shown(found.curvature, stopping)
        return found, visible & np.isfinite(tol), tol

    def moved(self, V: Array, sign: float, places: Any = slice(None)) -> Array:
        """Intercepts as values at the origin of the passes (`sign` 1), or such as values at zero (-1)."""
        if self._origin is None:
            return V
        out = V.copy()
        out[:, :, -1] += sign * (V[:, :, :-1] @ self._origin[places][:, :, None])[:, :, 0]
        return out

    def gradient(self, W: Array, columns: Array) -> Array:
        G = self._problem.gradient(self.moved(W, 1.0, columns), self._columns[columns])
        if self._origin is not None:
            G[:, :, :-1] += G[:, :, -1:] * self._origin[columns][:, None, :]
        return G

    def size(self, G: Array, columns: Array) -> Array:
        return gradient_sizes(G, self._problem.norm)

    def precondition(self, G: Array, columns: Array) -> Array:
        return G * self._first[columns, None, None]
