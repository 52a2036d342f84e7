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

from manyfit.arrays import array_namespace, device

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
        self,
        problem: Problem,
        start: Array,
        columns: Array,
        tol: Array,
        max_passes: int | None = None,
        gradient: Array | None = None,
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
        gradient : array of shape (d, m, K), optional
            The gradients at the start, where they are known.

        Returns
        -------
        Solution
            For all columns, converged or not.
        """
        xp = array_namespace(start)
        place = xp.arange(columns.shape[0], device=device(start))
        passes = 0 if gradient is not None else 1
        if gradient is None:
            gradient = problem.gradient(start, columns)
        state = _State(columns, start, gradient)
        finished: list[tuple[Array, Array, Array, Array]] = []
        limit = self.max_passes if max_passes is None else min(max_passes, self.max_passes)
        while True:
            done = problem.size(state.G, state.columns) <= tol
            # One answer for the host, once a step.
            n_done = int(xp.count_nonzero(done))
            if n_done == done.shape[0] or passes >= limit:
                finished.append((place, state.W, state.G, done))
                break
            if n_done:
                out, kept = xp.nonzero(done)[0], xp.nonzero(~done)[0]
                parts = xp.take(state.W, out, axis=1), xp.take(state.G, out, axis=1)
                finished.append((xp.take(place, out), *parts, xp.take(done, out)))
                state, place, tol = state.subset(kept), xp.take(place, kept), xp.take(tol, kept)
            passes += self._step(problem, state, limit - passes)
        order = xp.argsort(xp.concat([part[0] for part in finished]))
        W, G = (xp.take(xp.concat([part[i] for part in finished], axis=1), order, axis=1) for i in (1, 2))
        return Solution(W, G, xp.take(xp.concat([part[3] for part in finished]), order), passes)

    def _step(self, problem: Problem, state: "_State", budget: int) -> int:
        """One step of all columns of the state; returns the passes it took."""
        xp = array_namespace(state.W)
        D = -state.direction(lambda G: problem.precondition(G, state.columns))
        slope = _dot(state.G, D)
        W = state.W + D
        G = problem.gradient(W, state.columns)
        length, passes = xp.ones_like(slope), 1
        while True:
            end = _dot(G, D)
            # Not finite: the step went where the loss overflows. NaN compares as too steep.
            steep = ~(end <= self.max_slope * xp.abs(slope))
            if not bool(xp.any(steep)):
                break
            if passes >= budget:
                # No more passes to find how far to go: these stay where they are.
                W, G = _where(steep, state.W, W), _where(steep, state.G, G)
                break
            # The slope of a convex function rises along the step: about where it would cross zero.
            ratio = -slope / (end - slope)
            ratio = xp.where(xp.isfinite(ratio), ratio, xp.zeros_like(ratio))
            length = xp.where(steep, length * xp.clip(ratio, 0.1, 0.9), length)
            W = state.W + length[None, :, None] * D
            open_ = xp.nonzero(steep)[0]
            again = problem.gradient(xp.take(W, open_, axis=1), xp.take(state.columns, open_))
            # Where each column that was open stands among the open ones.
            among = xp.clip(xp.cumulative_sum(xp.astype(steep, xp.int64)) - 1, 0, None)
            G = _where(steep, xp.take(again, among, axis=1), G)
            passes += 1
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
    passes: int


@dataclass
class _State:
    """Columns that have not converged, and the pairs that tell their curvature."""

    columns: Array
    W: Array
    G: Array
    pairs: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def subset(self, kept: Array) -> "_State":
        xp = array_namespace(self.W)
        pairs = [
            (xp.take(S, kept, axis=1), xp.take(Y, kept, axis=1), xp.take(r, kept)) for S, Y, r in self.pairs
        ]
        W, G = xp.take(self.W, kept, axis=1), xp.take(self.G, kept, axis=1)
        return _State(xp.take(self.columns, kept), W, G, pairs)

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


def _where(chosen: Array, A: Array, B: Array) -> Array:
    """The columns of `A` where they are chosen, else those of `B`."""
    return array_namespace(A).where(chosen[None, :, None], A, B)


def _dot(A: Array, B: Array) -> Array:
    """Inner products of the columns."""
    return array_namespace(A).sum(A * B, axis=(0, 2))
