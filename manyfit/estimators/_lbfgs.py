"""L-BFGS for many problems at once: one evaluation of all gradients a step, each column with its own step.

A solver is settings and a state; whoever owns the data gives it gradients and an approximate inverse of the
Hessian. Only gradients are evaluated: a convex function whose gradient vanishes is at its minimum, so that
the gradient's norm is the certificate of every answer, however it was found.

References
----------
Nocedal, Wright: Numerical Optimization (2006), section 7.2.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from manyfit.arrays import array_namespace

Array = Any


class Problem(Protocol):
    """Convex problems, one a column, over coefficients of shape (d, m, K)."""

    def gradient(self, W: Array, columns: Array) -> Array:
        """Gradients of some columns at ``W[:, j]``, of the shape of `W`; one pass over the data."""

    def size(self, G: Array, columns: Array) -> Array:
        """The norm of each gradient that convergence is judged by, (m,)."""

    def precondition(self, G: Array, columns: Array) -> Array:
        """An approximate inverse Hessian of each column times ``G[:, j]``; symmetric and positive."""


@dataclass(frozen=True)
class LBFGS:
    """Settings of the solver.

    Attributes
    ----------
    max_passes : int
        Evaluations of gradients after which what has not converged is given up.
    memory : int
        Pairs of steps and gradient changes that are kept.
    max_slope : float
        A step is taken if the slope at its end is at most this share of the slope at its start.
    """

    max_passes: int = 200
    memory: int = 8
    max_slope: float = 0.5

    def solve(
        self, problem: Problem, start: Array, columns: Array, tol: Array, max_passes: int | None = None
    ) -> "Solution":
        """Follow all columns until the size of each gradient is at most its `tol`.

        Parameters
        ----------
        problem : Problem
            The problems.
        start : array of shape (d, m, K)
            Where to start; not changed.
        columns : array of int of shape (m,)
            What `problem` knows the columns by.
        tol : array of shape (m,)
            Size of the gradient that is good enough.
        max_passes : int, optional
            Fewer than the solver's own, where the caller has something better to do then.

        Returns
        -------
        Solution
            For all columns, converged or not.
        """
        xp = array_namespace(start)
        solution = Solution(
            xp.asarray(start, copy=True), xp.zeros_like(start), xp.zeros(columns.shape[0], dtype=xp.bool)
        )
        place = xp.arange(columns.shape[0])
        state = _State(columns, start, problem.gradient(start, columns))
        solution.passes = 1
        limit = self.max_passes if max_passes is None else min(max_passes, self.max_passes)
        while True:
            done = problem.size(state.G, state.columns) <= tol
            solution.W[:, place, :] = state.W
            solution.G[:, place, :] = state.G
            solution.converged[place] = done
            left = ~done
            if not bool(xp.any(left)) or solution.passes >= limit:
                return solution
            if bool(xp.any(done)):
                kept = xp.nonzero(left)[0]
                state, place, tol = state.subset(kept), place[kept], tol[kept]
            solution.passes += self._step(problem, state, limit - solution.passes)

    def _step(self, problem: Problem, state: "_State", budget: int) -> int:
        """One step of all columns of the state; returns the passes it took."""
        xp = array_namespace(state.W)
        D = -state.direction(lambda G: problem.precondition(G, state.columns))
        slope = _dot(state.G, D)
        W, G = state.W + D, xp.zeros_like(state.G)
        length = xp.ones_like(slope)
        open_ = xp.arange(slope.shape[0])
        passes = 0
        while passes < max(budget, 1):
            passes += 1
            G[:, open_, :] = problem.gradient(W[:, open_, :], state.columns[open_])
            end = _dot(G, D)
            # Not finite: the step went where the loss overflows. NaN compares as too steep.
            steep = ~(end <= self.max_slope * xp.abs(slope))
            open_ = xp.nonzero(steep)[0]
            if open_.shape[0] == 0:
                break
            if passes >= budget:
                # No more passes to find how far to go: these stay where they are.
                W[:, open_, :] = state.W[:, open_, :]
                G[:, open_, :] = state.G[:, open_, :]
                break
            # The slope of a convex function rises along the step: about where it would cross zero.
            ratio = -slope[open_] / (end[open_] - slope[open_])
            ratio = xp.where(xp.isfinite(ratio), ratio, xp.zeros_like(ratio))
            length[open_] = length[open_] * xp.clip(ratio, 0.1, 0.9)
            W[:, open_, :] = state.W[:, open_, :] + length[open_][None, :, None] * D[:, open_, :]
        state.move(W, G, self.memory)
        return passes


@dataclass
class Solution:
    """Where the columns ended.

    Attributes
    ----------
    W : array of shape (d, m, K)
        Coefficients.
    G : array of shape (d, m, K)
        Gradients there.
    converged : array of bool of shape (m,)
        Whether the gradient is as small as was asked.
    passes : int
        Passes over the data.
    """

    W: Array
    G: Array
    converged: Array
    passes: int = 0


@dataclass
class _State:
    """Columns that have not converged, and the pairs that tell their curvature."""

    columns: Array
    W: Array
    G: Array
    pairs: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def subset(self, kept: Array) -> "_State":
        pairs = [(S[:, kept, :], Y[:, kept, :], r[kept]) for S, Y, r in self.pairs]
        return _State(self.columns[kept], self.W[:, kept, :], self.G[:, kept, :], pairs)

    def direction(self, precondition: Callable[[Array], Array]) -> Array:
        """The inverse Hessian times the gradient, by the two-loop recursion."""
        Q, factors = self.G, []
        for S, Y, r in reversed(self.pairs):
            a = r * _dot(S, Q)
            Q = Q - a[None, :, None] * Y
            factors.append(a)
        out = precondition(Q)
        for (S, Y, r), a in zip(self.pairs, reversed(factors), strict=True):
            out = out + (a - r * _dot(Y, out))[None, :, None] * S
        return out

    def move(self, W: Array, G: Array, memory: int) -> None:
        xp = array_namespace(W)
        S, Y = W - self.W, G - self.G
        curvature = _dot(S, Y)
        # Where rounding has taken over, or a step led nowhere, a pair says nothing.
        sound = curvature > 1e-14 * xp.sqrt(_dot(S, S) * _dot(Y, Y))
        inverse = xp.where(
            sound, 1.0 / xp.where(sound, curvature, xp.ones_like(curvature)), xp.zeros_like(curvature)
        )
        self.pairs = [*self.pairs, (S, Y, inverse)][-memory:]
        self.W, self.G = W, G


def _dot(A: Array, B: Array) -> Array:
    """Inner products of the columns."""
    return array_namespace(A).sum(A * B, axis=(0, 2))
